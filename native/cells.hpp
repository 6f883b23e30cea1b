// Which detections count, and in which order they are looked at.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "match.hpp"
#include "rank.hpp"

namespace lvdet {

inline std::size_t index(std::int64_t value) {
    return static_cast<std::size_t>(value);
}

// The (image, class) pairs in which detections count, by image, then by class.
struct Cells {
    std::vector<std::int64_t> image_offsets;   // [images + 1] cells of each image
    std::vector<std::int32_t> category;        // [cells]
    std::vector<std::int32_t> image;           // [cells]
    std::vector<std::uint8_t> not_exhaustive;  // [cells]
    std::size_t categories = 0;

    std::size_t size() const { return category.size(); }
    // The cell of a pair, or -1.
    std::int32_t find(std::int32_t image_row, std::int32_t category_row) const {
        const auto begin = category.begin() + image_offsets[index(image_row)];
        const auto end = category.begin() + image_offsets[index(image_row) + 1];
        const auto at = std::lower_bound(begin, end, category_row);
        if (at == end || *at != category_row) return -1;
        return static_cast<std::int32_t>(at - category.begin());
    }
};

// Classes verified in an image count there: those with ground truth and those known absent.
// Without such lists, every class with ground truth or a detection in the image does.
Cells make_cells(const Truth& truth, const Detections& found);

// The detections that count, by cell, best first in each.
Grouping rank_in_cells(const Cells& cells, const Detections& found, int threads);

// Orders the ranked detections by class and falling score: fills `detection`, `position`,
// `category_offsets` and `together` of the outcome, and returns where each one (in cell order)
// went.
Buffer<std::int32_t> order_by_class(const Cells& cells, const Grouping& ranked,
                                    const Detections& found, int threads, Matched& out);

}  // namespace lvdet
