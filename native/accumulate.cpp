#include "accumulate.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "parallel.hpp"
#include "walk.hpp"

namespace lvdet {

namespace {

// The mean over the recalls of [recalls, thresholds].
void mean(const std::vector<double>& best, std::size_t thresholds, double* out) {
    std::fill_n(out, thresholds, 0.0);
    for (auto value = best.begin(); value != best.end();)
        for (std::size_t t = 0; t < thresholds; ++t) out[t] += *value++;
    for (std::size_t t = 0; t < thresholds; ++t) out[t] /= static_cast<double>(kRecalls);
}

// Whether two masks (null for all rows) keep the same of the rows from `begin` to `end`.
bool same_rows(const std::uint8_t* a, const std::uint8_t* b, std::int64_t begin, std::int64_t end) {
    const auto rows = static_cast<std::size_t>(end - begin);
    if (a && b) return std::memcmp(a + begin, b + begin, rows) == 0;
    if (const std::uint8_t* const one = a ? a : b) return !std::memchr(one + begin, 0, rows);
    return true;
}

}  // namespace

void accumulate(const Outcomes& outcomes, const Rankings& rankings, std::size_t scopes,
                const std::int64_t* truth, const double* recalls, const std::vector<Known>& known,
                const Ties* ties, double* precision, double* recall, double* points, int threads) {
    const std::size_t thresholds = outcomes.thresholds, curves = rankings.count * scopes;
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    std::vector<Walk> walks(workers_for(curves, threads));
    std::vector<std::vector<Walk::Step>> steps(walks.size());
    parallel_for(curves, threads, [&](std::size_t curve, std::size_t worker) {
        const std::int64_t objects = truth[curve];
        const std::size_t ranking = curve / scopes, scope = curve % scopes;
        const std::size_t at = curve * thresholds, bound = ranking * thresholds;
        const bool bounded = ties && scope == 0;
        if (objects == 0) {
            std::fill_n(precision + at, thresholds, nan);
            std::fill_n(recall + at, thresholds, nan);
            if (bounded) std::fill_n(ties->lowest + bound, thresholds, nan);
            if (bounded) std::fill_n(ties->highest + bound, thresholds, nan);
            if (points) std::fill_n(points + at * kRecalls, thresholds * kRecalls, nan);
            return;
        }
        const std::int64_t* const rows = rankings.offsets + ranking;
        const auto same = std::find_if(known.begin(), known.end(), [&](const Known& before) {
            return same_rows(rankings.keep, before.keep, rows[0], rows[1]);
        });
        if (same != known.end() && !points) {
            std::copy_n(same->precision + at, thresholds, precision + at);
            std::copy_n(same->recall + at, thresholds, recall + at);
            if (bounded) std::copy_n(same->lowest + bound, thresholds, ties->lowest + bound);
            if (bounded) std::copy_n(same->highest + bound, thresholds, ties->highest + bound);
            return;
        }
        const std::int32_t* const hits_end = outcomes.hits + outcomes.hit_count;
        const std::int32_t* const first = std::lower_bound(outcomes.hits, hits_end, rows[0]);
        const std::int32_t* const last = std::lower_bound(first, hits_end, rows[1]);
        Walk& walk = walks[worker];
        std::vector<Walk::Step>& tied = steps[worker];
        for (std::size_t base = 0; base < thresholds; base += kWord) {
            const std::size_t here = std::min(kWord, thresholds - base), bytes = bytes_for(here);
            walk.restart(here, objects, recalls);
            WrongBefore wrong_before(outcomes, rankings.keep, scope, rows[0]);
            const auto counts = [&](const std::int32_t* hit) {
                if (rankings.keep && !rankings.keep[*hit]) return false;
                const std::uint8_t* const bits =
                    outcomes.of(static_cast<std::size_t>(hit - outcomes.hits), scope) + base / 8;
                const std::uint64_t ignored =
                    load_bits(bits + outcomes.bytes, bytes) & lowest_bits(here);
                return ignored != lowest_bits(here);  // many are of another pool or range of area
            };
            const auto step = [&](const std::int32_t* hit) {
                const std::uint8_t* const bits =
                    outcomes.of(static_cast<std::size_t>(hit - outcomes.hits), scope) + base / 8;
                return Walk::Step{wrong_before(*hit), load_bits(bits, bytes),
                                  load_bits(bits + outcomes.bytes, bytes) & lowest_bits(here)};
            };
            for (const std::int32_t* hit = first; hit < last;) {
                if (!bounded || !ties->tied[hit - outcomes.hits]) {
                    if (counts(hit)) walk.step(step(hit));
                    ++hit;
                    continue;
                }
                const auto [from, to] = ties->scores.run_of(*hit, rows[0], rows[1]);
                const std::int64_t wrong = wrong_before(from);
                tied.clear();
                for (; hit < last && *hit < to; ++hit)
                    if (counts(hit)) tied.push_back(step(hit));
                walk.step_tied(tied, wrong, wrong_before(to));
            }
            walk.finish();
            mean(walk.best(), here, precision + at + base);
            if (bounded) {
                mean(walk.tied() ? walk.lowest() : walk.best(), here, ties->lowest + bound + base);
                mean(walk.tied() ? walk.highest() : walk.best(), here,
                     ties->highest + bound + base);
            }
            for (std::size_t t = 0; t < here; ++t) {
                recall[at + base + t] =
                    static_cast<double>(walk.right(t)) / static_cast<double>(objects);
                for (std::size_t r = 0; points && r < kRecalls; ++r)
                    points[(at + base + t) * kRecalls + r] = walk.best()[r * here + t];
            }
        }
    });
}

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

}  // namespace lvdet
