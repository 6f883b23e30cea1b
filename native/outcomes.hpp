// What matching says of each row of a ranking: right, wrong or not counted.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "bits.hpp"
#include "buffer.hpp"

namespace lvdet {

// Nine in ten rows match nothing: a byte says where such a row is wrong. The others, the hits, have
// two bits per IoU threshold. Both are there for each scope: a range of area, or a pool of classes.
struct Outcomes {
    const std::uint8_t* wrong;  // [rows] bit s: matches nothing, and is wrong in scope s
    const std::int32_t* hits;   // [hit_count] the rows that match something, rising
    // [hit_count, scopes, 2, bytes] threshold t in bit t % 8 of byte t / 8: matched, then ignored.
    // Right is matched and not ignored, wrong is neither.
    const std::uint8_t* bits;
    std::size_t rows, hit_count, scopes, bytes, thresholds;

    const std::uint8_t* of(std::size_t hit, std::size_t scope) const {
        return bits + (hit * scopes + scope) * 2 * bytes;
    }
};

// The outcomes themselves, as matching makes them.
struct OutcomeColumns {
    Buffer<std::uint8_t> wrong;
    std::vector<std::int32_t> hits;
    std::vector<std::uint8_t> bits;
};

// Scopes that a byte holds.
inline constexpr std::size_t kMostScopes = 8;

// The bits of up to 64 thresholds, in so many bytes.
inline std::uint64_t load_bits(const std::uint8_t* from, std::size_t bytes) {
    // Little-endian, as bits are numbered. Two bytes hold the usual ten thresholds.
    if (bytes == 2) return from[0] | static_cast<std::uint64_t>(from[1]) << 8;
    std::uint64_t word = 0;
    std::memcpy(&word, from, bytes);
    return word;
}
inline void store_bits(std::uint8_t* to, std::uint64_t word, std::size_t bytes) {
    std::memcpy(to, &word, bytes);
}

// How many rows are wrong and kept before a row, for rows that only rise; eight rows at a time.
// `keep` is a byte of 0 or 1 per row, null for all.
class WrongBefore {
   public:
    WrongBefore(const Outcomes& outcomes, const std::uint8_t* keep, std::size_t scope,
                std::int64_t first)
        : outcomes_(outcomes),
          keep_(keep),
          scope_(scope),
          word_(static_cast<std::size_t>(first) / kRows) {
        sum_ = -(*this)(first);
    }
    std::int64_t operator()(std::int64_t row) {
        const std::size_t at = static_cast<std::size_t>(row);
        for (; word_ < at / kRows; ++word_) sum_ += total(flags(word_));
        if (at % kRows == 0) return sum_;
        return sum_ + total(flags(word_) & lowest_bits(at % kRows * 8));
    }

   private:
    static constexpr std::size_t kRows = 8;
    static constexpr std::uint64_t kOnes = 0x0101010101010101;

    // The sum of a word's bytes, each 0 or 1.
    static std::int64_t total(std::uint64_t word) {
        return static_cast<std::int64_t>(word * kOnes >> 56);
    }
    std::uint64_t flags(std::size_t word) const {
        std::uint64_t flags = load(outcomes_.wrong, word) >> scope_ & kOnes;
        if (keep_) flags &= load(keep_, word);
        return flags;
    }
    std::uint64_t load(const std::uint8_t* column, std::size_t word) const {
        std::uint64_t bytes = 0;
        const std::size_t from = word * kRows, left = outcomes_.rows - from;
        if (left >= kRows)
            std::memcpy(&bytes, column + from, kRows);
        else
            std::memcpy(&bytes, column + from, left);
        return bytes;
    }

    const Outcomes& outcomes_;
    const std::uint8_t* keep_;
    std::size_t scope_, word_;
    std::int64_t sum_ = 0;
};

// The outcomes of one scope in another order (row of each place), with pools of classes as scopes:
// a row counts in pool p where member[p, class] is not 0. Rows are by class, offsets[c] ..
// offsets[c + 1]; at most kMostPools pools.
inline constexpr std::size_t kMostPools = kMostScopes - 1;
OutcomeColumns pool(const Outcomes& outcomes, const std::int32_t* order,
                    const std::int64_t* offsets, std::size_t classes, const std::uint8_t* member,
                    std::size_t pools, int threads);

}  // namespace lvdet
