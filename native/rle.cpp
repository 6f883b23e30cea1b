#include "rle.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace lvdet {

namespace {

// Reads one number of the compressed string: six-bit characters from '0', low five bits a
// digit (least significant first), bit five "more follow"; the last digit carries the sign.
// Returns the character after it, or nullptr. Nearly all numbers are one character long.
[[gnu::always_inline]] inline const std::uint8_t* read_number(const std::uint8_t* p,
                                                              const std::uint8_t* end,
                                                              std::int64_t& value) {
    unsigned c = static_cast<unsigned>(*p++) - 48u;
    if (c < 32u) [[likely]] {
        value = static_cast<std::int64_t>(c ^ 16u) - 16;
        return p;
    }
    std::int64_t sum = 0;
#pragma GCC unroll 3
    for (int shift = 0; shift < 55; shift += 5) {
        if (c > 63u || p == end) return nullptr;
        sum |= static_cast<std::int64_t>(c & 31u) << shift;
        c = static_cast<unsigned>(*p++) - 48u;
        if (c < 32u) {
            value = sum + (static_cast<std::int64_t>(c ^ 16u) - 16) * (std::int64_t{32} << shift);
            return p;
        }
    }
    return nullptr;
}

// Reads the next run and moves p behind it; `before` is what it is the difference to. Returns
// what is wrong, or nullptr.
[[gnu::always_inline]] inline const char* next_run(const std::uint8_t*& p, const std::uint8_t* end,
                                                   std::int64_t before, std::int64_t& run) {
    p = read_number(p, end, run);
    if (!p) return "RLE counts are corrupt";
    run += before;
    if (static_cast<std::uint64_t>(run) > 0xffffffffu)
        return run < 0 ? "RLE has a negative run" : "RLE has a run that is too long";
    return nullptr;
}

#if defined(__SSE2__)

// Sums of every second one of sixteen numbers so far: true if each is one character of text. Eight
// of them, -16 .. 15, fit a signed byte.
inline bool sum_sixteen(const std::uint8_t* text, __m128i& sums) {
    const __m128i digits =
        _mm_sub_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(text)), _mm_set1_epi8(48));
    // All below 32, as unsigned bytes.
    const __m128i high = _mm_set1_epi8(31);
    if (_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(digits, high), high)) != 0xffff) return false;
    const __m128i sign = _mm_set1_epi8(16);
    sums = _mm_sub_epi8(_mm_xor_si128(digits, sign), sign);
    sums = _mm_add_epi8(sums, _mm_slli_si128(sums, 2));
    sums = _mm_add_epi8(sums, _mm_slli_si128(sums, 4));
    sums = _mm_add_epi8(sums, _mm_slli_si128(sums, 8));
    return true;
}

#endif

// Adds runs up.
struct Adder {
    std::int64_t total = 0;

    void take(std::int64_t run) { total += run; }
#if defined(__SSE2__)
    // Sixteen runs, those at even places `before` and the sums, those at odd ones `last` and the
    // sums: false, and nothing is added, if one is negative or may be too long.
    bool take(__m128i sums, std::int64_t before, std::int64_t last) {
        const __m128i shifted = _mm_xor_si128(sums, _mm_set1_epi8(-128));  // + 128, unsigned
        auto lowest = [](__m128i bytes) {
            bytes = _mm_min_epu8(bytes, _mm_srli_si128(bytes, 8));
            bytes = _mm_min_epu8(bytes, _mm_srli_si128(bytes, 4));
            bytes = _mm_min_epu8(bytes, _mm_srli_si128(bytes, 2));
            return static_cast<std::int64_t>(_mm_cvtsi128_si32(bytes) & 0xff) - 128;
        };
        auto sum = [](__m128i bytes) {
            const __m128i parts = _mm_sad_epu8(bytes, _mm_setzero_si128());
            return static_cast<std::int64_t>(_mm_cvtsi128_si32(parts)) +
                   _mm_extract_epi16(parts, 4) - 8 * 128;
        };
        const __m128i even = _mm_and_si128(shifted, _mm_set1_epi16(0x00ff));
        const __m128i odd = _mm_srli_epi16(shifted, 8);
        if (before < 128 && before + lowest(even) < 0) return false;
        if (last < 128 && last + lowest(odd) < 0) return false;
        total += 8 * (before + last) + sum(even) + sum(odd);
        return true;
    }
#endif
};

// Writes runs down.
struct Writer {
    std::uint32_t* out;

