// The outermost level of a JSON file.
#pragma once

#include <string>

#include "json_chunks.hpp"

namespace lvdet::json {

// Walks the outermost level token by token; lists of records are left to read_records.
class TopLevel {
   public:
    explicit TopLevel(const File& file) : file_(file) {}

    std::int64_t position() const { return position_; }
    void seek(std::int64_t position) { position_ = position; }

    // Nothing but white space is left.
    bool at_end() {
        skip_space();
        return position_ >= file_.size;
    }
    // The next character that is not white space, 0 at the end of the file.
    char peek() { return at_end() ? '\0' : next_; }
    void expect(char c, const char* what) {
        if (at_end()) fail("the file is truncated here");
        if (next_ != c) fail(what);
        ++position_;
    }
    bool accept(char c) {
        if (at_end() || next_ != c) return false;
        ++position_;
        return true;
    }
    std::string key() {
        std::string name;
        parse([&](Cursor& cursor) {
            name.clear();
            append_unescaped(cursor.string(), name);
        });
        return name;
    }
    // Passes by a value; a list or object piece by piece, since it may be longer than memory.
    void skip_value() {
        if (accept('[')) {
            if (accept(']')) return;
            do skip_piece();
            while (accept(','));
            expect(']', "expected ',' or ']'");
        } else if (accept('{')) {
            if (accept('}')) return;
            do {
                key();
                expect(':', "expected ':'");
                skip_piece();
            } while (accept(','));
            expect('}', "expected ',' or '}'");
        } else {
            skip_piece();
        }
    }
    [[noreturn]] void fail(const char* what) const { throw FileError(what, position_, -1); }

   private:
    static constexpr std::size_t kWindow = 1 << 16;

    void skip_piece() {
        parse([](Cursor& cursor) { cursor.skip_value(); });
    }

    // Finds the next character that is not white space.
    void skip_space() {
        while (position_ < file_.size) {
            if (!holds(position_)) buffer_.load(file_, position_, kWindow);
            next_ = buffer_.text()[position_ - buffer_.offset()];
            if (next_ != ' ' && next_ != '\n' && next_ != '\r' && next_ != '\t') return;
            ++position_;
        }
    }
    bool holds(std::int64_t position) const {
        return position >= buffer_.offset() &&
               position < buffer_.offset() + static_cast<std::int64_t>(buffer_.size());
    }
    // Parses one token or value, however long, from the position on.
    template <class Parse>
    void parse(Parse&& parse_value) {
        if (at_end()) fail("the file is truncated here");
        // What is held may do; else it is read anew from here, more each time.
        for (std::size_t window = kWindow / 2;; window *= 2) {
            if (window >= kWindow) buffer_.load(file_, position_, window);
            const char* const text = buffer_.text() + (position_ - buffer_.offset());
            Cursor cursor(text, buffer_.text() + buffer_.size());
            try {
                parse_value(cursor);
                position_ += cursor.position() - text;
                return;
            } catch (const Incomplete&) {
                if (window > kLargestRecord) fail(kTooBig);
                if (!buffer_.reaches_end(file_)) continue;
                position_ = file_.size;
                fail("the file is truncated here");
            } catch (const SyntaxError& error) {
                position_ += error.at - text;
                fail(error.what);
            }
        }
    }

    const File& file_;
    Buffer buffer_;
    std::int64_t position_ = 0;
    char next_ = '\0';
};

}  // namespace lvdet::json
