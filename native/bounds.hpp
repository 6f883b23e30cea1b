// How large input may be; src/lvdet/bounds.py has what is checked in Python.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lvdet {

// Pixels of a side of an image, and how far from it a polygon may reach.
inline constexpr std::int32_t kLargestSide = 1000000;
inline constexpr double kFarthest = 1e6;
// Bytes of a mask, encoded.
inline constexpr std::size_t kLargestMask = std::size_t{1} << 26;
inline constexpr const char* kTooLarge = "the mask takes more than 67,108,864 bytes";
// Columns of pixels that the edges of a polygon may cross, each edge for itself.
inline constexpr std::size_t kMostCrossings = std::size_t{1} << 24;
inline constexpr const char* kTooManyCrossings =
    "the edges of a polygon cross more than 16,777,216 columns of the image";
// The same of all polygons of a table, for each byte of its masks, and what is always allowed.
inline constexpr std::uint64_t kCrossingsPerByte = 32;
inline constexpr std::uint64_t kCrossings = std::uint64_t{1} << 26;
// Pixels of the box around a mask whose boundary is compared: one bit for each is kept.
inline constexpr double kLargestBoundary = 4294967296.0;
inline constexpr const char* kBoundaryTooLarge =
    "the box around the mask has more than 4,294,967,296 pixels, too many to find its boundary";
// Levels of JSON in a record.
inline constexpr int kDeepest = 512;
inline constexpr const char* kTooDeep = "nested more than 512 levels deep";
// Characters of a number in JSON.
inline constexpr std::size_t kLongestNumber = 4096;
inline constexpr const char* kTooLong = "a number has more than 4,096 characters";
// Bytes of a record or another value in JSON that is parsed as a whole.
inline constexpr std::size_t kLargestRecord = std::size_t{1} << 28;
inline constexpr const char* kTooBig = "a record takes more than 268,435,456 bytes";

}  // namespace lvdet
