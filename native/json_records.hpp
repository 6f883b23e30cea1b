// The records of COCO and LVIS files as columns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collect.hpp"
#include "image_names.hpp"
#include "json_chunks.hpp"

namespace lvdet::json {

// A value that cannot be used: in record `row`, at `byte` of the file.
struct Problem {
    std::int64_t row, byte;
    std::string what;
};

struct AnnotationColumns {
    Column<std::int64_t> id, image_id, category_id;
    Column<double> box, area;
    Column<std::uint8_t> ignore, crowd;
    MaskColumns masks;
    std::int64_t rows = 0;
};

struct ImageColumns {
    Column<std::int64_t> id;
    Column<std::int32_t> height, width;
    Column<std::uint8_t> present;  // bits: negative, not_exhaustive, height, width
    Column<std::int64_t> negative, negative_end, not_exhaustive, not_exhaustive_end;
    std::vector<std::string> file_names, addresses;
    std::int64_t rows = 0;
};

struct CategoryColumns {
    Column<std::int64_t> id;
    std::vector<std::string> names, frequency;
    std::int64_t rows = 0;
};

struct AnnotationFile {
    AnnotationColumns annotations;
    ImageColumns images;
    CategoryColumns categories;
    bool has_annotations = false, has_images = false, has_categories = false;
    std::vector<Problem> problems;  // `what` begins with the list's name
    std::int64_t problem_count = 0;
};

// What was met while reading detections.
struct DetectionReport {
    std::int64_t rows = 0, rows_with_masks = 0, rows_without_box = 0;
    std::vector<Problem> problems;
    std::int64_t problem_count = 0;
};

// Detections from a JSON list or from lines of JSON records; which one is seen from the text.
// Reads on from `place`, which is moved (a new one stands at the file's beginning), to the end or
// for about `most` bytes.
void read_detections(const File& file, Place& place, std::int64_t most, bool masks,
                     const ImageNames& names, int threads, std::size_t chunk,
                     const Control& control, Collector& out, DetectionReport& report);
// A COCO or LVIS annotation file.
void read_annotations(const File& file, bool masks, int threads, std::size_t chunk,
                      const Control& control, AnnotationFile& out);

}  // namespace lvdet::json
