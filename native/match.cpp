#include "match.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "bits.hpp"
#include "cells.hpp"
#include "comparer.hpp"
#include "iou.hpp"
#include "parallel.hpp"

namespace lvdet {

namespace {

// How many cells ahead the memory of one is asked for.
constexpr std::size_t kAhead = 3;

// Matching of one cell at a time; keeps its working memory between cells.
class CellMatcher {
   public:
    CellMatcher(const Truth& truth, const Found& found, const Settings& settings)
        : truth_(truth),
          found_(found),
          settings_(settings),
          masks_(truth, found, settings.overlap),
          bytes_(bytes_for(settings.thresholds.size())),
          row_bytes_(settings.area_low.size() * 2 * bytes_),
          ignored_(row_bytes_ << settings.area_low.size(), 0),
          lowest_(std::numeric_limits<double>::infinity()) {
        for (const double t : settings.thresholds) lowest_ = std::min(lowest_, capped(t));
        for (std::size_t where = 0; where < std::size_t{1} << settings.area_low.size(); ++where)
            for (std::size_t area = 0; area < settings.area_low.size(); ++area)
                for (std::size_t t = 0; (where >> area & 1) && t < settings.thresholds.size(); ++t)
                    ignored_[where * row_bytes_ + (2 * area + 1) * bytes_ + t / 8] |=
                        static_cast<std::uint8_t>(1u << (t % 8));
    }

    // Fills the outcomes at place[k] for the k-th of the cell's detections.
    void run(std::int32_t image, bool not_exhaustive, const std::int32_t* truth_rows,
             std::size_t truths, const std::int32_t* found_rows, std::size_t founds,
             const std::int32_t* place, Matched& out) {
        const std::size_t areas = settings_.area_low.size();
        measure(image, truth_rows, truths, found_rows, founds);
        for (std::size_t d = 0; d < founds; ++d) {
            if (candidate_[d] >= 0) continue;
            std::size_t where = 0;
            for (std::size_t area = 0; area < areas; ++area)
                where |= static_cast<std::size_t>(not_exhaustive || outside(d, area)) << area;
            std::memcpy(outcome(out, place[d]), ignored_.data() + where * row_bytes_, row_bytes_);
        }
        if (candidates_ == 0) return;
        bool plain_done = false;
        for (std::size_t area = 0; area < areas; ++area) {
            truth_ignored_.resize(truths);
            std::size_t ignored_count = 0;
            for (std::size_t g = 0; g < truths; ++g) {
                const double size = truth_.area[truth_rows[g]];
                truth_ignored_[g] = truth_.ignore[truth_rows[g]] ||
                                    size < settings_.area_low[area] ||
                                    size > settings_.area_high[area];
                ignored_count += truth_ignored_[g];
            }
            // Where all or none are ignored, the matching is the same.
            const bool mixed = ignored_count != 0 && ignored_count != truths;
            if (mixed) {
                assign(truth_rows, truths, true, mixed_);
            } else if (!plain_done) {
                assign(truth_rows, truths, false, plain_);
                plain_done = true;
            }
            for (std::size_t d = 0; d < founds; ++d)
                if (candidate_[d] >= 0)
                    write(mixed ? mixed_ : plain_, d, not_exhaustive || outside(d, area),
                          truth_rows, outcome(out, place[d]) + area * 2 * bytes_);
            if (area == 0 && settings_.partners_at >= 0)
                write_partners(mixed ? mixed_ : plain_, founds, truth_rows, place, out);
        }
    }

    // Asks for the memory that run() will need for a cell, while others are worked on.
    void prepare(const std::int32_t* found_rows, std::size_t founds, const std::int32_t* place,
                 Matched& out) const {
        for (std::size_t d = 0; d < std::min<std::size_t>(founds, 32); ++d) {
            __builtin_prefetch(found_.box + 4 * index(found_rows[d]));
            __builtin_prefetch(outcome(out, place[d]), 1);
        }
    }

   private:
    static double capped(double threshold) { return std::min(threshold, 1 - 1e-10); }
    bool dropped(std::size_t d) const { return settings_.drop_empty && !(found_area_[d] > 0); }
    // An unmatched detection does not count in this range of area.
    bool outside(std::size_t d, std::size_t area) const {
        return found_area_[d] < settings_.area_low[area] ||
               found_area_[d] > settings_.area_high[area] || dropped(d);
    }
    std::uint8_t* outcome(Matched& out, std::int32_t place) const {
        return out.outcomes.data() + index(place) * row_bytes_;
    }

