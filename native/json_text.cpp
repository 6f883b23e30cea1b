#include "json_text.hpp"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "bounds.hpp"
#include "real_text.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace lvdet::json {

namespace {

// The first quote, backslash or control character at or after p.
const char* find_special(const char* p) {
#if defined(__SSE2__)
    const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\');
    const __m128i control = _mm_set1_epi8(0x1f);
    for (;; p += 16) {
        const __m128i text = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
        const __m128i hit =
            _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(text, quote), _mm_cmpeq_epi8(text, slash)),
                         _mm_cmpeq_epi8(_mm_max_epu8(text, control), control));
        if (const int mask = _mm_movemask_epi8(hit))
            return p + std::countr_zero(static_cast<unsigned>(mask));
    }
#else
    while (*p != '"' && *p != '\\' && static_cast<unsigned char>(*p) >= 0x20) ++p;
    return p;
#endif
}

unsigned hex4(const char* p) {
    unsigned value = 0;
    std::from_chars(p, p + 4, value, 16);
    return value;
}

void append_utf8(unsigned code, std::string& out) {
    if (code < 0x80) {
        out += static_cast<char>(code);
    } else if (code < 0x800) {
        out += static_cast<char>(0xc0 | code >> 6);
        out += static_cast<char>(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        out += static_cast<char>(0xe0 | code >> 12);
        out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
        out += static_cast<char>(0x80 | (code & 0x3f));
    } else {
        out += static_cast<char>(0xf0 | code >> 18);
        out += static_cast<char>(0x80 | (code >> 12 & 0x3f));
        out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
        out += static_cast<char>(0x80 | (code & 0x3f));
    }
}

}  // namespace

void append_unescaped(const String& string, std::string& out) {
    const char* p = string.raw.data();
    const char* const end = p + string.raw.size();
    while (p < end) {
        const void* slash = std::memchr(p, '\\', static_cast<std::size_t>(end - p));
        const char* stop = slash ? static_cast<const char*>(slash) : end;
        out.append(p, stop);
        if (stop == end) return;
        p = stop + 2;
        switch (stop[1]) {
            case 'b': out += '\b'; break;
            case 'f': out += '\f'; break;
            case 'n': out += '\n'; break;
            case 'r': out += '\r'; break;
            case 't': out += '\t'; break;
            case 'u': {
                unsigned code = hex4(p);
                p += 4;
                const bool high = code >= 0xd800 && code < 0xdc00;
                if (high && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
                    const unsigned low = hex4(p + 2);
                    if (low >= 0xdc00 && low < 0xe000) {
                        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                        p += 6;
                    }
                }
                // A surrogate without its partner has no UTF-8 form.
                append_utf8(code >= 0xd800 && code < 0xe000 ? 0xfffd : code, out);
                break;
            }
            default: out += stop[1];
        }
    }
}

Kind Cursor::kind() const {
    switch (*p_) {
        case '{': return Kind::object;
        case '[': return Kind::array;
        case '"': return Kind::string;
        case 't':
        case 'f':
        case 'n': return Kind::literal;
        case '-':
        case 'N':
        case 'I': return Kind::number;
        default:
            if (is_digit(*p_)) return Kind::number;
            fail("expected a value");
    }
}

String Cursor::string() {
    expect('"', "expected a string");
    const char* begin = p_;
    bool escaped = false;
    for (;;) {
        p_ = find_special(p_);
        if (p_ >= end_) throw Incomplete{};
        if (*p_ == '"') return {{begin, static_cast<std::size_t>(p_++ - begin)}, escaped};
        if (*p_ != '\\') fail("control character in a string");
        escaped = true;
        if (p_ + 1 >= end_) throw Incomplete{};
        if (p_[1] == 'u') {
            for (int i = 2; i < 6; ++i) {
                if (p_ + i >= end_) throw Incomplete{};
                if (!std::isxdigit(static_cast<unsigned char>(p_[i]))) fail("bad \\u escape");
            }
            p_ += 6;
        } else if (p_[1] == '\\' || (p_[1] != '\0' && std::strchr("\"/bfnrt", p_[1]))) {
            p_ += 2;
        } else {
            fail("bad escape in a string");
        }
    }
}

