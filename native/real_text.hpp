// Real numbers from text: std::from_chars, or what stands in for it where the standard library has
// none for doubles.
#pragma once

#include <charconv>

#ifndef __cpp_lib_to_chars
#include <clocale>
#include <cstdlib>
#include <string>
#if __has_include(<xlocale.h>)
#include <xlocale.h>
#endif
#endif

namespace lvdet {

// The double nearest to the decimal number in [begin, end). False where none is: it is beyond the
// largest, or so near 0 that it rounds to it; `value` may then be anything.
inline bool read_real(const char* begin, const char* end, double& value) {
#ifdef __cpp_lib_to_chars
    return std::from_chars(begin, end, value).ec != std::errc::result_out_of_range;
#else
    const std::string text(begin, end);  // which ends with a NUL
#ifdef _WIN32
    static const _locale_t plain = _create_locale(LC_ALL, "C");
    value = _strtod_l(text.c_str(), nullptr, plain);
#else
    static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
    value = strtod_l(text.c_str(), nullptr, plain);
#endif
    return value != 0.0 && value - value == 0.0;
#endif
}

}  // namespace lvdet
