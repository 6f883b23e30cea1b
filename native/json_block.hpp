// What all records share: reading their keys and values, and reporting what is wrong with them.
#pragma once

#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "columns.hpp"
#include "json_records.hpp"

namespace lvdet::json {

constexpr std::size_t kProblemsKept = 10000;

inline const char* kind_name(const Cursor& cursor) {
    switch (cursor.kind()) {
        case Kind::object: return "an object";
        case Kind::array: return "a list";
        case Kind::string: return "a string";
        case Kind::number: return "a number";
        case Kind::literal: return cursor.peek() == 'n' ? "null" : "true or false";
    }
    return "something else";
}

// The keys a record may have, each compared with the text in two words, and its quotes and colon.
template <std::size_t N>
class Keys {
   public:
    constexpr explicit Keys(const std::array<std::string_view, N>& names) : names_(names) {
        for (std::size_t i = 0; i < N; ++i) {
            const std::size_t quote = names[i].size() + 1;  // the closing one
            for (std::size_t k = 0; k < 16 && k <= quote + 1; ++k) {
                const char c = k == 0 || k == quote ? '"' : k > quote ? ':' : names[i][k - 1];
                word_[i][k / 8] |= std::uint64_t{static_cast<unsigned char>(c)} << (k % 8 * 8);
                mask_[i][k / 8] |= std::uint64_t{0xff} << (k % 8 * 8);
            }
        }
    }
    constexpr std::string_view operator[](std::size_t i) const { return names_[i]; }
    // What follows `text` if that is key i in quotes and a colon, else null.
    const char* after(std::size_t i, const char* text) const {
        if (((detail::load8(text) ^ word_[i][0]) & mask_[i][0]) |
            ((detail::load8(text + 8) ^ word_[i][1]) & mask_[i][1]))
            return nullptr;
        const std::string_view name = names_[i];
        const char* const end = text + name.size() + 3;
        return name.size() <= 13 || (std::memcmp(text + 1, name.data(), name.size()) == 0 &&
                                     end[-2] == '"' && end[-1] == ':')
                   ? end
                   : nullptr;
    }

   private:
    std::array<std::string_view, N> names_;
    std::uint64_t word_[N][2] = {};
    std::uint64_t mask_[N][2] = {};
};
template <class... Names>
constexpr auto make_keys(Names... names) {
    return Keys<sizeof...(Names)>({std::string_view(names)...});
}

// Which key the cursor is at, -1 for none of them, and passes it by.
template <std::size_t N>
int find_key(Cursor& cursor, const Keys<N>& keys) {
    const String name = cursor.string();
    std::string plain;
    std::string_view key = name.raw;
    if (name.escaped) {
        append_unescaped(name, plain);
        key = plain;
    }
    for (std::size_t i = 0; i < N; ++i)
        if (keys[i] == key) return static_cast<int>(i);
    return -1;
}

// The text of a record around its values, learned from one record: others nearly always have the
// same, and are then read without a look at single keys.
template <std::size_t N>
class Shape {
   public:
    // Takes the record at the cursor, which has been read: N values, of the first N keys.
    template <class Keys>
    void learn(Cursor cursor, const Keys& keys) {
        left_ = 0;
        std::size_t count = 0;
        const char* from = cursor.position();
        cursor.expect('{', "");
        do {
            cursor.skip_space();
            const int field = find_key(cursor, keys);
            cursor.skip_space();
            cursor.expect(':', "");
            cursor.skip_space();
            if (count == N || field < 0 || field >= static_cast<int>(N)) return;
            fields_[count] = field;
            if (!pieces_[count++].take(from, cursor.position())) return;
            cursor.skip_value();
            from = cursor.position();
            cursor.skip_space();
        } while (cursor.accept(','));
        if (count == N && pieces_[N].take(from, cursor.position() + 1)) left_ = kMisses;
    }
    // Calls read(field, cursor) at each value. False, with the cursor where it was, if that
    // is false or the text is another.
    template <class Read>
    [[gnu::always_inline]] bool match(Cursor& cursor, Read&& read) {
        if (left_ == 0) return false;
        Cursor item = cursor;  // a copy can be held in registers
        for (std::size_t i = 0; i <= N; ++i) {
            // A branch that is foretold: what follows need not wait for the comparison.
            if (pieces_[i].begins(item.position())) [[likely]] {
                item.seek(item.position() + pieces_[i].size());
                if (i == N || read(fields_[i], item)) continue;
            }
            --left_;
            return false;
        }
        left_ = kMisses;
        cursor = item;
        return true;
    }

