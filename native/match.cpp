#include "match.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "bits.hpp"
#include "box_overlaps.hpp"
#include "cells.hpp"
#include "comparer.hpp"
#include "iou.hpp"
#include "parallel.hpp"

namespace lvdet {

namespace {

// How many cells ahead the memory of one is asked for.
constexpr std::size_t kAhead = 3;
constexpr std::size_t kWord = 64;

// The rows that match something, as one thread finds them.
struct Hits {
    std::vector<std::int32_t> place;
    std::vector<std::uint8_t> bits;      // [place, areas, 2, bytes]
    std::vector<std::int32_t> partner;   // where asked for
    std::vector<double> overlap;         // with the partner
    std::vector<std::int32_t> partners;  // [place, areas, thresholds], where asked for
    std::vector<std::int32_t> contested;
    std::vector<std::uint8_t> reached;  // [contested, bytes]
};

// Matching of one cell at a time; keeps its working memory between cells.
class CellMatcher {
   public:
    CellMatcher(const Truth& truth, const Detections& found, const Settings& settings,
                std::uint8_t* objects)
        : truth_(truth),
          found_(found),
          settings_(settings),
          objects_(objects),
          masks_(truth, found, settings.overlap),
          areas_(settings.area_low.size()),
          bytes_(bytes_for(settings.thresholds.size())),
          row_bytes_(areas_ * 2 * bytes_) {
        for (const double t : settings.thresholds) capped_.push_back(std::min(t, 1 - 1e-10));
        lowest_ = *std::min_element(capped_.begin(), capped_.end());
        std::copy_n(settings.area_low.begin(), areas_, low_);
        std::copy_n(settings.area_high.begin(), areas_, high_);
    }

    // Says of the k-th of the cell's detections whether it is wrong, at wrong[place[k]], and adds
    // it to the hits where it matches something.
    void run(std::int32_t image, bool not_exhaustive, const std::int32_t* truth_rows,
             std::size_t truths, const std::int32_t* found_rows, std::size_t founds,
             const std::int32_t* place, std::uint8_t* wrong, Hits& hits) {
        measure(image, truth_rows, truths, found_rows, founds);
        for (std::size_t d = 0; d < founds; ++d)
            wrong[place[d]] = not_exhaustive ? 0 : inside(found_area_[d]);
        if (candidates_.empty()) return;
        bits_.assign(candidates_.size() * row_bytes_, 0);
        partner_.assign(candidates_.size(), -1);
        overlap_.assign(candidates_.size(), 0.0);
        matches_.assign(candidates_.size(), 0);
        const std::size_t partners = settings_.every_partner ? partners_of_row() : 0;
        partners_.assign(candidates_.size() * partners, -1);
        const std::size_t contested = first_contested(found_rows, truths);
        const std::size_t reached = hits.reached.size();
        for (std::size_t c = contested; c < candidates_.size(); ++c)
            hits.contested.push_back(place[candidates_[c].detection]);
        hits.reached.resize(reached + (candidates_.size() - contested) * bytes_);
        for (std::size_t base = 0; base < settings_.thresholds.size(); base += kWord) {
            match_at(base, not_exhaustive, truth_rows, truths);
            for (std::size_t c = contested; c < candidates_.size(); ++c)
                store_bits(hits.reached.data() + reached + (c - contested) * bytes_ + base / 8,
                           reached_by(c), std::min(bytes_ - base / 8, sizeof(std::uint64_t)));
        }
        for (std::size_t c = 0; c < candidates_.size(); ++c) {
            if (!matches_[c]) continue;
            const std::int32_t at = place[candidates_[c].detection];
            wrong[at] = 0;
            hits.place.push_back(at);
            const auto bits = bits_.begin() + static_cast<std::ptrdiff_t>(c * row_bytes_);
            hits.bits.insert(hits.bits.end(), bits, bits + static_cast<std::ptrdiff_t>(row_bytes_));
            const auto every = partners_.begin() + static_cast<std::ptrdiff_t>(c * partners);
            hits.partners.insert(hits.partners.end(), every,
                                 every + static_cast<std::ptrdiff_t>(partners));
            if (settings_.partners_at < 0) continue;
            hits.partner.push_back(partner_[c]);
            hits.overlap.push_back(overlap_[c]);
        }
    }

