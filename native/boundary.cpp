#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "bits.hpp"
#include "rle.hpp"

namespace lvdet {

namespace {

// A pixel mask as one bit a pixel, each column its own row of words.
class Bits {
   public:
    Bits(std::int64_t height, std::int64_t width)
        : words_(static_cast<std::size_t>((height + 63) / 64)),
          width_(static_cast<std::size_t>(width)),
          bits_(words_ * width_, 0) {}

    std::uint64_t* column(std::size_t x) { return bits_.data() + x * words_; }
    std::size_t words() const { return words_; }

    void fill(std::size_t x, std::int64_t from, std::int64_t to) {
        std::uint64_t* column_bits = column(x);
        for (std::int64_t y = from; y < to;) {
            const std::int64_t stop = std::min(to, (y / 64 + 1) * 64);
            column_bits[y / 64] |= lowest_bits(static_cast<std::size_t>(stop - y)) << (y % 64);
            y = stop;
        }
    }

    // this &= this moved by `shift` pixels along y (either sign); what moves in is background.
    void and_shifted_rows(std::int64_t shift) {
        const std::size_t whole = static_cast<std::size_t>(std::llabs(shift) / 64);
        const unsigned part = static_cast<unsigned>(std::llabs(shift) % 64);
        std::vector<std::uint64_t> moved(words_);
        for (std::size_t x = 0; x < width_; ++x) {
            std::uint64_t* c = column(x);
            for (std::size_t k = 0; k < words_; ++k) {
                std::uint64_t word = 0;
                if (shift > 0) {
                    if (k >= whole) word = c[k - whole] << part;
                    if (part && k > whole) word |= c[k - whole - 1] >> (64 - part);
                } else {
                    if (k + whole < words_) word = c[k + whole] >> part;
                    if (part && k + whole + 1 < words_) word |= c[k + whole + 1] << (64 - part);
                }
                moved[k] = word;
            }
            for (std::size_t k = 0; k < words_; ++k) c[k] &= moved[k];
        }
    }

    // this &= this moved by `shift` columns (either sign); what moves in is background.
    void and_shifted_columns(std::int64_t shift) {
        const std::size_t distance = static_cast<std::size_t>(std::llabs(shift));
        for (std::size_t i = 0; i < width_; ++i) {
            const std::size_t x = shift > 0 ? width_ - 1 - i : i;
            const bool inside = shift > 0 ? x >= distance : x + distance < width_;
            std::uint64_t* c = column(x);
            if (!inside) {
                std::memset(c, 0, words_ * sizeof *c);
                continue;
            }
            const std::uint64_t* other = column(shift > 0 ? x - distance : x + distance);
            for (std::size_t k = 0; k < words_; ++k) c[k] &= other[k];
        }
    }

   private:
    std::size_t words_, width_;
    std::vector<std::uint64_t> bits_;
};

// Erodes along one axis by `reach` on both sides: a pixel stays if all within reach are set.
// Windows double in length at each step, so it takes log2(reach) passes.
template <class AndShifted>
void erode(std::int64_t reach, AndShifted&& and_shifted) {
    for (const std::int64_t sign : {1, -1}) {
        std::int64_t covered = 1;  // each pixel stands for this many, itself included
        while (covered < reach + 1) {
            const std::int64_t step = std::min(covered, reach + 1 - covered);
            and_shifted(sign * step);
            covered += step;
        }
    }
}

}  // namespace

std::int64_t boundary_reach(std::int64_t height, std::int64_t width) {
    const double diagonal = std::sqrt(static_cast<double>(height * height + width * width));
    return std::max<std::int64_t>(1, std::llrint(0.02 * diagonal));
}

Runs boundary(const Runs& runs, std::int64_t height, std::int64_t width, std::int64_t reach) {
    const Box box = mask_box(runs, height);
    if (box.w == 0) return runs;
    // Work inside the mask's own box: what lies outside is background already.
    const auto left = static_cast<std::int64_t>(box.x), top = static_cast<std::int64_t>(box.y);
    const auto columns = static_cast<std::int64_t>(box.w), rows = static_cast<std::int64_t>(box.h);
    Bits inner(rows, columns);
    std::int64_t at = 0;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        std::int64_t begin = at;
        at += runs[i];
        if (!(i & 1)) continue;
        while (begin < at) {
            const std::int64_t x = begin / height;
            const std::int64_t stop = std::min(at, (x + 1) * height);
            inner.fill(static_cast<std::size_t>(x - left), begin - x * height - top,
                       stop - x * height - top);
            begin = stop;
        }
    }
    erode(reach, [&](std::int64_t shift) { inner.and_shifted_rows(shift); });
    erode(reach, [&](std::int64_t shift) { inner.and_shifted_columns(shift); });
    // The boundary is the mask without its inner part: toggles of both, together.
    std::vector<std::int64_t> toggles;
    at = 0;
    for (const std::uint32_t run : runs) toggles.push_back(at += run);
    for (std::int64_t x = 0; x < columns; ++x) {
        const std::uint64_t* column = inner.column(static_cast<std::size_t>(x));
        std::uint64_t carry = 0;
        for (std::size_t k = 0; k < inner.words(); ++k) {
            const std::int64_t first =
                (left + x) * height + top + static_cast<std::int64_t>(k) * 64;
            for_each_bit(column[k] ^ (column[k] << 1 | carry), [&](std::size_t y) {
                toggles.push_back(first + static_cast<std::int64_t>(y));
            });
            carry = column[k] >> 63;
        }
        // Eroded at both ends, a column's last pixel inside the box is never set.
    }
    Runs out;
    runs_from_toggles(toggles, height * width, out);
    return out;
}

}  // namespace lvdet
