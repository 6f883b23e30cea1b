#include "rank.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "bits.hpp"
#include "parallel.hpp"

namespace lvdet {

namespace {

// Bits that rise as scores fall, equal for equal scores.
std::uint64_t falling_key(double score) {
    const auto bits = std::bit_cast<std::uint64_t>(score + 0.0);  // -0.0 equals 0.0
    return bits >> 63 ? bits : ~bits & ~(std::uint64_t{1} << 63);
}

// Sorts rows, which rise, by descending score: into about as many buckets as rows by the leading
// bits of their keys, then each bucket in the same way. Equal keys stay in order.
class GroupSort {
   public:
    void operator()(const double* score, std::int32_t* begin, std::int32_t* end) {
        if (std::is_sorted(begin, end, [&](auto a, auto b) { return score[a] > score[b]; })) return;
        const auto size = static_cast<std::size_t>(end - begin);
        entries_.resize(size);
        other_.resize(size);
        for (std::size_t i = 0; i < size; ++i)
            entries_[i] = {falling_key(score[begin[i]]), begin[i]};
        sort(entries_.data(), other_.data(), size, 0);
        for (std::size_t i = 0; i < size; ++i) begin[i] = entries_[i].row;
    }

   private:
    struct Entry {
        std::uint64_t key;
        std::int32_t row;
    };

    void sort(Entry* entries, Entry* other, std::size_t size, std::size_t depth) {
        constexpr std::size_t kFew = 24;
        if (size <= kFew) {
            for (std::size_t i = 1; i < size; ++i) {
                const Entry entry = entries[i];
                std::size_t at = i;
                for (; at && entries[at - 1].key > entry.key; --at) entries[at] = entries[at - 1];
                entries[at] = entry;
            }
            return;
        }
        std::uint64_t low = entries[0].key, high = low;
        for (std::size_t i = 1; i < size; ++i) {
            low = std::min(low, entries[i].key);
            high = std::max(high, entries[i].key);
        }
        if (low == high) return;
        int shift = 0;
        while ((high - low) >> shift > size) ++shift;
        if (starts_.size() == depth) starts_.emplace_back();
        const auto bucket = [&](const Entry& entry) { return (entry.key - low) >> shift; };
        std::vector<std::size_t> starts = std::move(starts_[depth]);
        starts.assign(((high - low) >> shift) + 2, 0);
        for (std::size_t i = 0; i < size; ++i) ++starts[bucket(entries[i]) + 1];
        for (std::size_t b = 1; b < starts.size(); ++b) starts[b] += starts[b - 1];
        std::copy_n(entries, size, other);
        for (std::size_t i = 0; i < size; ++i) entries[starts[bucket(other[i])]++] = other[i];
        // Each start is where the next bucket begins now.
        if (shift) {
            std::size_t from = 0;
            for (const std::size_t to : starts) {
                if (to > from + 1) sort(entries + from, other, to - from, depth + 1);
                from = to;
            }
        }
        starts_[depth] = std::move(starts);
    }