   private:
    static constexpr int kMisses = 4;  // so many in a row, and it is not tried again
    // Up to 24 characters, compared in three words.
    class Piece {
       public:
        bool take(const char* from, const char* to) {
            size_ = static_cast<std::size_t>(to - from);
            if (size_ > sizeof word_) return false;
            std::memset(word_, 0, sizeof word_);
            std::memset(mask_, 0, sizeof mask_);
            std::memcpy(word_, from, size_);
            std::memset(mask_, 0xff, size_);
            return true;
        }
        std::size_t size() const { return size_; }
        bool begins(const char* text) const {
            std::uint64_t other = 0;
            for (std::size_t k = 0; k < 3; ++k)
                other |= (detail::load8(text + 8 * k) ^ word_[k]) & mask_[k];
            return other == 0;
        }

       private:
        std::uint64_t word_[3], mask_[3];
        std::size_t size_;
    };
    std::array<Piece, N + 1> pieces_;
    std::array<int, N> fields_;
    int left_ = 0;  // misses until it is not tried
};

// What all blocks share: where their text stands in the file, and what was wrong in it.
class BlockBase {
   public:
    std::int64_t rows() const { return rows_; }
    void drop() {
        for (; !problems.empty() && problems.back().row == rows_; problems.pop_back())
            --problem_count;
    }
    std::vector<Problem> problems;
    std::int64_t problem_count = 0;

   protected:
    void restart(std::int64_t byte, const char* text) {
        byte_ = byte;
        text_ = text;
        rows_ = 0;
        problems.clear();
        problem_count = 0;
    }
    // Something was wrong with the record being read.
    bool reported() const { return !problems.empty() && problems.back().row == rows_; }
    void report(const char* at, std::string what) {
        ++problem_count;
        if (problems.size() < kProblemsKept)
            problems.push_back({rows_, byte_ + (at - text_), std::move(what)});
    }
    void report_kind(Cursor& cursor, std::string_view key, const char* expected) {
        report(cursor.position(),
               std::string(key) + " is " + kind_name(cursor) + ", expected " + expected);
        cursor.skip_value();
    }

    [[gnu::always_inline]] bool read_integer(Cursor& cursor, std::string_view key,
                                             std::int64_t& value) {
        return cursor.short_integer(value) || read_any_integer(cursor, key, value);
    }
    bool read_any_integer(Cursor& cursor, std::string_view key, std::int64_t& value) {
        if (!cursor.at_number()) {
            report_kind(cursor, key, "an integer");
            return false;
        }
        const char* at = cursor.position();
        if (cursor.integer(value)) return true;
        report(at, std::string(key) + " is " +
                       std::string(at, static_cast<std::size_t>(cursor.position() - at)) +
                       ", expected an integer");
        return false;
    }
    bool read_real(Cursor& cursor, std::string_view key, double& value) {
        if (cursor.simple_number(value)) return true;
        if (!cursor.at_number()) {
            report_kind(cursor, key, "a number");
            return false;
        }
        value = cursor.number();
        return true;
    }
    bool read_flag(Cursor& cursor, std::string_view key, std::uint8_t& value) {
        if (cursor.kind() == Kind::literal) {
            if (cursor.literal("true")) return value = 1, true;
            if (cursor.literal("false")) return value = 0, true;
        } else if (cursor.kind() == Kind::number) {
            value = cursor.number() != 0.0;
            return true;
        }
        report_kind(cursor, key, "0 or 1");
        return false;
    }
    bool read_text(Cursor& cursor, std::string_view key, std::string& value) {
        if (cursor.kind() != Kind::string) {
            report_kind(cursor, key, "a string");
            return false;
        }
        value.clear();
        append_unescaped(cursor.string(), value);
        return true;
    }
    // A list whose items are numbers, given to visit(number) one by one.
    template <class Visit>
    bool read_numbers(Cursor& cursor, std::string_view key, Visit&& visit) {
        if (cursor.peek() != '[') {
            report_kind(cursor, key, "a list of numbers");
            return false;
        }
        cursor.expect('[', "");
        cursor.skip_space();
        if (cursor.accept(']')) return true;
        bool good = true;
        for (;;) {
            if (cursor.at_number()) {
                visit(cursor);
            } else {
                report_kind(cursor, std::string("an item of ") + std::string(key), "a number");
                good = false;
            }
            cursor.skip_space();
            if (cursor.accept(']')) return good;
            cursor.expect(',', "expected ',' or ']'");
            cursor.skip_space();
        }
    }
    bool read_box(Cursor& cursor, std::array<double, 4>& box) {
        if (cursor.simple_numbers(box)) return true;
        const char* at = cursor.position();
        std::size_t count = 0;
        if (!read_numbers(cursor, "bbox", [&](Cursor& item) {
                const double value = item.number();
                if (count < 4) box[count] = value;
                ++count;
            }))
            return false;
        if (count == 4) return true;
        report(at, "bbox has " + std::to_string(count) + " numbers, expected 4 [x, y, w, h]");
        return false;
    }

