// Sets of small numbers as bits.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

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

}  // namespace lvdet
