// Reading JSON text, one token at a time, from a buffer in memory.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lvdet::json {

// The text is not JSON; `at` points into the buffer.
struct SyntaxError {
    const char* at;
    const char* what;
};

// The buffer ended inside a value.
struct Incomplete {};

// Bytes that must be readable after `end` in every buffer given to a Cursor, the first a NUL:
// it stops every scan, and lets strings be searched sixteen bytes at a time.
inline constexpr std::size_t kPadding = 64;

struct String {
    std::string_view raw;  // between the quotes, escapes as written
    bool escaped;
};

// Appends the text of a string with its escapes resolved (\u as UTF-8).
void append_unescaped(const String& string, std::string& out);

namespace detail {
// Powers of ten that a double holds exactly.
inline constexpr double kPowersOfTen[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7};

// 1 / 10^power as (high * 2^64 + low) / 2^(127 + places): 128 bits, the first of them 1, rounded up
// where they are not exact.
struct Reciprocal {
    std::uint64_t high, low;
    int places;
};
inline constexpr std::size_t kMostDecimals = 27;  // 5^27 is the last power below 2^63
inline constexpr auto kReciprocals = [] {
    std::array<Reciprocal, kMostDecimals + 1> table{};
    table[0] = {std::uint64_t{1} << 63, 0, 0};
    std::uint64_t divisor = 1;
    for (std::size_t power = 1; power <= kMostDecimals; ++power) {
        divisor *= 5;
        const int width = std::bit_width(divisor);
        std::uint64_t words[2] = {0, 0}, rest = std::uint64_t{1} << (width - 1);
        for (std::size_t bit = 0; bit < 128; ++bit) {  // long division
            rest *= 2;
            const bool fits = rest >= divisor;
            if (fits) rest -= divisor;
            words[bit / 64] = words[bit / 64] << 1 | fits;
        }
        ++words[1];
        table[power] = {words[0] + (words[1] == 0), words[1], width + static_cast<int>(power)};
    }
    return table;
}();

// digits / 10^power, correctly rounded, for powers up to kMostDecimals: the algorithm of Eisel and
// Lemire. Of digits times reciprocal 54 bits are needed, and one that says how to round; 64 bits of
// the reciprocal give these, unless a carry from the other 64 could change them.
inline double divide_by_power_of_ten(std::uint64_t digits, std::size_t power) {
    __extension__ using Product = unsigned __int128;
    if (digits == 0) return 0.0;
    const Reciprocal& reciprocal = kReciprocals[power];
    const int shift = std::countl_zero(digits);
    digits <<= shift;
    Product product = Product{digits} * reciprocal.high;
    if ((static_cast<std::uint64_t>(product >> 64) & 0x1ff) == 0x1ff) [[unlikely]]
        product += Product{digits} * reciprocal.low >> 64;
    const auto high = static_cast<std::uint64_t>(product >> 64);
    const int dropped = 9 + static_cast<int>(high >> 63);
    std::uint64_t significand = high >> dropped;  // 54 bits, the last to round by
    // Exactly between two doubles, which can only be for small powers: the even one.
    if (static_cast<std::uint64_t>(product) <= 1 && power <= 4 && (significand & 3) == 1 &&
        significand << dropped == high) [[unlikely]]
        significand ^= 1;
    significand = (significand + 1) >> 1;
    const int exponent = dropped + 2 - shift - reciprocal.places;
    return static_cast<double>(static_cast<std::int64_t>(significand)) *
           std::bit_cast<double>(static_cast<std::uint64_t>(1023 + exponent) << 52);
}

inline std::uint64_t load8(const char* p) {
    std::uint64_t word;
    __builtin_memcpy(&word, p, sizeof word);
    return word;
}

// Eight characters: the value of each that is a digit, in its byte, and the high bits of others.
// Behind a character that is not ASCII, neither holds.
struct Digits {
    explicit Digits(const char* p)
        : value(load8(p) ^ 0x3030303030303030),
          other(((value + 0x7676767676767676) | value) & 0x8080808080808080) {}
    std::uint64_t value, other;
};

// The number that the first `length` bytes, 1 to 8, are the digits of.
inline std::uint64_t sum_digits(std::uint64_t digits, std::size_t length) {
    // Right-aligned behind zeros, then pairs, fours and all eight are summed in place.
    std::uint64_t sum = digits << (8 * (8 - length));
    sum = sum * 10 + (sum >> 8);
    return ((sum & 0x000000ff000000ff) * 0x000f424000000064 +
            ((sum >> 16) & 0x000000ff000000ff) * 0x0000271000000001) >>
           32;
}

// Appends the run of digits at p to `value`, eight at a time without a branch for each, and
// moves p behind it; returns how many there were. More than 19 in all overflow: count them.
[[gnu::always_inline]] inline std::size_t take_digits(const char*& p, std::uint64_t& value) {
    constexpr std::uint64_t kPowers[] = {1,      10,      100,      1000,     10000,
                                         100000, 1000000, 10000000, 100000000};
    std::size_t count = 0;
    for (;;) {
        const Digits digits(p);
        const auto length = static_cast<std::size_t>(std::countr_zero(digits.other)) / 8;  // 8: all
        if (length == 0) return count;
        value = value * kPowers[length] + sum_digits(digits.value, length);
        p += length;
        count += length;
        if (length < 8) return count;
    }
}
}  // namespace detail

enum class Kind { object, array, string, number, literal };

class Cursor {
   public:
    Cursor(const char* begin, const char* end) : p_(begin), end_(end) {}