    std::vector<Entry> entries_, other_;
    std::vector<std::vector<std::size_t>> starts_;  // by depth, for their storage
};

// In how many parts to go over the rows: each has tables of its own for all groups, so few where
// there are many groups.
std::size_t parts_of(std::size_t rows, std::size_t groups, int threads) {
    return std::clamp<std::size_t>(rows / (8 * std::max<std::size_t>(groups, 1)), 1,
                                   static_cast<std::size_t>(std::max(threads, 1)));
}

// Where each group begins, from how many rows of it each part has, [parts][groups]; which are
// replaced by where the part puts its first.
std::vector<std::int64_t> starts_of(std::vector<std::vector<std::int64_t>>& counts,
                                    std::size_t groups) {
    std::vector<std::int64_t> starts(groups + 1, 0);
    for (std::size_t g = 0; g < groups; ++g) {
        std::int64_t next = starts[g];
        for (auto& part : counts) next += std::exchange(part[g], next);
        starts[g + 1] = next;
    }
    return starts;
}

// The row numbers 0 .. rows-1 by descending score; equal scores stay in order.
void order_by_score(const double* score, std::size_t rows, std::int32_t* order, int threads) {
    const std::size_t parts = std::clamp<std::size_t>(
        rows / kBlockRows, 1, static_cast<std::size_t>(std::max(threads, 1)));
    const auto each = [&](std::size_t part, auto&& visit) {
        for (std::size_t i = rows * part / parts; i < rows * (part + 1) / parts; ++i) visit(i);
    };
    std::vector<std::uint64_t> lows(parts, ~std::uint64_t{0}), highs(parts, 0);
    parallel_for(parts, threads, [&](std::size_t part) {
        std::uint64_t least = ~std::uint64_t{0}, most = 0;  // no thread writes near another's
        each(part, [&](std::size_t i) {
            const std::uint64_t key = falling_key(score[i]);
            least = std::min(least, key);
            most = std::max(most, key);
        });
        lows[part] = least;
        highs[part] = most;
    });
    const std::uint64_t low = *std::min_element(lows.begin(), lows.end());
    const std::uint64_t high = std::max(low, *std::max_element(highs.begin(), highs.end()));
    const int shift = std::max(32 - std::countl_zero(high - low), 0);

    // A radix sort by the leading 32 bits, from the least significant digit.
    constexpr int kDigit = 11, kPasses = 3;
    constexpr std::size_t kBuckets = 1 << kDigit;
    struct Entry {
        std::uint32_t key;
        std::int32_t row;
    };
    Buffer<Entry> from(rows), to(rows);
    parallel_for(parts, threads, [&](std::size_t part) {
        each(part, [&](std::size_t i) {
            from[i] = {static_cast<std::uint32_t>((falling_key(score[i]) - low) >> shift),
                       static_cast<std::int32_t>(i)};
        });
    });
    std::vector<std::array<std::uint32_t, kBuckets>> next(parts);  // where a part's entries go
    for (int pass = 0; pass < kPasses; ++pass) {
        const auto digit = [&](const Entry& entry) {
            return entry.key >> (pass * kDigit) & (kBuckets - 1);
        };
        parallel_for(parts, threads, [&](std::size_t part) {
            next[part].fill(0);
            each(part, [&](std::size_t i) { ++next[part][digit(from[i])]; });
        });
        std::uint32_t sum = 0;
        for (std::size_t bucket = 0; bucket < kBuckets; ++bucket)
            for (auto& part : next) sum += std::exchange(part[bucket], sum);
        parallel_for(parts, threads, [&](std::size_t part) {
            each(part, [&](std::size_t i) { to[next[part][digit(from[i])]++] = from[i]; });
        });
        std::swap(from, to);
    }

    // Scores that differ in the other bits alone are put in order; where a run of equal keys
    // begins in a block, it is that block's.
    const auto falls = [&](std::int32_t a, std::int32_t b) { return score[a] > score[b]; };
    in_blocks(rows, threads, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) order[i] = from[i].row;
    });
    if (shift == 0) return;
    in_blocks(rows, threads, [&](std::size_t begin, std::size_t end) {
        while (begin && begin < end && from[begin].key == from[begin - 1].key) ++begin;
        while (begin < end) {
            std::size_t next_run = begin + 1;
            while (next_run < rows && from[next_run].key == from[begin].key) ++next_run;
            std::int32_t *first = order + begin, *last = order + next_run;
            if (last - first > 1 && !std::is_sorted(first, last, falls))
                std::stable_sort(first, last, falls);
            begin = next_run;
        }
    });
}

}  // namespace