    void take(std::int64_t run) { *out++ = static_cast<std::uint32_t>(run); }
#if defined(__SSE2__)
    // As in Adder.
    bool take(__m128i sums, std::int64_t before, std::int64_t last) {
        const int even = static_cast<int>(before), odd = static_cast<int>(last);
        const __m128i base = _mm_set_epi32(odd, even, odd, even);
        const __m128i signs = _mm_cmpgt_epi8(_mm_setzero_si128(), sums);
        __m128i any = _mm_setzero_si128();
        auto* to = reinterpret_cast<__m128i*>(out);
        for (const __m128i half :
             {_mm_unpacklo_epi8(sums, signs), _mm_unpackhi_epi8(sums, signs)}) {
            const __m128i more = _mm_srai_epi16(half, 15);
            for (const __m128i four :
                 {_mm_unpacklo_epi16(half, more), _mm_unpackhi_epi16(half, more)}) {
                const __m128i runs = _mm_add_epi32(four, base);
                _mm_storeu_si128(to++, runs);
                any = _mm_or_si128(any, runs);
            }
        }
        if (_mm_movemask_ps(_mm_castsi128_ps(any))) return false;
        out += 16;
        return true;
    }
#endif
};

// Hands the runs of a compressed string to take(run), or sixteen of them at a time. Returns what is
// wrong, or nullptr.
template <class Taker>
[[gnu::always_inline]] inline const char* read_runs(const std::uint8_t* text, std::size_t size,
                                                    Taker& taker) {
    const std::uint8_t* p = text;
    const std::uint8_t* const end = text + size;
    const std::uint8_t* next = text;  // where to look for sixteen again
    std::int64_t last = 0, before = 0;
    for (std::size_t i = 0; p < end; ++i) {
#if defined(__SSE2__)
        if (i > 2 && p >= next) {
            __m128i sums;
            while (end - p >= 16 && (before | last) >> 31 == 0 && sum_sixteen(p, sums) &&
                   taker.take(sums, before, last)) {
                before += static_cast<std::int8_t>(_mm_extract_epi16(sums, 7) & 0xff);
                last += static_cast<std::int8_t>(_mm_extract_epi16(sums, 7) >> 8);
                p += 16;
            }
            if (p == end) break;
            next = p + 16;
        }
#endif
        // Every run after the third is stored as the difference to the one two before it.
        std::int64_t run = 0;
        if (const char* wrong = next_run(p, end, i > 2 ? before : 0, run)) return wrong;
        before = last;
        last = run;
        taker.take(run);
    }
    return nullptr;
}

// Appends a run; one that 32 bits cannot hold as several, with empty ones between them.
void append_run(Runs& runs, std::int64_t length) {
    constexpr std::uint32_t longest = 0xffffffffu;
    for (; length > longest; length -= longest) runs.insert(runs.end(), {longest, 0});
    runs.push_back(static_cast<std::uint32_t>(length));
}

// The pixels inside a mask, one run after the other.
struct Spans {
    explicit Spans(const Runs& runs) : next_(runs.data()), last_(runs.data() + runs.size()) {}
    bool next() {
        if (last_ - next_ < 2) return false;
        begin = end + next_[0];
        end = begin + next_[1];
        next_ += 2;
        return true;
    }
    std::int64_t begin = 0, end = 0;

   private:
    const std::uint32_t *next_, *last_;
};

// Walks two run lists together, calling visit(length, in_a, in_b) for each common piece.
template <class Visit>
void walk(const Runs& a, const Runs& b, Visit&& visit) {
    std::size_t i = 0, j = 0;
    std::uint32_t left_a = a.empty() ? 0 : a[0], left_b = b.empty() ? 0 : b[0];
    while (i < a.size() && j < b.size()) {
        const std::uint32_t step = std::min(left_a, left_b);
        visit(step, (i & 1) != 0, (j & 1) != 0);
        left_a -= step;
        left_b -= step;
        if (left_a == 0 && ++i < a.size()) left_a = a[i];
        if (left_b == 0 && ++j < b.size()) left_b = b[j];
    }
}

}  // namespace

const char* decode_runs(const std::uint8_t* text, std::size_t size, Runs& runs) {
    runs.resize(size);  // a run takes at least one character
    Writer writer{runs.data()};
    const char* const wrong = read_runs(text, size, writer);
    runs.resize(static_cast<std::size_t>(writer.out - runs.data()));
    return wrong;
}

const char* check_rle(const std::uint8_t* text, std::size_t size, std::int64_t pixels) {
    Adder adder;
    if (const char* wrong = read_runs(text, size, adder)) return wrong;
    return adder.total == pixels ? nullptr : "RLE runs do not add up to its size";
}

const char* check_row(const MaskColumn& masks, std::size_t row) {
    const std::uint8_t* data = masks.data + masks.offsets[row];
    const auto size = static_cast<std::size_t>(masks.offsets[row + 1] - masks.offsets[row]);
    const std::int64_t height = masks.height[row], width = masks.width[row];
    if (height < 0 || width < 0 || height > kLargestSide || width > kLargestSide)
        return "the mask size is not a valid image size";
    if (size > kLargestMask) return kTooLarge;
    switch (masks.kind[row]) {
        case kMaskNone: return nullptr;
        case kMaskRle: return check_rle(data, size, height * width);
        case kMaskPolygons: return check_polygons(data, size);
        default: return "unknown kind of mask";
    }
}

