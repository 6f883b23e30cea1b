// What detections overlap most.
#pragma once

#include <cstdint>
#include <vector>

#include "match.hpp"

namespace lvdet {

// For each of R detections, two columns: an object of its own class, and one of another.
struct Nearest {
    std::vector<std::int32_t> truth;  // [R, 2] row of the ground truth; -1 where none overlaps
    std::vector<double> overlap;      // [R, 2] 0 where none does
};

// The objects of its image that each detection overlaps most, the first among equals. `rows` are
// rows of `found`, of known images and classes; only ground truth whose `target` is not 0 is
// looked at, and none of it as a crowd.
Nearest nearest(const Truth& truth, const Detections& found, const std::uint8_t* target,
                const std::int32_t* rows, std::size_t count, Overlap overlap, int threads);

}  // namespace lvdet
