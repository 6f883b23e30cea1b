// Which numbers a detection may have.
#pragma once

namespace lvdet {

// The score and the box [x, y, w, h] are finite, and the sizes not negative.
inline bool is_usable(double score, const double* box) {
    // Zero times anything else is not 0.
    const double zero = 0 * score + 0 * box[0] + 0 * box[1] + 0 * box[2] + 0 * box[3];
    return (zero == 0) & (box[2] >= 0) & (box[3] >= 0);
}

}  // namespace lvdet
