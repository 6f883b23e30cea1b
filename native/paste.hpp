// Small maps of probabilities, stretched over boxes, as encoded masks of whole images.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lvdet {

// n maps of side x side, row by row; x1, y1, x2, y2 of their boxes, and the images' sizes.
struct PasteInput {
    const float* map;
    const double* box;
    const std::int32_t* height;
    const std::int32_t* width;
    std::size_t masks, side;
};

// COCO's compressed strings, one after another; string i is data[offsets[i] .. offsets[i + 1]].
struct EncodedMasks {
    std::vector<std::uint8_t> data;
    std::vector<std::int64_t> offsets;
};

// A pixel is the object's where the bilinear value of the map at its centre is 0.5 or more. Around
// the map there are zeros. A box without an area, or with a corner that is not finite, has no
// pixels; nor are those the object's that lie between values of which one is not finite.
EncodedMasks paste_masks(const PasteInput& input, int threads);

}  // namespace lvdet
