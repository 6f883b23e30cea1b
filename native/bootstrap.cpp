#include "bootstrap.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <vector>

#include "bits.hpp"
#include "parallel.hpp"

namespace lvdet {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr std::int32_t kNoCut = std::numeric_limits<std::int32_t>::max();

// A number for each resample of a block, in vectors that the compiler takes apart as it has to: it
// would unroll loops over so few numbers before it could see that they are vectors.
struct Lanes {
    // Aligned no more than what any allocation and any stack gives.
    using Four = double __attribute__((vector_size(4 * sizeof(double)), aligned(16)));
    static constexpr std::size_t kFours = kLanes / 4;

    Four fours[kFours];

    // No reference to it: parts of a vector have none for every compiler.
    void set(std::size_t lane, double value) { fours[lane / 4][lane % 4] = value; }
    double operator[](std::size_t lane) const { return fours[lane / 4][lane % 4]; }
    void operator+=(const Lanes& other) {
        for (std::size_t i = 0; i < kFours; ++i) fours[i] += other.fours[i];
    }
    void operator-=(const Lanes& other) {
        for (std::size_t i = 0; i < kFours; ++i) fours[i] -= other.fours[i];
    }
};

// How often an image was drawn, as it is stored.
using Drawn = std::uint8_t __attribute__((vector_size(4)));

void spread(const std::uint8_t* drawn, Lanes& out) {
    for (std::size_t i = 0; i < Lanes::kFours; ++i) {
        Drawn four;
        std::memcpy(&four, drawn + 4 * i, sizeof four);
        out.fours[i] = __builtin_convertvector(four, Lanes::Four);
    }
}

// Lanes for each threshold.
using Table = std::vector<Lanes>;

// How many rows are right at each threshold, and how many are wrong: all rows that count, less
// those that are right or ignored at a threshold.
struct Counts {
    explicit Counts(std::size_t thresholds) : right(thresholds), not_wrong(thresholds) { clear(); }
    void clear() {
        for (Table* table : {&right, &not_wrong})
            for (Lanes& lanes : *table) lanes = {};
        rows = {};
    }
    void add_row(std::uint64_t matched, std::uint64_t ignored, const Lanes& weight) {
        for_each_bit(matched & ~ignored, [&](std::size_t t) { right[t] += weight; });
        for_each_bit(matched | ignored, [&](std::size_t t) { not_wrong[t] += weight; });
        rows += weight;
    }
    void add_all(const Counts& other) {
        for (std::size_t t = 0; t < right.size(); ++t) {
            right[t] += other.right[t];
            not_wrong[t] += other.not_wrong[t];
        }
        rows += other.rows;
    }
    Table right, not_wrong;
    Lanes rows;
};

// The first count of right rows that reaches each recall, for each resample. The quotient itself
// decides, as in accumulate.cpp; recall 0 is that of the first right row.
class Levels {
   public:
    void set(const Lanes& truth, const double* recalls) {
        for (std::size_t l = 0; l < kLanes; ++l) {
            const double objects = truth[l];
            if (objects == 0.0) continue;
            for (std::size_t r = 0; r < kRecalls; ++r) {
                double count = std::max(
                    static_cast<double>(static_cast<std::int64_t>(recalls[r] * objects)) - 1.0,
                    1.0);
                while (count / objects < recalls[r]) count += 1.0;
                first_[l][r] = count;
            }
        }
    }
    // How many levels a count reaches.
    std::int32_t reached(std::size_t lane, double count) const {
        const auto& first = first_[lane];
        return static_cast<std::int32_t>(std::upper_bound(first.begin(), first.end(), count) -
                                         first.begin());
    }
    // The count that the last of `levels` needs; 0 for none.
    double needed(std::size_t lane, std::int32_t levels) const {
        return levels ? first_[lane][static_cast<std::size_t>(levels) - 1] : 0.0;
    }

   private:
    std::array<std::array<double, kRecalls>, kLanes> first_{};
};

// Precision curves of a block, walked from the last row of a ranking to the first: what comes
// after a row is then known, and nothing but the best precision so far is remembered of it.
class BackwardWalk {
   public:
    explicit BackwardWalk(std::size_t thresholds)
        : counts(thresholds),
          best_(thresholds),
          sum_(thresholds),
          needed_(thresholds),
          reached_(thresholds) {}

