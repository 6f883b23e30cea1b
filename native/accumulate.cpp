#include "accumulate.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "bits.hpp"
#include "parallel.hpp"

namespace lvdet {

namespace {

constexpr std::size_t kWord = 64;
// How far ahead the rows of an order are asked for, which lie anywhere in memory.
constexpr std::int64_t kAhead = 24;

// The first tp count whose recall reaches each of the 101 levels. Comparing counts in place of
// quotients would round differently, so the quotient itself decides.
void first_counts(std::int64_t truth, const double* recalls, std::int64_t* counts) {
    std::int64_t count = 0;
    for (std::size_t r = 0; r < kRecalls; ++r) {
        while (static_cast<double>(count) / static_cast<double>(truth) < recalls[r]) ++count;
        counts[r] = count;
    }
}

// The curves of up to 64 thresholds, walked together down one ranking.
class Walk {
   public:
    void restart(std::size_t thresholds) {
        wrong_ = 0;
        all_ = lowest_bits(thresholds);
        right_.resize(thresholds);
        for (auto& list : right_) list.clear();
        not_wrong_.assign(thresholds, 0);
    }
    // Takes the next detection: bits of the thresholds at which it is matched, and ignored.
    void step(std::uint64_t matched, std::uint64_t ignored) {
        if (ignored == all_) return;  // as most are where only some sizes count
        for_each_bit(matched & ~ignored, [&](std::size_t t) {
            const auto tp = static_cast<double>(right_[t].size() + 1);
            const auto fp = static_cast<double>(wrong_ - not_wrong_[t]);
            right_[t].push_back(tp / (fp + tp + kEpsilon));
        });
        // Most detections are wrong at every threshold: count those once, and the exceptions.
        for_each_bit(matched | ignored, [&](std::size_t t) { ++not_wrong_[t]; });
        ++wrong_;
    }
    // Precision at each right detection of threshold t, made monotone from the right.
    const std::vector<double>& envelope(std::size_t t) {
        auto& list = right_[t];
        for (std::size_t i = list.size(); i-- > 1;) list[i - 1] = std::max(list[i - 1], list[i]);
        return list;
    }

   private:
    std::int64_t wrong_ = 0;
    std::uint64_t all_ = 0;
    std::vector<std::vector<double>> right_;
    std::vector<std::int64_t> not_wrong_;
};

}  // namespace

void accumulate(const Outcomes& outcomes, const Rankings& rankings, std::size_t areas,
                const std::int64_t* truth, const double* recalls, double* precision, double* recall,
                double* points, int threads) {
    const std::size_t thresholds = outcomes.thresholds;
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    // One walk an area, kept by each thread from curve to curve.
    std::vector<std::vector<Walk>> all_walks(workers_for(rankings.curves, threads));
    parallel_for(rankings.curves, threads, [&](std::size_t curve, std::size_t worker) {
        if (std::none_of(truth + curve * areas, truth + (curve + 1) * areas,
                         [](std::int64_t objects) { return objects > 0; })) {
            const std::size_t cells = areas * thresholds;
            std::fill_n(precision + curve * cells, cells, nan);
            std::fill_n(recall + curve * cells, cells, nan);
            if (points) std::fill_n(points + curve * cells * kRecalls, cells * kRecalls, nan);
            return;
        }
        const bool pooled = rankings.member != nullptr;
        const std::uint8_t* const member = rankings.member + curve * rankings.categories;
        const std::int64_t* const offsets = rankings.offsets + (pooled ? 0 : curve);
        auto& walks = all_walks[worker];
        walks.resize(areas);
        for (std::size_t base = 0; base < thresholds; base += kWord) {
            const std::size_t here = std::min(kWord, thresholds - base);
            const std::size_t bytes = bytes_for(here);
            for (Walk& walk : walks) walk.restart(here);
            for (std::int64_t i = offsets[0]; i < offsets[1]; ++i) {
                const auto row = rankings.order ? static_cast<std::size_t>(rankings.order[i])
                                                : static_cast<std::size_t>(i);
                if (rankings.order && i + kAhead < offsets[1]) {
                    const auto later = static_cast<std::size_t>(rankings.order[i + kAhead]);
                    __builtin_prefetch(outcomes.bits + later * outcomes.areas * 2 * outcomes.bytes);
                    if (pooled) __builtin_prefetch(rankings.category + later);
                    if (rankings.keep) __builtin_prefetch(rankings.keep + later);
                }
                if (rankings.keep && !rankings.keep[row]) continue;
                if (pooled && !member[rankings.category[row]]) continue;
                const std::uint8_t* bits =
                    outcomes.bits + row * outcomes.areas * 2 * outcomes.bytes + base / 8;
                for (std::size_t area = 0; area < areas; ++area, bits += 2 * outcomes.bytes)
                    walks[area].step(load_bits(bits, bytes),
                                     load_bits(bits + outcomes.bytes, bytes));
            }
            for (std::size_t area = 0; area < areas; ++area) {
                const std::size_t at = curve * areas + area;
                const std::int64_t objects = truth[at];
                std::int64_t counts[kRecalls];
                if (objects > 0) first_counts(objects, recalls, counts);
                for (std::size_t t = 0; t < here; ++t) {
                    const std::size_t cell = at * thresholds + base + t;
                    if (objects == 0) {
                        precision[cell] = recall[cell] = nan;
                        if (points) std::fill_n(points + cell * kRecalls, kRecalls, nan);
                        continue;
                    }
                    const std::vector<double>& list = walks[area].envelope(t);
                    double sum = 0.0;
                    for (std::size_t r = 0; r < kRecalls; ++r) {
                        // Recall 0 is reached by the first detection, right or not; the best
                        // precision to the right of it is that of a right one.
                        const auto count =
                            static_cast<std::size_t>(std::max<std::int64_t>(counts[r], 1));
                        const double value = count <= list.size() ? list[count - 1] : 0.0;
                        sum += value;
                        if (points) points[cell * kRecalls + r] = value;
                    }
                    precision[cell] = sum / static_cast<double>(kRecalls);
                    recall[cell] = static_cast<double>(list.size()) / static_cast<double>(objects);
                }
            }
        }
    });
}

}  // namespace lvdet
