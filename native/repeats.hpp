// Images whose rows a file has more than once.
#pragma once

#include <cstdint>
#include <vector>

namespace lvdet {

// The rows of a results file, in its order. `detail` are the rows that have a box, rising; null
// where every row has one.
struct FileRows {
    std::size_t rows;
    const std::int32_t *image, *category;
    const double *score, *box;
    const std::int32_t* detail;
    std::size_t details;
};

struct Repeats {
    std::vector<std::int32_t> image;     // images each of whose rows comes `times` times, or a
                                         // multiple of that
    std::vector<std::int32_t> times;     // 2 or more
    std::vector<std::int32_t> distinct;  // different rows of the image
    std::vector<std::int32_t> boxed;     // those of them that have a box
    std::vector<std::int32_t> runs;      // stretches of the file in which its rows stand
    std::vector<std::int32_t> rows;      // the repeated rows, by image, all but the first of each
    std::vector<std::int64_t> offsets;   // where those of each image begin
};

// Rows are equal where class and score are, and the boxes of those that have one.
Repeats find_repeats(const FileRows& file, std::size_t images, int threads);

}  // namespace lvdet
