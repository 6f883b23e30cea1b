// From ranked, matched detections to average precision.
#pragma once

#include <cstdint>
#include <limits>

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

// What accumulate() found where every row is kept, for the same truth: the curves of rankings of
// which no row is passed over. Null where it is not known.
struct Whole {
    const double *precision = nullptr, *recall = nullptr;
};

// For each ranking, scope and threshold, with truth[ranking, scope] objects to find:
//   precision  [rankings, scopes, thresholds]  mean of the 101 precisions
//   recall     [rankings, scopes, thresholds]  highest recall reached
//   points     [rankings, scopes, thresholds, 101], or null
// All are NaN where there is nothing to find. Scopes are the first `scopes` of the outcomes'.
void accumulate(const Outcomes& outcomes, const Rankings& rankings, std::size_t scopes,
                const std::int64_t* truth, const double* recalls, const Whole& whole,
                double* precision, double* recall, double* points, int threads);

}  // namespace lvdet