    // The outcome of a candidate in one range of area.
    void write(const std::vector<std::int32_t>& partner, std::size_t d, bool is_outside,
               const std::int32_t* truth_rows, std::uint8_t* bits) const {
        const std::size_t thresholds = settings_.thresholds.size();
        const std::int32_t* const mine = partner.data() + index(candidate_[d]) * thresholds;
        std::int32_t last = -1;  // partners of neighbouring thresholds are mostly the same
        unsigned matched = 0, ignored = 0;
        for (std::size_t t = 0; t < thresholds; ++t) {
            const std::int32_t g = mine[t];
            if (g != last || t == 0) {
                last = g;
                matched = g >= 0 && !truth_.reads_unmatched[truth_rows[g]];
                ignored = (g >= 0 && truth_ignored_[index(g)]) || (!matched && is_outside);
            }
            bits[t / 8] |= static_cast<std::uint8_t>(matched << t % 8);
            bits[bytes_ + t / 8] |= static_cast<std::uint8_t>(ignored << t % 8);
        }
    }

    // The rows of the ground truth that the candidates are matched with at one threshold.
    void write_partners(const std::vector<std::int32_t>& partner, std::size_t founds,
                        const std::int32_t* truth_rows, const std::int32_t* place,
                        Matched& out) const {
        const std::size_t thresholds = settings_.thresholds.size();
        const std::int32_t* const first = partner.data() + settings_.partners_at;
        for (std::size_t d = 0; d < founds; ++d) {
            if (candidate_[d] < 0) continue;
            const std::int32_t g = first[index(candidate_[d]) * thresholds];
            if (g >= 0 && !truth_.reads_unmatched[truth_rows[g]])
                out.partner[index(place[d])] = truth_rows[g];
        }
    }

    // Areas of the detections, and overlaps of those that could match anything.
    void measure(std::int32_t image, const std::int32_t* truth_rows, std::size_t truths,
                 const std::int32_t* found_rows, std::size_t founds) {
        found_area_.resize(founds);
        candidate_.assign(founds, -1);
        near_.clear();
        near_end_.assign(1, 0);
        candidates_ = 0;
        const bool boxes = settings_.overlap == Overlap::bbox;
        if (!boxes || !settings_.area_from_box)
            masks_.load(image, truth_rows, boxes ? 0 : truths, found_rows, founds);
        for (std::size_t d = 0; d < founds; ++d) {
            const double* box = found_.box + 4 * index(found_rows[d]);
            if (settings_.area_from_box)
                found_area_[d] = box[2] * box[3];
            else
                found_area_[d] = masks_.found_area(d);
            if (dropped(d)) continue;
            const std::size_t before = near_.size();
            for (std::size_t g = 0; g < truths; ++g) {
                const double value = overlap(d, box, g, truth_rows[g]);
                if (value >= lowest_) near_.push_back({value, static_cast<std::int32_t>(g)});
            }
            if (near_.size() == before) continue;
            candidate_[d] = static_cast<std::int32_t>(candidates_++);
            near_end_.push_back(near_.size());
        }
    }

    double overlap(std::size_t d, const double* box, std::size_t g, std::int32_t truth_row) const {
        const bool crowd = truth_.crowd[truth_row];
        if (settings_.overlap == Overlap::bbox)
            return box_iou(box, truth_.box + 4 * index(truth_row), crowd);
        return masks_.overlap(d, g, crowd, lowest_);
    }