    // Asks for the memory that run() will need for a cell, while others are worked on.
    void prepare(const std::int32_t* found_rows, std::size_t founds) const {
        for (std::size_t d = 0; d < std::min<std::size_t>(founds, 32); ++d)
            __builtin_prefetch(found_.box + 4 * index(found_rows[d]));
    }

   private:
    // A detection and an object that it could match.
    struct Near {
        std::int32_t detection, truth;
        double overlap;
        std::uint64_t reached = 0;  // thresholds
        std::uint64_t taken = 0;    // those at which it is matched with the candidate
    };
    // A detection that could match something: its nears are those up to `end`. It takes what it
    // matches, unless it leaves that free.
    struct Candidate {
        std::size_t detection, end;
        bool takes;
    };

    std::size_t partners_of_row() const { return areas_ * settings_.thresholds.size(); }

    // The ranges of area that an unmatched detection counts in, a bit for each.
    std::uint8_t inside(double area) const {
        unsigned ranges = 0;
        for (std::size_t r = 0; r < areas_; ++r)
            ranges |= static_cast<unsigned>((area >= low_[r]) & (area <= high_[r])) << r;
        return static_cast<std::uint8_t>(dropped(area) ? 0 : ranges);
    }
    bool dropped(double area) const { return settings_.drop_empty && !(area > 0); }

    // Areas of the detections, and overlaps of those that could match anything: the highest first,
    // the later object among equals.
    void measure(std::int32_t image, const std::int32_t* truth_rows, std::size_t truths,
                 const std::int32_t* found_rows, std::size_t founds) {
        found_area_.resize(founds);
        candidates_.clear();
        near_.clear();
        const bool boxes = settings_.overlap == Overlap::bbox;
        if (!boxes || !settings_.area_from_box)
            masks_.load(image, truth_rows, boxes ? 0 : truths, found_rows, founds);
        for (std::size_t d = 0; d < founds; ++d) {
            const double* box = found_.box + 4 * index(found_rows[d]);
            found_area_[d] = found_.area               ? found_.area[found_rows[d]]
                             : settings_.area_from_box ? box[2] * box[3]
                                                       : masks_.found_area(d);
        }
        if (truths == 0) return;
        if (boxes) boxes_.load(found_.box, found_rows, founds);
        const auto add = [&](std::size_t d, std::size_t g, double value) {
            if (value >= lowest_ && !dropped(found_area_[d]))
                near_.push_back(
                    {static_cast<std::int32_t>(d), static_cast<std::int32_t>(g), value});
        };
        for (std::size_t g = 0; boxes && g < truths; ++g)
            boxes_.overlaps(truth_.box + 4 * index(truth_rows[g]), truth_.crowd[truth_rows[g]],
                            lowest_, [&](std::size_t d, double value) { add(d, g, value); });
        // The edges of a mask are kept while it is compared.
        for (std::size_t d = 0; !boxes && d < founds; ++d)
            for (std::size_t g = 0; g < truths; ++g)
                add(d, g, masks_.overlap(d, g, truth_.crowd[truth_rows[g]], lowest_));
        std::sort(near_.begin(), near_.end(), [](const Near& a, const Near& b) {
            if (a.detection != b.detection) return a.detection < b.detection;
            return a.overlap > b.overlap || (a.overlap == b.overlap && a.truth > b.truth);
        });
        for (std::size_t k = 0; k < near_.size(); ++k) {
            if (k == 0 || near_[k].detection != near_[k - 1].detection)
                candidates_.push_back(
                    {index(near_[k].detection), k,
                     !found_.leaves_free || !found_.leaves_free[found_rows[near_[k].detection]]});
            candidates_.back().end = k + 1;
        }
    }

