#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "rle.hpp"

namespace lvdet {

namespace {

constexpr double kScale = 5;

struct Point {
    int x, y;
};

// A corner at five times the resolution.
Point corner(const std::vector<double>& xy, std::size_t i) {
    return {static_cast<int>(kScale * xy[2 * i] + .5),
            static_cast<int>(kScale * xy[2 * i + 1] + .5)};
}

// The columns of pixels of the image whose centres an edge crosses: from `begin` on, before `end`.
struct Columns {
    int begin, end;
};

Columns columns_between(Point from, Point to, std::int64_t width) {
    return {std::max(std::min(from.x, to.x) + 2, 0) / 5,
            static_cast<int>(std::min<std::int64_t>((std::max(from.x, to.x) + 2) / 5, width))};
}

// Calls visit(column, y) wherever an edge crosses the centre of a column of pixels of the image.
// Corners and y are at five times the resolution: the centre of column c is between 5c + 2 and
// 5c + 3. The COCO tools trace the edge point by point, one for each step of its longer axis, and
// take the upper of the two points beside the centre; here only those two are computed.
template <class Visit>
void cross_columns(Point from, Point to, std::int64_t width, Visit&& visit) {
    const int dx = std::abs(to.x - from.x), dy = std::abs(to.y - from.y);
    if (dx == 0) return;
    const Columns columns = columns_between(from, to, width);
    if (dx >= dy ? from.x > to.x : from.y > to.y) std::swap(from, to);
    if (dx >= dy) {
        const double slope = static_cast<double>(to.y - from.y) / dx;
        const auto y = [&](int step) { return static_cast<int>(from.y + slope * step + .5); };
        for (int column = columns.begin; column < columns.end; ++column) {
            const int step = 5 * column + 2 - from.x;
            visit(column, std::min(y(step), y(step + 1)));
        }
        return;
    }
    const double slope = static_cast<double>(to.x - from.x) / dy;
    for (int column = columns.begin; column < columns.end; ++column) {
        const int centre = 5 * column + 2;
        const auto crossed = [&](int step) {
            const int x = static_cast<int>(from.x + slope * step + .5);
            return slope > 0 ? x > centre : x <= centre;
        };
        // The last step before the centre: about here, and exactly by the same rounding.
        int step = std::clamp(static_cast<int>((centre + .5 - from.x) / slope), 0, dy - 1);
        while (crossed(step)) --step;
        while (!crossed(step + 1)) ++step;
        visit(column, from.y + step);
    }
}

}  // namespace

const char* polygon_runs(const std::vector<double>& xy, std::int64_t height, std::int64_t width,
                         Runs& runs) {
    const std::size_t points = xy.size() / 2;
    std::vector<std::int64_t> toggles;
    std::size_t most = 1 << 16;
    std::size_t crossed = 0;
    for (std::size_t i = 0; i < points; ++i) {
        const std::size_t before = toggles.size();
        cross_columns(
            corner(xy, i), corner(xy, (i + 1) % points), width, [&](int column, int fine) {
                const double y =
                    std::clamp((fine + .5) / kScale - .5, 0.0, static_cast<double>(height));
                toggles.push_back(column * height + static_cast<std::int64_t>(std::ceil(y)));
            });
        crossed += toggles.size() - before;
        if (crossed > kMostCrossings) return kTooManyCrossings;
        if (toggles.size() < most) continue;
        cancel_pairs(toggles);  // at most one for each pixel is left
        most = std::max(most, 2 * toggles.size());
    }
    runs_from_toggles(toggles, height * width, runs);
    return nullptr;
}

std::uint64_t crossings(const std::vector<double>& xy, std::int64_t width) {
    const std::size_t points = xy.size() / 2;
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < points; ++i) {
        const Columns columns = columns_between(corner(xy, i), corner(xy, (i + 1) % points), width);
        sum += static_cast<std::uint64_t>(std::max(columns.end - columns.begin, 0));
    }
    return sum;
}

void encode_polygons(const std::vector<std::vector<double>>& parts,
                     std::vector<std::uint8_t>& out) {
    auto append = [&out](const void* from, std::size_t bytes) {
        const auto* p = static_cast<const std::uint8_t*>(from);
        out.insert(out.end(), p, p + bytes);
    };
    const auto count = static_cast<std::uint32_t>(parts.size());
    append(&count, sizeof count);
    for (const auto& part : parts) {
        const auto length = static_cast<std::uint32_t>(part.size());
        append(&length, sizeof length);
    }
    for (const auto& part : parts) append(part.data(), part.size() * sizeof(double));
}

const char* check_polygons(const std::uint8_t* data, std::size_t size) {
    constexpr const char* damaged = "polygons are corrupt";
    std::uint32_t parts = 0;
    if (size < sizeof parts) return damaged;
    std::memcpy(&parts, data, sizeof parts);
    if (parts == 0) return "has no polygon";
    if (parts > size / sizeof parts - 1) return damaged;
    std::size_t total = 0;
    for (std::uint32_t part = 0; part < parts; ++part) {
        std::uint32_t count = 0;
        std::memcpy(&count, data + (part + 1) * sizeof count, sizeof count);
        if (count < 6 || count % 2) return "a polygon needs at least 3 x, y points";
        total += count;
    }
    const std::size_t head = (parts + 1) * sizeof parts;
    if (size != head + total * sizeof(double)) return damaged;
    for (std::size_t i = 0; i < total; ++i) {
        double value = 0.0;
        std::memcpy(&value, data + head + i * sizeof value, sizeof value);
        if (!(std::fabs(value) <= kFarthest))
            return "a polygon has a coordinate beyond 1,000,000 pixels";
    }
    return nullptr;
}

Box polygon_box(const std::uint8_t* data) {
    constexpr double far = std::numeric_limits<double>::infinity();
    double left = far, right = -far, top = far, bottom = -far;
    for_each_polygon(data, [&](const std::vector<double>& xy) {
        for (std::size_t i = 0; i + 1 < xy.size(); i += 2) {
            left = std::min(left, xy[i]);
            right = std::max(right, xy[i]);
            top = std::min(top, xy[i + 1]);
            bottom = std::max(bottom, xy[i + 1]);
        }
    });
    return {left, top, right - left, bottom - top};
}

}  // namespace lvdet
