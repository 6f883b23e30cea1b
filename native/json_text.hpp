// Reading JSON text, one token at a time, from a buffer in memory.
#pragma once

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
    String string();                    // at a quote
    double number();                    // at a number; NaN and Infinity are read as such
    bool integer(std::int64_t& value);  // at a number; false where it is not a whole int64
    bool literal(std::string_view word);
    void skip_value(int depth = 0);  // any value, checked only as far as its brackets go

   private:
    const char* p_;
    const char* end_;
};

}  // namespace lvdet::json