void encode_runs(const std::uint32_t* runs, std::size_t size, std::vector<std::uint8_t>& out) {
    for (std::size_t i = 0; i < size; ++i) {
        std::int64_t value = runs[i];
        if (i > 2) value -= runs[i - 2];
        for (bool more = true; more;) {
            unsigned c = static_cast<unsigned>(value & 31);
            value >>= 5;
            more = (c & 16u) ? value != -1 : value != 0;
            if (more) c |= 32u;
            out.push_back(static_cast<std::uint8_t>(c + 48u));
        }
    }
}

void cancel_pairs(std::vector<std::int64_t>& toggles) {
    if (!std::is_sorted(toggles.begin(), toggles.end())) std::sort(toggles.begin(), toggles.end());
    std::size_t kept = 0;
    for (const std::int64_t at : toggles) {
        if (kept > 0 && toggles[kept - 1] == at)
            --kept;
        else
            toggles[kept++] = at;
    }
    toggles.resize(kept);
}

void runs_from_toggles(std::vector<std::int64_t>& toggles, std::int64_t pixels, Runs& runs) {
    cancel_pairs(toggles);
    runs.clear();
    std::int64_t last = 0;
    for (const std::int64_t at : toggles) {
        if (at >= pixels) break;
        append_run(runs, at - last);
        last = at;
    }
    append_run(runs, pixels - last);
}

const char* row_runs(const MaskColumn& masks, std::size_t row, std::int64_t height,
                     std::int64_t width, Runs& runs) {
    const std::uint8_t* data = masks.data + masks.offsets[row];
    const std::size_t size = static_cast<std::size_t>(masks.offsets[row + 1] - masks.offsets[row]);
    if (masks.kind[row] == kMaskRle) {
        if (const char* wrong = decode_runs(data, size, runs)) return wrong;
        const std::uint64_t pixels = std::accumulate(runs.begin(), runs.end(), std::uint64_t{0});
        const std::int64_t expected = std::int64_t{masks.height[row]} * masks.width[row];
        return static_cast<std::int64_t>(pixels) == expected ? nullptr
                                                             : "RLE runs do not add up to its size";
    }
    if (masks.kind[row] != kMaskPolygons) return "has no mask";
    if (const char* wrong = check_polygons(data, size)) return wrong;
    Runs part;
    bool first = true;
    const char* wrong = nullptr;
    for_each_polygon(data, [&](const std::vector<double>& xy) {
        if (wrong) return;
        wrong = polygon_runs(xy, height, width, first ? runs : part);
        if (!first) runs = unite(runs, part);
        first = false;
    });
    return wrong;
}

Runs unite(const Runs& a, const Runs& b) {
    Runs out;
    std::int64_t run = 0;
    bool inside = false;
    walk(a, b, [&](std::uint32_t length, bool in_a, bool in_b) {
        if (length == 0) return;
        if ((in_a || in_b) != inside) {
            append_run(out, run);
            run = 0;
            inside = !inside;
        }
        run += length;
    });
    append_run(out, run);
    return out;
}

std::uint64_t mask_area(const Runs& runs) {
    std::uint64_t sum = 0;
    for (std::size_t i = 1; i < runs.size(); i += 2) sum += runs[i];
    return sum;
}

std::uint64_t intersection(const Runs& a, const Runs& b) {
    std::int64_t sum = 0;
    Spans x(a), y(b);
    for (bool more = x.next() && y.next(); more; more = x.end < y.end ? x.next() : y.next())
        sum += std::max<std::int64_t>(std::min(x.end, y.end) - std::max(x.begin, y.begin), 0);
    return static_cast<std::uint64_t>(sum);
}

Box mask_box(const Runs& runs, std::int64_t height) {
    if (height <= 0) return {0, 0, 0, 0};
    std::int64_t left = -1, right = 0, top = height, bottom = 0;
    std::int64_t column = 0, y = 0;  // where a run begins, or the one before it ended
    const auto wrap = [&] {
        column += y < 2 * height ? 1 : y / height;  // mostly, and no division
        y -= y < 2 * height ? height : y / height * height;
    };
    for (std::size_t i = 1; i < runs.size(); i += 2) {
        y += runs[i - 1];
        if (runs[i] == 0) continue;
        if (y >= height) wrap();
        if (left < 0) left = column;
        top = std::min(top, y);
        y += runs[i];
        if (y > height) {
            wrap();
            top = 0;
            bottom = height;
            if (y == 0) --column, y = height;
        }
        bottom = std::max(bottom, y);
        right = column;
    }
    if (left < 0) return {0, 0, 0, 0};
    return {static_cast<double>(left), static_cast<double>(top),
            static_cast<double>(right - left + 1), static_cast<double>(bottom - top)};
}

}  // namespace lvdet
