#include "repeats.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "parallel.hpp"
#include "rank.hpp"

namespace lvdet {

namespace {

// A stretch of rows of one image.
struct Run {
    std::int32_t begin, end;
};

struct Row {
    std::int32_t category;
    std::int32_t row;
    double score;
    std::array<double, 4> box;
    bool boxed;
    bool same(const Row& other) const {
        return category == other.category && score == other.score && boxed == other.boxed &&
               box == other.box;
    }
    bool operator<(const Row& other) const {
        if (category != other.category) return category < other.category;
        if (score != other.score) return score < other.score;
        if (boxed != other.boxed) return boxed < other.boxed;
        if (box != other.box) return box < other.box;
        return row < other.row;
    }
};

std::vector<std::int32_t> run_begins(const std::int32_t* image, std::size_t rows, int threads) {
    std::vector<std::vector<std::int32_t>> parts(count_blocks(rows));
    in_blocks(rows, threads, [&](std::size_t begin, std::size_t end) {
        std::vector<std::int32_t>& part = parts[begin / kBlockRows];
        for (std::size_t i = begin; i < end; ++i)
            if (i == 0 || image[i] != image[i - 1]) part.push_back(static_cast<std::int32_t>(i));
    });
    std::vector<std::int32_t> all;
    for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
}

// Whether the first row of an image comes again in its runs: where it does not, nothing does.
bool first_comes_again(const FileRows& file, const std::int32_t* rows, const Run* runs,
                       std::size_t count) {
    const auto first = static_cast<std::size_t>(rows ? rows[runs[0].begin] : runs[0].begin);
    const double score = file.score[first];
    const std::int32_t category = file.category[first];
    for (std::size_t r = 0; r < count; ++r)
        for (std::int32_t k = runs[r].begin; k < runs[r].end; ++k) {
            const auto i = static_cast<std::size_t>(rows ? rows[k] : k);
            if ((file.score[i] == score) & (file.category[i] == category) & (i != first))
                return true;
        }
    return false;
}

Row row_of(const FileRows& file, std::int32_t row) {
    const auto at = static_cast<std::size_t>(row);
    Row out{file.category[at], row, file.score[at], {}, true};
    std::size_t place = at;
    if (file.detail) {
        const auto* const end = file.detail + file.details;
        const auto* const found = std::lower_bound(file.detail, end, row);
        out.boxed = found != end && *found == row;
        place = static_cast<std::size_t>(found - file.detail);
    }
    if (out.boxed) std::copy_n(file.box + 4 * place, 4, out.box.begin());
    return out;
}

// What is repeated of the rows of one image; appended to `out` where all of them are.
void add_repeats(std::vector<Row>& rows, std::int32_t image, std::size_t runs, Repeats& out) {
    std::sort(rows.begin(), rows.end());
    std::vector<std::size_t> counts;
    std::int32_t boxed = 0;
    for (std::size_t i = 0; i < rows.size(); ++i)
        if (i && rows[i].same(rows[i - 1])) {
            ++counts.back();
        } else {
            counts.push_back(1);
            boxed += rows[i].boxed;
        }
    std::size_t times = 0;
    for (const std::size_t count : counts) times = std::gcd(times, count);
    if (times < 2) return;
    std::size_t at = 0;
    const std::size_t first = out.rows.size();
    for (const std::size_t count : counts) {
        for (std::size_t k = count / times; k < count; ++k) out.rows.push_back(rows[at + k].row);
        at += count;
    }
    std::sort(out.rows.begin() + static_cast<std::ptrdiff_t>(first), out.rows.end());
    out.image.push_back(image);
    out.times.push_back(static_cast<std::int32_t>(times));
    out.distinct.push_back(static_cast<std::int32_t>(counts.size()));
    out.boxed.push_back(boxed);
    out.runs.push_back(static_cast<std::int32_t>(runs));
    out.offsets.push_back(static_cast<std::int64_t>(out.rows.size()));
}

void append(Repeats& all, const Repeats& part) {
    const std::int64_t before = all.offsets.back();
    for (auto column : {&Repeats::image, &Repeats::times, &Repeats::distinct, &Repeats::boxed,
                        &Repeats::runs, &Repeats::rows})
        (all.*column).insert((all.*column).end(), (part.*column).begin(), (part.*column).end());
    for (const std::int64_t end : part.offsets) all.offsets.push_back(before + end);
}

}  // namespace

Repeats find_repeats(const FileRows& file, std::size_t images, int threads) {
    const std::vector<std::int32_t> begins = run_begins(file.image, file.rows, threads);
    // A file that does not go image by image is brought into that order first.
    const bool scattered = begins.size() > 2 * images;
    Grouping grouped;
    std::vector<Run> runs;
    std::vector<std::int64_t> of_image(images + 1, 0);
    if (scattered) {
        grouped = group_rows(file.image, images, file.rows, threads);
        for (std::size_t i = 0; i < images; ++i) {
            of_image[i] = static_cast<std::int64_t>(i);
            runs.push_back({static_cast<std::int32_t>(grouped.offsets[i]),
                            static_cast<std::int32_t>(grouped.offsets[i + 1])});
        }
        of_image[images] = static_cast<std::int64_t>(images);
    } else {
        std::vector<std::int32_t> image(begins.size());
        for (std::size_t r = 0; r < begins.size(); ++r)
            image[r] = file.image[static_cast<std::size_t>(begins[r])];
        const Grouping order = group_rows(image.data(), images, image.size());
        for (const std::int32_t at : order.rows) {
            const auto r = static_cast<std::size_t>(at);
            const bool last = r + 1 == begins.size();
            runs.push_back(
                {begins[r], last ? static_cast<std::int32_t>(file.rows) : begins[r + 1]});
        }
        of_image = order.offsets;
    }
    const std::int32_t* const rows = scattered ? grouped.rows.data() : nullptr;

    std::vector<Repeats> parts(count_blocks<256>(images));
    in_blocks<256>(images, threads, [&](std::size_t begin, std::size_t end) {
        Repeats& part = parts[begin / 256];
        std::vector<Row> here;
        for (std::size_t i = begin; i < end; ++i) {
            const Run* const first = runs.data() + of_image[i];
            const auto count = static_cast<std::size_t>(of_image[i + 1] - of_image[i]);
            if (!count || first->begin == first->end ||
                !first_comes_again(file, rows, first, count))
                continue;
            here.clear();
            for (std::size_t r = 0; r < count; ++r)
                for (std::int32_t k = first[r].begin; k < first[r].end; ++k)
                    here.push_back(row_of(file, rows ? rows[k] : k));
            add_repeats(here, static_cast<std::int32_t>(i), scattered ? 0 : count, part);
        }
    });
    Repeats all;
    all.offsets.push_back(0);
    for (const Repeats& part : parts) append(all, part);
    return all;
}

}  // namespace lvdet
