// Records that may carry a mask: RLE, compressed or not, or polygons.
#pragma once

#include <cmath>

#include "json_block.hpp"
#include "mask_columns.hpp"
#include "rle.hpp"

namespace lvdet::json {

// A block of records that may carry masks.
class MaskedBlock : public BlockBase {
   public:
    bool with_masks = true;
    std::vector<std::uint8_t> mask_data, mask_kind;
    std::vector<std::int64_t> mask_offsets{0};
    std::vector<std::int32_t> mask_height, mask_width;
    std::size_t rows_before_masks = 0;

    // The masks of all rows from `rows_before_masks` on.
    MaskColumn masks() const {
        return {.data = mask_data.data(),
                .offsets = mask_offsets.data(),
                .kind = mask_kind.data(),
                .height = mask_height.data(),
                .width = mask_width.data()};
    }

   protected:
    void restart(std::int64_t byte, const char* text) {
        BlockBase::restart(byte, text);
        mask_data.clear();
        mask_kind.clear();
        mask_offsets.assign(1, 0);
        mask_height.clear();
        mask_width.clear();
        rows_before_masks = 0;
    }
    void begin_mask() {
        kind_ = kMaskNone;
        height_ = width_ = 0;
        mask_begin_ = static_cast<std::size_t>(mask_offsets.back());
        if (mask_data.size() != mask_begin_) mask_data.resize(mask_begin_);
    }
    // Rows before the first mask are left out, and counted in again when the block is committed.
    void keep_mask() {
        if (kind_ == kMaskNone) {
            mask_data.resize(mask_begin_);  // of a mask that was refused
            if (mask_kind.empty()) {
                ++rows_before_masks;
                return;
            }
        }
        mask_kind.push_back(kind_);
        mask_offsets.push_back(static_cast<std::int64_t>(mask_data.size()));
        mask_height.push_back(height_);
        mask_width.push_back(width_);
    }

    void read_segmentation(Cursor& cursor) {
        mask_data.resize(mask_begin_);
        kind_ = kMaskNone;
        height_ = width_ = 0;
        if (!with_masks) return cursor.skip_value();
        const char* const at = cursor.position();
        switch (cursor.kind()) {
            case Kind::object: read_rle(cursor); break;
            case Kind::array: read_polygons(cursor); break;
            default:
                if (cursor.literal("null")) return;
                report_kind(cursor, "segmentation", "RLE {size, counts} or a list of polygons");
        }
        if (mask_data.size() - mask_begin_ > kLargestMask) report(at, kTooLarge);
    }
    Box box_of_mask() const {
        if (kind_ == kMaskPolygons) return polygon_box(mask_data.data() + mask_begin_);
        Runs runs;
        decode_runs(mask_data.data() + mask_begin_, mask_data.size() - mask_begin_, runs);
        return mask_box(runs, height_);
    }

    std::uint8_t kind_ = kMaskNone;
    std::int32_t height_ = 0, width_ = 0;

   private:
    void read_rle(Cursor& cursor) {
        static constexpr auto keys = make_keys("size", "counts");
        const char* const at = cursor.position();
        std::array<std::int64_t, 2> size = {-1, -1};
        std::size_t sizes = 0;
        bool counted = false, good = true;
        read_keys(cursor, keys, rle_follows_, [&](int field) {
            if (field == 0) {
                sizes = 0;
                good &= read_numbers(cursor, "segmentation size", [&](Cursor& item) {
                    std::int64_t value = -1;
                    if (!item.integer(value)) value = -1;
                    if (sizes < 2) size[sizes] = value;
                    ++sizes;
                });
            } else if (cursor.kind() == Kind::string) {
                counted = true;
                const String counts = cursor.string();
                std::string_view raw = counts.raw;
                if (counts.escaped) {
                    text_.clear();
                    append_unescaped(counts, text_);
                    raw = text_;
                }
                mask_data.resize(mask_begin_);
                mask_data.insert(mask_data.end(), raw.begin(), raw.end());
            } else {
                counted = true;
                runs_.clear();
                good &= read_numbers(cursor, "segmentation counts", [&](Cursor& item) {
                    std::int64_t value = -1;
                    const char* const run_at = item.position();
                    if (!item.integer(value) || value < 0 || value > 0xffffffffLL) {
                        if (good) report(run_at, "RLE has a run that is not a valid length");
                        good = false;
                        value = 0;
                    }
                    runs_.push_back(static_cast<std::uint32_t>(value));
                });
                mask_data.resize(mask_begin_);
                encode_runs(runs_.data(), runs_.size(), mask_data);
            }
        });
        if (!good) return;
        if (sizes != 2 || size[0] < 0 || size[1] < 0 || size[0] > kLargestSide ||
            size[1] > kLargestSide)
            return report(
                at, "RLE has no valid size, expected [height, width], each at most 1,000,000");
        if (!counted) return report(at, "RLE has no counts");
        if (const char* wrong = check_rle(mask_data.data() + mask_begin_,
                                          mask_data.size() - mask_begin_, size[0] * size[1]))
            return report(at, std::string(wrong) + " (" + std::to_string(size[0]) + " x " +
                                  std::to_string(size[1]) + ")");
        kind_ = kMaskRle;
        height_ = static_cast<std::int32_t>(size[0]);
        width_ = static_cast<std::int32_t>(size[1]);
    }

    void read_polygons(Cursor& cursor) {
        const char* const at = cursor.position();
        std::vector<std::vector<double>> parts;
        bool good = true;
        cursor.expect('[', "");
        cursor.skip_space();
        if (!cursor.accept(']')) {
            for (;;) {
                std::vector<double> part;
                good &= read_numbers(cursor, "a polygon of segmentation",
                                     [&](Cursor& item) { part.push_back(item.number()); });
                parts.push_back(std::move(part));
                cursor.skip_space();
                if (cursor.accept(']')) break;
                cursor.expect(',', "expected ',' or ']'");
                cursor.skip_space();
            }
        }
        if (!good) return;
        if (parts.empty()) return;  // as files of boxes write it
        for (const auto& part : parts) {
            if (part.size() < 6 || part.size() % 2)
                return report(at, "a polygon of segmentation has " + std::to_string(part.size()) +
                                      " numbers, expected at least 3 x, y points");
            for (const double value : part)
                if (!(std::fabs(value) <= kFarthest))
                    return report(
                        at, "a polygon of segmentation has a coordinate beyond 1,000,000 pixels");
        }
        kind_ = kMaskPolygons;
        encode_polygons(parts, mask_data);
    }

    std::size_t mask_begin_ = 0;
    std::array<std::int8_t, 3> rle_follows_ = in_order<2>();
    Runs runs_;
    std::string text_;
};

// The same block with masks passed by.
template <class Block>
class WithoutMasks : public Block {
   public:
    WithoutMasks() { this->with_masks = false; }
};

}  // namespace lvdet::json
