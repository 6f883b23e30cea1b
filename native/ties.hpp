// How far average precision depends on the order of equal scores.
#pragma once

#include "accumulate.hpp"

namespace lvdet {

// The score of each row of a ranking: that of a detection, by way of a list of rows where there is
// one.
struct RowScores {
    const std::int32_t* order;  // null for the rows themselves
    const std::int32_t* detection;
    const double* score;

    double operator()(std::int64_t row) const {
        return score[detection[order ? order[row] : static_cast<std::int32_t>(row)]];
    }
};

// tied[h]: whether another row of its ranking has the score of hit h.
void find_ties(const Outcomes& outcomes, const Rankings& rankings, const RowScores& scores,
               std::uint8_t* tied, int threads);

// A bound of average precision: the outcomes in question, and which of their hits are tied.
struct Bound {
    Outcomes outcomes;
    const std::uint8_t* tied;
};

// For each ranking and threshold, in scope 0, the mean of the 101 precisions over all orders of
// equal scores: the lowest of the outcomes `low`, and the highest of `high`. Where no hit of a
// ranking is tied, it is what accumulate() found, `precision`. All [rankings, thresholds].
void accumulate_ties(const Bound& low, const Bound& high, const Rankings& rankings,
                     const RowScores& scores, const std::int64_t* truth, const double* recalls,
                     const double* precision, double* lowest, double* highest, int threads);

}  // namespace lvdet
