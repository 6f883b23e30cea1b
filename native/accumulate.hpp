// From ranked, matched detections to average precision.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "outcomes.hpp"

namespace lvdet {

inline constexpr std::size_t kRecalls = 101;
// What the reference tools add to a number of detections before they divide by it.
inline constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

// The rows of each ranking, offsets[r] .. offsets[r + 1]; those whose keep[row] is 0 are passed
// over (null for none).
struct Rankings {
    const std::int64_t* offsets;
    std::size_t count;
    const std::uint8_t* keep;
};

// What accumulate() found before for the same truth and other rows kept (null for all of them):
// rankings of which the same rows are kept have the same curves.
struct Known {
    const std::uint8_t* keep;
    const double *precision, *recall;
    const double *lowest, *highest;  // where ties are asked for
};

// The score of each row of the rankings: that of a detection, by way of a list of rows where there
// is one.
struct RowScores {
    const std::int32_t* order;  // null for the rows themselves
    const std::int32_t* detection;
    const double* score;

    double operator()(std::int64_t row) const {
        return score[detection[order ? order[row] : static_cast<std::int32_t>(row)]];
    }
    // The rows from `begin` to `end` that have the score of `row`.
    std::pair<std::int64_t, std::int64_t> run_of(std::int64_t row, std::int64_t begin,
                                                 std::int64_t end) const {
        const double score = (*this)(row);
        std::int64_t from = row, to = row + 1;
        while (from > begin && (*this)(from - 1) == score) --from;
        while (to < end && (*this)(to) == score) ++to;
        return {from, to};
    }
};

// Bounds of the mean precision, [rankings, thresholds] in scope 0, over all orders of rows of equal
// score: right rows last among them in the worst, first in the best. tied[h] says whether another
// row of its ranking has the score of hit h.
struct Ties {
    const std::uint8_t* tied;
    RowScores scores;
    double *lowest, *highest;
};

// For each ranking, scope and threshold, with truth[ranking, scope] objects to find:
//   precision  [rankings, scopes, thresholds]  mean of the 101 precisions
//   recall     [rankings, scopes, thresholds]  highest recall reached
//   points     [rankings, scopes, thresholds, 101], or null
// All are NaN where there is nothing to find; the bounds of `ties`, too, null where not asked for.
// Scopes are the first `scopes` of the outcomes'.
void accumulate(const Outcomes& outcomes, const Rankings& rankings, std::size_t scopes,
                const std::int64_t* truth, const double* recalls, const std::vector<Known>& known,
                const Ties* ties, double* precision, double* recall, double* points, int threads);

// tied[h] of all hits, as Ties has them.
void find_ties(const Outcomes& outcomes, const Rankings& rankings, const RowScores& scores,
               std::uint8_t* tied, int threads);

}  // namespace lvdet