    // The matching itself: for each candidate, best first, and each threshold, the ground truth
    // of highest overlap that is still free; the later one among equals. Where some are ignored,
    // those are looked at only if no other matches.
    void assign(const std::int32_t* truth_rows, std::size_t truths, bool mixed,
                std::vector<std::int32_t>& partner) {
        const std::size_t thresholds = settings_.thresholds.size();
        partner.assign(candidates_ * thresholds, -1);
        taken_.assign(truths * thresholds, 0);
        for (std::size_t c = 0; c < candidates_; ++c)
            for (std::size_t t = 0; t < thresholds; ++t) {
                const std::int32_t g =
                    mixed ? mixed_choice(c, t) : choice(c, t, [](auto) { return true; });
                if (g < 0) continue;
                partner[c * thresholds + t] = g;
                // A crowd takes any number.
                if (!truth_.crowd[truth_rows[g]]) taken_[index(g) * thresholds + t] = 1;
            }
    }
    std::int32_t mixed_choice(std::size_t c, std::size_t t) const {
        const std::int32_t g =
            choice(c, t, [&](std::int32_t near) { return !truth_ignored_[index(near)]; });
        if (g >= 0) return g;
        return choice(c, t, [&](std::int32_t near) { return truth_ignored_[index(near)]; });
    }
    template <class Allowed>
    std::int32_t choice(std::size_t c, std::size_t t, Allowed&& allowed) const {
        const std::size_t thresholds = settings_.thresholds.size();
        double best = capped(settings_.thresholds[t]);
        std::int32_t match = -1;
        for (std::size_t k = near_end_[c]; k < near_end_[c + 1]; ++k) {
            const Near& near = near_[k];
            if (near.overlap < best || taken_[index(near.truth) * thresholds + t] ||
                !allowed(near.truth))
                continue;
            best = near.overlap;
            match = near.truth;
        }
        return match;
    }

    // A ground truth that a candidate could match.
    struct Near {
        double overlap;
        std::int32_t truth;
    };

    const Truth& truth_;
    const Found& found_;
    const Settings& settings_;
    Comparer masks_;
    std::size_t bytes_, row_bytes_;      // of the thresholds of one range of area, and of a row
    std::vector<std::uint8_t> ignored_;  // rows without a match: ignored in each set of ranges
    double lowest_;
    std::vector<double> found_area_;
    std::vector<std::int32_t> candidate_;  // number among those that could match, or -1
    std::size_t candidates_ = 0;
    std::vector<Near> near_;             // by candidate, then in order of the ground truth
    std::vector<std::size_t> near_end_;  // [candidates + 1]
    std::vector<std::uint8_t> truth_ignored_, taken_;
    std::vector<std::int32_t> plain_, mixed_;  // [candidates, thresholds] partner, or -1
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

Matched match(const Truth& truth, const Found& found, const Settings& settings, int threads) {
    const Cells cells = make_cells(truth, found);
    const Grouping ranked = rank_in_cells(cells, found, threads);
    Matched out;
    const std::vector<std::int32_t> place = order_by_class(cells, ranked, found, threads, out);
    out.outcomes.assign(
        ranked.rows.size() * settings.area_low.size() * 2 * bytes_for(settings.thresholds.size()),
        0);
    out.truth = count_truth(truth, settings);
    if (settings.partners_at >= 0) out.partner.assign(ranked.rows.size(), -1);

    std::vector<std::int32_t> truth_cell(truth.rows);
    in_blocks(truth.rows, threads, [&](std::size_t begin, std::size_t end) {
        for (std::size_t g = begin; g < end; ++g)
            truth_cell[g] = cells.find(truth.image[g], truth.category[g]);
    });
    const Grouping truth_by_cell = group_rows(truth_cell.data(), cells.size(), truth.rows);
    in_blocks<256>(cells.size(), threads, [&](std::size_t begin, std::size_t end) {
        CellMatcher matcher(truth, found, settings);
        for (std::size_t c = begin; c < end; ++c) {
            const std::size_t first = index(ranked.offsets[c]);
            const std::size_t next = index(ranked.offsets[c + 1]);
            if (c + kAhead < end) {
                const std::size_t later = index(ranked.offsets[c + kAhead]);
                matcher.prepare(ranked.rows.data() + later,
                                index(ranked.offsets[c + kAhead + 1]) - later, place.data() + later,
                                out);
            }
            const std::size_t first_truth = index(truth_by_cell.offsets[c]);
            matcher.run(cells.image[c], cells.not_exhaustive[c] != 0,
                        truth_by_cell.rows.data() + first_truth,
                        index(truth_by_cell.offsets[c + 1]) - first_truth,
                        ranked.rows.data() + first, next - first, place.data() + first, out);
        }
    });
    return out;
}

}  // namespace lvdet
