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

// How often each resample of a block has an image or a row, and sums of up to 257 of them.
using Copies = std::uint8_t __attribute__((vector_size(kLanes)));
using CopySums = std::uint16_t __attribute__((vector_size(2 * kLanes), aligned(16)));
constexpr int kMostSummed = 257;

void load(const std::uint8_t* drawn, Copies& out) {
    std::memcpy(&out, drawn, sizeof out);
}

// The same as floating-point numbers, four by four.
template <class Four, class From>
void spread_fours(const From& from, Lanes& out) {
    for (std::size_t i = 0; i < Lanes::kFours; ++i) {
        Four four;
        std::memcpy(&four, reinterpret_cast<const char*>(&from) + i * sizeof four, sizeof four);
        out.fours[i] = __builtin_convertvector(four, Lanes::Four);
    }
}
void spread(const Copies& from, Lanes& out) {
    using Four = std::uint8_t __attribute__((vector_size(4)));
    spread_fours<Four>(from, out);
}
void spread(const CopySums& from, Lanes& out) {
    using Four = std::uint16_t __attribute__((vector_size(8)));
    spread_fours<Four>(from, out);
}

// Rows that are wrong at every threshold, as most are. It does not matter in which order they are
// counted until a row comes that is not: they are added up in small numbers.
class WrongRows {
   public:
    // True where it holds no more.
    bool add(const Copies& copies) {
        sums_ += __builtin_convertvector(copies, CopySums);
        return ++rows_ == kMostSummed;
    }
    void counted(Lanes& out) const { spread(sums_, out); }
    bool empty() const { return rows_ == 0; }

   private:
    CopySums sums_{};
    int rows_ = 0;
};

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

// What counts of right rows reach of so many objects. The quotient itself decides, as in
// accumulate.cpp; recall 0 is that of the first right row.
struct Reach {
    std::array<double, kRecalls> first;  // the count that reaches each recall
    std::vector<std::uint8_t> levels;    // how many recalls each count reaches

    void set_first(double objects, const double* recalls) {
        for (std::size_t r = 0; r < kRecalls; ++r) {
            double count = std::max(
                static_cast<double>(static_cast<std::int64_t>(recalls[r] * objects)) - 1.0, 1.0);
            while (count / objects < recalls[r]) count += 1.0;
            first[r] = count;
        }
    }
    void set_levels(std::size_t objects) {
        levels.resize(objects + 1);
        std::uint8_t reached = 0;
        for (std::size_t count = 0; count <= objects; ++count) {
            while (reached < kRecalls && first[reached] <= static_cast<double>(count)) ++reached;
            levels[count] = reached;
        }
    }
};

// The same for each resample of a block, which has objects of its own.
class Levels {
   public:
    // Up to so many objects tables are kept: classes have about as many again and again.
    static constexpr std::size_t kTabled = 1 << 11;

    void set(const Lanes& truth, const double* recalls) {
        tabled_ = true;
        for (std::size_t l = 0; l < kLanes; ++l) {
            const auto objects = static_cast<std::size_t>(truth[l]);
            if (objects <= kTabled) {
                reach_[l] = &table(objects, recalls);
                continue;
            }
            own_[l].set_first(truth[l], recalls);
            reach_[l] = &own_[l];
            tabled_ = false;
        }
    }
    // Whether every resample has a table of levels.
    bool tabled() const { return tabled_; }
    std::uint8_t level(std::size_t lane, std::size_t count) const {
        return reach_[lane]->levels[count];
    }
    // How many levels a count reaches.
    std::int32_t reached(std::size_t lane, double count) const {
        const auto& first = reach_[lane]->first;
        return static_cast<std::int32_t>(std::upper_bound(first.begin(), first.end(), count) -
                                         first.begin());
    }
    // The count that the last of `levels` needs; 0 for none.
    double needed(std::size_t lane, std::int32_t levels) const {
        return levels ? reach_[lane]->first[static_cast<std::size_t>(levels) - 1] : 0.0;
    }

   private:
    const Reach& table(std::size_t objects, const double* recalls) {
        if (tables_.empty()) tables_.resize(kTabled + 1);
        Reach& found = tables_[objects];
        if (found.levels.empty()) {
            if (objects)
                found.set_first(static_cast<double>(objects), recalls);
            else
                found.first.fill(std::numeric_limits<double>::infinity());
            found.set_levels(objects);
        }
        return found;
    }

