#include "curve_points.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "parallel.hpp"

namespace lvdet {

namespace {

// A row that is right at a threshold: how many before it are wrong, the best precision from it on,
// and its score.
struct Right {
    std::int64_t wrong_before;
    double precision, score;
};

// The curve of one ranking at one threshold, and the score of its first row, if it has any.
void read_at(std::vector<Right>& right, std::int64_t objects, const double* first_score,
             const Recalls& recalls, double* precision, double* score) {
    double best = 0;
    for (std::size_t i = right.size(); i-- > 0;) {
        const auto hits = static_cast<double>(i + 1);
        const double all = static_cast<double>(right[i].wrong_before) + hits + kEpsilon;
        best = right[i].precision = std::max(best, hits / all);
    }
    for (std::size_t r = 0; r < recalls.count; ++r) {
        if (recalls.at[r] <= 0) {  // the first row reaches it, right or wrong
            if (!first_score) return;
            precision[r] = best;
            score[r] = *first_score;
            continue;
        }
        std::size_t low = 0, high = right.size();
        while (low < high) {
            const std::size_t middle = (low + high) / 2;
            const double reached = static_cast<double>(middle + 1) / static_cast<double>(objects);
            if (reached >= recalls.at[r])
                high = middle;
            else
                low = middle + 1;
        }
        if (low == right.size()) return;
        precision[r] = right[low].precision;
        score[r] = right[low].score;
    }
}

}  // namespace

void curve_points(const Outcomes& outcomes, std::size_t scope, const Rankings& rankings,
                  const std::int64_t* truth, const Recalls& recalls, const double* score,
                  const CurveTables& tables, int threads) {
    const std::size_t thresholds = outcomes.thresholds;
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    parallel_for(rankings.count, threads, [&](std::size_t ranking) {
        const std::size_t at = ranking * thresholds;
        double* const precision = tables.precision + at * recalls.count;
        double* const at_score = tables.score + at * recalls.count;
        if (truth[ranking] == 0) {
            std::fill_n(precision, thresholds * recalls.count, nan);
            std::fill_n(at_score, thresholds * recalls.count, nan);
            std::fill_n(tables.recall + at, thresholds, nan);
            return;
        }
        const std::int64_t begin = rankings.offsets[ranking], end = rankings.offsets[ranking + 1];
        const std::int32_t* const hits_end = outcomes.hits + outcomes.hit_count;
        const std::int32_t* const first = std::lower_bound(outcomes.hits, hits_end, begin);
        const std::int32_t* const last = std::lower_bound(first, hits_end, end);
        std::vector<std::vector<Right>> right(thresholds);
        std::vector<std::int64_t> wrong(thresholds, 0);  // among the hits
        WrongBefore wrong_before(outcomes, rankings.keep, scope, begin);
        for (const std::int32_t* hit = first; hit < last; ++hit) {
            if (rankings.keep && !rankings.keep[*hit]) continue;
            const std::int64_t before = wrong_before(*hit);
            const std::uint8_t* const bits =
                outcomes.of(static_cast<std::size_t>(hit - outcomes.hits), scope);
            for (std::size_t t = 0; t < thresholds; ++t) {
                if (bits[outcomes.bytes + t / 8] >> t % 8 & 1) continue;
                if (bits[t / 8] >> t % 8 & 1)
                    right[t].push_back({before + wrong[t], 0, score[*hit]});
                else
                    ++wrong[t];
            }
        }
        std::int64_t row = begin;
        while (rankings.keep && row < end && !rankings.keep[row]) ++row;
        const double* const first_score = row < end ? score + row : nullptr;
        for (std::size_t t = 0; t < thresholds; ++t) {
            tables.recall[at + t] =
                static_cast<double>(right[t].size()) / static_cast<double>(truth[ranking]);
            read_at(right[t], truth[ranking], first_score, recalls, precision + t * recalls.count,
                    at_score + t * recalls.count);
        }
    });
}

}  // namespace lvdet