    std::size_t first_near(std::size_t c) const { return c ? candidates_[c - 1].end : 0; }
    // The thresholds of a word at which a candidate could match any object.
    std::uint64_t reached_by(std::size_t c) const {
        std::uint64_t reached = 0;
        for (std::size_t k = first_near(c); k < candidates_[c].end; ++k)
            reached |= near_[k].reached;
        return reached;
    }
    // From which candidate on the order of equal scores may change what is matched; their number
    // for none. Two of one score have to want the same object, and one of them another one too:
    // where that is not so, one of them is matched with it whatever their order, and as many are
    // right.
    std::size_t first_contested(const std::int32_t* found_rows, std::size_t truths) {
        const std::size_t count = candidates_.size();
        if (truths < 2) return count;
        const auto score = [&](std::size_t c) {
            return found_.score[found_rows[candidates_[c].detection]];
        };
        for (std::size_t first = 0, next = 1; first < count; first = next++) {
            while (next < count && score(next) == score(first)) ++next;
            if (next - first < 2) continue;
            wanted_.assign(truths, 0);
            for (std::size_t k = first_near(first); k < candidates_[next - 1].end; ++k)
                ++wanted_[index(near_[k].truth)];
            for (std::size_t c = first; c < next; ++c) {
                if (candidates_[c].end - first_near(c) < 2) continue;
                for (std::size_t k = first_near(c); k < candidates_[c].end; ++k)
                    if (wanted_[index(near_[k].truth)] > 1) return first;
            }
        }
        return count;
    }

    // Matches the candidates at the thresholds of a word, and writes their bits.
    void match_at(std::size_t base, bool not_exhaustive, const std::int32_t* truth_rows,
                  std::size_t truths) {
        const std::size_t count = std::min(kWord, capped_.size() - base);
        for (Near& near : near_) {
            near.reached = 0;
            for (std::size_t t = 0; t < count; ++t)
                near.reached |= static_cast<std::uint64_t>(near.overlap >= capped_[base + t]) << t;
        }
        bool plain = false;  // what was assigned last knew of no ignored objects
        for (std::size_t area = 0; area < areas_; ++area) {
            ignored_.resize(truths);
            std::size_t ignored_count = 0;
            for (std::size_t g = 0; g < truths; ++g) {
                const double size = truth_.area[truth_rows[g]];
                ignored_[g] = truth_.ignore[truth_rows[g]] || size < settings_.area_low[area] ||
                              size > settings_.area_high[area];
                ignored_count += ignored_[g];
            }
            // Where all or none are ignored, the matching is the same.
            const bool mixed = ignored_count != 0 && ignored_count != truths;
            if (mixed || !plain) assign(truth_rows, truths, mixed);
            plain = !mixed;
            write(base, lowest_bits(count), area, not_exhaustive, truth_rows);
            if (settings_.objects) write_objects(base, area, truth_rows, truths);
        }
    }

    // The matching itself: each candidate, best first, takes at each threshold the object of
    // highest overlap that is still free. Where some are ignored, those are looked at only where no
    // other matches.
    void assign(const std::int32_t* truth_rows, std::size_t truths, bool mixed) {
        taken_.assign(truths, 0);
        std::size_t first = 0;
        for (const Candidate& candidate : candidates_) {
            std::uint64_t matched = 0;
            for (int turn = 0; turn < (mixed ? 2 : 1); ++turn)
                for (std::size_t k = first; k < candidate.end; ++k) {
                    Near& near = near_[k];
                    const auto g = index(near.truth);
                    if (mixed && ignored_[g] != turn) continue;
                    near.taken = near.reached & ~taken_[g] & ~matched;
                    matched |= near.taken;
                    // A crowd takes any number.
                    if (candidate.takes && !truth_.crowd[truth_rows[near.truth]])
                        taken_[g] |= near.taken;
                }
            first = candidate.end;
        }
    }

