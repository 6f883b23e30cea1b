#include "paste.hpp"

#include <algorithm>
#include <cmath>

#include "parallel.hpp"
#include "rle.hpp"

namespace lvdet {

namespace {

// Masks that a thread takes at a time.
constexpr std::size_t kTaskMasks = 8;

// The first pixel of [low, high) from which on `holds`, or high. `guess` is nearly always that
// pixel or the next; where it is not, the rest is searched.
template <class Holds>
std::int64_t first_pixel(std::int64_t low, std::int64_t high, double guess, Holds&& holds) {
    std::int64_t at = low;  // also where the guess is not a number
    if (guess >= static_cast<double>(high))
        at = high;
    else if (guess > static_cast<double>(low))
        at = static_cast<std::int64_t>(guess);
    if (at < high && !holds(at)) {
        low = at + 1;
        if (low == high || holds(low)) return low;
        ++low;
    } else {
        high = at;
        if (low == high || !holds(high - 1)) return high;
        --high;
    }
    while (low < high) {
        const std::int64_t middle = low + (high - low) / 2;
        if (holds(middle))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

// Pixels along one side of a box, and where they lie on its map: value i of the map, with a zero
// before the first and after the last, lies at i.
class Axis {
   public:
    Axis(double low, double high, std::size_t side, std::int64_t pixels)
        : low_(low),
          cell_((high - low) / static_cast<double>(side)),
          scale_(static_cast<double>(side) / (high - low)) {
        begin_.reserve(side + 2);
        for (std::size_t i = 0; i < side + 2; ++i) {
            const auto from = static_cast<double>(i);
            begin_.push_back(first_pixel(0, pixels, pixel_at(from) + 1,
                                         [&](std::int64_t x) { return place_of(x) >= from; }));
        }
    }

    double place_of(std::int64_t pixel) const {
        return (static_cast<double>(pixel) + 0.5 - low_) * scale_ + 0.5;
    }
    double pixel_at(double place) const { return (place - 0.5) * cell_ + low_ - 0.5; }
    // The first pixel at i or after it; those between i and i + 1 end where the next begin.
    std::int64_t begin(std::size_t i) const { return begin_[i]; }

   private:
    double low_, cell_, scale_;
    std::vector<std::int64_t> begin_;
};

// What one thread needs for a mask.
struct Scratch {
    std::vector<double> columns;  // of the map, with zeros around it
    std::vector<double> values;   // of the map at a column of pixels
    std::vector<std::int64_t> toggles;
    Runs runs;
};

// Where the mask changes in a column of pixels. Between two values of the map the bilinear value
// rises or falls, so it is once 0.5 at most.
void add_toggles(const std::vector<double>& values, const Axis& y, std::int64_t first_pixel_of,
                 std::vector<std::int64_t>& toggles) {
    bool inside = false;
    for (std::size_t i = 0; i + 1 < values.size(); ++i) {
        const bool next = values[i + 1] >= 0.5;
        if (next == inside) continue;
        inside = next;
        const double from = values[i], step = values[i + 1] - from, place = static_cast<double>(i);
        const auto holds = [&](std::int64_t pixel) {
            return (from + (y.place_of(pixel) - place) * step >= 0.5) == next;
        };
        const double guess = y.pixel_at(place + (0.5 - from) / step) + 1;
        toggles.push_back(first_pixel_of + first_pixel(y.begin(i), y.begin(i + 1), guess, holds));
    }
}

void paste_mask(const float* map, const double* box, std::size_t side, std::int64_t height,
                std::int64_t width, Scratch& scratch) {
    auto& [columns, values, toggles, runs] = scratch;
    toggles.clear();
    const bool finite = std::isfinite(box[0]) && std::isfinite(box[1]) && std::isfinite(box[2]) &&
                        std::isfinite(box[3]);
    if (finite && box[0] < box[2] && box[1] < box[3]) {
        const std::size_t padded = side + 2;
        columns.assign(padded * padded, 0.0);
        for (std::size_t row = 0; row < side; ++row)
            for (std::size_t column = 0; column < side; ++column) {
                const double value = map[row * side + column];
                columns[(column + 1) * padded + row + 1] = value + 0 * value;  // NaN if infinite
            }
        values.resize(padded);
        const Axis x(box[0], box[2], side, width), y(box[1], box[3], side, height);
        for (std::size_t i = 0; i <= side; ++i) {
            const double *left = &columns[i * padded], *right = left + padded;
            for (std::int64_t pixel = x.begin(i); pixel < x.begin(i + 1); ++pixel) {
                const double part = x.place_of(pixel) - static_cast<double>(i);
                for (std::size_t k = 0; k < padded; ++k)
                    values[k] = left[k] + part * (right[k] - left[k]);
                add_toggles(values, y, pixel * height, toggles);
            }
        }
    }
    runs_from_toggles(toggles, height * width, runs);
}

}  // namespace

EncodedMasks paste_masks(const PasteInput& input, int threads) {
    const std::size_t masks = input.masks;
    EncodedMasks out;
    out.offsets.resize(masks + 1);
    std::vector<std::vector<std::uint8_t>> parts(count_blocks<kTaskMasks>(masks));
    in_blocks<kTaskMasks>(masks, threads, [&](std::size_t begin, std::size_t end) {
        const auto& [map, box, height, width, every, side] = input;
        Scratch scratch;
        std::vector<std::uint8_t>& part = parts[begin / kTaskMasks];
        for (std::size_t i = begin; i < end; ++i) {
            paste_mask(map + i * side * side, box + 4 * i, side, height[i], width[i], scratch);
            const std::size_t before = part.size();
            encode_runs(scratch.runs.data(), scratch.runs.size(), part);
            out.offsets[i + 1] = static_cast<std::int64_t>(part.size() - before);
        }
    });
    for (std::size_t i = 0; i < masks; ++i) out.offsets[i + 1] += out.offsets[i];
    out.data.reserve(static_cast<std::size_t>(out.offsets[masks]));
    for (const auto& part : parts) out.data.insert(out.data.end(), part.begin(), part.end());
    return out;
}

}  // namespace lvdet
