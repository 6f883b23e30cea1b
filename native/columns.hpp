// Growing columns of plain values, handed to NumPy without a copy.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

namespace lvdet {

// Like std::vector of a trivial type, but grown by realloc, which moves pages, not bytes, once a
// column is large. What is moved from is empty.
template <class T>
class Column {
   public:
    Column() = default;
    Column(Column&& other) noexcept { *this = std::move(other); }
    Column& operator=(Column&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
        return *this;
    }
    ~Column() { std::free(data_); }

    std::size_t size() const { return size_; }
    T* data() { return data_; }

    void reserve(std::size_t capacity) {
        if (capacity > capacity_) resize_storage(capacity);
    }
    // Room for `count` more values; returns where they go.
    T* extend(std::size_t count) {
        if (size_ + count > capacity_) resize_storage((size_ + count) * 5 / 4 + 64);
        T* place = data_ + size_;
        size_ += count;
        return place;
    }
    void append(const T* values, std::size_t count) {
        if (count) std::memcpy(extend(count), values, count * sizeof(T));
    }
    void shrink(std::size_t size) { size_ = size; }
    // Cuts the storage to size. There is some even where there are no values.
    void fit() { resize_storage(size_ ? size_ : 1); }

   private:
    void resize_storage(std::size_t capacity) {
        void* moved = std::realloc(data_, capacity * sizeof(T));
        if (!moved) throw std::bad_alloc();
        data_ = static_cast<T*>(moved);
        capacity_ = capacity;
    }

    T* data_ = nullptr;
    std::size_t size_ = 0, capacity_ = 0;
};

// Distinct ids in order of first appearance.
class IdIndex {
   public:
    std::int32_t operator[](std::int64_t id) {
        return id == last_id_ && !ids_.empty() ? last_row_ : find(id);
    }
    const std::vector<std::int64_t>& ids() const { return ids_; }
    std::size_t size() const { return ids_.size(); }
    void clear() {
        for (const std::int64_t id : ids_)
            if (static_cast<std::uint64_t>(id) < kDirect)
                direct_[static_cast<std::size_t>(id)] = -1;
        rows_.clear();
        ids_.clear();
    }

   private:
    static constexpr std::uint64_t kDirect = 1 << 14;
    std::int32_t find(std::int64_t id) {
        const auto small = static_cast<std::uint64_t>(id);
        if (small < kDirect) {
            if (direct_.empty()) direct_.assign(kDirect, -1);
            if (direct_[small] < 0) direct_[small] = add(id);
            last_row_ = direct_[small];
        } else {
            const auto [place, added] = rows_.try_emplace(id, 0);
            if (added) place->second = add(id);
            last_row_ = place->second;
        }
        last_id_ = id;
        return last_row_;
    }
    std::int32_t add(std::int64_t id) {
        ids_.push_back(id);
        return static_cast<std::int32_t>(ids_.size() - 1);
    }
    std::vector<std::int64_t> ids_;
    std::vector<std::int32_t> direct_;
    std::unordered_map<std::int64_t, std::int32_t> rows_;
    std::int64_t last_id_ = 0;
    std::int32_t last_row_ = 0;
};

}  // namespace lvdet