    // The bits of the candidates in one range of area.
    void write(std::size_t base, std::uint64_t all, std::size_t area, bool not_exhaustive,
               const std::int32_t* truth_rows) {
        const std::size_t bytes = std::min(bytes_ - base / 8, sizeof(std::uint64_t));
        std::size_t first = 0;
        for (std::size_t c = 0; c < candidates_.size(); ++c) {
            std::uint64_t matched = 0, ignored = 0;
            for (std::size_t k = first; k < candidates_[c].end; ++k) {
                const Near& near = near_[k];
                if (near.taken == 0) continue;
                matches_[c] = 1;
                if (ignored_[index(near.truth)]) ignored |= near.taken;
                if (settings_.every_partner)
                    for_each_bit(near.taken, [&](std::size_t t) {
                        const std::size_t at = area * settings_.thresholds.size() + base + t;
                        partners_[c * partners_of_row() + at] = truth_rows[near.truth];
                    });
                if (truth_.reads_unmatched[truth_rows[near.truth]]) continue;
                matched |= near.taken;
                const int at = settings_.partners_at - static_cast<int>(base);
                if (area == 0 && at >= 0 && at < static_cast<int>(kWord) && near.taken >> at & 1) {
                    partner_[c] = truth_rows[near.truth];
                    overlap_[c] = near.overlap;
                }
            }
            const double size = found_area_[candidates_[c].detection];
            if (not_exhaustive || !(inside(size) >> area & 1)) ignored |= all & ~matched;
            std::uint8_t* const bits = bits_.data() + c * row_bytes_ + area * 2 * bytes_ + base / 8;
            store_bits(bits, matched, bytes);
            store_bits(bits + bytes_, ignored, bytes);
            first = candidates_[c].end;
        }
    }

    // The thresholds at which objects are matched that are to be found in one range of area.
    void write_objects(std::size_t base, std::size_t area, const std::int32_t* truth_rows,
                       std::size_t truths) {
        const std::size_t bytes = std::min(bytes_ - base / 8, sizeof(std::uint64_t));
        for (std::size_t g = 0; g < truths; ++g) {
            const std::size_t row = index(truth_rows[g]);
            if (ignored_[g] || truth_.reads_unmatched[row]) continue;
            store_bits(objects_ + (row * areas_ + area) * bytes_ + base / 8, taken_[g], bytes);
        }
    }

