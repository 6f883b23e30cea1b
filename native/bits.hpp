// Sets of numbers as bits.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace lvdet {

// Bytes that hold so many bits.
constexpr std::size_t bytes_for(std::size_t bits) {
    return (bits + 7) / 8;
}

// The lowest `count` bits of a word, up to all 64.
constexpr std::uint64_t lowest_bits(std::size_t count) {
    return count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

// Calls visit(place) for every bit that is set, from the lowest.
template <class Visit>
void for_each_bit(std::uint64_t bits, Visit&& visit) {
    for (; bits; bits &= bits - 1) visit(static_cast<std::size_t>(std::countr_zero(bits)));
}

// A set of numbers below a limit that knows how many of its numbers are below another.
class RankedBits {
   public:
    explicit RankedBits(std::size_t limit) : words_(limit / 64 + 1), before_(words_.size()) {}

    std::size_t word_count() const { return words_.size(); }
    // The 64 numbers from 64 * w on.
    std::uint64_t& word(std::size_t w) { return words_[w]; }
    void set(std::size_t number) { words_[number / 64] |= std::uint64_t{1} << number % 64; }
    bool has(std::size_t number) const { return words_[number / 64] >> number % 64 & 1; }
    // To be called once all are set, before rank().
    void finish() {
        std::int32_t sum = 0;
        for (std::size_t w = 0; w < words_.size(); ++w)
            before_[w] = std::exchange(sum, sum + std::popcount(words_[w]));
    }
    // How many numbers are below this one, which is no more than the limit.
    std::size_t rank(std::size_t number) const {
        const std::uint64_t below = words_[number / 64] & lowest_bits(number % 64);
        return static_cast<std::size_t>(before_[number / 64] + std::popcount(below));
    }

   private:
    std::vector<std::uint64_t> words_;
    std::vector<std::int32_t> before_;
};

}  // namespace lvdet
