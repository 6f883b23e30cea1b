// A growing run of bytes that moves to a temporary file once it is large: the system then keeps
// in memory what there is room for.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

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
        std::swap(mapped_, other.mapped_);
        std::swap(file_, other.file_);
        std::swap(folder_, other.folder_);
        std::swap(most_, other.most_);
        return *this;
    }
    ~Bytes() {
        if (mapped_)
            munmap(data_, capacity_);
        else
            std::free(data_);
        if (file_ >= 0) close(file_);
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
        if (file_ >= 0) close(std::exchange(file_, -1));  // the map keeps the file
    }

   private:
    void grow(std::size_t capacity) {
        if (!mapped_ && capacity <= most_) {
            void* moved = std::realloc(data_, capacity);
            if (!moved) throw std::bad_alloc();
            data_ = static_cast<std::uint8_t*>(moved);
            capacity_ = capacity;
            return;
        }
        constexpr std::size_t kPage = 1 << 16;
        capacity = (capacity + kPage - 1) / kPage * kPage;
        if (file_ < 0) open_file();
        // Space is taken at once: where a disk is full, that is said here and not by a signal.
        if (const int error = posix_fallocate(file_, 0, static_cast<off_t>(capacity))) fail(error);
        void* map = mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
        if (map == MAP_FAILED) fail(errno);
        if (mapped_)
            munmap(data_, capacity_);
        else if (data_) {
            std::memcpy(map, data_, size_);
            std::free(data_);
        }
        data_ = static_cast<std::uint8_t*>(map);
        capacity_ = capacity;
        mapped_ = true;
    }
    void open_file() {
        std::string name = folder_ + "/lvdet-masks-XXXXXX";
        file_ = mkostemp(name.data(), O_CLOEXEC);
        if (file_ < 0) fail(errno);
        unlink(name.c_str());  // it is gone when closed
    }
    [[noreturn]] void fail(int error) const {
        throw CannotHold("cannot store masks in " + folder_ + ": " + std::strerror(error));
    }

    std::uint8_t* data_ = nullptr;
    std::size_t size_ = 0, capacity_ = 0;
    bool mapped_ = false;
    int file_ = -1;
    std::string folder_;
    std::size_t most_ = static_cast<std::size_t>(-1);
};

}  // namespace lvdet