    bool tabled_ = false;
    std::array<const Reach*, kLanes> reach_{};
    std::array<Reach, kLanes> own_{};
    std::vector<Reach> tables_;  // by number of objects, made when first asked for
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
                const std::int32_t levels =
                    truth[l] == 0.0 ? 0 : levels_.reached(l, counts.right[t][l]);
                reached_[t].set(l, levels);
                needed_[t].set(l, levels_.needed(l, levels));
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
        if (levels_.tabled())
            look_up_levels(t);
        else if (passed[0] | passed[1] | passed[2] | passed[3])
            pass_levels(t);
    }
    // Where objects are few, most resamples pass a level with every row.
    void look_up_levels(std::size_t t) {
        using Levels4 = std::int32_t __attribute__((vector_size(16)));
        for (std::size_t i = 0; i < Lanes::kFours; ++i) {
            const Lanes::Four &right = counts.right[t].fours[i], &most = truth.fours[i];
            const auto count = __builtin_convertvector(right < most ? right : most, Levels4);
            Levels4 level;
            for (std::size_t l = 0; l < 4; ++l)
                level[l] = levels_.level(4 * i + l, static_cast<std::size_t>(count[l]));
            const Lanes::Four left = __builtin_convertvector(level, Lanes::Four);
            sum_[t].fours[i] += best_[t].fours[i] * (reached_[t].fours[i] - left);
            reached_[t].fours[i] = left;
        }
    }
    void pass_levels(std::size_t t) {
        for (std::size_t l = 0; l < kLanes; ++l) {
            if (!(counts.right[t][l] < needed_[t][l])) continue;
            const auto before = static_cast<std::int32_t>(reached_[t][l]);
            std::int32_t reached = before;
            while (counts.right[t][l] < levels_.needed(l, reached)) --reached;
            reached_[t].set(l, reached);
            needed_[t].set(l, levels_.needed(l, reached));
            sum_[t].set(l, sum_[t][l] + best_[t][l] * static_cast<double>(before - reached));
        }
    }

    Levels levels_;
    Table best_, sum_, needed_, reached_;
};

// Where the class budget of each resample ends: rows of a lower rank count whole, the row of this
// rank `part` of its copies.
struct Cut {
    std::array<std::int32_t, kLanes> rank;
    std::array<std::uint8_t, kLanes> part;
    std::int32_t lowest, highest;  // of the ranks

    void find(const std::int32_t* image, std::int64_t rows, const std::uint8_t* weights,
              std::int64_t budget) {
        rank.fill(kNoCut);
        part.fill(0);
        constexpr std::int64_t kBlock = 128;  // fewer than kMostSummed
        std::array<std::int64_t, kLanes> total{};
        std::size_t found = 0;
        for (std::int64_t begin = 0; begin < rows && found < kLanes; begin += kBlock) {
            const std::int64_t end = std::min(rows, begin + kBlock);
            CopySums sum{};
            for (std::int64_t i = begin; i < end; ++i) {
                Copies copies;
                load(weights + static_cast<std::size_t>(image[i]) * kLanes, copies);
                sum += __builtin_convertvector(copies, CopySums);
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
        highest = *std::max_element(rank.begin(), rank.end());
    }
};

// The bits of the thresholds at which any row is matched, and ignored.
class RowBits {
   public:
    explicit RowBits(const Outcomes& outcomes)
        : outcomes_(outcomes),
          all_(lowest_bits(outcomes.thresholds)),
          bytes_(bytes_for(outcomes.thresholds)),
          hits_(outcomes.rows) {
        for (std::size_t h = 0; h < outcomes.hit_count; ++h)
            hits_.set(static_cast<std::size_t>(outcomes.hits[h]));
        hits_.finish();
    }
    struct Bits {
        std::uint64_t matched, ignored;
    };
    Bits operator()(std::size_t row) const {
        if (!hits_.has(row)) return {0, outcomes_.wrong[row] & 1 ? 0 : all_};
        const std::uint8_t* const from = outcomes_.of(hits_.rank(row), 0);
        return {load_bits(from, bytes_), load_bits(from + bytes_, bytes_)};
    }

   private:
    const Outcomes& outcomes_;
    std::uint64_t all_;
    std::size_t bytes_;
    RankedBits hits_;
};

// What all blocks ask of the rows of all classes in one ranking, laid out in that order.
struct PooledRow {
    enum Kind : std::int32_t { kSkipped, kWrong, kOther };
    std::int32_t image, place, category;
    Kind kind;
};

std::vector<PooledRow> pooled_rows(const Sample& sample, const RowBits& bits, int threads) {
    const std::uint64_t all = lowest_bits(sample.outcomes.thresholds);
    std::vector<PooledRow> rows(static_cast<std::size_t>(sample.offsets[sample.classes]));
    in_blocks(rows.size(), threads, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            const auto row = static_cast<std::size_t>(sample.pooled[i]);
            const auto [matched, ignored] = bits(row);
            rows[i] = {sample.image[row], sample.place[row], sample.category[row],
                       ignored == all      ? PooledRow::kSkipped
                       : matched | ignored ? PooledRow::kOther
                                           : PooledRow::kWrong};
        }
    });
    return rows;
}

