// Which numbers a detection may have.
#pragma once

#include <limits>

namespace lvdet {

// The score and the box [x, y, w, h] are finite, and the sizes not negative.
inline bool is_usable(double score, const double* box) {
    constexpr double limit = std::numeric_limits<double>::max();  // comparisons fail for NaN
    return score >= -limit && score <= limit && box[0] >= -limit && box[0] <= limit &&
           box[1] >= -limit && box[1] <= limit && box[2] >= 0 && box[2] <= limit && box[3] >= 0 &&
           box[3] <= limit;
}

}  // namespace lvdet
