#include "cells.hpp"

#include "parallel.hpp"

namespace lvdet {

Cells make_cells(const Truth& truth, const Detections& found) {
    const Grouping by_image = group_rows(truth.image, truth.images, truth.rows);
    Grouping found_by_image;
    if (!truth.negative) {
        std::vector<std::int32_t> image(found.rows);
        for (std::size_t i = 0; i < found.rows; ++i) image[i] = found.image_rows[found.image[i]];
        found_by_image = group_rows(image.data(), truth.images, found.rows);
    }
    Cells cells;
    cells.categories = truth.categories;
    cells.image_offsets.push_back(0);
    std::vector<std::int32_t> here;
    std::vector<std::int32_t> last_seen(truth.categories, -1);
    for (std::size_t image = 0; image < truth.images; ++image) {
        here.clear();
        auto add = [&](std::int32_t category) {
            if (category < 0 || last_seen[index(category)] == static_cast<std::int32_t>(image))
                return;
            last_seen[index(category)] = static_cast<std::int32_t>(image);
            here.push_back(category);
        };
        for (auto k = by_image.offsets[image]; k < by_image.offsets[image + 1]; ++k)
            add(truth.category[by_image.rows[index(k)]]);
        if (truth.negative) {
            for (auto k = truth.negative.offsets[image]; k < truth.negative.offsets[image + 1]; ++k)
                add(truth.negative.items[k]);
        } else {
            for (auto k = found_by_image.offsets[image]; k < found_by_image.offsets[image + 1]; ++k)
                add(found.category_rows[found.category[found_by_image.rows[index(k)]]]);
        }
        std::sort(here.begin(), here.end());
        cells.category.insert(cells.category.end(), here.begin(), here.end());
        cells.image.insert(cells.image.end(), here.size(), static_cast<std::int32_t>(image));
        cells.image_offsets.push_back(static_cast<std::int64_t>(cells.category.size()));
    }
    cells.not_exhaustive.assign(cells.size(), 0);
    if (truth.not_exhaustive) {
        for (std::size_t image = 0; image < truth.images; ++image)
            for (auto k = truth.not_exhaustive.offsets[image];
                 k < truth.not_exhaustive.offsets[image + 1]; ++k) {
                const std::int32_t cell =
                    cells.find(static_cast<std::int32_t>(image), truth.not_exhaustive.items[k]);
                if (cell >= 0) cells.not_exhaustive[index(cell)] = 1;
            }
    }
    return cells;
}

Grouping rank_in_cells(const Cells& cells, const Detections& found, int threads) {
    Buffer<std::int32_t> cell(found.rows);
    in_blocks(found.rows, threads, [&](std::size_t begin, std::size_t end) {
        // The cells of one image by class, filled anew when the image changes: in most files a
        // few hundred rows in a row are of the same image.
        std::vector<std::int32_t> of_class(cells.categories, -1);
        std::int64_t first = 0, last = 0;
        std::int32_t current = -1;
        for (std::size_t i = begin; i < end; ++i) {
            const std::int32_t image = found.image_rows[found.image[i]];
            const std::int32_t category = found.category_rows[found.category[i]];
            cell[i] = -1;
            if (image < 0 || category < 0) continue;
            if (image != current) {
                for (auto c = first; c < last; ++c) of_class[index(cells.category[index(c)])] = -1;
                first = cells.image_offsets[index(image)];
                last = cells.image_offsets[index(image) + 1];
                for (auto c = first; c < last; ++c)
                    of_class[index(cells.category[index(c)])] = static_cast<std::int32_t>(c);
                current = image;
            }
            cell[i] = of_class[index(category)];
        }
    });
    Grouping ranked = group_rows(cell.data(), cells.size(), found.rows, threads);
    in_blocks<1024>(cells.size(), threads, [&](std::size_t begin, std::size_t end) {
        for (std::size_t c = begin; c < end; ++c) {
            const auto first = ranked.rows.begin() + ranked.offsets[c];
            const auto last = ranked.rows.begin() + ranked.offsets[c + 1];
            const auto better = [&](std::int32_t a, std::int32_t b) {
                return Scored{found.score[a], a} < Scored{found.score[b], b};
            };
            if (!std::is_sorted(first, last, better)) std::sort(first, last, better);
        }
    });
    return ranked;
}

Buffer<std::int32_t> order_by_class(const Cells& cells, const Grouping& ranked,
                                    const Detections& found, int threads, Matched& out) {
    const std::size_t rows = ranked.rows.size();
    Buffer<double> score(rows);
    Buffer<std::int32_t> category(rows);
    in_blocks<1024>(cells.size(), threads, [&](std::size_t begin, std::size_t end) {
        for (std::size_t cell = begin; cell < end; ++cell)
            for (auto p = ranked.offsets[cell]; p < ranked.offsets[cell + 1]; ++p) {
                score[index(p)] = found.score[ranked.rows[index(p)]];
                category[index(p)] = cells.category[cell];
            }
    });
    ClassRanking ranking =
        rank_classes(score.data(), category.data(), rows, cells.categories, threads);
    out.position = std::move(ranking.by_class.rows);
    out.category_offsets = std::move(ranking.by_class.offsets);
    out.together = std::move(ranking.together);
    out.detection.resize(rows);
    Buffer<std::int32_t> place = std::move(category);
    in_blocks(rows, threads, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            const std::size_t position = index(out.position[i]);
            place[position] = static_cast<std::int32_t>(i);
            out.detection[i] = ranked.rows[position];
        }
    });
    return place;
}

}  // namespace lvdet
