// Detections as JSON text.
#pragma once

#include <cstdint>
#include <string>

#include "rle.hpp"

namespace lvdet::json {

struct DetectionRows {
    const std::int32_t *image, *category;
    const std::int64_t *image_ids, *category_ids;
    const double *score, *box;
    bool with_box;
    MaskColumn masks;
};

// Appends rows [begin, end), each ended by `separator`. Numbers are the shortest text that reads
// back as the same double.
void append_detections(const DetectionRows& rows, std::size_t begin, std::size_t end,
                       char separator, std::string& out);

// Appends the segmentation of one mask: an RLE object or a list of polygons, or null.
void append_segmentation(const MaskColumn& masks, std::size_t row, std::string& out);

}  // namespace lvdet::json
