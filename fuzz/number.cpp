// Numbers of JSON text, against the grammar and strtod.
#include <cmath>

#include "json_text.hpp"
#include "target.hpp"

namespace {

using lvdet::json::Cursor;

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// How many characters at the front are a number as JSON spells it; 0 where there is none. `whole`
// where it has neither a point nor an exponent.
std::size_t number_length(std::string_view text, bool& whole) {
    const auto at = [&](std::size_t i) { return i < text.size() ? text[i] : '\0'; };
    std::size_t i = at(0) == '-';
    whole = true;
    if (!is_digit(at(i))) return 0;
    if (at(i) == '0' && is_digit(at(i + 1))) return 0;
    while (is_digit(at(i))) ++i;
    if (at(i) == '.') {
        whole = false;
        if (!is_digit(at(++i))) return 0;
        while (is_digit(at(i))) ++i;
    }
    if (at(i) == 'e' || at(i) == 'E') {
        whole = false;
        ++i;
        if (at(i) == '+' || at(i) == '-') ++i;
        if (!is_digit(at(i))) return 0;
        while (is_digit(at(i))) ++i;
    }
    return i;
}

bool same(double a, double b) {
    return std::memcmp(&a, &b, sizeof a) == 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    std::vector<char> buffer(input.begin(), input.end());
    buffer.resize(size + lvdet::json::kPadding, '\0');
    const char* const begin = buffer.data();
    Cursor cursor(begin, begin + size);
    if (!cursor.at_number() || *begin == 'N' || *begin == 'I' || input.starts_with("-I")) return 0;
    bool whole = false;
    const std::size_t length = number_length(input, whole);
    try {
        const double found = cursor.number();
        REQUIRE(length > 0 && length < size);
        REQUIRE(cursor.position() == begin + length);
        const double expected = std::strtod(std::string(input.substr(0, length)).c_str(), nullptr);
        REQUIRE(same(found, expected));

        Cursor again(begin, begin + size);
        std::int64_t value = 0;
        const bool is_integer = again.integer(value);
        REQUIRE(again.position() == begin + length);
        errno = 0;
        const long long exact = std::strtoll(begin, nullptr, 10);
        if (whole && errno == 0) {
            REQUIRE(is_integer && value == exact);
        } else {
            REQUIRE(is_integer ==
                    (std::floor(expected) == expected && std::fabs(expected) <= 0x1p53));
            REQUIRE(!is_integer || static_cast<double>(value) == expected);
        }
    } catch (const lvdet::json::Incomplete&) {
        // It may go on behind the end.
        REQUIRE(length == 0 || length == size);
    } catch (const lvdet::json::SyntaxError& error) {
        REQUIRE(length == 0);
        REQUIRE(error.at >= begin && error.at <= begin + size);
    }
    return 0;
}