    const char* position() const { return p_; }
    void seek(const char* p) { p_ = p; }
    bool at_end() const { return p_ == end_; }

    void skip_space() {
        while (*p_ == ' ' || *p_ == '\n' || *p_ == '\r' || *p_ == '\t') ++p_;
    }
    char peek() const { return *p_; }
    // The next character must be `c`.
    void expect(char c, const char* what) {
        if (*p_ != c) fail(what);
        ++p_;
    }
    bool accept(char c) {
        if (*p_ != c) return false;
        ++p_;
        return true;
    }
    [[noreturn]] void fail(const char* what) const {
        if (p_ >= end_) throw Incomplete{};
        throw SyntaxError{p_, what};
    }

    Kind kind() const;
    bool at_number() const { return is_digit(*p_) || *p_ == '-' || *p_ == 'N' || *p_ == 'I'; }
    String string();                          // at a quote
    [[gnu::always_inline]] double number() {  // at a number; NaN and Infinity are read as such
        double value;
        return simple_number(value) ? value : any_number();
    }
    // At a number; false where it is not a whole int64.
    bool integer(std::int64_t& value) { return short_integer(value) || any_integer(value); }
    // At one to seven digits that are a number; else false, and the cursor stays.
    [[gnu::always_inline]] bool short_integer(std::int64_t& value) {
        const detail::Digits text(p_);
        const auto length = static_cast<std::size_t>(std::countr_zero(text.other)) / 8;
        const char* const stop = p_ + length;
        if (length - 1 > 6 || stop >= end_ || *stop == '.' || (*stop | 0x20) == 'e' ||
            (*p_ == '0' && length > 1))
            return false;
        value = static_cast<std::int64_t>(detail::sum_digits(text.value, length));
        p_ = stop;
        return true;
    }
    // At a list of N simple numbers; else false, and the cursor stays.
    template <std::size_t N>
    [[gnu::always_inline]] bool simple_numbers(std::array<double, N>& values) {
        Cursor item = *this;  // a copy can be held in registers
        if (!item.accept('[')) return false;
        for (std::size_t i = 0; i < N; ++i) {
            item.skip_space();
            if (!item.short_number(values[i]) && !item.simple_number(values[i])) return false;
            if (item.accept(i + 1 < N ? ',' : ']')) continue;
            item.skip_space();
            if (!item.accept(i + 1 < N ? ',' : ']')) return false;
        }
        *this = item;
        return true;
    }
    // At a number of up to 19 digits and a small power of ten, correctly rounded; else false, and
    // the cursor stays.
    bool simple_number(double& value);
    bool literal(std::string_view word);
    void skip_value(int depth = 0);  // any value, checked only as far as its brackets go

   private:
    static bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
    bool short_number(double& value);
    double any_number();
    bool any_integer(std::int64_t& value);

    const char* p_;
    const char* end_;
};

// Reads an item of a list, a decimal number of up to eight characters as coordinates are, all at
// once; or leaves the cursor where it is.
[[gnu::always_inline]] inline bool Cursor::short_number(double& value) {
    const char* const p = p_;
    const detail::Digits text(p);
    const std::uint64_t point = text.other & -text.other;
    const std::uint64_t stop = text.other ^ point;  // without the point: what ends the decimals
    const auto whole = static_cast<std::size_t>(std::countr_zero(text.other)) / 8;
    const auto length =
        static_cast<std::size_t>(std::countr_zero(stop)) / 8;  // 8 if it is not seen
    if (whole == 0 || whole + 1 >= length || p[whole] != '.') return false;
    if (p[length] != ',' && p[length] != ']') return false;
    if (*p == '0' && whole > 1) return false;
    // The digits behind the point move over it.
    const std::uint64_t before = (point >> 7) - 1;
    const std::uint64_t digits = (text.value & before) | (text.value >> 8 & ~before);
    const std::uint64_t sum = detail::sum_digits(digits, length - 1);
    // Both are exact doubles: one rounding is made, as it should be.
    value = static_cast<double>(static_cast<std::int64_t>(sum)) /
            detail::kPowersOfTen[length - whole - 1];
    p_ = p + length;
    return true;
}

[[gnu::always_inline]] inline bool Cursor::simple_number(double& value) {
    const char* p = p_;
    bool negative = false;
    if (*p == '-') [[unlikely]] {
        negative = true;
        ++p;
    }
    std::uint64_t digits = 0;
    std::size_t count = 0;  // of those that are not a 0 before the point
    if (*p == '0') {
        if (is_digit(*++p)) return false;
    } else {
        count = detail::take_digits(p, digits);
        if (count == 0) return false;
    }
    std::ptrdiff_t power = 0;  // value = digits / 10^power
    if (*p == '.') {
        ++p;
        const std::size_t decimals = detail::take_digits(p, digits);
        if (decimals == 0) return false;
        power = static_cast<std::ptrdiff_t>(decimals);
        count += decimals;
    }
    if ((*p | 0x20) == 'e') {
        const bool down = p[1] == '-';
        p += down || p[1] == '+' ? 2 : 1;
        if (!is_digit(*p)) return false;
        std::ptrdiff_t exponent = *p++ - '0';
        if (is_digit(*p)) exponent = exponent * 10 + (*p++ - '0');
        if (is_digit(*p)) return false;
        power += down ? exponent : -exponent;
    }
    if (p >= end_ || count > 19 || static_cast<std::size_t>(power) > detail::kMostDecimals)
        return false;
    value = detail::divide_by_power_of_ten(digits, static_cast<std::size_t>(power));
    if (negative) value = -value;
    p_ = p;
    return true;
}

}  // namespace lvdet::json