void keep_top(const std::int32_t* group, std::size_t groups, const double* score, std::size_t rows,
              std::int64_t limit, std::uint8_t* keep, int threads) {
    const std::size_t parts = parts_of(rows, groups, threads);
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
    // The rows of those buckets, by group: where each part puts its own.
    std::vector<std::vector<std::int64_t>> next(parts, std::vector<std::int64_t>(cuts.size()));
    std::vector<std::int64_t> starts(cuts.size(), 0);
    for (std::size_t s = 0; s + 1 < cuts.size(); ++s) {
        std::int64_t here = 0;
        for (;; ++cuts[s].bucket) {
            here = 0;
            for (std::size_t part = 0; part < parts; ++part) {
                next[part][s] = starts[s] + here;
                here += histograms[part][s * static_cast<std::size_t>(buckets) +
                                         static_cast<std::size_t>(cuts[s].bucket)];
            }
            if (here > cuts[s].left) break;
            cuts[s].left -= here;
        }
        starts[s + 1] = starts[s] + here;
    }
    Buffer<std::int32_t> edge(static_cast<std::size_t>(starts.back()));
    parallel_for(parts, threads, [&](std::size_t part) {
        each(part, [&](std::size_t i, std::size_t g) {
            const auto s = static_cast<std::size_t>(slot[g]);
            const std::int64_t bucket = bucket_of(cuts[s], score[i]);
            keep[i] = bucket <= cuts[s].bucket;
            if (bucket == cuts[s].bucket)
                edge[static_cast<std::size_t>(next[part][s]++)] = static_cast<std::int32_t>(i);
        });
    });
    parallel_for(cuts.size() - 1, threads, [&](std::size_t s) {
        const auto begin = edge.begin() + starts[s], end = edge.begin() + starts[s + 1];
        std::nth_element(begin, begin + cuts[s].left, end, [&](std::int32_t a, std::int32_t b) {
            return Scored{score[a], a} < Scored{score[b], b};
        });
        for (auto it = begin + cuts[s].left; it != end; ++it)
            keep[static_cast<std::size_t>(*it)] = 0;
    });
}

std::vector<std::int64_t> count_rows(const std::int32_t* group, std::size_t groups,
                                     std::size_t rows) {
    std::vector<std::int64_t> count(groups, 0);
    for (std::size_t i = 0; i < rows; ++i)
        if (group[i] >= 0) ++count[static_cast<std::size_t>(group[i])];
    return count;
}

std::vector<std::int32_t> rows_of_members(const std::int32_t* group, const std::uint8_t* member,
                                          std::size_t rows, int threads) {
    std::vector<std::vector<std::int32_t>> parts(count_blocks(rows));
    in_blocks(rows, threads, [&](std::size_t begin, std::size_t end) {
        std::vector<std::int32_t>& part = parts[begin / kBlockRows];
        for (std::size_t i = begin; i < end; ++i)
            if (member[group[i]]) part.push_back(static_cast<std::int32_t>(i));
    });
    std::vector<std::int32_t> all;
    for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
}

Grouping group_rows(const std::int32_t* group, std::size_t groups, std::size_t rows, int threads) {
    const std::size_t parts = parts_of(rows, groups, threads);
    const auto each = [&](std::size_t part, auto&& visit) {
        for (std::size_t i = rows * part / parts; i < rows * (part + 1) / parts; ++i)
            if (group[i] >= 0) visit(i, static_cast<std::size_t>(group[i]));
    };
    // How many rows of each group a part has, then where it puts the first of them.
    std::vector<std::vector<std::int64_t>> fill(parts);
    parallel_for(parts, threads, [&](std::size_t part) {
        fill[part].assign(groups, 0);
        each(part, [&](std::size_t, std::size_t g) { ++fill[part][g]; });
    });
    Grouping out;
    out.offsets = starts_of(fill, groups);
    out.rows.resize(static_cast<std::size_t>(out.offsets[groups]));
    parallel_for(parts, threads, [&](std::size_t part) {
        each(part, [&](std::size_t i, std::size_t g) {
            out.rows[static_cast<std::size_t>(fill[part][g]++)] = static_cast<std::int32_t>(i);
        });
    });
    return out;
}

Grouping rank_groups(const std::int32_t* group, std::size_t groups, const double* score,
                     std::size_t rows, int threads) {
    Grouping out = group_rows(group, groups, rows, threads);
    std::vector<GroupSort> sorts(workers_for(groups, threads));
    parallel_for(groups, threads, [&](std::size_t g, std::size_t worker) {
        sorts[worker](score, out.rows.data() + out.offsets[g],
                      out.rows.data() + out.offsets[g + 1]);
    });
    return out;
}