    const Truth& truth_;
    const Detections& found_;
    const Settings& settings_;
    std::uint8_t* objects_;  // [G, areas, bytes], where asked for
    Comparer masks_;
    std::size_t areas_, bytes_, row_bytes_;        // bytes of a range's thresholds, and of a row
    double low_[kMostScopes], high_[kMostScopes];  // the ranges of area
    std::vector<double> capped_;                   // the thresholds, below 1
    double lowest_;
    BoxOverlaps boxes_;
    std::vector<double> found_area_;
    std::vector<Candidate> candidates_;
    std::vector<Near> near_;             // by candidate
    std::vector<std::uint64_t> taken_;   // by object: thresholds at which it is matched
    std::vector<std::uint8_t> ignored_;  // by object: not to be found in this range of area
    // By candidate: its bits, whether it matches anything, the object it is matched with.
    std::vector<std::uint8_t> bits_, matches_;
    std::vector<std::int32_t> partner_, partners_;
    std::vector<double> overlap_;       // with that object
    std::vector<std::int32_t> wanted_;  // by object: how many of the candidates of a score want it
};

// Brings together what the threads found, in order of the rows.
void collect(const std::vector<Hits>& parts, std::size_t row_bytes, bool partners,
             std::size_t every_partner, Matched& out) {
    RankedBits places(out.outcomes.wrong.size());
    std::size_t count = 0;
    for (const Hits& part : parts) {
        for (const std::int32_t place : part.place) places.set(index(place));
        count += part.place.size();
    }
    places.finish();
    out.outcomes.hits.resize(count);
    out.outcomes.bits.resize(count * row_bytes);
    out.partners.resize(count * every_partner);
    for (const Hits& part : parts) {
        auto& [rows, reached] = out.contested;
        rows.insert(rows.end(), part.contested.begin(), part.contested.end());
        reached.insert(reached.end(), part.reached.begin(), part.reached.end());
        for (std::size_t h = 0; h < part.place.size(); ++h) {
            const std::size_t to = places.rank(index(part.place[h]));
            out.outcomes.hits[to] = part.place[h];
            std::memcpy(out.outcomes.bits.data() + to * row_bytes, part.bits.data() + h * row_bytes,
                        row_bytes);
            std::copy_n(part.partners.data() + h * every_partner, every_partner,
                        out.partners.data() + to * every_partner);
            if (!partners) continue;
            out.partner[index(part.place[h])] = part.partner[h];
            out.overlap[index(part.place[h])] = part.overlap[h];
        }
    }
}

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

Matched match(const Truth& truth, const Detections& found, const Settings& settings, int threads) {
    const Cells cells = make_cells(truth, found);
    const Grouping ranked = rank_in_cells(cells, found, threads);
    Matched out;
    const Buffer<std::int32_t> place = order_by_class(cells, ranked, found, threads, out);
    out.outcomes.wrong.resize(ranked.rows.size());
    out.truth = count_truth(truth, settings);
    if (settings.partners_at >= 0) {
        out.partner.assign(ranked.rows.size(), -1);
        out.overlap.assign(ranked.rows.size(), 0.0);
    }
    if (settings.objects)
        out.objects.assign(
            truth.rows * settings.area_low.size() * bytes_for(settings.thresholds.size()), 0);

    Buffer<std::int32_t> truth_cell(truth.rows);
    in_blocks(truth.rows, threads, [&](std::size_t begin, std::size_t end) {
        for (std::size_t g = begin; g < end; ++g)
            truth_cell[g] = cells.find(truth.image[g], truth.category[g]);
    });
    const Grouping truth_by_cell = group_rows(truth_cell.data(), cells.size(), truth.rows);
    constexpr std::size_t kCells = 256;
    const std::size_t blocks = count_blocks<kCells>(cells.size());
    std::vector<CellMatcher> matchers(workers_for(blocks, threads),
                                      CellMatcher(truth, found, settings, out.objects.data()));
    std::vector<Hits> hits(matchers.size());
    parallel_for(blocks, threads, [&](std::size_t block, std::size_t worker) {
        const std::size_t end = std::min(cells.size(), (block + 1) * kCells);
        for (std::size_t c = block * kCells; c < end; ++c) {
            const std::size_t first = index(ranked.offsets[c]);
            const std::size_t next = index(ranked.offsets[c + 1]);
            if (c + kAhead < end) {
                const std::size_t later = index(ranked.offsets[c + kAhead]);
                matchers[worker].prepare(ranked.rows.data() + later,
                                         index(ranked.offsets[c + kAhead + 1]) - later);
            }
            const std::size_t first_truth = index(truth_by_cell.offsets[c]);
            matchers[worker].run(cells.image[c], cells.not_exhaustive[c] != 0,
                                 truth_by_cell.rows.data() + first_truth,
                                 index(truth_by_cell.offsets[c + 1]) - first_truth,
                                 ranked.rows.data() + first, next - first, place.data() + first,
                                 out.outcomes.wrong.data(), hits[worker]);
        }
    });
    collect(hits, settings.area_low.size() * 2 * bytes_for(settings.thresholds.size()),
            settings.partners_at >= 0,
            settings.every_partner ? settings.area_low.size() * settings.thresholds.size() : 0,
            out);
    return out;
}

}  // namespace lvdet
