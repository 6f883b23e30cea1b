// Which numbers a detection may have.
#pragma once

namespace lvdet {

// The score and the box [x, y, w, h] are finite, and the sizes not negative.
inline bool is_usable(double score, const double* box) {
    constexpr double limit = 1e300;  // comparisons are false for NaN
    return score >= -limit && score <= limit && box[0] >= -limit && box[0] <= limit &&
           box[1] >= -limit && box[1] <= limit && box[2] >= 0 && box[2] <= limit && box[3] >= 0 &&
           box[3] <= limit;
}

}  // namespace lvdet