    // Begins behind the last row, with `counts` and the objects to find set.
    void start(const double* recalls) {
        levels_.set(truth, recalls);
        for (std::size_t t = 0; t < best_.size(); ++t) {
            best_[t] = {};
            sum_[t] = {};
            for (std::size_t l = 0; l < kLanes; ++l) {
                reached_[t][l] = truth[l] == 0.0 ? 0 : levels_.reached(l, counts.right[t][l]);
                needed_[t].set(l, levels_.needed(l, reached_[t][l]));
            }
        }
    }
    void step(std::uint64_t matched, std::uint64_t ignored, const Lanes& weight) {
        for_each_bit(matched & ~ignored, [&](std::size_t t) { step_right(t, weight); });
        for_each_bit(matched | ignored, [&](std::size_t t) { counts.not_wrong[t] -= weight; });
        counts.rows -= weight;
    }
    // The mean precision of a resample over thresholds and recalls.
    double mean(std::size_t lane) const {
        if (truth[lane] == 0.0) return kNan;
        double total = 0.0;
        for (const Lanes& sum : sum_) total += sum[lane] / static_cast<double>(kRecalls);
        return total / static_cast<double>(sum_.size());
    }

    Counts counts;
    Lanes truth{};

   private:
    // A right row with its copies ends at the highest precision of them, which holds for the
    // counts before it too. Where a resample has no copy of the row, that is no more than the
    // precision of the right row before, and changes nothing.
    void step_right(std::size_t t, const Lanes& weight) {
        Lanes &right = counts.right[t], &best = best_[t];
        const Lanes &not_wrong = counts.not_wrong[t], &needed = needed_[t];
        using Flags = decltype(right.fours[0] < right.fours[0]);
        Flags passed{};
        for (std::size_t i = 0; i < Lanes::kFours; ++i) {
            const Lanes::Four wrong = counts.rows.fours[i] - not_wrong.fours[i];
            const Lanes::Four precision = right.fours[i] / (wrong + right.fours[i] + kEpsilon);
            best.fours[i] = precision > best.fours[i] ? precision : best.fours[i];
            right.fours[i] -= weight.fours[i];
            passed |= right.fours[i] < needed.fours[i];
        }
        if (passed[0] | passed[1] | passed[2] | passed[3]) pass_levels(t);
    }
    void pass_levels(std::size_t t) {
        for (std::size_t l = 0; l < kLanes; ++l) {
            if (!(counts.right[t][l] < needed_[t][l])) continue;
            std::int32_t& reached = reached_[t][l];
            const std::int32_t before = reached;
            while (counts.right[t][l] < levels_.needed(l, reached)) --reached;
            needed_[t].set(l, levels_.needed(l, reached));
            sum_[t].set(l, sum_[t][l] + best_[t][l] * static_cast<double>(before - reached));
        }
    }

    Levels levels_;
    Table best_, sum_, needed_;
    std::vector<std::array<std::int32_t, kLanes>> reached_;
};

// Where the class budget of each resample ends: rows of a lower rank count whole, the row of this
// rank `part` of its copies.
struct Cut {
    std::array<std::int32_t, kLanes> rank;
    std::array<std::uint8_t, kLanes> part;
    std::int32_t lowest;  // of the ranks

