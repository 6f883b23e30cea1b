#include "accumulate.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "parallel.hpp"
#include "walk.hpp"

namespace lvdet {

void accumulate(const Outcomes& outcomes, const Rankings& rankings, std::size_t scopes,
                const std::int64_t* truth, const double* recalls, const Whole& whole,
                double* precision, double* recall, double* points, int threads) {
    const std::size_t thresholds = outcomes.thresholds, curves = rankings.count * scopes;
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    std::vector<Walk> walks(workers_for(curves, threads));
    std::vector<std::vector<double>> sums(walks.size());
    parallel_for(curves, threads, [&](std::size_t curve, std::size_t worker) {
        const std::int64_t objects = truth[curve];
        const std::size_t at = curve * thresholds, scope = curve % scopes;
        if (objects == 0) {
            std::fill_n(precision + at, thresholds, nan);
            std::fill_n(recall + at, thresholds, nan);
            if (points) std::fill_n(points + at * kRecalls, thresholds * kRecalls, nan);
            return;
        }
        const std::int64_t* const rows = rankings.offsets + curve / scopes;
        if (whole.precision && !points && rankings.keep &&
            !std::memchr(rankings.keep + rows[0], 0, static_cast<std::size_t>(rows[1] - rows[0]))) {
            std::copy_n(whole.precision + at, thresholds, precision + at);
            std::copy_n(whole.recall + at, thresholds, recall + at);
            return;
        }
        const std::int32_t* const hits_end = outcomes.hits + outcomes.hit_count;
        const std::int32_t* const first = std::lower_bound(outcomes.hits, hits_end, rows[0]);
        const std::int32_t* const last = std::lower_bound(first, hits_end, rows[1]);
        Walk& walk = walks[worker];
        for (std::size_t base = 0; base < thresholds; base += kWord) {
            const std::size_t here = std::min(kWord, thresholds - base), bytes = bytes_for(here);
            walk.restart(here, objects, recalls);
            WrongBefore wrong_before(outcomes, rankings.keep, scope, rows[0]);
            for (const std::int32_t* hit = first; hit < last; ++hit) {
                if (rankings.keep && !rankings.keep[*hit]) continue;
                const std::uint8_t* const bits =
                    outcomes.of(static_cast<std::size_t>(hit - outcomes.hits), scope) + base / 8;
                walk.step(wrong_before(*hit), load_bits(bits, bytes),
                          load_bits(bits + outcomes.bytes, bytes) & lowest_bits(here));
            }
            for (std::size_t r = kRecalls; r-- > 0;) {
                const double* const values = walk.precisions(r);
                for (std::size_t t = 0; points && t < here; ++t)
                    points[(at + base + t) * kRecalls + r] = values[t];
            }
            auto& sum = sums[worker];
            sum.assign(here, 0.0);
            for (auto value = walk.best().begin(); value != walk.best().end();)
                for (std::size_t t = 0; t < here; ++t) sum[t] += *value++;
            for (std::size_t t = 0; t < here; ++t) {
                precision[at + base + t] = sum[t] / static_cast<double>(kRecalls);
                recall[at + base + t] =
                    static_cast<double>(walk.right(t)) / static_cast<double>(objects);
            }
        }
    });
}

}  // namespace lvdet
