// Greedy matching of detections with ground truth, inside each image and class.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "buffer.hpp"
#include "outcomes.hpp"
#include "rle.hpp"

namespace lvdet {

enum class Overlap { bbox, segm, boundary };

// A list for each image: items[offsets[i] .. offsets[i + 1]].
struct Lists {
    const std::int64_t* offsets = nullptr;
    const std::int32_t* items = nullptr;
    explicit operator bool() const { return offsets != nullptr; }
};

struct Truth {
    std::size_t rows, images, categories;
    const std::int32_t *image, *category;
    const double *box, *area;
    const std::uint8_t *ignore, *crowd;
    const std::uint8_t* reads_unmatched;  // a match with it is reported as none
    MaskColumn masks;
    const std::int32_t *height, *width;  // of the images
    Lists negative, not_exhaustive;      // both null: every class counts in every image
};

struct Detections {
    std::size_t rows;
    const std::int32_t *image, *category;            // places in the two lists below
    const std::int32_t *image_rows, *category_rows;  // rows of the truth's, or -1
    const double *score, *box;
    MaskColumn masks;
    // Where not null: the areas of detections, and those that leave an object they match free.
    const double* area = nullptr;
    const std::uint8_t* leaves_free = nullptr;
};

struct Settings {
    Overlap overlap;
    std::vector<double> thresholds;
    std::vector<double> area_low, area_high;  // inclusive ranges
    bool drop_empty;                          // detections of area 0 do not count
    bool area_from_box;                       // a detection's area is its box's, not its mask's
    int partners_at;  // threshold at which to tell what each detection is matched with, or -1
    bool objects;     // tell at which thresholds each object is matched
    bool every_partner = false;  // tell what hits match in each range of area, at each threshold
};

// Rows that another order of equal scores in their image might match otherwise, in any order, and
// the thresholds at which each could match anything, [rows, bytes].
struct Contested {
    std::vector<std::int32_t> rows;
    std::vector<std::uint8_t> reached;
};

// The detections that count, by class, in a class by descending score; equal scores by image, then
// by their order in the image. K rows.
struct Matched {
    Buffer<std::int32_t> detection;              // [K] row of the detection
    Buffer<std::int32_t> position;               // [K] place when ordered by image, class, rank
    std::vector<std::int64_t> category_offsets;  // [C + 1] rows of each class
    Buffer<std::int32_t> together;               // [K] rows in one ranking over all classes
    OutcomeColumns outcomes;                     // of K rows; scopes are the ranges of area
    std::vector<std::int64_t> truth;             // [C, A] objects to find
    std::vector<std::int32_t> partner;  // [K] row of the ground truth matched in the first range of
                                        // area, or -1; empty where not asked for
    std::vector<double> overlap;        // [K] overlap with it; 0 where there is none
    std::vector<std::int32_t> partners;  // [hits, A, T] row of the ground truth matched, or -1,
                                         // whether it reads as unmatched or not; empty where not
                                         // asked for
    std::vector<std::uint8_t> objects;   // [G, A, bytes] thresholds at which each object that is to
                                         // be found is matched; empty where not asked for
    Contested contested;
};

// A mask cannot be used: that of row `row` of the detections, or of the ground truth.
struct MaskError : std::runtime_error {
    MaskError(const char* what, bool detection, std::int64_t row)
        : std::runtime_error(what), detection(detection), row(row) {}
    bool detection;
    std::int64_t row;
};

Matched match(const Truth& truth, const Detections& found, const Settings& settings, int threads);

}  // namespace lvdet
