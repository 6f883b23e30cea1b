// Columns of encoded masks while they are being read.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "columns.hpp"
#include "rle.hpp"
#include "spill.hpp"

namespace lvdet {

// Masks in the form of lvdet.tables.masks.Masks.
struct MaskColumns {
    Bytes data;
    Column<std::int64_t> end;  // where each row ends in `data`
    Column<std::uint8_t> kind;
    Column<std::int32_t> height, width;

    // Rows without a mask, up to `rows` in all.
    void skip_to(std::size_t rows) {
        while (kind.size() < rows) append(kMaskNone, 0, 0, nullptr, 0);
    }
    void append(std::uint8_t mask_kind, std::int32_t mask_height, std::int32_t mask_width,
                const std::uint8_t* bytes, std::size_t size) {
        data.append(bytes, size);
        *end.extend(1) = static_cast<std::int64_t>(data.size());
        *kind.extend(1) = mask_kind;
        *height.extend(1) = mask_height;
        *width.extend(1) = mask_width;
    }
    void append(const MaskColumn& masks, std::size_t row) {
        const std::int64_t from = masks.offsets[row];
        append(masks.kind[row], masks.height[row], masks.width[row], masks.data + from,
               static_cast<std::size_t>(masks.offsets[row + 1] - from));
    }
    void append_all(const MaskColumn& masks, std::size_t rows) {
        if (rows == 0) return;
        const std::int64_t shift = static_cast<std::int64_t>(data.size()) - masks.offsets[0];
        data.append(masks.data + masks.offsets[0],
                    static_cast<std::size_t>(masks.offsets[rows] - masks.offsets[0]));
        std::int64_t* place = end.extend(rows);
        for (std::size_t i = 0; i < rows; ++i) place[i] = masks.offsets[i + 1] + shift;
        kind.append(masks.kind, rows);
        height.append(masks.height, rows);
        width.append(masks.width, rows);
    }
    // Drops all rows but those at which `keep` is not 0.
    void filter(const std::uint8_t* keep) {
        std::size_t rows = 0;
        std::int64_t from = 0, to = 0;
        for (std::size_t i = 0; i < kind.size(); ++i) {
            const std::int64_t next = end.data()[i];
            if (keep[i]) {
                if (next > from)
                    std::memmove(data.data() + to, data.data() + from,
                                 static_cast<std::size_t>(next - from));
                to += next - from;
                end.data()[rows] = to;
                kind.data()[rows] = kind.data()[i];
                height.data()[rows] = height.data()[i];
                width.data()[rows] = width.data()[i];
                ++rows;
            }
            from = next;
        }
        data.shrink(static_cast<std::size_t>(to));
        end.shrink(rows);
        kind.shrink(rows);
        height.shrink(rows);
        width.shrink(rows);
    }
};

}  // namespace lvdet
