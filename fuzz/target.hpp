// What the fuzz targets share.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

// A property that every input must have; libFuzzer keeps the input where it has not.
#define REQUIRE(condition)                                                                 \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
            std::abort();                                                                  \
        }                                                                                  \
    } while (false)

namespace lvdet::fuzz {

// The bytes of an input from the front; zeros once they are used up.
class Input {
   public:
    Input(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

    template <class T>
    T take() {
        static_assert(std::is_trivially_copyable_v<T>);
        T value{};
        const std::size_t count = std::min(sizeof value, size_);
        if (count) std::memcpy(&value, data_, count);
        skip(count);
        return value;
    }
    std::size_t left() const { return size_; }
    const std::uint8_t* data() const { return data_; }
    std::string_view rest() const { return {reinterpret_cast<const char*>(data_), size_}; }

   private:
    void skip(std::size_t count) {
        data_ += count;
        size_ -= count;
    }
    const std::uint8_t* data_;
    std::size_t size_;
};

// A file in memory, whose content can be replaced.
class MemoryFile {
   public:
    MemoryFile() : descriptor_(memfd_create("fuzz", MFD_CLOEXEC)) { REQUIRE(descriptor_ >= 0); }
    int holding(std::string_view text) const {
        REQUIRE(ftruncate(descriptor_, 0) == 0);
        REQUIRE(pwrite(descriptor_, text.data(), text.size(), 0) ==
                static_cast<ssize_t>(text.size()));
        return descriptor_;
    }

   private:
    int descriptor_;
};

// Columns as text, to be compared.
class Dump {
   public:
    template <class T>
    void add(const T* values, std::size_t count) {
        static_assert(std::is_trivially_copyable_v<T>);
        text += std::to_string(count) + ':';
        if (count) text.append(reinterpret_cast<const char*>(values), count * sizeof(T));
    }
    template <class Column>
    void add(Column& column) {
        add(column.data(), column.size());
    }
    void add_texts(const std::vector<std::string>& texts) {
        for (const std::string& one : texts) add(one.data(), one.size());
        text += ';';
    }
    void add(std::int64_t value) { add(&value, 1); }

    std::string text;
};

// Says where two texts differ first.
inline bool same_text(const std::string& a, const std::string& b) {
    if (a == b) return true;
    const auto at = static_cast<std::size_t>(
        std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
    const std::size_t from = at - std::min<std::size_t>(at, 40);
    for (const std::string& text : {a, b}) {
        std::fprintf(stderr, "from %zu:", from);
        for (std::size_t i = from; i < std::min(text.size(), at + 60); ++i) {
            const auto c = static_cast<unsigned char>(text[i]);
            std::fprintf(stderr, c >= 32 && c < 127 ? "%c" : "\\x%02x", c);
        }
        std::fprintf(stderr, "\n");
    }
    return false;
}

}  // namespace lvdet::fuzz
