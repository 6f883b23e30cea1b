#include "overlaps.hpp"

#include "cells.hpp"
#include "comparer.hpp"
#include "iou.hpp"
#include "parallel.hpp"

namespace lvdet {

Nearest nearest(const Truth& truth, const Detections& found, const std::uint8_t* target,
                const std::int32_t* rows, std::size_t count, Overlap overlap, int threads) {
    std::vector<std::int32_t> truth_image(truth.rows), found_image(count);
    for (std::size_t g = 0; g < truth.rows; ++g) truth_image[g] = target[g] ? truth.image[g] : -1;
    for (std::size_t k = 0; k < count; ++k) found_image[k] = found.image_rows[found.image[rows[k]]];
    const Grouping objects = group_rows(truth_image.data(), truth.images, truth.rows);
    const Grouping asked = group_rows(found_image.data(), truth.images, count);
    Nearest out;
    out.truth.assign(2 * count, -1);
    out.overlap.assign(2 * count, 0.0);

    in_blocks<64>(truth.images, threads, [&](std::size_t begin, std::size_t end) {
        Comparer masks(truth, found, overlap);
        std::vector<std::int32_t> found_rows;
        for (std::size_t image = begin; image < end; ++image) {
            const std::int32_t* const here = objects.rows.data() + objects.offsets[image];
            const std::size_t truths = index(objects.offsets[image + 1] - objects.offsets[image]);
            const std::int32_t* const places = asked.rows.data() + asked.offsets[image];
            const std::size_t founds = index(asked.offsets[image + 1] - asked.offsets[image]);
            if (truths == 0 || founds == 0) continue;
            found_rows.clear();
            for (std::size_t d = 0; d < founds; ++d) found_rows.push_back(rows[places[d]]);
            if (overlap != Overlap::bbox)
                masks.load(static_cast<std::int32_t>(image), here, truths, found_rows.data(),
                           founds);
            for (std::size_t d = 0; d < founds; ++d) {
                const double* const box = found.box + 4 * index(found_rows[d]);
                const std::int32_t category = found.category_rows[found.category[found_rows[d]]];
                for (std::size_t g = 0; g < truths; ++g) {
                    const std::size_t at =
                        2 * index(places[d]) + (truth.category[here[g]] != category);
                    const double most = out.overlap[at];
                    const double value = overlap == Overlap::bbox
                                             ? box_iou(box, truth.box + 4 * index(here[g]), false)
                                             : masks.overlap(d, g, false, most);
                    if (!(value > most)) continue;
                    out.overlap[at] = value;
                    out.truth[at] = here[g];
                }
            }
        }
    });
    return out;
}

}  // namespace lvdet
