#include "match.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "iou.hpp"
#include "parallel.hpp"
#include "rank.hpp"

namespace lvdet {

namespace {

constexpr std::size_t kBlock = 1 << 16;

std::size_t index(std::int64_t value) { return static_cast<std::size_t>(value); }

// The (image, class) pairs in which detections count, by image, then by class.
struct Cells {
    std::vector<std::int64_t> image_offsets;  // [images + 1] cells of each image
    std::vector<std::int32_t> category;       // [cells]
    std::vector<std::int32_t> image;          // [cells]
    std::vector<std::uint8_t> not_exhaustive; // [cells]

    std::size_t size() const { return category.size(); }
    // The cell of a pair, or -1.
    std::int32_t find(std::int32_t image_row, std::int32_t category_row) const {
        const auto begin = category.begin() + image_offsets[index(image_row)];
        const auto end = category.begin() + image_offsets[index(image_row) + 1];
        const auto at = std::lower_bound(begin, end, category_row);
        if (at == end || *at != category_row) return -1;
        return static_cast<std::int32_t>(at - category.begin());
    }
};

// Classes verified in an image count there: those with ground truth and those known absent.
// Without such lists, every class with ground truth or a detection in the image does.
Cells make_cells(const Truth& truth, const Found& found) {
    const Grouping by_image = group_rows(truth.image, truth.images, truth.rows);
    Grouping found_by_image;
    if (!truth.negative) found_by_image = group_rows(found.image, truth.images, found.rows);
    Cells cells;
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
                add(found.category[found_by_image.rows[index(k)]]);
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

// The detections of each cell, best first.
Grouping rank_in_cells(const Cells& cells, const Found& found, int threads) {
    std::vector<std::int32_t> cell(found.rows);
    parallel_for((found.rows + kBlock - 1) / kBlock, threads, [&](std::size_t block) {
        const std::size_t end = std::min(found.rows, (block + 1) * kBlock);
        for (std::size_t i = block * kBlock; i < end; ++i)
            cell[i] = found.image[i] < 0 || found.category[i] < 0
                          ? -1
                          : cells.find(found.image[i], found.category[i]);
    });
    Grouping ranked = group_rows(cell.data(), cells.size(), found.rows);
    parallel_for((cells.size() + 1023) / 1024, threads, [&](std::size_t block) {
        const std::size_t end = std::min(cells.size(), (block + 1) * 1024);
        for (std::size_t c = block * 1024; c < end; ++c) {
            const auto first = ranked.rows.begin() + ranked.offsets[c];
            const auto last = ranked.rows.begin() + ranked.offsets[c + 1];
            const auto better = [&](std::int32_t a, std::int32_t b) {
                return found.score[a] > found.score[b] ||
                       (found.score[a] == found.score[b] && a < b);
            };
            if (!std::is_sorted(first, last, better)) std::sort(first, last, better);
        }
    });
    return ranked;
}

// Where each ranked detection (in cell order) stands in the order by class and falling score.
std::vector<std::int32_t> place_by_class(const Grouping& ranked, const Found& found,
                                         const Grouping& by_class,
                                         const std::vector<std::int64_t>& category_offsets,
                                         int threads) {
    std::vector<std::int32_t> place(ranked.rows.size());
    struct Scored {
        double score;
        std::int32_t position;
    };
    parallel_for(category_offsets.size() - 1, threads, [&](std::size_t category) {
        std::vector<Scored> list;
        list.reserve(index(category_offsets[category + 1] - category_offsets[category]));
        for (auto k = by_class.offsets[category]; k < by_class.offsets[category + 1]; ++k) {
            const std::size_t cell = index(by_class.rows[index(k)]);
            for (auto p = ranked.offsets[cell]; p < ranked.offsets[cell + 1]; ++p)
                list.push_back({found.score[ranked.rows[index(p)]], static_cast<std::int32_t>(p)});
        }
        std::sort(list.begin(), list.end(), [](const Scored& a, const Scored& b) {
            return a.score > b.score || (a.score == b.score && a.position < b.position);
        });
        auto next = static_cast<std::int32_t>(category_offsets[category]);
        for (const Scored& entry : list) place[index(entry.position)] = next++;
    });
    return place;
}

// Matching of one cell at a time; keeps its working memory between cells.
class CellMatcher {
   public:
    CellMatcher(const Truth& truth, const Found& found, const Settings& settings)
        : truth_(truth),
          found_(found),
          settings_(settings),
          lowest_(std::numeric_limits<double>::infinity()) {
        for (const double t : settings.thresholds) lowest_ = std::min(lowest_, capped(t));
    }

    // Fills rows of `matched` and `ignored` at place[k] for the k-th of the cell's detections.
    void run(std::int32_t image, bool not_exhaustive, const std::int32_t* truth_rows,
             std::size_t truths, const std::int32_t* found_rows, std::size_t founds,
             const std::int32_t* place, Matched& out, std::size_t bytes) {
        const std::size_t areas = settings_.area_low.size();
        measure(image, truth_rows, truths, found_rows, founds);
        plain_done_ = false;
        for (std::size_t area = 0; area < areas; ++area) {
            const double low = settings_.area_low[area], high = settings_.area_high[area];
            truth_ignored_.resize(truths);
            std::size_t ignored_count = 0;
            for (std::size_t g = 0; g < truths; ++g) {
                const double size = truth_.area[truth_rows[g]];
                truth_ignored_[g] = truth_.ignore[truth_rows[g]] || size < low || size > high;
                ignored_count += truth_ignored_[g];
            }
            const bool mixed = ignored_count != 0 && ignored_count != truths;
            const std::vector<std::int32_t>* partner = &plain_;
            if (mixed) {
                assign(truth_rows, truths, founds, true, mixed_);
                partner = &mixed_;
            } else if (!plain_done_) {
                assign(truth_rows, truths, founds, false, plain_);
                plain_done_ = true;
            }
            for (std::size_t d = 0; d < founds; ++d) {
                const bool outside = not_exhaustive || found_area_[d] < low ||
                                     found_area_[d] > high || dropped(d);
                write(*partner, d, outside, truth_rows,
                      (index(place[d]) * areas + area) * bytes, out);
            }
        }
    }

   private:
    static double capped(double threshold) { return std::min(threshold, 1 - 1e-10); }
    bool dropped(std::size_t d) const {
        return settings_.drop_empty && !(found_area_[d] > 0);
    }

    void write(const std::vector<std::int32_t>& partner, std::size_t d, bool outside,
               const std::int32_t* truth_rows, std::size_t at, Matched& out) const {
        const std::size_t thresholds = settings_.thresholds.size();
        if (candidate_[d] < 0) {
            if (!outside) return;
            for (std::size_t t = 0; t < thresholds; t += 8)
                out.ignored[at + t / 8] =
                    static_cast<std::uint8_t>(thresholds - t >= 8 ? 255 : (1 << (thresholds - t)) - 1);
            return;
        }
        for (std::size_t t = 0; t < thresholds; ++t) {
            const std::int32_t g = partner[index(candidate_[d]) * thresholds + t];
            const auto bit = static_cast<std::uint8_t>(1u << (t % 8));
            bool is_matched = g >= 0, is_ignored = false;
            if (is_matched) {
                is_ignored = truth_ignored_[index(g)];
                if (truth_.reads_unmatched[truth_rows[g]]) is_matched = false;
            }
            if (!is_matched && outside) is_ignored = true;
            if (is_matched) out.matched[at + t / 8] |= bit;
            if (is_ignored) out.ignored[at + t / 8] |= bit;
        }
    }

    // Areas of the detections, and overlaps of those that could match anything.
    void measure(std::int32_t image, const std::int32_t* truth_rows, std::size_t truths,
                 const std::int32_t* found_rows, std::size_t founds) {
        found_area_.resize(founds);
        candidate_.assign(founds, -1);
        overlap_.clear();
        candidates_ = 0;
        const bool boxes = settings_.overlap == Overlap::bbox;
        if (!boxes || !settings_.area_from_box)
            load_shapes(image, truth_rows, boxes ? 0 : truths, found_rows, founds);
        for (std::size_t d = 0; d < founds; ++d) {
            const double* box = found_.box + 4 * index(found_rows[d]);
            if (settings_.area_from_box)
                found_area_[d] = box[2] * box[3];
            else
                found_area_[d] = static_cast<double>(found_shapes_[d].area);
            if (dropped(d)) continue;
            bool any = false;
            const std::size_t start = overlap_.size();
            for (std::size_t g = 0; g < truths; ++g) {
                const double value = overlap(d, box, g, truth_rows[g]);
                any |= value >= lowest_;
                overlap_.push_back(value);
            }
            if (any)
                candidate_[d] = static_cast<std::int32_t>(candidates_++);
            else
                overlap_.resize(start);
        }
    }

    double overlap(std::size_t d, const double* box, std::size_t g, std::int32_t truth_row) const {
        const bool crowd = truth_.crowd[truth_row];
        if (settings_.overlap == Overlap::bbox)
            return box_iou(box, truth_.box + 4 * index(truth_row), crowd);
        const Shape &a = found_shapes_[d], &b = truth_shapes_[g];
        if (mask_iou_bound(a, b, crowd) < lowest_) return 0.0;
        const double whole = mask_iou(a, b, crowd);
        if (settings_.overlap == Overlap::segm || crowd || whole < lowest_) return whole;
        return std::min(whole, mask_iou(found_edges(d), truth_edges_[g], crowd));
    }

    const Shape& found_edges(std::size_t d) const {
        if (edge_of_ != static_cast<std::int64_t>(d)) {
            edge_.runs = boundary(found_shapes_[d].runs, height_, width_, reach_);
            edge_.area = mask_area(edge_.runs);
            edge_of_ = static_cast<std::int64_t>(d);
        }
        return edge_;
    }

    void load_shapes(std::int32_t image, const std::int32_t* truth_rows, std::size_t truths,
                     const std::int32_t* found_rows, std::size_t founds) {
        height_ = truth_.height[image];
        width_ = truth_.width[image];
        reach_ = boundary_reach(height_, width_);
        edge_of_ = -1;
        found_shapes_.resize(std::max(founds, found_shapes_.size()));
        for (std::size_t d = 0; d < founds; ++d)
            load(found_.masks, found_rows[d], true, found_shapes_[d]);
        if (founds == 0) return;
        truth_shapes_.resize(std::max(truths, truth_shapes_.size()));
        truth_edges_.resize(truth_shapes_.size());
        for (std::size_t g = 0; g < truths; ++g) {
            load(truth_.masks, truth_rows[g], false, truth_shapes_[g]);
            if (settings_.overlap != Overlap::boundary) continue;
            truth_edges_[g].runs = boundary(truth_shapes_[g].runs, height_, width_, reach_);
            truth_edges_[g].area = mask_area(truth_edges_[g].runs);
        }
    }

    void load(const MaskColumn& masks, std::int32_t row, bool detection, Shape& shape) const {
        if (const char* wrong = row_runs(masks, index(row), height_, width_, shape.runs))
            throw MaskError(wrong, detection, row);
        shape.area = mask_area(shape.runs);
        shape.box = mask_box(shape.runs, height_);
    }

    // The matching itself: for each candidate, best first, and each threshold, the ground truth
    // of highest overlap that is still free; the later one among equals. Where some are ignored,
    // those come last, and are not looked at once another has matched.
    void assign(const std::int32_t* truth_rows, std::size_t truths, std::size_t founds, bool mixed,
                std::vector<std::int32_t>& partner) {
        const std::size_t thresholds = settings_.thresholds.size();
        partner.assign(candidates_ * thresholds, -1);
        if (candidates_ == 0) return;
        order_.resize(truths);
        std::iota(order_.begin(), order_.end(), 0);
        if (mixed)
            std::stable_partition(order_.begin(), order_.end(),
                                  [&](std::int32_t g) { return !truth_ignored_[index(g)]; });
        taken_.assign(truths * thresholds, 0);
        for (std::size_t d = 0; d < founds; ++d) {
            if (candidate_[d] < 0) continue;
            const double* row = overlap_.data() + index(candidate_[d]) * truths;
            for (std::size_t t = 0; t < thresholds; ++t) {
                double best = capped(settings_.thresholds[t]);
                std::int32_t match = -1;
                for (const std::int32_t g : order_) {
                    if (taken_[index(g) * thresholds + t]) continue;
                    if (mixed && match >= 0 && !truth_ignored_[index(match)] &&
                        truth_ignored_[index(g)])
                        break;
                    if (row[g] < best) continue;
                    best = row[g];
                    match = g;
                }
                if (match < 0) continue;
                partner[index(candidate_[d]) * thresholds + t] = match;
                // A crowd takes any number.
                if (!truth_.crowd[truth_rows[match]]) taken_[index(match) * thresholds + t] = 1;
            }
        }
    }

    const Truth& truth_;
    const Found& found_;
    const Settings& settings_;
    double lowest_;
    std::int64_t height_ = 0, width_ = 0, reach_ = 0;
    std::vector<double> found_area_, overlap_;
    std::vector<std::int32_t> candidate_;  // row of a detection in overlap_, or -1
    std::size_t candidates_ = 0;
    std::vector<std::uint8_t> truth_ignored_, taken_;
    std::vector<std::int32_t> order_, plain_, mixed_;
    bool plain_done_ = false;
    std::vector<Shape> found_shapes_, truth_shapes_, truth_edges_;
    mutable Shape edge_;
    mutable std::int64_t edge_of_ = -1;
};

std::vector<std::int64_t> count_truth(const Truth& truth, const Settings& settings) {
    const std::size_t areas = settings.area_low.size();
    std::vector<std::int64_t> count(truth.categories * areas, 0);
    for (std::size_t g = 0; g < truth.rows; ++g)
        for (std::size_t area = 0; area < areas; ++area)
            count[index(truth.category[g]) * areas + area] +=
                !truth.ignore[g] && truth.area[g] >= settings.area_low[area] &&
                truth.area[g] <= settings.area_high[area];
    return count;
}

}  // namespace

Matched match(const Truth& truth, const Found& found, const Settings& settings) {
    const Cells cells = make_cells(truth, found);
    const Grouping ranked = rank_in_cells(cells, found, settings.threads);
    const Grouping by_class = group_rows(cells.category.data(), truth.categories, cells.size());

    Matched out;
    out.category_offsets.assign(truth.categories + 1, 0);
    for (std::size_t cell = 0; cell < cells.size(); ++cell)
        out.category_offsets[index(cells.category[cell]) + 1] +=
            ranked.offsets[cell + 1] - ranked.offsets[cell];
    std::partial_sum(out.category_offsets.begin(), out.category_offsets.end(),
                     out.category_offsets.begin());
    const std::vector<std::int32_t> place =
        place_by_class(ranked, found, by_class, out.category_offsets, settings.threads);

    const std::size_t rows = ranked.rows.size();
    const std::size_t bytes = (settings.thresholds.size() + 7) / 8;
    out.detection.resize(rows);
    out.position.resize(rows);
    for (std::size_t p = 0; p < rows; ++p) {
        out.detection[index(place[p])] = ranked.rows[p];
        out.position[index(place[p])] = static_cast<std::int32_t>(p);
    }
    out.matched.assign(rows * settings.area_low.size() * bytes, 0);
    out.ignored.assign(out.matched.size(), 0);
    out.truth = count_truth(truth, settings);

    std::vector<std::int32_t> truth_cell(truth.rows);
    for (std::size_t g = 0; g < truth.rows; ++g)
        truth_cell[g] = cells.find(truth.image[g], truth.category[g]);
    const Grouping truth_by_cell = group_rows(truth_cell.data(), cells.size(), truth.rows);
    constexpr std::size_t kCells = 256;
    parallel_for((cells.size() + kCells - 1) / kCells, settings.threads, [&](std::size_t block) {
        CellMatcher matcher(truth, found, settings);
        const std::size_t end = std::min(cells.size(), (block + 1) * kCells);
        for (std::size_t c = block * kCells; c < end; ++c) {
            const std::size_t first = index(ranked.offsets[c]);
            const std::size_t first_truth = index(truth_by_cell.offsets[c]);
            matcher.run(cells.image[c], cells.not_exhaustive[c] != 0,
                        truth_by_cell.rows.data() + first_truth,
                        index(truth_by_cell.offsets[c + 1]) - first_truth,
                        ranked.rows.data() + first, index(ranked.offsets[c + 1]) - first,
                        place.data() + first, out, bytes);
        }
    });
    return out;
}

}  // namespace lvdet
