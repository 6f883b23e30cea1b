#include "ties.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "parallel.hpp"
#include "walk.hpp"

namespace lvdet {

namespace {

// One ranking, walked with the rows of a score together.
class TiedWalk {
   public:
    // The mean precision at each threshold.
    void run(const Bound& bound, bool best_order, std::int64_t begin, std::int64_t end,
             const std::uint8_t* keep, const RowScores& scores, std::int64_t truth,
             const double* recalls, double* precision) {
        const Outcomes& outcomes = bound.outcomes;
        const std::int32_t* const hits_end = outcomes.hits + outcomes.hit_count;
        const std::int32_t* const first = std::lower_bound(outcomes.hits, hits_end, begin);
        const std::int32_t* const last = std::lower_bound(first, hits_end, end);
        for (std::size_t base = 0; base < outcomes.thresholds; base += kWord) {
            const std::size_t here = std::min(kWord, outcomes.thresholds - base);
            walk_.restart(here, truth, recalls);
            WrongBefore wrong_before(outcomes, keep, 0, begin);
            const auto bits = [&](const std::int32_t* hit) {
                const std::uint8_t* const from =
                    outcomes.of(static_cast<std::size_t>(hit - outcomes.hits), 0) + base / 8;
                return Walk::Bits{load_bits(from, bytes_for(here)),
                                  load_bits(from + outcomes.bytes, bytes_for(here)) &
                                      lowest_bits(here)};
            };
            for (const std::int32_t* hit = first; hit < last;) {
                if (!bound.tied[hit - outcomes.hits]) {
                    if (!keep || keep[*hit]) {
                        const Walk::Bits here_bits = bits(hit);
                        walk_.step(wrong_before(*hit), here_bits.matched, here_bits.ignored);
                    }
                    ++hit;
                    continue;
                }
                const double score = scores(*hit);
                std::int64_t from = *hit, to = *hit + 1;
                while (from > begin && scores(from - 1) == score) --from;
                while (to < end && scores(to) == score) ++to;
                together_.clear();
                for (; hit < last && *hit < to; ++hit)
                    if (!keep || keep[*hit]) together_.push_back(bits(hit));
                walk_.step_together(wrong_before(best_order ? from : to), together_, best_order);
            }
            for (std::size_t r = kRecalls; r-- > 0;) walk_.precisions(r);
            sum_.assign(here, 0.0);
            for (auto value = walk_.best().begin(); value != walk_.best().end();)
                for (std::size_t t = 0; t < here; ++t) sum_[t] += *value++;
            for (std::size_t t = 0; t < here; ++t)
                precision[base + t] = sum_[t] / static_cast<double>(kRecalls);
        }
    }

   private:
    Walk walk_;
    std::vector<Walk::Bits> together_;
    std::vector<double> sum_;
};

bool has_ties(const Bound& bound, std::int64_t begin, std::int64_t end) {
    const std::int32_t* const hits = bound.outcomes.hits;
    const std::int32_t* const hits_end = hits + bound.outcomes.hit_count;
    const std::int32_t* const first = std::lower_bound(hits, hits_end, begin);
    const std::int32_t* const last = std::lower_bound(first, hits_end, end);
    return first < last &&
           std::memchr(bound.tied + (first - hits), 1, static_cast<std::size_t>(last - first));
}

}  // namespace

void find_ties(const Outcomes& outcomes, const Rankings& rankings, const RowScores& scores,
               std::uint8_t* tied, int threads) {
    const std::int64_t* const ends = rankings.offsets + rankings.count + 1;
    in_blocks(outcomes.hit_count, threads, [&](std::size_t begin, std::size_t end) {
        const std::int64_t* next = std::upper_bound(rankings.offsets, ends, outcomes.hits[begin]);
        for (std::size_t h = begin; h < end; ++h) {
            const std::int64_t row = outcomes.hits[h];
            while (*next <= row) ++next;
            const double score = scores(row);
            tied[h] = (row > next[-1] && scores(row - 1) == score) ||
                      (row + 1 < *next && scores(row + 1) == score);
        }
    });
}

void accumulate_ties(const Bound& low, const Bound& high, const Rankings& rankings,
                     const RowScores& scores, const std::int64_t* truth, const double* recalls,
                     const double* precision, double* lowest, double* highest, int threads) {
    const std::size_t thresholds = low.outcomes.thresholds, tasks = 2 * rankings.count;
    std::vector<TiedWalk> walks(workers_for(tasks, threads));
    parallel_for(tasks, threads, [&](std::size_t task, std::size_t worker) {
        const std::size_t ranking = task / 2, at = ranking * thresholds;
        const bool best_order = task % 2 != 0;
        const Bound& bound = best_order ? high : low;
        double* const to = (best_order ? highest : lowest) + at;
        const std::int64_t begin = rankings.offsets[ranking], end = rankings.offsets[ranking + 1];
        if (truth[ranking] == 0 || !has_ties(bound, begin, end))
            std::copy_n(precision + at, thresholds, to);
        else
            walks[worker].run(bound, best_order, begin, end, rankings.keep, scores, truth[ranking],
                              recalls, to);
    });
}

}  // namespace lvdet
