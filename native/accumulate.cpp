#include "accumulate.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "parallel.hpp"

namespace lvdet {

namespace {

constexpr std::size_t kWord = 64;

// The highest of the 101 recalls that so many right detections reach. Comparing counts in place of
// quotients would round differently, so the quotient itself decides.
class Reached {
   public:
    void set(std::int64_t truth, const double* recalls) {
        const auto objects = static_cast<double>(truth);
        level_.resize(static_cast<std::size_t>(truth) + 1);
        std::int64_t count = 1;  // recall 0 is that of the first right detection
        for (std::size_t r = 0; r < kRecalls; ++r) {
            const std::int64_t before = count;
            count = std::max(count, static_cast<std::int64_t>(recalls[r] * objects) - 1);
            while (static_cast<double>(count) / objects < recalls[r]) ++count;
            if (r) fill(before, count, r - 1);
        }
        fill(count, truth + 1, kRecalls - 1);
    }
    // Of a count from 1 on; more than there are objects reach no more than all of them.
    std::size_t operator()(std::int64_t count) const {
        return level_[std::min(static_cast<std::size_t>(count), level_.size() - 1)];
    }

   private:
    void fill(std::int64_t from, std::int64_t to, std::size_t level) {
        for (std::int64_t n = from; n < to; ++n)
            level_[static_cast<std::size_t>(n)] = static_cast<std::uint8_t>(level);
    }
    std::vector<std::uint8_t> level_;
};

// The curves of up to 64 thresholds, walked together down the hits of one ranking. The best
// precision is kept for each recall; what comes later holds for the recalls before it too.
class Walk {
   public:
    void restart(std::size_t thresholds, std::int64_t truth, const double* recalls) {
        reached_.set(truth, recalls);
        thresholds_ = thresholds;
        hits_ = 0;
        std::fill_n(right_, thresholds, 0);
        std::fill_n(not_wrong_, thresholds, 0);
        best_.assign(kRecalls * thresholds, 0.0);
    }
    // Takes the next hit that counts at any threshold: how many rows without a match are wrong
    // before it, and the bits of the thresholds at which it is matched, and ignored.
    void step(std::int64_t wrong_before, std::uint64_t matched, std::uint64_t ignored) {
        // Counted once for all thresholds, and then the exceptions.
        const std::int64_t wrong = wrong_before + hits_++;
        for_each_bit(matched & ~ignored, [&](std::size_t t) {
            const std::int64_t count = ++right_[t];
            const auto tp = static_cast<double>(count);
            const auto fp = static_cast<double>(wrong - not_wrong_[t]);
            double& best = best_[reached_(count) * thresholds_ + t];
            best = std::max(best, tp / (fp + tp + kEpsilon));
        });
        for_each_bit(matched | ignored, [&](std::size_t t) { ++not_wrong_[t]; });
    }
    // The precision of each threshold at a recall, once the recalls are taken from the last.
    const double* precisions(std::size_t recall) {
        double* const here = best_.data() + recall * thresholds_;
        if (recall + 1 < kRecalls)
            for (std::size_t t = 0; t < thresholds_; ++t)
                here[t] = std::max(here[t], here[t + thresholds_]);
        return here;
    }
    std::int64_t right(std::size_t t) const { return right_[t]; }
    const std::vector<double>& best() const { return best_; }

   private:
    Reached reached_;
    std::size_t thresholds_ = 0;
    std::int64_t hits_ = 0;
    std::int64_t right_[kWord], not_wrong_[kWord];
    std::vector<double> best_;  // [recalls, thresholds]
};

}  // namespace

void accumulate(const Outcomes& outcomes, const Rankings& rankings, std::size_t scopes,
                const std::int64_t* truth, const double* recalls, const Whole& whole,
                double* precision, double* recall, double* points, int threads) {
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
        if (whole.precision && !points && rankings.keep &&
            !std::memchr(rankings.keep + rows[0], 0, static_cast<std::size_t>(rows[1] - rows[0]))) {
            std::copy_n(whole.precision + at, thresholds, precision + at);
            std::copy_n(whole.recall + at, thresholds, recall + at);
            return;
        }
        const std::int32_t* const hits_end = outcomes.hits + outcomes.hit_count;
        const std::int32_t* const first = std::lower_bound(outcomes.hits, hits_end, rows[0]);
        const std::int32_t* const last = std::lower_bound(first, hits_end, rows[1]);
        Walk& walk = walks[worker];
        for (std::size_t base = 0; base < thresholds; base += kWord) {
            const std::size_t here = std::min(kWord, thresholds - base), bytes = bytes_for(here);
            walk.restart(here, objects, recalls);
            WrongBefore wrong_before(outcomes, rankings.keep, scope, rows[0]);
            for (const std::int32_t* hit = first; hit < last; ++hit) {
                const std::uint8_t* const bits =
                    outcomes.of(static_cast<std::size_t>(hit - outcomes.hits), scope) + base / 8;
                const std::uint64_t ignored =
                    load_bits(bits + outcomes.bytes, bytes) & lowest_bits(here);
                // Most hits are of another range of area, or of another pool.
                if (ignored == lowest_bits(here)) continue;
                if (rankings.keep && !rankings.keep[*hit]) continue;
                walk.step(wrong_before(*hit), load_bits(bits, bytes), ignored);
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
