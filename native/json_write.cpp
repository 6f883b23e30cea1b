#include "json_write.hpp"

#include <charconv>
#include <vector>

namespace lvdet::json {

namespace {

template <class Number>
void append_number(Number value, std::string& out) {
    char text[32];
    const auto result = std::to_chars(text, text + sizeof text, value);
    out.append(text, result.ptr);
}

}  // namespace

void append_segmentation(const MaskColumn& masks, std::size_t row, std::string& out) {
    const std::uint8_t* data = masks.data + masks.offsets[row];
    const std::uint8_t* const end = masks.data + masks.offsets[row + 1];
    if (masks.kind[row] == kMaskRle) {
        out += "{\"size\": [";
        append_number(masks.height[row], out);
        out += ", ";
        append_number(masks.width[row], out);
        out += "], \"counts\": \"";
        for (; data < end; ++data) {
            if (*data == '\\') out += '\\';
            out += static_cast<char>(*data);
        }
        out += "\"}";
    } else if (masks.kind[row] == kMaskPolygons) {
        const char* before = "[[";
        for_each_polygon(data, [&](const std::vector<double>& xy) {
            out += before;
            for (std::size_t i = 0; i < xy.size(); ++i) {
                if (i) out += ", ";
                append_number(xy[i], out);
            }
            out += ']';
            before = ", [";
        });
        out += ']';
    } else {
        out += "null";
    }
}

void append_detections(const DetectionRows& rows, std::size_t begin, std::size_t end,
                       char separator, std::string& out) {
    for (std::size_t i = begin; i < end; ++i) {
        out += "{\"image_id\": ";
        append_number(rows.image_ids[rows.image[i]], out);
        out += ", \"category_id\": ";
        append_number(rows.category_ids[rows.category[i]], out);
        if (rows.with_box) {
            out += ", \"bbox\": [";
            for (int k = 0; k < 4; ++k) {
                if (k) out += ", ";
                append_number(rows.box[4 * i + static_cast<std::size_t>(k)], out);
            }
            out += ']';
        }
        out += ", \"score\": ";
        append_number(rows.score[i], out);
        if (rows.masks && rows.masks.kind[i] != kMaskNone) {
            out += ", \"segmentation\": ";
            append_segmentation(rows.masks, i, out);
        }
        out += '}';
        out += separator;
    }
}

}  // namespace lvdet::json