// The lowest rank in its class of each row and those after it: equal scores may be ranked otherwise
// there.
std::vector<std::int32_t> lowest_places(const Sample& sample) {
    std::vector<std::int32_t> lowest(static_cast<std::size_t>(sample.offsets[sample.classes]));
    for (std::size_t c = 0; c < sample.classes; ++c) {
        std::int32_t least = kNoCut;
        for (std::int64_t i = sample.offsets[c + 1]; i-- > sample.offsets[c];) {
            const auto row = static_cast<std::size_t>(i);
            lowest[row] = least = std::min(least, sample.place[row]);
        }
    }
    return lowest;
}

// One block of resamples after the other, by one thread.
class Block {
   public:
    Block(const Sample& sample, const RowBits& bits, const std::vector<PooledRow>& pooled,
          const std::vector<std::int32_t>& lowest, const double* recalls)
        : sample_(sample),
          bits_(bits),
          pooled_(pooled),
          lowest_(lowest),
          recalls_(recalls),
          thresholds_(sample.outcomes.thresholds),
          all_(lowest_bits(thresholds_)),
          cuts_(sample.classes),
          walk_(thresholds_),
          pools_(1 + sample.groups, BackwardWalk(thresholds_)),
          wrong_(pools_.size()) {
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
    // A row that is not wrong at every threshold, after those that are; or only these.
    struct Row {
        std::uint64_t matched = 0, ignored = 0;
        Copies copies{};
        WrongRows wrong;
    };

    // How often a row counts in each resample, by how often its image was drawn.
    void weigh(std::int32_t image, Copies& copies) const {
        load(weights_ + static_cast<std::size_t>(image) * kLanes, copies);
    }
    // The same under the class budget, for a row of this rank; false where no resample has it.
    bool weigh_in_budget(std::int32_t image, std::int32_t place, const Cut& cut,
                         Copies& copies) const {
        weigh(image, copies);
        if (place < cut.lowest) return true;
        bool left = false;
        for (std::size_t l = 0; l < kLanes; ++l) {
            if (place > cut.rank[l])
                copies[l] = 0;
            else if (place == cut.rank[l])
                copies[l] = cut.part[l];
            left |= copies[l] > 0;
        }
        return left;
    }

    void count_truth(std::size_t c) {
        walk_.truth = {};
        for (std::int64_t i = sample_.truth_from[c]; i < sample_.truth_from[c + 1]; ++i) {
            Copies copies;
            weigh(sample_.truth[i], copies);
            Lanes weight;
            spread(copies, weight);
            walk_.truth += weight;
        }
    }

    // Fills the column of a class of [resamples, classes]; the rows and objects in the class
    // budget are those of its pools too.
    void walk_class(std::size_t c, bool old, double* out) {
        rows_.clear();
        walk_.counts.clear();
        Row next;
        for (std::int64_t i = sample_.offsets[c]; i < sample_.offsets[c + 1]; ++i) {
            const auto row = static_cast<std::size_t>(i);
            if (old && !sample_.old[row]) continue;
            const auto [matched, ignored] = bits_(row);
            if (ignored == all_) continue;
            Copies copies;
            if (old)
                weigh(sample_.image[row], copies);
            else if (lowest_[row] > cuts_[c].highest)
                break;
            else if (!weigh_in_budget(sample_.image[row], sample_.place[row], cuts_[c], copies))
                continue;
            if (matched | ignored) {
                next.matched = matched;
                next.ignored = ignored;
                next.copies = copies;
            } else if (!next.wrong.add(copies)) {
                continue;
            }
            take(next);
        }
        take(next);
        if (!old) {
            for_pools(c, [&](std::size_t pool) {
                pools_[pool].counts.add_all(walk_.counts);
                pools_[pool].truth += walk_.truth;
            });
        }
        walk_.start(recalls_);
        Lanes weight;
        for (std::size_t i = rows_.size(); i-- > 0;) {
            const Row& row = rows_[i];
            if (row.matched | row.ignored) {
                spread(row.copies, weight);
                walk_.step(row.matched, row.ignored, weight);
            }
            if (row.wrong.empty()) continue;
            row.wrong.counted(weight);
            walk_.counts.rows -= weight;
        }
        for (std::size_t l = 0; l < kLanes; ++l) out[l * sample_.classes + c] = walk_.mean(l);
    }

    // Counts a row and those before it, and begins the next.
    void take(Row& row) {
        Lanes weight;
        spread(row.copies, weight);
        walk_.counts.add_row(row.matched, row.ignored, weight);
        row.wrong.counted(weight);
        walk_.counts.rows += weight;
        rows_.push_back(row);
        row = {};
    }

    void walk_pools() {
        for (BackwardWalk& walk : pools_) walk.start(recalls_);
        std::fill(wrong_.begin(), wrong_.end(), WrongRows());
        for (std::size_t i = pooled_.size(); i-- > 0;) {
            const PooledRow& row = pooled_[i];
            const auto c = static_cast<std::size_t>(row.category);
            Copies copies;
            if (row.kind == PooledRow::kSkipped ||
                !weigh_in_budget(row.image, row.place, cuts_[c], copies))
                continue;
            if (row.kind == PooledRow::kWrong) {
                for_pools(c, [&](std::size_t pool) {
                    if (wrong_[pool].add(copies)) count_wrong(pool);
                });
                continue;
            }
            const auto place = static_cast<std::size_t>(sample_.pooled[i]);
            const RowBits::Bits bits = bits_(place);
            Lanes weight;
            spread(copies, weight);
            for_pools(c, [&](std::size_t pool) {
                count_wrong(pool);
                pools_[pool].step(bits.matched, bits.ignored, weight);
            });
        }
    }

    // Takes the wrong rows that wait from what is left of a pool.
    void count_wrong(std::size_t pool) {
        if (wrong_[pool].empty()) return;
        Lanes weight;
        wrong_[pool].counted(weight);
        pools_[pool].counts.rows -= weight;
        wrong_[pool] = {};
    }

    template <class Do>
    void for_pools(std::size_t c, Do&& act) {
        act(std::size_t{0});
        if (sample_.group[c] >= 0) act(1 + static_cast<std::size_t>(sample_.group[c]));
    }

    const Sample& sample_;
    const RowBits& bits_;
    const std::vector<PooledRow>& pooled_;
    const std::vector<std::int32_t>& lowest_;
    const double* recalls_;
    const std::size_t thresholds_;
    const std::uint64_t all_;
    const std::uint8_t* weights_ = nullptr;
    std::vector<bool> whole_;  // classes of which the budget that stays leaves every row
    std::vector<Cut> cuts_;
    std::vector<Row> rows_;
    BackwardWalk walk_;
    std::vector<BackwardWalk> pools_;
    std::vector<WrongRows> wrong_;  // of each pool
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
    const RowBits bits(sample.outcomes);
    const std::vector<PooledRow> pooled = pooled_rows(sample, bits, threads);
    const std::vector<std::int32_t> lowest = lowest_places(sample);
    std::vector<Block> all(workers_for(blocks, threads),
                           Block(sample, bits, pooled, lowest, recalls));
    parallel_for(blocks, threads, [&](std::size_t block, std::size_t worker) {
        const std::size_t first = block * kLanes;
        run_block(all[worker], weights + first * sample.images, old + first * sample.classes,
                  fixed + first * sample.classes, pool + first * (1 + sample.groups));
    });
}

}  // namespace lvdet
