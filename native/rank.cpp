#include "rank.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "parallel.hpp"

namespace lvdet {

namespace {

struct Scored {
    double score;
    std::int32_t row;
    // Before `other` in the ranking.
    bool operator<(const Scored& other) const {
        return score > other.score || (score == other.score && row < other.row);
    }
};

}  // namespace

void keep_top(const std::int32_t* group, std::size_t groups, const double* score, std::size_t rows,
              std::int64_t limit, std::uint8_t* keep, int threads) {
    std::vector<std::int64_t> count(groups, 0);
    for (std::size_t i = 0; i < rows; ++i)
        if (keep[i] && group[i] >= 0) ++count[static_cast<std::size_t>(group[i])];
    // Only groups over the limit are gathered; each thread gathers and cuts its share of them.
    std::vector<std::int32_t> over;
    std::vector<std::int32_t> slot(groups, -1);
    for (std::size_t g = 0; g < groups; ++g) {
        if (count[g] <= limit) continue;
        slot[g] = static_cast<std::int32_t>(over.size());
        over.push_back(static_cast<std::int32_t>(g));
    }
    if (over.empty()) return;
    const auto shares = static_cast<std::size_t>(std::max(threads, 1));
    parallel_for(shares, threads, [&](std::size_t share) {
        const std::size_t first = over.size() * share / shares;
        const std::size_t last = over.size() * (share + 1) / shares;
        if (first == last) return;
        std::vector<std::size_t> place(last - first + 1, 0);
        for (std::size_t s = first; s < last; ++s)
            place[s - first + 1] =
                place[s - first] + static_cast<std::size_t>(count[static_cast<std::size_t>(over[s])]);
        std::vector<Scored> gathered(place.back());
        std::vector<std::size_t> fill(place.begin(), place.end() - 1);
        for (std::size_t i = 0; i < rows; ++i) {
            if (!keep[i] || group[i] < 0) continue;
            const auto s = static_cast<std::size_t>(slot[static_cast<std::size_t>(group[i])]);
            if (s < first || s >= last) continue;  // also the -1 of groups within the limit
            gathered[fill[s - first]++] = {score[i], static_cast<std::int32_t>(i)};
        }
        for (std::size_t s = 0; s + 1 < place.size(); ++s) {
            const auto begin = gathered.begin() + static_cast<std::ptrdiff_t>(place[s]);
            const auto end = gathered.begin() + static_cast<std::ptrdiff_t>(place[s + 1]);
            std::nth_element(begin, begin + limit, end);
            for (auto it = begin + limit; it != end; ++it)
                keep[static_cast<std::size_t>(it->row)] = 0;
        }
    });
}

void order_by_score(const double* score, std::size_t rows, std::int32_t* order) {
    // Radix sort from the least significant digit, on bits that rise as scores fall.
    constexpr int kDigit = 11, kPasses = 6;
    constexpr std::size_t kBuckets = 1 << kDigit;
    struct Entry {
        std::uint64_t key;
        std::int32_t row;
    };
    std::vector<Entry> from(rows), to(rows);
    std::vector<std::array<std::uint32_t, kBuckets>> histogram(kPasses);
    for (auto& buckets : histogram) buckets.fill(0);
    for (std::size_t i = 0; i < rows; ++i) {
        auto bits = std::bit_cast<std::uint64_t>(score[i] + 0.0);  // -0.0 equals 0.0
        bits = bits >> 63 ? bits : ~bits & ~(std::uint64_t{1} << 63);
        from[i] = {bits, static_cast<std::int32_t>(i)};
        for (int pass = 0; pass < kPasses; ++pass)
            ++histogram[static_cast<std::size_t>(pass)][bits >> (pass * kDigit) & (kBuckets - 1)];
    }
    for (int pass = 0; pass < kPasses; ++pass) {
        auto& buckets = histogram[static_cast<std::size_t>(pass)];
        if (std::any_of(buckets.begin(), buckets.end(),
                        [&](std::uint32_t count) { return count == rows; }))
            continue;
        std::uint32_t sum = 0;
        for (auto& bucket : buckets) sum += std::exchange(bucket, sum);
        for (const Entry& entry : from)
            to[buckets[entry.key >> (pass * kDigit) & (kBuckets - 1)]++] = entry;
        std::swap(from, to);
    }
    for (std::size_t i = 0; i < rows; ++i) order[i] = from[i].row;
}

Grouping group_rows(const std::int32_t* group, std::size_t groups, std::size_t rows) {
    Grouping out;
    out.offsets.assign(groups + 1, 0);
    for (std::size_t i = 0; i < rows; ++i)
        if (group[i] >= 0) ++out.offsets[static_cast<std::size_t>(group[i]) + 1];
    for (std::size_t g = 0; g < groups; ++g) out.offsets[g + 1] += out.offsets[g];
    out.rows.resize(static_cast<std::size_t>(out.offsets[groups]));
    std::vector<std::int64_t> fill(out.offsets.begin(), out.offsets.end() - 1);
    for (std::size_t i = 0; i < rows; ++i)
        if (group[i] >= 0)
            out.rows[static_cast<std::size_t>(fill[static_cast<std::size_t>(group[i])]++)] =
                static_cast<std::int32_t>(i);
    return out;
}

std::int64_t number_pairs(const std::int32_t* a, std::size_t a_count, const std::int32_t* b,
                          std::size_t b_count, std::size_t rows, std::int32_t* number) {
    const Grouping by_a = group_rows(a, a_count, rows);
    std::vector<std::int32_t> seen(b_count, -1);
    std::int32_t next = 0;
    for (std::size_t i = 0; i < rows; ++i) number[i] = -1;
    for (std::size_t g = 0; g < a_count; ++g) {
        const std::int32_t first = next;
        for (std::int64_t k = by_a.offsets[g]; k < by_a.offsets[g + 1]; ++k) {
            const auto row = static_cast<std::size_t>(by_a.rows[static_cast<std::size_t>(k)]);
            if (b[row] < 0) continue;
            std::int32_t& mark = seen[static_cast<std::size_t>(b[row])];
            if (mark < first) mark = next++;
            number[row] = mark;
        }
    }
    return next;
}

}  // namespace lvdet