ClassRanking rank_classes(const double* score, const std::int32_t* category, std::size_t rows,
                          std::size_t categories, int threads) {
    Buffer<std::int32_t> order(rows), ranked(rows);
    order_by_score(score, rows, order.data(), threads);
    const std::size_t parts = parts_of(rows, categories, threads);
    // How many rows of each class a part of the ranking has, then where it puts the first of them.
    std::vector<std::vector<std::int64_t>> next(parts);
    parallel_for(parts, threads, [&](std::size_t part) {
        next[part].assign(categories, 0);
        for (std::size_t i = rows * part / parts; i < rows * (part + 1) / parts; ++i) {
            ranked[i] = category[static_cast<std::size_t>(order[i])];
            ++next[part][static_cast<std::size_t>(ranked[i])];
        }
    });
    ClassRanking out;
    out.by_class.offsets = starts_of(next, categories);
    out.by_class.rows.resize(rows);
    out.together.resize(rows);
    parallel_for(parts, threads, [&](std::size_t part) {
        for (std::size_t i = rows * part / parts; i < rows * (part + 1) / parts; ++i) {
            const std::int64_t place = next[part][static_cast<std::size_t>(ranked[i])]++;
            out.by_class.rows[static_cast<std::size_t>(place)] = order[i];
            out.together[i] = static_cast<std::int32_t>(place);
        }
    });
    return out;
}

void find_places(const Ordering& ordering, std::size_t rows, const std::int32_t* wanted,
                 std::size_t count, std::int32_t* place, int threads) {
    std::vector<std::int32_t> inverse(rows);
    in_blocks(rows, threads, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            inverse[static_cast<std::size_t>(ordering.rows[i])] = static_cast<std::int32_t>(i);
    });
    in_blocks(count, threads, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            place[i] = inverse[static_cast<std::size_t>(wanted[i])];
    });
}

void count_before(const Ordering& ordering, const std::uint8_t* keep, const std::int32_t* place,
                  const std::int32_t* group, std::size_t count, std::int32_t* before, int threads) {
    if (!keep) {
        in_blocks(count, threads, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i)
                before[i] = static_cast<std::int32_t>(place[i] - ordering.offsets[group[i]]);
        });
        return;
    }
    const auto rows = static_cast<std::size_t>(ordering.offsets[ordering.groups]);
    RankedBits kept(rows);
    in_blocks(kept.word_count(), threads, [&](std::size_t begin, std::size_t end) {
        for (std::size_t w = begin; w < end; ++w) {
            std::uint64_t word = 0;
            for (std::size_t i = 64 * w; i < std::min(64 * w + 64, rows); ++i)
                word |= static_cast<std::uint64_t>(keep[ordering.rows[i]] != 0) << (i % 64);
            kept.word(w) = word;
        }
    });
    kept.finish();
    const auto kept_before = [&](std::int64_t at) {
        return static_cast<std::int32_t>(kept.rank(static_cast<std::size_t>(at)));
    };
    std::vector<std::int32_t> first(ordering.groups);
    for (std::size_t g = 0; g < ordering.groups; ++g) first[g] = kept_before(ordering.offsets[g]);
    in_blocks(count, threads, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            before[i] = kept.has(static_cast<std::size_t>(place[i]))
                            ? kept_before(place[i]) - first[static_cast<std::size_t>(group[i])]
                            : kNotKept;
    });
}

void keep_first(const Ordering& ordering, const std::uint8_t* keep, std::int64_t limit,
                std::uint8_t* out, int threads) {
    parallel_for(ordering.groups, threads, [&](std::size_t g) {
        std::int64_t left = limit;
        for (std::int64_t i = ordering.offsets[g]; i < ordering.offsets[g + 1]; ++i) {
            const std::int32_t row = ordering.rows[i];
            const bool kept = left > 0 && (!keep || keep[row]);
            left -= kept;
            out[row] = kept;
        }
    });
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