    void find(const std::int32_t* image, std::int64_t rows, const std::uint8_t* weights,
              std::int64_t budget) {
        rank.fill(kNoCut);
        part.fill(0);
        constexpr std::int64_t kBlock = 128;  // 128 * 255 is a number of 16 bits
        std::array<std::int64_t, kLanes> total{};
        std::size_t found = 0;
        for (std::int64_t begin = 0; begin < rows && found < kLanes; begin += kBlock) {
            const std::int64_t end = std::min(rows, begin + kBlock);
            using Bytes = std::uint8_t __attribute__((vector_size(kLanes)));
            using Sums = std::uint16_t __attribute__((vector_size(2 * kLanes)));
            Sums sum{};
            for (std::int64_t i = begin; i < end; ++i) {
                Bytes weight;
                std::memcpy(&weight, weights + static_cast<std::size_t>(image[i]) * kLanes, kLanes);
                sum += __builtin_convertvector(weight, Sums);
            }
            for (std::size_t l = 0; l < kLanes; ++l) {
                if (rank[l] == kNoCut && total[l] + sum[l] >= budget) {
                    std::int64_t here = total[l], i = begin;
                    std::uint8_t copies = 0;
                    for (;; ++i) {
                        copies = weights[static_cast<std::size_t>(image[i]) * kLanes + l];
                        here += copies;
                        if (here >= budget) break;
                    }
                    rank[l] = static_cast<std::int32_t>(i);
                    part[l] = static_cast<std::uint8_t>(copies - (here - budget));
                    ++found;
                }
                total[l] += sum[l];
            }
        }
        lowest = *std::min_element(rank.begin(), rank.end());
    }
};

// One block of resamples after the other, by one thread.
class Block {
   public:
    Block(const Sample& sample, const RankedBits& hits, const double* recalls)
        : sample_(sample),
          hits_(hits),
          recalls_(recalls),
          thresholds_(sample.outcomes.thresholds),
          bytes_(bytes_for(thresholds_)),
          all_(lowest_bits(thresholds_)),
          cuts_(sample.classes),
          walk_(thresholds_),
          pools_(1 + sample.groups, BackwardWalk(thresholds_)) {
        for (std::size_t c = 0; c < sample.classes; ++c)
            whole_.push_back(std::all_of(sample.old + sample.offsets[c],
                                         sample.old + sample.offsets[c + 1],
                                         [](std::uint8_t left) { return left != 0; }));
    }

    void run(const std::uint8_t* weights, double* old, double* fixed, double* pool) {
        weights_ = weights;
        for (BackwardWalk& walk : pools_) {
            walk.counts.clear();
            walk.truth = {};
        }
        for (std::size_t c = 0; c < sample_.classes; ++c) {
            count_truth(c);
            const std::int64_t from = sample_.ranked_from[c];
            cuts_[c].find(sample_.ranked + from, sample_.ranked_from[c + 1] - from, weights,
                          sample_.budget);
            walk_class(c, false, fixed);
            if (whole_[c] && cuts_[c].lowest == kNoCut)
                for (std::size_t l = 0; l < kLanes; ++l)
                    old[l * sample_.classes + c] = fixed[l * sample_.classes + c];
            else
                walk_class(c, true, old);
        }
        walk_pools();
        for (std::size_t l = 0; l < kLanes; ++l)
            for (std::size_t p = 0; p < pools_.size(); ++p)
                pool[l * pools_.size() + p] = pools_[p].mean(l);
    }

   private:
    struct Bits {
        std::uint64_t matched, ignored;
    };
    struct Row {
        Bits bits;
        Lanes weight;
    };

    Bits bits(std::size_t row) const {
        const Outcomes& outcomes = sample_.outcomes;
        if (hits_.has(row)) {
            const std::uint8_t* const from = outcomes.of(hits_.rank(row), 0);
            return {load_bits(from, bytes_), load_bits(from + bytes_, bytes_)};
        }
        return {0, outcomes.wrong[row] & 1 ? 0 : all_};
    }
    // How often a row counts in each resample, by how often its image was drawn.
    void weigh(std::size_t row, Lanes& weight) const {
        spread(weights_ + static_cast<std::size_t>(sample_.image[row]) * kLanes, weight);
    }
    // The same under the class budget; false where no resample has the row.
    bool weigh_in_budget(std::size_t row, const Cut& cut, Lanes& weight) const {
        weigh(row, weight);
        const std::int32_t place = sample_.place[row];
        if (place < cut.lowest) return true;
        bool left = false;
        for (std::size_t l = 0; l < kLanes; ++l) {
            if (place > cut.rank[l])
                weight.set(l, 0.0);
            else if (place == cut.rank[l])
                weight.set(l, cut.part[l]);
            left |= weight[l] > 0.0;
        }
        return left;
    }

    void count_truth(std::size_t c) {
        walk_.truth = {};
        for (std::int64_t i = sample_.truth_from[c]; i < sample_.truth_from[c + 1]; ++i) {
            Lanes weight;
            spread(weights_ + static_cast<std::size_t>(sample_.truth[i]) * kLanes, weight);
            walk_.truth += weight;
        }
    }

