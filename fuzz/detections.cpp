// Results files: read in any chunks they are the same table or the same error, a limit keeps what
// sorting keeps, and what is written is read again.
#include <numeric>

#include "json_records.hpp"
#include "json_write.hpp"
#include "target.hpp"

namespace {

using namespace lvdet;
using fuzz::Dump;

struct How {
    std::size_t chunk = 1 << 20;
    bool in_order = true;
    bool masks = true;
    int threads = 1;
    std::int64_t most = std::numeric_limits<std::int64_t>::max();
};

const ImageNames& names() {
    static const ImageNames known({1, 2, 3, 139}, {"a.jpg", "val/b.jpg", "", "000000000139.jpg"});
    return known;
}

struct Outcome {
    std::string failure;  // what is said of a file that cannot be read
    json::DetectionReport report;

    bool usable() const { return failure.empty() && report.problem_count == 0; }
};

// Reads all of it, in as many steps as `most` makes.
Outcome read(int descriptor, const How& how, Collector& out) {
    const json::File file(descriptor);
    json::Place place;
    place.in_order = how.in_order;
    Outcome outcome;
    auto& [failure, total] = outcome;
    try {
        do {
            json::DetectionReport report;
            json::read_detections(file, place, how.most, how.masks, names(), how.threads, how.chunk,
                                  {}, out, report);
            total.rows += report.rows;
            total.rows_with_masks += report.rows_with_masks;
            total.rows_without_box += report.rows_without_box;
            total.problem_count += report.problem_count;
            for (auto& problem : report.problems) total.problems.push_back(std::move(problem));
        } while (!place.ended);
    } catch (const json::FileError& error) {
        REQUIRE(error.byte >= 0 && error.byte <= file.size);
        failure = std::string(error.what()) + " " + std::to_string(error.byte) + " " +
                  std::to_string(error.row);
    }
    return outcome;
}

Collector everything(int threads) {
    return {{}, {}, 0, 1 << 16, threads};
}

// All columns and problems, or what is said instead.
std::string table(int descriptor, const How& how, Collector& out, bool& usable) {
    const Outcome outcome = read(descriptor, how, out);
    usable = outcome.usable();
    if (!outcome.failure.empty()) return outcome.failure;
    Dump dump;
    const json::DetectionReport& report = outcome.report;
    for (const std::int64_t count :
         {report.rows, report.rows_with_masks, report.rows_without_box, report.problem_count})
        dump.add(count);
    for (const auto& problem : report.problems) {
        dump.add(problem.row);
        dump.add(problem.byte);
        dump.add_texts({problem.what});
    }
    if (out.masks.kind.size()) out.masks.skip_to(out.score.size());
    dump.add(out.image_ids.ids().data(), out.image_ids.size());
    dump.add(out.category_ids.ids().data(), out.category_ids.size());
    dump.add(out.image);
    dump.add(out.category);
    dump.add(out.score);
    dump.add(out.box);
    dump.add(out.masks.data);
    dump.add(out.masks.end);
    dump.add(out.masks.kind);
    dump.add(out.masks.height);
    dump.add(out.masks.width);
    return dump.text;
}

// The best `limit` rows of each class, the earlier of equal scores.
std::vector<std::int64_t> best_rows(Collector& all, std::size_t limit) {
    std::vector<std::int64_t> order(all.score.size()), kept;
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
        return all.score.data()[a] > all.score.data()[b];
    });
    std::vector<std::size_t> count(all.category_ids.size());
    for (const std::int64_t row : order)
        if (count[static_cast<std::size_t>(all.category.data()[row])]++ < limit)
            kept.push_back(row);
    std::sort(kept.begin(), kept.end());
    return kept;
}

void require_best(int descriptor, const How& how, Collector& all, std::size_t limit) {
    Cap cap{.by_image = false,
            .limit = static_cast<std::int64_t>(limit),
            .part = {},
            .parts = 0,
            .others = 0,
            .floors = Floors(limit)};
    Collector some({cap}, {}, 0, 4, how.threads);
    REQUIRE(read(descriptor, how, some).usable());
    some.keep_best();
    const std::vector<std::int64_t> expected = best_rows(all, limit);
    REQUIRE(some.score.size() == expected.size());
    REQUIRE(some.total == static_cast<std::int64_t>(all.score.size()));
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const auto row = static_cast<std::size_t>(expected[i]);
        REQUIRE(some.category.data()[i] == all.category.data()[row]);
        REQUIRE(some.image.data()[i] == all.image.data()[row]);
        REQUIRE(std::memcmp(some.score.data() + i, all.score.data() + row, 8) == 0);
        REQUIRE(std::memcmp(some.box.data() + 4 * i, all.box.data() + 4 * row, 32) == 0);
        if (some.gaps()) REQUIRE(some.file_row.data()[i] == expected[i]);
    }
}

void require_written_again(Collector& all) {
    const bool with_masks = all.masks.kind.size() > 0;
    all.masks.data.finish();
    std::vector<std::int64_t> offsets{0};
    offsets.insert(offsets.end(), all.masks.end.data(),
                   all.masks.end.data() + all.masks.end.size());
    MaskColumn masks;
    if (with_masks) {
        masks.data = all.masks.data.data();
        masks.offsets = offsets.data();
        masks.kind = all.masks.kind.data();
        masks.height = all.masks.height.data();
        masks.width = all.masks.width.data();
    }
    std::string text;
    json::append_detections({.image = all.image.data(),
                             .category = all.category.data(),
                             .image_ids = all.image_ids.ids().data(),
                             .category_ids = all.category_ids.ids().data(),
                             .score = all.score.data(),
                             .box = all.box.data(),
                             .with_box = true,
                             .masks = masks},
                            0, all.score.size(), '\n', text);
    static const fuzz::MemoryFile file;
    Collector again = everything(1);
    if (text.empty()) return;
    REQUIRE(read(file.holding(text), {}, again).usable());
    REQUIRE(again.score.size() == all.score.size());
    Dump before, after;
    for (auto [dump, rows] : {std::pair{&before, &all}, std::pair{&after, &again}}) {
        dump->add(rows->image);
        dump->add(rows->category);
        dump->add(rows->score);
        dump->add(rows->box);
        dump->add(rows->masks.data);
    }
    REQUIRE(before.text == after.text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const fuzz::MemoryFile file;
    fuzz::Input input(data, size);
    const auto options = input.take<std::uint8_t>();
    constexpr std::size_t kChunks[] = {20, 30, 64, 100, 200, 300, 500, 5000};
    How guessed{.chunk = kChunks[options & 7],
                .in_order = false,
                .masks = (options & 8) == 0,
                .threads = (options & 48) == 48 ? 3 : 1};
    if (options & 32) guessed.most = static_cast<std::int64_t>(guessed.chunk) * 3 + 100;
    const How ordered{.chunk = input.left() + 1, .masks = guessed.masks};
    const int descriptor = file.holding(input.rest());
    Collector all = everything(1), other = everything(guessed.threads);
    bool usable = false, usable_too = false;
    const std::string expected = table(descriptor, ordered, all, usable);
    REQUIRE(fuzz::same_text(table(descriptor, guessed, other, usable_too), expected));
    REQUIRE(usable == usable_too);
    if (!usable) return 0;
    require_best(descriptor, guessed, all, 1 + (options >> 6));
    require_written_again(all);
    return 0;
}
