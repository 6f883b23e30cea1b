// Annotation files: read in any chunks, on any number of threads, they are the same tables or the
// same error.
#include "json_records.hpp"
#include "target.hpp"

namespace {

using namespace lvdet;

std::string tables(int descriptor, bool masks, int threads, std::size_t chunk) {
    const json::File file(descriptor);
    json::AnnotationFile found;
    try {
        json::read_annotations(file, masks, threads, chunk, {}, found);
    } catch (const json::FileError& error) {
        REQUIRE(error.byte >= 0 && error.byte <= file.size);
        return std::string(error.what()) + " " + std::to_string(error.byte) + " " +
               std::to_string(error.row);
    }
    fuzz::Dump dump;
    auto& [id, image_id, category_id, box, area, ignore, crowd, encoded, rows] = found.annotations;
    dump.add(id);
    dump.add(image_id);
    dump.add(category_id);
    dump.add(box);
    dump.add(area);
    dump.add(ignore);
    dump.add(crowd);
    dump.add(encoded.data);
    dump.add(encoded.end);
    dump.add(encoded.kind);
    dump.add(encoded.height);
    dump.add(encoded.width);
    dump.add(rows);
    json::ImageColumns& images = found.images;
    dump.add(images.id);
    dump.add(images.height);
    dump.add(images.width);
    dump.add(images.present);
    dump.add(images.negative);
    dump.add(images.negative_end);
    dump.add(images.not_exhaustive);
    dump.add(images.not_exhaustive_end);
    dump.add_texts(images.file_names);
    dump.add_texts(images.addresses);
    dump.add(found.categories.id);
    dump.add_texts(found.categories.names);
    dump.add_texts(found.categories.frequency);
    dump.add(found.problem_count);
    for (const auto& problem : found.problems) {
        dump.add(problem.row);
        dump.add(problem.byte);
        dump.add_texts({problem.what});
    }
    return dump.text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const fuzz::MemoryFile file;
    fuzz::Input input(data, size);
    const auto options = input.take<std::uint8_t>();
    constexpr std::size_t kChunks[] = {20, 30, 64, 100, 200, 300, 500, 5000};
    const bool masks = (options & 8) == 0;
    const int descriptor = file.holding(input.rest());
    // One chunk holds all of it: no guess is made.
    const std::string expected = tables(descriptor, masks, 1, input.left() + 1);
    const int threads = (options & 48) == 48 ? 3 : 1;
    REQUIRE(fuzz::same_text(tables(descriptor, masks, threads, kChunks[options & 7]), expected));
    return 0;
}
