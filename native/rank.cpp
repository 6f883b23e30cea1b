#include "rank.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
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
    // Each part has tables of its own for all groups: few parts where there are many groups.
    const std::size_t parts =
        std::clamp<std::size_t>(rows / (8 * std::max<std::size_t>(groups, 1)), 1,
                                static_cast<std::size_t>(std::max(threads, 1)));
    const auto each = [&](std::size_t part, auto&& visit) {
        for (std::size_t i = rows * part / parts; i < rows * (part + 1) / parts; ++i)
            if (keep[i] && group[i] >= 0) visit(i, static_cast<std::size_t>(group[i]));
    };
    struct Range {
        std::int64_t count = 0;
        double low = std::numeric_limits<double>::infinity();
        double high = -std::numeric_limits<double>::infinity();
        void add(const Range& other) {
            count += other.count;
            low = std::min(low, other.low);
            high = std::max(high, other.high);
        }
    };
    std::vector<std::vector<Range>> ranges(parts);
    parallel_for(parts, threads, [&](std::size_t part) {
        ranges[part].resize(groups);
        each(part,
             [&](std::size_t i, std::size_t g) { ranges[part][g].add({1, score[i], score[i]}); });
    });

    // Each group over its limit gets a histogram of its scores, highest first: all buckets
    // before the one that holds the last to be kept stay, all after it go, and only that one is
    // sorted. The bucket of a score never rises as the score does, so this is exact. The other
    // groups share the last slot, whose rows all stay; so no row needs a branch.
    struct Cut {
        double high = 0.0, scale = 0.0;
        std::int64_t bucket = 0, left = 0;  // the bucket with the last kept, and how many of it
    };
    std::vector<std::int32_t> slot(groups, -1);
    std::vector<Cut> cuts;
    for (std::size_t g = 0; g < groups; ++g) {
        Range range;
        for (const auto& part : ranges) range.add(part[g]);
        if (range.count <= limit) continue;
        slot[g] = static_cast<std::int32_t>(cuts.size());
        cuts.push_back({range.high, 1.0 / (range.high - range.low), 0, limit});
    }
    if (cuts.empty()) return;
    const auto buckets = std::clamp<std::int64_t>(
        (std::int64_t{1} << 20) / static_cast<std::int64_t>(cuts.size()), 16, 1024);
    for (Cut& cut : cuts) {
        cut.scale *= static_cast<double>(buckets);
        if (!std::isfinite(cut.scale)) cut.scale = 0.0;
    }
    for (std::int32_t& place : slot)
        if (place < 0) place = static_cast<std::int32_t>(cuts.size());
    cuts.push_back({0.0, 0.0, buckets, 0});
    const auto bucket_of = [&](const Cut& cut, double value) {
        const double place = (cut.high - value) * cut.scale;
        // Not a number where the range of scores is too wide for a scale: all in one bucket.
        if (!(place >= 0)) return std::int64_t{0};
        return std::min(buckets - 1, static_cast<std::int64_t>(place));
    };
    std::vector<std::vector<std::int32_t>> histograms(parts);
    parallel_for(parts, threads, [&](std::size_t part) {
        auto& histogram = histograms[part];
        histogram.assign(cuts.size() * static_cast<std::size_t>(buckets), 0);
        each(part, [&](std::size_t i, std::size_t g) {
            ++histogram[static_cast<std::size_t>(
                slot[g] * buckets + bucket_of(cuts[static_cast<std::size_t>(slot[g])], score[i]))];
        });
    });
    for (std::size_t s = 0; s + 1 < cuts.size(); ++s)
        for (;; ++cuts[s].bucket) {
            std::int64_t here = 0;
            for (const auto& histogram : histograms)
                here += histogram[s * static_cast<std::size_t>(buckets) +
                                  static_cast<std::size_t>(cuts[s].bucket)];
            if (here > cuts[s].left) break;
            cuts[s].left -= here;
        }
    std::vector<std::vector<std::pair<std::int32_t, Scored>>> edges(parts);
    parallel_for(parts, threads, [&](std::size_t part) {
        each(part, [&](std::size_t i, std::size_t g) {
            const Cut& cut = cuts[static_cast<std::size_t>(slot[g])];
            const std::int64_t bucket = bucket_of(cut, score[i]);
            keep[i] = bucket <= cut.bucket;
            if (bucket == cut.bucket)
                edges[part].push_back({slot[g], {score[i], static_cast<std::int32_t>(i)}});
        });
    });
    std::vector<std::vector<Scored>> edge(cuts.size());
    for (const auto& part : edges)
        for (const auto& [s, entry] : part) edge[static_cast<std::size_t>(s)].push_back(entry);
    for (std::size_t s = 0; s + 1 < cuts.size(); ++s) {
        const auto last = edge[s].begin() + cuts[s].left;
        std::nth_element(edge[s].begin(), last, edge[s].end());
        for (auto it = last; it != edge[s].end(); ++it) keep[static_cast<std::size_t>(it->row)] = 0;
    }
}

std::vector<std::int64_t> count_rows(const std::int32_t* group, std::size_t groups,
                                     std::size_t rows) {
    std::vector<std::int64_t> count(groups, 0);
    for (std::size_t i = 0; i < rows; ++i)
        if (group[i] >= 0) ++count[static_cast<std::size_t>(group[i])];
    return count;
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
