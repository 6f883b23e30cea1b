#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "rle.hpp"

namespace lvdet {

namespace {

struct Point {
    int x, y;
};

// The pixels of an edge at high resolution, from first to last, one for each step of its
// longer axis.
void trace_edge(Point from, Point to, std::vector<Point>& path) {
    const int dx = std::abs(to.x - from.x), dy = std::abs(to.y - from.y);
    const bool along_x = dx >= dy;
    const bool flip = along_x ? from.x > to.x : from.y > to.y;
    if (flip) std::swap(from, to);
    const int steps = along_x ? dx : dy;
    double slope = 0.0;
    if (steps > 0)
        slope = along_x ? static_cast<double>(to.y - from.y) / dx
                        : static_cast<double>(to.x - from.x) / dy;
    for (int i = 0; i <= steps; ++i) {
        const int t = flip ? steps - i : i;
        if (along_x)
            path.push_back({t + from.x, static_cast<int>(from.y + slope * t + .5)});
        else
            path.push_back({static_cast<int>(from.x + slope * t + .5), t + from.y});
    }
}

}  // namespace

void polygon_runs(const std::vector<double>& xy, std::int64_t height, std::int64_t width,
                  Runs& runs) {
    constexpr double scale = 5;
    const std::size_t points = xy.size() / 2;
    std::vector<Point> corners(points);
    for (std::size_t i = 0; i < points; ++i)
        corners[i] = {static_cast<int>(scale * xy[2 * i] + .5),
                      static_cast<int>(scale * xy[2 * i + 1] + .5)};
    std::vector<Point> path;
    for (std::size_t i = 0; i < points; ++i)
        trace_edge(corners[i], corners[(i + 1) % points], path);
    std::vector<std::int64_t> toggles;
    for (std::size_t i = 1; i < path.size(); ++i) {
        if (path[i].x == path[i - 1].x) continue;
        // The path crosses into another fine column: does a pixel column's centre lie there?
        const double fine = path[i].x < path[i - 1].x ? path[i].x : path[i].x - 1;
        const double x = (fine + .5) / scale - .5;
        if (std::floor(x) != x || x < 0 || x > static_cast<double>(width - 1)) continue;
        double y = (std::min(path[i].y, path[i - 1].y) + .5) / scale - .5;
        y = std::ceil(std::clamp(y, 0.0, static_cast<double>(height)));
        toggles.push_back(static_cast<std::int64_t>(x) * height + static_cast<std::int64_t>(y));
    }
    runs_from_toggles(toggles, height * width, runs);
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
            return "a polygon has a coordinate that is out of range";
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