    // Fills the column of a class of [resamples, classes]; the rows and objects in the class
    // budget are those of its pools too.
    void walk_class(std::size_t c, bool old, double* out) {
        rows_.clear();
        walk_.counts.clear();
        for (std::int64_t i = sample_.offsets[c]; i < sample_.offsets[c + 1]; ++i) {
            const auto row = static_cast<std::size_t>(i);
            if (old && !sample_.old[row]) continue;
            Row next{bits(row), {}};
            if (next.bits.ignored == all_) continue;
            if (old)
                weigh(row, next.weight);
            else if (!weigh_in_budget(row, cuts_[c], next.weight))
                continue;
            walk_.counts.add_row(next.bits.matched, next.bits.ignored, next.weight);
            rows_.push_back(next);
        }
        if (!old) {
            for_pools(c, [&](BackwardWalk& walk) {
                walk.counts.add_all(walk_.counts);
                walk.truth += walk_.truth;
            });
        }
        walk_.start(recalls_);
        for (std::size_t i = rows_.size(); i-- > 0;)
            walk_.step(rows_[i].bits.matched, rows_[i].bits.ignored, rows_[i].weight);
        for (std::size_t l = 0; l < kLanes; ++l) out[l * sample_.classes + c] = walk_.mean(l);
    }

    void walk_pools() {
        for (BackwardWalk& walk : pools_) walk.start(recalls_);
        for (std::int64_t i = sample_.offsets[sample_.classes]; i-- > 0;) {
            const auto row = static_cast<std::size_t>(sample_.pooled[i]);
            const auto [matched, ignored] = bits(row);
            if (ignored == all_) continue;
            const auto c = static_cast<std::size_t>(sample_.category[row]);
            Lanes weight;
            if (!weigh_in_budget(row, cuts_[c], weight)) continue;
            for_pools(
                c, [&, m = matched, i = ignored](BackwardWalk& walk) { walk.step(m, i, weight); });
        }
    }

    template <class Do>
    void for_pools(std::size_t c, Do&& act) {
        act(pools_[0]);
        if (sample_.group[c] >= 0) act(pools_[1 + static_cast<std::size_t>(sample_.group[c])]);
    }

    const Sample& sample_;
    const RankedBits& hits_;
    const double* recalls_;
    const std::size_t thresholds_, bytes_;
    const std::uint64_t all_;
    const std::uint8_t* weights_ = nullptr;
    std::vector<bool> whole_;  // classes of which the budget that stays leaves every row
    std::vector<Cut> cuts_;
    std::vector<Row> rows_;
    BackwardWalk walk_;
    std::vector<BackwardWalk> pools_;
};

// Compiled for wider vectors too, chosen when it runs; the numbers are the same.
#if defined(__x86_64__)
__attribute__((target("avx2"), flatten)) void run_wide(Block& block, const std::uint8_t* weights,
                                                       double* old, double* fixed, double* pool) {
    block.run(weights, old, fixed, pool);
}
#endif

void run_block(Block& block, const std::uint8_t* weights, double* old, double* fixed,
               double* pool) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) return run_wide(block, weights, old, fixed, pool);
#endif
    block.run(weights, old, fixed, pool);
}

}  // namespace

void resample(const Sample& sample, const std::uint8_t* weights, std::size_t blocks,
              const double* recalls, double* old, double* fixed, double* pool, int threads) {
    RankedBits hits(sample.outcomes.rows);
    for (std::size_t h = 0; h < sample.outcomes.hit_count; ++h)
        hits.set(static_cast<std::size_t>(sample.outcomes.hits[h]));
    hits.finish();
    std::vector<Block> all(workers_for(blocks, threads), Block(sample, hits, recalls));
    parallel_for(blocks, threads, [&](std::size_t block, std::size_t worker) {
        const std::size_t first = block * kLanes;
        run_block(all[worker], weights + first * sample.images, old + first * sample.classes,
                  fixed + first * sample.classes, pool + first * (1 + sample.groups));
    });
}

}  // namespace lvdet