    // The keys of one record, each given to visit(field) with the cursor at its value. `keys` are
    // the known ones; others are skipped. Records of a file have their keys in the same order,
    // so the key after the last one is tried first.
    template <std::size_t N, class Visit>
    void read_keys(Cursor& cursor, const Keys<N>& keys, std::array<std::int8_t, N + 1>& follows,
                   Visit&& visit) {
        cursor.expect('{', "expected '{'");
        cursor.skip_space();
        if (cursor.accept('}')) return;
        std::size_t last = N;
        for (;;) {
            int field = follows[last];
            const char* const value =
                field < 0 ? nullptr
                          : keys.after(static_cast<std::size_t>(field), cursor.position());
            if (value) {
                cursor.seek(value);
            } else {
                field = find_key(cursor, keys);
                if (field >= 0) follows[last] = static_cast<std::int8_t>(field);
                cursor.skip_space();
                cursor.expect(':', "expected ':'");
            }
            cursor.skip_space();
            if (field >= 0) {
                last = static_cast<std::size_t>(field);
                visit(field);
            } else {
                cursor.skip_value();
            }
            cursor.skip_space();
            if (cursor.accept('}')) return;
            cursor.expect(',', "expected ',' or '}'");
            cursor.skip_space();
        }
    }

    std::int64_t byte_ = 0;
    const char* text_ = nullptr;
    std::int64_t rows_ = 0;
};

template <std::size_t N>
constexpr std::array<std::int8_t, N + 1> in_order() {
    std::array<std::int8_t, N + 1> follows{};
    for (std::size_t i = 0; i < N; ++i)
        follows[i] = static_cast<std::int8_t>(i + 1 < N ? i + 1 : -1);
    follows[N] = 0;
    return follows;
}

template <class T>
void append(Column<T>& column, const std::vector<T>& values) {
    column.append(values.data(), values.size());
}

// Positions in a block become positions in the whole: all move by `shift`.
inline void append_shifted(Column<std::int64_t>& column, const std::vector<std::int64_t>& values,
                           std::size_t shift) {
    std::int64_t* place = column.extend(values.size());
    for (const std::int64_t value : values) *place++ = value + static_cast<std::int64_t>(shift);
}

inline void append_problems(std::vector<Problem>& out, std::int64_t& count, const BlockBase& block,
                            std::int64_t rows_before, const std::string& list) {
    count += block.problem_count;
    for (const Problem& problem : block.problems) {
        if (out.size() >= kProblemsKept) break;
        out.push_back({rows_before + problem.row, problem.byte, list + problem.what});
    }
}

}  // namespace lvdet::json
