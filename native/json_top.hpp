// The outermost level of a JSON file.
#pragma once

#include <string>
#include <vector>

#include "json_chunks.hpp"

namespace lvdet::json {

// The top of an annotation file, where lists too long to hold are only passed by.
class TopLevel {
   public:
    explicit TopLevel(const File& file) : file_(file) { refill(0); }

    std::int64_t position() const { return offset_ + static_cast<std::int64_t>(at_); }
    void seek(std::int64_t position) { refill(position); }
    // The next character, 0 at the end of the file.
    char peek() {
        if (at_ == size_) refill(position());
        return at_ == size_ ? '\0' : text_[at_];
    }
    char take() {
        const char c = peek();
        if (at_ == size_) fail("the file is cut off here");
        ++at_;
        return c;
    }
    char peek_past_space() {
        char c;
        while ((c = peek()) == ' ' || c == '\n' || c == '\r' || c == '\t') ++at_;
        return c;
    }
    void expect(char c, const char* what) {
        if (peek_past_space() != c || at_ == size_)
            fail(at_ == size_ ? "the file is cut off here" : what);
        ++at_;
    }
    std::string key() {
        expect('"', "expected a key in quotes");
        std::string raw;
        for (char c; (c = take()) != '"';) {
            raw += c;
            if (c == '\\') raw += take();
        }
        std::string plain;
        append_unescaped({raw, true}, plain);
        return plain;
    }
    void skip_value() {
        int depth = 0;
        peek_past_space();
        do {
            const char c = take();
            if (c == '"') {
                for (char d; (d = take()) != '"';)
                    if (d == '\\') take();
            } else if (c == '{' || c == '[') {
                ++depth;
            } else if (c == '}' || c == ']') {
                --depth;
            }
        } while (depth > 0 || (peek() != ',' && peek() != '}' && peek() != '\0'));
    }
    [[noreturn]] void fail(const char* what) const { throw FileError(what, position(), -1); }

   private:
    void refill(std::int64_t position) {
        text_.resize(1 << 16);
        offset_ = position;
        at_ = 0;
        size_ = file_.read(position, text_.data(), text_.size());
    }

    const File& file_;
    std::vector<char> text_;
    std::int64_t offset_ = 0;
    std::size_t at_ = 0, size_ = 0;
};

}  // namespace lvdet::json
