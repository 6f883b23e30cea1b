// Average precision of many resamples of the images, from one match.
#pragma once

#include <cstdint>

#include "accumulate.hpp"

namespace lvdet {

// Resamples that are worked on together: what a vector instruction finds beside each other.
inline constexpr std::size_t kLanes = 16;

// The matched rows of one detector: by class, best first in each. K rows, C classes.
struct Sample {
    std::size_t images, classes;
    Outcomes outcomes;                // of K rows; the first scope
    const std::int32_t* image;        // [K]
    const std::int32_t* category;     // [K]
    const std::int64_t* offsets;      // [C + 1] rows of each class
    const std::int32_t* place;        // [K] rank among all detections of the class, counted or not
    const std::uint8_t* old;          // [K] whether the row is left by the budget that stays
    const std::int32_t* pooled;       // [K] the rows in one ranking over all classes
    const std::int32_t* ranked;       // image of every detection, by class, best first in each
    const std::int64_t* ranked_from;  // [C + 1] detections of each class
    const std::int32_t* truth;        // image of every object to be found, by class
    const std::int64_t* truth_from;   // [C + 1] objects of each class
    const std::int32_t* group;        // [C] the group of each class, or -1
    std::size_t groups;
    std::int64_t budget;  // detections a class, copies of an image each for itself
};

// weights: [blocks, images, kLanes], how often each image was drawn. For each of the blocks *
// kLanes resamples the mean precision over thresholds and recalls, NaN where there is nothing to
// find:
//   old, fixed  [resamples, classes]     rows that `old` leaves, and those in the class budget
//   pool        [resamples, 1 + groups]  those in the class budget ranked together, then by group
// An image that was drawn w times counts as w images with equal rows, ranked one after the other.
void resample(const Sample& sample, const std::uint8_t* weights, std::size_t blocks,
              const double* recalls, double* old, double* fixed, double* pool, int threads);

}  // namespace lvdet
