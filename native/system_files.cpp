#include "system_files.hpp"

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#ifdef _WIN32
#ifndef NOMINMAX
#define NOMINMAX
#endif
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
// After it, which they need.
#include <io.h>
#else
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace lvdet::system_files {

#ifdef _WIN32

namespace {

[[noreturn]] void fail() {
    throw std::system_error(static_cast<int>(GetLastError()), std::system_category());
}

HANDLE handle_of(int descriptor) {
    return reinterpret_cast<HANDLE>(_get_osfhandle(descriptor));
}

DWORD upper(std::uint64_t value) {
    return static_cast<DWORD>(value >> 32);
}

std::wstring wide(const std::string& text) {
    const auto size = static_cast<int>(text.size());
    std::wstring out(text.size(), L'\0');
    const int length = MultiByteToWideChar(CP_UTF8, 0, text.data(), size, out.data(), size);
    out.resize(static_cast<std::size_t>(length));
    return out;
}

HANDLE open_unnamed(const std::string& folder) {
    wchar_t name[MAX_PATH];
    if (!GetTempFileNameW(wide(folder).c_str(), L"lvd", 0, name)) fail();
    const HANDLE file = CreateFileW(name, GENERIC_READ | GENERIC_WRITE, 0, nullptr, CREATE_ALWAYS,
                                    FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, nullptr);
    if (file == INVALID_HANDLE_VALUE) fail();
    return file;
}

}  // namespace

std::int64_t size_of(int descriptor) {
    LARGE_INTEGER size;
    if (!GetFileSizeEx(handle_of(descriptor), &size)) fail();
    return size.QuadPart;
}

std::size_t read_at(int descriptor, std::int64_t offset, char* into, std::size_t count) {
    const auto position = static_cast<std::uint64_t>(offset);
    OVERLAPPED at{};
    at.Offset = static_cast<DWORD>(position);
    at.OffsetHigh = upper(position);
    constexpr std::size_t kMost = std::size_t{1} << 30;
    DWORD got = 0;
    if (!ReadFile(handle_of(descriptor), into, static_cast<DWORD>(count < kMost ? count : kMost),
                  &got, &at) &&
        GetLastError() != ERROR_HANDLE_EOF)
        fail();
    return got;
}

MappedFile::~MappedFile() {
    if (data_) UnmapViewOfFile(data_);
    if (file_ != -1) CloseHandle(reinterpret_cast<HANDLE>(file_));  // which deletes it
}

std::uint8_t* MappedFile::grow(const std::string& folder, std::size_t size) {
    if (file_ == -1) file_ = reinterpret_cast<std::intptr_t>(open_unnamed(folder));
    // A mapping larger than the file extends it.
    const HANDLE mapping =
        CreateFileMappingW(reinterpret_cast<HANDLE>(file_), nullptr, PAGE_READWRITE, upper(size),
                           static_cast<DWORD>(size), nullptr);
    if (!mapping) fail();
    void* const map = MapViewOfFile(mapping, FILE_MAP_WRITE, 0, 0, size);
    const DWORD error = GetLastError();
    CloseHandle(mapping);  // the view keeps it
    if (!map) throw std::system_error(static_cast<int>(error), std::system_category());
    if (data_) UnmapViewOfFile(data_);
    data_ = static_cast<std::uint8_t*>(map);
    size_ = size;
    return data_;
}

// The file would be deleted, which Windows does not do beneath a view.
void MappedFile::seal() {}

#else

namespace {

[[noreturn]] void fail(int error) {
    throw std::system_error(error, std::generic_category());
}

// Takes the space, as posix_fallocate does where it exists.
int reserve(int file, std::size_t from, std::size_t size) {
#ifdef __APPLE__
    const std::vector<char> zeros(std::size_t{1} << 20);
    while (from < size) {
        const std::size_t left = size - from;
        const ssize_t put = pwrite(file, zeros.data(), left < zeros.size() ? left : zeros.size(),
                                   static_cast<off_t>(from));
        if (put < 0 && errno != EINTR) return errno;
        if (put > 0) from += static_cast<std::size_t>(put);
    }
    return 0;
#else
    static_cast<void>(from);
    return posix_fallocate(file, 0, static_cast<off_t>(size));
#endif
}

int open_unnamed(const std::string& folder) {
    std::string name = folder + "/lvdet-masks-XXXXXX";
    const int file = mkostemp(name.data(), O_CLOEXEC);
    if (file < 0) fail(errno);
    unlink(name.c_str());  // it is gone when closed
    return file;
}

}  // namespace

std::int64_t size_of(int descriptor) {
    struct stat status{};
    if (fstat(descriptor, &status) != 0) throw std::runtime_error(std::strerror(errno));
    return status.st_size;
}

std::size_t read_at(int descriptor, std::int64_t offset, char* into, std::size_t count) {
    for (;;) {
        const ssize_t got = pread(descriptor, into, count, static_cast<off_t>(offset));
        if (got >= 0) return static_cast<std::size_t>(got);
        if (errno != EINTR) throw std::runtime_error(std::strerror(errno));
    }
}

MappedFile::~MappedFile() {
    if (data_) munmap(data_, size_);
    seal();
}

std::uint8_t* MappedFile::grow(const std::string& folder, std::size_t size) {
    if (file_ < 0) file_ = open_unnamed(folder);
    const int file = static_cast<int>(file_);
    if (const int error = reserve(file, size_, size)) fail(error);
    void* const map = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (map == MAP_FAILED) fail(errno);
    if (data_) munmap(data_, size_);
    data_ = static_cast<std::uint8_t*>(map);
    size_ = size;
    return data_;
}

void MappedFile::seal() {
    if (file_ >= 0) close(static_cast<int>(std::exchange(file_, -1)));  // the map keeps it
}

#endif

}  // namespace lvdet::system_files
