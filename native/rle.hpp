// Masks as run lengths: column-major, alternating background and object, background first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "bounds.hpp"

namespace lvdet {

using Runs = std::vector<std::uint32_t>;

enum MaskKind : std::uint8_t { kMaskNone = 0, kMaskRle = 1, kMaskPolygons = 2 };

// A column of encoded masks; see lvdet.tables.masks.Masks.
struct MaskColumn {
    const std::uint8_t* data = nullptr;
    const std::int64_t* offsets = nullptr;
    const std::uint8_t* kind = nullptr;
    const std::int32_t* height = nullptr;
    const std::int32_t* width = nullptr;

    explicit operator bool() const { return data != nullptr; }
};

struct Box {
    double x, y, w, h;
};

// COCO's compressed string to runs. Returns what is wrong with it, or nullptr.
const char* decode_runs(const std::uint8_t* text, std::size_t size, Runs& runs);
// Runs to COCO's compressed string, appended.
void encode_runs(const std::uint32_t* runs, std::size_t size, std::vector<std::uint8_t>& out);
// What is wrong with a compressed string of a mask of so many pixels, or nullptr.
const char* check_rle(const std::uint8_t* text, std::size_t size, std::int64_t pixels);
// What is wrong with the parts of a polygon row, or nullptr.
const char* check_polygons(const std::uint8_t* data, std::size_t size);
// What is wrong with a row of any kind, or nullptr.
const char* check_row(const MaskColumn& masks, std::size_t row);

// Sorts positions and drops those that stand there an even number of times.
void cancel_pairs(std::vector<std::int64_t>& toggles);
// Runs from the positions, in any order, at which a mask changes between background and object.
void runs_from_toggles(std::vector<std::int64_t>& toggles, std::int64_t pixels, Runs& runs);

// The mask of one polygon (x, y pairs), traced as the COCO tools trace it: edges at five times
// the resolution, snapped to pixel columns. Returns what is wrong with it, or nullptr.
const char* polygon_runs(const std::vector<double>& xy, std::int64_t height, std::int64_t width,
                         Runs& runs);
// The columns of pixels that the edges of a polygon cross, each edge for itself.
std::uint64_t crossings(const std::vector<double>& xy, std::int64_t width);

// The mask of an encoded row at the given image size. Returns what is wrong, or nullptr.
const char* row_runs(const MaskColumn& masks, std::size_t row, std::int64_t height,
                     std::int64_t width, Runs& runs);

Runs unite(const Runs& a, const Runs& b);
std::uint64_t mask_area(const Runs& runs);
Box mask_box(const Runs& runs, std::int64_t height);
// Corners of the polygon parts of an encoded row.
Box polygon_box(const std::uint8_t* data);
// Pixels in both masks.
std::uint64_t intersection(const Runs& a, const Runs& b);
// The pixels of a mask within `reach` (in both axes) of a pixel outside it or of the image's edge.
Runs boundary(const Runs& runs, std::int64_t height, std::int64_t width, std::int64_t reach);
// 0.02 of the diagonal, at least one pixel.
std::int64_t boundary_reach(std::int64_t height, std::int64_t width);

// The bytes of a polygon row: how many parts, how many numbers each has, and the numbers. Calls
// visit(xy) for each part.
template <class Visit>
void for_each_polygon(const std::uint8_t* data, Visit&& visit) {
    std::uint32_t parts = 0, count = 0;
    std::memcpy(&parts, data, sizeof parts);
    const std::uint8_t* numbers = data + (parts + 1) * sizeof parts;
    std::vector<double> xy;
    for (std::uint32_t part = 0; part < parts; ++part) {
        std::memcpy(&count, data + (part + 1) * sizeof count, sizeof count);
        xy.resize(count);
        std::memcpy(xy.data(), numbers, count * sizeof(double));
        numbers += count * sizeof(double);
        visit(xy);
    }
}
// Polygon parts as the bytes of a row.
void encode_polygons(const std::vector<std::vector<double>>& parts, std::vector<std::uint8_t>& out);

}  // namespace lvdet
