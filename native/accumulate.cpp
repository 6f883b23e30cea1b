#include "accumulate.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "parallel.hpp"

namespace lvdet {

namespace {

constexpr std::size_t kWord = 64;

// The number of right detections that reaches each of the 101 recalls. Comparing counts in place
// of quotients would round differently, so the quotient itself decides.
class Levels {
   public:
    void set(std::int64_t truth, const double* recalls) {
        const auto objects = static_cast<double>(truth);
        std::int64_t count = 1;  // recall 0 is that of the first right detection
        for (std::size_t r = 0; r < kRecalls; ++r) {
            count = std::max(count, static_cast<std::int64_t>(recalls[r] * objects) - 1);
            while (static_cast<double>(count) / objects < recalls[r]) ++count;
            first_[r] = count;
        }
        first_[kRecalls] = std::numeric_limits<std::int64_t>::max();
    }
    std::int64_t needed(std::size_t level) const { return first_[level]; }

   private:
    std::int64_t first_[kRecalls + 1];
};

// The curves of up to 64 thresholds, walked together down the hits of one ranking. The best
// precision is kept for each recall; what comes later holds for the recalls before it too.
class Walk {
   public:
    void restart(std::size_t thresholds, std::int64_t truth, const double* recalls) {
        levels_.set(truth, recalls);
        all_ = lowest_bits(thresholds);
        hits_ = 0;
        right_.assign(thresholds, 0);
        not_wrong_.assign(thresholds, 0);
        level_.assign(thresholds, 0);
        best_.assign(kRecalls * thresholds, 0.0);
    }
    // Takes the next hit: how many rows without a match are wrong before it, and the bits of the
    // thresholds at which it is matched, and ignored.
    void step(std::int64_t wrong_before, std::uint64_t matched, std::uint64_t ignored) {
        if (ignored == all_) return;
        // Counted once for all thresholds, and then the exceptions.
        const std::int64_t wrong = wrong_before + hits_++;
        for_each_bit(matched & ~ignored, [&](std::size_t t) {
            const std::int64_t count = ++right_[t];
            const auto tp = static_cast<double>(count);
            const auto fp = static_cast<double>(wrong - not_wrong_[t]);
            while (count >= levels_.needed(level_[t])) ++level_[t];
            double& best = best_[(level_[t] - 1) * right_.size() + t];
            best = std::max(best, tp / (fp + tp + kEpsilon));
        });
        for_each_bit(matched | ignored, [&](std::size_t t) { ++not_wrong_[t]; });
    }
    // The precision of each threshold at a recall, once the recalls are taken from the last.
    const double* precisions(std::size_t recall) {
        double* const here = best_.data() + recall * right_.size();
        if (recall + 1 < kRecalls)
            for (std::size_t t = 0; t < right_.size(); ++t)
                here[t] = std::max(here[t], here[t + right_.size()]);
        return here;
    }
    std::int64_t right(std::size_t t) const { return right_[t]; }
    const std::vector<double>& best() const { return best_; }

   private:
    Levels levels_;
    std::uint64_t all_ = 0;
    std::int64_t hits_ = 0;
    std::vector<std::int64_t> right_, not_wrong_;
    std::vector<std::size_t> level_;  // recalls reached
    std::vector<double> best_;        // [recalls, thresholds]
};

}  // namespace

void accumulate(const Outcomes& outcomes, const Rankings& rankings, std::size_t scopes,
                const std::int64_t* truth, const double* recalls, double* precision, double* recall,
                double* points, int threads) {
    const std::size_t thresholds = outcomes.thresholds, curves = rankings.count * scopes;
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    std::vector<Walk> walks(workers_for(curves, threads));
    std::vector<std::vector<double>> sums(walks.size());
    parallel_for(curves, threads, [&](std::size_t curve, std::size_t worker) {
        const std::int64_t objects = truth[curve];
        const std::size_t at = curve * thresholds, scope = curve % scopes;
        if (objects == 0) {
            std::fill_n(precision + at, thresholds, nan);
            std::fill_n(recall + at, thresholds, nan);
            if (points) std::fill_n(points + at * kRecalls, thresholds * kRecalls, nan);
            return;
        }
        const std::int64_t* const rows = rankings.offsets + curve / scopes;
        const std::int32_t* const hits_end = outcomes.hits + outcomes.hit_count;
        const std::int32_t* const first = std::lower_bound(outcomes.hits, hits_end, rows[0]);
        const std::int32_t* const last = std::lower_bound(first, hits_end, rows[1]);
        Walk& walk = walks[worker];
        for (std::size_t base = 0; base < thresholds; base += kWord) {
            const std::size_t here = std::min(kWord, thresholds - base), bytes = bytes_for(here);
            walk.restart(here, objects, recalls);
            WrongBefore wrong_before(outcomes, rankings.keep, scope, rows[0]);
            for (const std::int32_t* hit = first; hit < last; ++hit) {
                if (rankings.keep && !rankings.keep[*hit]) continue;
                const std::uint8_t* const bits =
                    outcomes.of(static_cast<std::size_t>(hit - outcomes.hits), scope) + base / 8;
                walk.step(wrong_before(*hit), load_bits(bits, bytes),
                          load_bits(bits + outcomes.bytes, bytes) & lowest_bits(here));
            }
            for (std::size_t r = kRecalls; r-- > 0;) {
                const double* const values = walk.precisions(r);
                for (std::size_t t = 0; points && t < here; ++t)
                    points[(at + base + t) * kRecalls + r] = values[t];
            }
            auto& sum = sums[worker];
            sum.assign(here, 0.0);
            for (auto value = walk.best().begin(); value != walk.best().end();)
                for (std::size_t t = 0; t < here; ++t) sum[t] += *value++;
            for (std::size_t t = 0; t < here; ++t) {
                precision[at + base + t] = sum[t] / static_cast<double>(kRecalls);
                recall[at + base + t] =
                    static_cast<double>(walk.right(t)) / static_cast<double>(objects);
            }
        }
    });
}

}  // namespace lvdet
