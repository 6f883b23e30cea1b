// Polygons as masks. An input is a byte of options, height, width, and the parts: either the bytes
// of an encoded row, or for each part a count and its numbers in eighths of a pixel.
#include "rle.hpp"
#include "target.hpp"

namespace {

using namespace lvdet;

constexpr std::size_t kMostNumbers = 64;  // of a part that is made here

std::vector<std::uint8_t> encoded(fuzz::Input& input, double scale) {
    std::vector<std::vector<double>> parts;
    while (input.left() && parts.size() < 8) {
        std::vector<double> part(input.take<std::uint8_t>() % kMostNumbers);
        for (double& number : part) number = input.take<std::int16_t>() / 8.0 * scale;
        parts.push_back(std::move(part));
    }
    std::vector<std::uint8_t> bytes;
    encode_polygons(parts, bytes);
    return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    const auto options = input.take<std::uint8_t>();
    const std::int64_t height = input.take<std::uint8_t>() % 100;
    const std::int64_t width = input.take<std::uint8_t>() % 100;
    constexpr double kScales[] = {0.125, 1, 1.1, 240};
    const std::vector<std::uint8_t> row =
        options & 1 ? std::vector(input.data(), input.data() + input.left())
                    : encoded(input, kScales[options >> 1 & 3]);
    const char* const wrong = check_polygons(row.data(), row.size());
    const std::int64_t offsets[] = {0, static_cast<std::int64_t>(row.size())};
    const std::uint8_t kind = kMaskPolygons;
    const std::int32_t sides[] = {static_cast<std::int32_t>(height),
                                  static_cast<std::int32_t>(width)};
    MaskColumn column;
    column.data = row.data();
    column.offsets = offsets;
    column.kind = &kind;
    column.height = sides;
    column.width = sides + 1;
    const char* const checked = check_row(column, 0);
    REQUIRE((wrong == nullptr) == (checked == nullptr));
    Runs runs;
    if (wrong) {
        REQUIRE(row_runs(column, 0, height, width, runs) != nullptr);
        return 0;
    }
    REQUIRE(row_runs(column, 0, height, width, runs) == nullptr);
    std::int64_t total = 0;
    for (const std::uint32_t run : runs) total += run;
    REQUIRE(total == height * width);

    // The whole is the union of its parts, and each lies within its corners.
    std::vector<bool> pixels(static_cast<std::size_t>(total));
    for_each_polygon(row.data(), [&](const std::vector<double>& xy) {
        Runs part;
        polygon_runs(xy, height, width, part);
        std::size_t at = 0;
        for (std::size_t i = 0; i < part.size(); ++i) {
            if (i % 2) std::fill_n(pixels.begin() + static_cast<std::ptrdiff_t>(at), part[i], true);
            at += part[i];
        }
        REQUIRE(at == pixels.size());
    });
    std::size_t at = 0;
    for (std::size_t i = 0; i < runs.size(); ++i)
        for (const std::size_t end = at + runs[i]; at < end; ++at)
            REQUIRE(pixels[at] == (i % 2 != 0));
    const Box corners = polygon_box(row.data()), box = mask_box(runs, height);
    REQUIRE(corners.w >= 0 && corners.h >= 0);
    if (box.w > 0) {
        REQUIRE(box.x + 1 >= corners.x && box.x + box.w <= corners.x + corners.w + 1);
    }
    std::vector<std::uint8_t> text;
    encode_runs(runs.data(), runs.size(), text);
    REQUIRE(check_rle(text.data(), text.size(), total) == nullptr);
    return 0;
}
