// What operating systems do differently with files: reading at a position, and memory that is a
// temporary file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace lvdet::system_files {

// The size of an open file in bytes; throws std::runtime_error.
std::int64_t size_of(int descriptor);

// Reads up to `count` bytes from `offset`, with no effect on other readers of the file: 0 at its
// end. Throws std::runtime_error.
std::size_t read_at(int descriptor, std::int64_t offset, char* into, std::size_t count);

// Memory held in a file without a name; the system keeps in RAM what there is room for. Functions
// throw std::system_error.
class MappedFile {
   public:
    MappedFile() = default;
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    ~MappedFile();

    // Makes it this large, on the disk too: where that is full, it is said here and not by a
    // signal. The content stays, at a new address. The file lies in `folder`, which is UTF-8.
    std::uint8_t* grow(const std::string& folder, std::size_t size);
    // It grows no more.
    void seal();

   private:
    std::uint8_t* data_ = nullptr;
    std::size_t size_ = 0;
    std::intptr_t file_ = -1;  // a descriptor, or a handle of Windows
};

}  // namespace lvdet::system_files
