// Two masks as run lengths, against a slow decoder and single pixels. An input is a byte of
// options, height, width, and two compressed strings with a space between them.
#include "rle.hpp"

#include "iou.hpp"
#include "target.hpp"

namespace {

using namespace lvdet;
using Pixels = std::vector<bool>;

// Number by number, as pycocotools reads them; returns what is wrong.
std::string slow_decode(std::string_view text, Runs& runs) {
    std::size_t p = 0;
    while (p < text.size()) {
        std::int64_t value = 0;
        for (int place = 0;; ++place) {
            if (p == text.size() || place == 12) return "RLE counts are corrupt";
            const int c = static_cast<unsigned char>(text[p++]) - 48;
            if (c < 0 || c > 63) return "RLE counts are corrupt";
            value |= static_cast<std::int64_t>(c & 31) << (5 * place);
            if (c & 32) continue;
            if (c & 16) value |= static_cast<std::int64_t>(~std::uint64_t{0} << (5 * place + 5));
            break;
        }
        if (runs.size() > 2) value += runs[runs.size() - 2];
        if (value < 0) return "RLE has a negative run";
        if (value > 0xffffffffLL) return "RLE has a run that is too long";
        runs.push_back(static_cast<std::uint32_t>(value));
    }
    return "";
}

Pixels draw(const Runs& runs) {
    Pixels pixels;
    for (std::size_t i = 0; i < runs.size(); ++i) pixels.insert(pixels.end(), runs[i], i % 2 != 0);
    return pixels;
}

struct Drawn {
    Shape shape;
    Pixels pixels;
};

void require_box(const Drawn& mask, std::int64_t height, std::int64_t width) {
    std::int64_t left = width, right = -1, top = height, bottom = -1;
    std::uint64_t area = 0;
    for (std::int64_t x = 0; x < width; ++x)
        for (std::int64_t y = 0; y < height; ++y) {
            if (!mask.pixels[static_cast<std::size_t>(x * height + y)]) continue;
            ++area;
            left = std::min(left, x);
            right = std::max(right, x);
            top = std::min(top, y);
            bottom = std::max(bottom, y);
        }
    REQUIRE(mask_area(mask.shape.runs) == area);
    const Box box = mask.shape.box;
    if (area == 0) {
        REQUIRE(box.w == 0 && box.h == 0);
        return;
    }
    // A run that begins at a column's end and goes on in the next covers all rows of both.
    REQUIRE(box.x == static_cast<double>(left));
    REQUIRE(box.x + box.w == static_cast<double>(right + 1));
    REQUIRE(box.y == static_cast<double>(top) || box.y == 0);
    REQUIRE(box.y + box.h == static_cast<double>(bottom + 1) ||
            box.y + box.h == static_cast<double>(height));
}

// The pixels within reach of one outside of the mask, or of the edge.
Pixels slow_boundary(const Pixels& pixels, std::int64_t height, std::int64_t width,
                     std::int64_t reach) {
    const auto at = [&](std::int64_t x, std::int64_t y) {
        return x >= 0 && x < width && y >= 0 && y < height &&
               pixels[static_cast<std::size_t>(x * height + y)];
    };
    Pixels out(pixels.size());
    for (std::int64_t x = 0; x < width; ++x)
        for (std::int64_t y = 0; y < height; ++y) {
            bool near = false;
            for (std::int64_t dx = -reach; dx <= reach && !near; ++dx)
                for (std::int64_t dy = -reach; dy <= reach && !near; ++dy)
                    near = !at(x + dx, y + dy);
            out[static_cast<std::size_t>(x * height + y)] = at(x, y) && near;
        }
    return out;
}

void require_pair(const Drawn& a, const Drawn& b) {
    std::uint64_t both = 0, either = 0;
    Pixels united(a.pixels.size());
    for (std::size_t i = 0; i < a.pixels.size(); ++i) {
        both += a.pixels[i] && b.pixels[i];
        united[i] = a.pixels[i] || b.pixels[i];
        either += united[i];
    }
    REQUIRE(intersection(a.shape.runs, b.shape.runs) == both);
    REQUIRE(draw(unite(a.shape.runs, b.shape.runs)) == united);
    for (const bool crowd : {false, true}) {
        const double overlap = mask_iou(a.shape, b.shape, crowd);
        const auto outer = static_cast<double>(crowd ? a.shape.area : either);
        REQUIRE(overlap == (both ? static_cast<double>(both) / outer : 0.0));
        REQUIRE(overlap <= mask_iou_bound(a.shape, b.shape, crowd));
    }
}

// Any runs survive being written.
void require_round_trip(std::string_view bytes) {
    Runs runs(bytes.size() / 4), again;
    if (!runs.empty()) std::memcpy(runs.data(), bytes.data(), runs.size() * 4);
    std::vector<std::uint8_t> text;
    encode_runs(runs.data(), runs.size(), text);
    REQUIRE(decode_runs(text.data(), text.size(), again) == nullptr);
    REQUIRE(again == runs);
    std::int64_t total = 0;
    for (const std::uint32_t run : runs) total += run;
    REQUIRE(check_rle(text.data(), text.size(), total) == nullptr);
    REQUIRE(check_rle(text.data(), text.size(), total + 1) != nullptr);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    const auto options = input.take<std::uint8_t>();
    const std::int64_t height = input.take<std::uint8_t>(), width = input.take<std::uint8_t>();
    const std::string_view rest = input.rest();
    if (options & 1) {
        require_round_trip(rest);
        return 0;
    }
    std::vector<Drawn> masks;
    for (std::size_t begin = 0; masks.size() < 2 && begin <= rest.size();) {
        const std::size_t end = std::min(rest.find(' ', begin), rest.size());
        // Of its exact size, so that a byte read beyond it is seen.
        const std::vector<std::uint8_t> text(rest.begin() + static_cast<std::ptrdiff_t>(begin),
                                             rest.begin() + static_cast<std::ptrdiff_t>(end));
        Runs runs, slow;
        const char* const wrong = decode_runs(text.data(), text.size(), runs);
        const std::string expected = slow_decode(rest.substr(begin, end - begin), slow);
        REQUIRE((wrong ? wrong : "") == expected);
        const char* const checked = check_rle(text.data(), text.size(), height * width);
        if (wrong) {
            REQUIRE(checked && std::string_view(checked) == wrong);
            return 0;
        }
        REQUIRE(runs == slow);
        std::int64_t total = 0;
        for (const std::uint32_t run : runs) total += run;
        REQUIRE((checked == nullptr) == (total == height * width));
        if (checked) return 0;
        Drawn mask{{runs, mask_area(runs), mask_box(runs, height)}, draw(runs)};
        require_box(mask, height, width);
        if (height * width <= 1024) {
            const std::int64_t reach = 1 + (options >> 1 & 3);
            REQUIRE(draw(boundary(runs, height, width, reach)) ==
                    slow_boundary(mask.pixels, height, width, reach));
        }
        masks.push_back(std::move(mask));
        begin = end + 1;
    }
    if (masks.size() == 2) require_pair(masks[0], masks[1]);
    return 0;
}
