// A growing run of bytes that moves to a temporary file once it is large.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "system_files.hpp"

namespace lvdet {

// What is read is more than can be held.
struct CannotHold : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class Bytes {
   public:
    Bytes() = default;
    Bytes(const Bytes&) = delete;
    Bytes& operator=(const Bytes&) = delete;
    Bytes(Bytes&& other) noexcept { *this = std::move(other); }
    Bytes& operator=(Bytes&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
        std::swap(file_, other.file_);
        std::swap(folder_, other.folder_);
        std::swap(most_, other.most_);
        return *this;
    }
    ~Bytes() {
        if (!file_) std::free(data_);
    }
    // From `most` bytes on, they are held in a file of this folder.
    void spill_beyond(std::size_t most, std::string folder) {
        most_ = most;
        folder_ = std::move(folder);
    }

    std::size_t size() const { return size_; }
    std::uint8_t* data() { return data_; }
    void append(const std::uint8_t* values, std::size_t count) {
        if (!count) return;
        if (size_ + count > capacity_) grow((size_ + count) * 5 / 4 + 64);
        std::memcpy(data_ + size_, values, count);
        size_ += count;
    }
    void shrink(std::size_t size) { size_ = size; }

    // No more comes. There is storage even where there are no bytes.
    void finish() {
        if (!data_) grow(1);
        if (file_) file_->seal();
    }

   private:
    void grow(std::size_t capacity) {
        if (!file_ && capacity <= most_) {
            void* moved = std::realloc(data_, capacity);
            if (!moved) throw std::bad_alloc();
            data_ = static_cast<std::uint8_t*>(moved);
            capacity_ = capacity;
            return;
        }
        constexpr std::size_t kPage = 1 << 16;
        capacity = (capacity + kPage - 1) / kPage * kPage;
        try {
            if (file_) {
                data_ = file_->grow(folder_, capacity);
            } else {
                auto file = std::make_unique<system_files::MappedFile>();
                std::uint8_t* const map = file->grow(folder_, capacity);
                if (data_) std::memcpy(map, data_, size_);
                std::free(data_);
                data_ = map;
                file_ = std::move(file);
            }
        } catch (const std::system_error& error) {
            throw CannotHold("cannot store masks in " + folder_ + ": " + error.code().message());
        }
        capacity_ = capacity;
    }

    std::uint8_t* data_ = nullptr;
    std::size_t size_ = 0, capacity_ = 0;
    std::unique_ptr<system_files::MappedFile> file_;  // holds the bytes, if there is one
    std::string folder_;
    std::size_t most_ = static_cast<std::size_t>(-1);
};

}  // namespace lvdet