bool Cursor::literal(std::string_view word) {
    const std::size_t left = static_cast<std::size_t>(end_ - p_);
    if (left < word.size()) {
        if (word.substr(0, left) == std::string_view(p_, left)) throw Incomplete{};
        return false;
    }
    if (std::string_view(p_, word.size()) != word) return false;
    p_ += word.size();
    return true;
}

double Cursor::any_number() {
    const char* const begin = p_;
    const bool negative = accept('-');
    if (!is_digit(*p_)) {
        if (!negative && literal("NaN")) return std::numeric_limits<double>::quiet_NaN();
        if (literal("Infinity")) {
            const double infinity = std::numeric_limits<double>::infinity();
            return negative ? -infinity : infinity;
        }
        fail("expected a number");
    }
    if (*p_ == '0' && is_digit(p_[1])) fail("a number must not start with 0");
    // Where the first digit that counts stands: the power of ten of the number, roughly.
    std::int64_t magnitude = 0;
    bool counts = false;
    for (; is_digit(*p_); ++p_) {
        counts |= *p_ != '0';
        magnitude += counts;
    }
    if (accept('.')) {
        if (!is_digit(*p_)) fail("expected a digit after the decimal point");
        for (; is_digit(*p_); ++p_) {
            counts |= *p_ != '0';
            magnitude -= !counts;
        }
    }
    if ((*p_ | 0x20) == 'e') {
        ++p_;
        const bool down = *p_ == '-';
        if (*p_ == '+' || *p_ == '-') ++p_;
        if (!is_digit(*p_)) fail("expected a digit in the exponent");
        std::int64_t exponent = 0;
        for (; is_digit(*p_); ++p_)
            if (exponent < (std::int64_t{1} << 50)) exponent = exponent * 10 + (*p_ - '0');
        magnitude += down ? -exponent : exponent;
    }
    // A number that touches the end of the buffer may go on after it.
    if (p_ >= end_) throw Incomplete{};
    if (static_cast<std::size_t>(p_ - begin) > kLongestNumber) throw SyntaxError{begin, kTooLong};
    double value = 0.0;
    if (!read_real(begin, p_, value)) {
        value = counts && magnitude > 0 ? std::numeric_limits<double>::infinity() : 0.0;
        if (negative) value = -value;
    }
    return value;
}

bool Cursor::any_integer(std::int64_t& value) {
    const char* const begin = p_;
    const char* p = p_;
    std::uint64_t sum = 0;
    const std::size_t count = detail::take_digits(p, sum);
    if (count > 0 && count <= 18 && p < end_ && *p != '.' && (*p | 0x20) != 'e' &&
        (*p_ != '0' || count == 1)) {
        p_ = p;
        value = static_cast<std::int64_t>(sum);
        return true;
    }
    const double real = number();
    const auto result = std::from_chars(begin, p_, value);
    if (result.ec == std::errc{} && result.ptr == p_) return true;
    if (std::floor(real) != real || std::fabs(real) > 9007199254740992.0) return false;
    value = static_cast<std::int64_t>(real);
    return true;
}

void Cursor::skip_value(int depth) {
    if (depth > kDeepest) throw SyntaxError{p_, kTooDeep};
    switch (kind()) {
        case Kind::string: string(); return;
        case Kind::number: number(); return;
        case Kind::literal:
            if (!literal("true") && !literal("false") && !literal("null")) fail("expected a value");
            return;
        case Kind::array:
            ++p_;
            skip_space();
            if (accept(']')) return;
            for (;;) {
                skip_value(depth + 1);
                skip_space();
                if (accept(']')) return;
                expect(',', "expected ',' or ']'");
                skip_space();
            }
        case Kind::object:
            ++p_;
            skip_space();
            if (accept('}')) return;
            for (;;) {
                string();
                skip_space();
                expect(':', "expected ':'");
                skip_space();
                skip_value(depth + 1);
                skip_space();
                if (accept('}')) return;
                expect(',', "expected ',' or '}'");
                skip_space();
            }
    }
}

}  // namespace lvdet::json
