#include "logistic.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

#include "parallel.hpp"

namespace lvdet {

namespace {

// Scores are held this far from 0 and 1 where their log odds are taken.
constexpr double kEdge = std::numeric_limits<double>::epsilon();
// A spread of features this small beside their size is rounding.
constexpr double kLevel = 1e-12;
// Weight of the pull toward the start: next to nothing, but where the data says nothing (equal
// scores, only right ones) it makes the fit one and finite.
constexpr double kPull = 1e-14;
// A fit is done where the bottom of the parabola is no deeper than this, by evidence.
constexpr double kFlat = 1e-18;
// The share of the fall that its slope promises which a step has to bring.
constexpr double kFall = 1e-4;
constexpr int kSteps = 200, kHalvings = 60;
// Rows that are summed together, so that the last bit does not depend on the number of threads.
constexpr std::size_t kSumRows = 1 << 14;
// Fours of rows whose losses are multiplied: factors of at most 16 each, and 2^1000 fits.
constexpr std::size_t kProductRows = 1000;

// Four rows at a time: what the compiler has no vectors for it takes apart.
using Four = double __attribute__((vector_size(32), aligned(8)));
using FourBits = std::int64_t __attribute__((vector_size(32), aligned(8)));
using FourBytes = std::uint8_t __attribute__((vector_size(4)));

void fill(Four& four, double value) {
    four = Four{value, value, value, value};
}

double sum(const Four& four) {
    return (four[0] + four[1]) + (four[2] + four[3]);
}

// e^x of x at most 0, to a few units in the last place; below -708 that of -708. By the power
// series: 2^n e^r with r of at most log(2) / 2.
void exponentials(Four& x) {
    constexpr double kLog2E = 1.4426950408889634, kRound = 6755399441055744.0;  // 1.5 * 2^52
    constexpr double kLn2High = 0x1.62e42fee00000p-1, kLn2Low = 0x1.a39ef35793c76p-33;
    Four least;
    fill(least, -708.0);
    x = x < least ? least : x;
    const Four shifted = x * kLog2E + kRound, n = shifted - kRound;
    const Four r = (x - n * kLn2High) - n * kLn2Low;
    const Four r2 = r * r, r4 = r2 * r2;
    const Four low = (1.0 + r) + (1.0 / 2 + r * (1.0 / 6)) * r2;
    const Four middle = (1.0 / 24 + r * (1.0 / 120)) + (1.0 / 720 + r * (1.0 / 5'040)) * r2;
    const Four high = (1.0 / 40'320 + r * (1.0 / 362'880)) +
                      (1.0 / 3'628'800 + r * (1.0 / 39'916'800)) * r2 +
                      (1.0 / 479'001'600 + r * (1.0 / 6'227'020'800)) * r4;
    FourBits power;
    std::memcpy(&power, &shifted, sizeof power);
    power = (power + 1023) << 52;
    Four scale;
    std::memcpy(&scale, &power, sizeof scale);
    x = (low + (middle + high * r4) * r4) * scale;
}

template <std::size_t Size>
using Vector = std::array<double, Size>;

// Sums over rows: log losses, their slope and their curvature (q <= p at p * (p + 1) / 2 + q).
template <std::size_t Size>
struct Sums {
    double loss = 0.0;
    Vector<Size> slope{};
    Vector<Size*(Size + 1) / 2> curvature{};

    void operator+=(const Sums& other) {
        loss += other.loss;
        for (std::size_t p = 0; p < Size; ++p) slope[p] += other.slope[p];
        for (std::size_t i = 0; i < curvature.size(); ++i) curvature[i] += other.curvature[i];
    }
};

template <std::size_t Varied, bool Constant>
void sum_rows(const Lines& lines, std::size_t begin, std::size_t end, const double* weights,
              Sums<Varied + Constant>& out) {
    constexpr std::size_t kSize = Varied + Constant;
    Four above{}, product, slope[kSize]{}, curvature[kSize * (kSize + 1) / 2]{};
    double loss = 0.0;
    for (std::size_t part = begin; part < end; part += kProductRows) {
        const std::size_t stop = std::min(end, part + kProductRows);
        fill(product, 1.0);
        for (std::size_t at = part; at < stop; at += 4) {
            Four feature[kSize]{}, odds{};
            FourBytes right{};
            const std::size_t count = std::min<std::size_t>(4, stop - at);
            if (count == 4) {
                for (std::size_t p = 0; p < Varied; ++p)
                    std::memcpy(&feature[p], lines.features + p * lines.rows + at, sizeof(Four));
                if constexpr (Constant) std::memcpy(&right, lines.right + at, sizeof right);
            } else {
                for (std::size_t i = 0; i < count; ++i) {
                    for (std::size_t p = 0; p < Varied; ++p)
                        feature[p][i] = lines.features[p * lines.rows + at + i];
                    right[i] = lines.right[at + i];
                }
            }
            if constexpr (Constant)
                feature[Varied] = 1.0 - 2.0 * __builtin_convertvector(right, Four);
            for (std::size_t p = 0; p < kSize; ++p) odds += weights[p] * feature[p];
            // Rows that are not there are certain, and lose nothing.
            for (std::size_t i = count; i < 4; ++i) odds[i] = -1e3;
            // Of the two sides the one that cannot overflow.
            const auto wrong = odds >= 0.0;
            Four small = wrong ? -odds : odds;
            exponentials(small);
            const Four part_of = 1.0 / (1.0 + small), other = small * part_of;
            above += wrong ? odds : Four{};
            product *= 1.0 + small;  // log(1 + a) + log(1 + b) = log((1 + a)(1 + b))
            const Four chance = wrong ? part_of : other, spread = other * part_of;
            for (std::size_t p = 0; p < kSize; ++p) {
                slope[p] += feature[p] * chance;
                const Four bent = feature[p] * spread;
                for (std::size_t q = 0; q <= p; ++q)
                    curvature[p * (p + 1) / 2 + q] += bent * feature[q];
            }
        }
        loss += std::log((product[0] * product[1]) * (product[2] * product[3]));
    }
    out.loss = loss + sum(above);
    for (std::size_t p = 0; p < kSize; ++p) out.slope[p] = sum(slope[p]);
    for (std::size_t i = 0; i < out.curvature.size(); ++i) out.curvature[i] = sum(curvature[i]);
}

// Compiled for wider vectors too, chosen when it runs; the numbers are the same.
#if defined(__x86_64__)
template <std::size_t Varied, bool Constant>
__attribute__((target("avx2"), flatten)) void sum_rows_wide(const Lines& lines, std::size_t begin,
                                                            std::size_t end, const double* weights,
                                                            Sums<Varied + Constant>& out) {
    sum_rows<Varied, Constant>(lines, begin, end, weights, out);
}
#endif

template <std::size_t Varied, bool Constant>
void sum_block(const Lines& lines, std::size_t begin, std::size_t end, const double* weights,
               Sums<Varied + Constant>& out) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        return sum_rows_wide<Varied, Constant>(lines, begin, end, weights, out);
#endif
    sum_rows<Varied, Constant>(lines, begin, end, weights, out);
}

// The fit of one class, by Newton's method. Losses are divided by the evidence: right or wrong
// rows, whichever are fewer, so that one tolerance does for classes in which few are right and for
// those in which half are.
template <std::size_t Varied, bool Constant>
class ClassFit {
    static constexpr std::size_t kSize = Varied + Constant;
    using Weights = Vector<kSize>;
    using Held = std::array<bool, kSize>;
    using Square = std::array<Weights, kSize>;

   public:
    struct Point {
        Weights weights;
        Sums<kSize> sums;         // over the rows alone
        double loss = 0.0;        // with all that is known, by evidence, as the next
        Weights slope{}, step{};  // the step is to the bottom of the parabola
        double depth = 0.0;       // of which this is the depth
    };

    ClassFit(const Lines& lines, std::size_t k, const double* start, const WeightPrior* prior,
             int threads)
        : lines_(lines),
          begin_(static_cast<std::size_t>(lines.offsets[k])),
          end_(static_cast<std::size_t>(lines.offsets[k + 1])),
          threads_(threads) {
        std::copy_n(start + k * kSize, kSize, start_.begin());
        if (prior) {
            std::copy_n(prior->mean + k * kSize, kSize, mean_.begin());
            for (std::size_t p = 0; p < kSize; ++p)
                std::copy_n(prior->precision + (k * kSize + p) * kSize, kSize,
                            precision_[p].begin());
        }
        right_ = static_cast<double>(std::count(lines.right + begin_, lines.right + end_, 1));
        wrong_ = static_cast<double>(end_ - begin_) - right_;
        evidence_ = std::max(std::min(right_, wrong_), 1.0);
    }

    Point best(bool rising) const { return minimum(start_, {}, rising); }

   private:
    // The least loss from some weights on, with those `held` at 0. Where weights have to rise, one
    // that would fall below 0 is held: the constrained optimum, where only one would; of two, the
    // better way is taken.
    Point minimum(const Weights& from, const Held& held, bool rising) const {
        // The pull says where to go where nothing else does, and then has no say any more.
        Point free = descended(begun(from, held), held, kPull), least;
        weigh(free, held, 0.0);
        free = descended(free, held, 0.0);
        bool found = false;
        for (std::size_t p = 0; rising && p < Varied; ++p) {
            if (!(free.weights[p] < 0.0)) continue;
            Held more = held;
            more[p] = true;
            const Point without = minimum(free.weights, more, true);
            if (!found || without.loss < least.loss) least = without;
            found = true;
        }
        return found ? least : free;
    }

    // The better of a place and what the share of right ones says. Far from the labels there is
    // hardly a slope to go by; from the share there always is.
    Point begun(Weights from, const Held& held) const {
        for (std::size_t p = 0; p < kSize; ++p)
            if (held[p]) from[p] = 0.0;
        const Point there = look(from, held, kPull);
        Weights level{};
        if constexpr (Constant) level[Varied] = std::log((right_ + 0.5) / (wrong_ + 0.5));
        const double odds = level[kSize - 1];
        Point share;
        share.weights = level;
        share.sums.loss =
            right_ * std::log1p(std::exp(-odds)) + wrong_ * std::log1p(std::exp(odds));
        weigh(share, held, kPull);
        return there.loss <= share.loss ? there : look(level, held, kPull);
    }

    Point descended(Point at, const Held& held, double pull) const {
        for (int step = 0; step < kSteps && at.depth >= kFlat; ++step) {
            double share = 1.0;
            // What float64 may not see of a loss.
            const double noise = 1e-11 * std::abs(at.loss) + 1e-15 * (right_ + wrong_) / evidence_;
            for (int halved = 0;; ++halved, share /= 2) {
                Weights weights = at.weights;
                for (std::size_t p = 0; p < kSize; ++p) weights[p] -= share * at.step[p];
                const Point next = look(weights, held, pull);
                const bool near = share * at.depth <= noise;
                if (near ? next.depth < at.depth
                         : next.loss <= at.loss - kFall * share * at.depth) {
                    at = next;
                    break;
                }
                if (near || halved == kHalvings) return at;
            }
        }
        return at;
    }

    Point look(const Weights& weights, const Held& held, double pull) const {
        Point at;
        at.weights = weights;
        at.sums = sums(weights);
        weigh(at, held, pull);
        return at;
    }

    // Sets what follows from sums, what was thought beforehand and a pull toward the start.
    void weigh(Point& at, const Held& held, double pull) const {
        at.loss = at.sums.loss;
        at.slope = at.sums.slope;
        double pulled = 0.0;
        Square bent = precision_;
        for (std::size_t p = 0; p < kSize; ++p) {
            double back = 0.0;
            for (std::size_t q = 0; q < kSize; ++q) {
                back += precision_[p][q] * (at.weights[q] - mean_[q]);
                const std::size_t row = std::max(p, q), column = std::min(p, q);
                bent[p][q] += at.sums.curvature[row * (row + 1) / 2 + column];
                bent[p][q] = held[p] || held[q] ? 0.0 : bent[p][q] / evidence_;
            }
            bent[p][p] += held[p] ? 1.0 : kPull;
            const double away = at.weights[p] - start_[p];
            at.loss += (at.weights[p] - mean_[p]) * back / 2;
            at.slope[p] = held[p] ? 0.0 : (at.slope[p] + back) / evidence_ + pull * away;
            pulled += away * away;
        }
        at.loss = at.loss / evidence_ + pull * pulled / 2;
        at.step = solved(bent, at.slope);
        at.depth = 0.0;
        for (std::size_t p = 0; p < kSize; ++p) at.depth += at.slope[p] * at.step[p];
    }

    Sums<kSize> sums(const Weights& weights) const {
        const std::size_t blocks = count_blocks<kSumRows>(end_ - begin_);
        std::vector<Sums<kSize>> parts(blocks);
        parallel_for(blocks, threads_, [&](std::size_t block) {
            const std::size_t from = begin_ + block * kSumRows;
            sum_block<Varied, Constant>(lines_, from, std::min(end_, from + kSumRows),
                                        weights.data(), parts[block]);
        });
        Sums<kSize> all;
        for (const Sums<kSize>& part : parts) all += part;
        return all;
    }

    // By Cholesky's way without roots; a pivot that rounding took is the least that it may be.
    static Weights solved(Square matrix, Weights value) {
        for (std::size_t p = 0; p < kSize; ++p) {
            const double whole = matrix[p][p];
            for (std::size_t q = 0; q < p; ++q) {
                double left = matrix[p][q];
                for (std::size_t r = 0; r < q; ++r)
                    left -= matrix[p][r] * matrix[q][r] * matrix[r][r];
                matrix[p][q] = left / matrix[q][q];
                matrix[p][p] -= matrix[p][q] * matrix[p][q] * matrix[q][q];
            }
            matrix[p][p] = std::max(matrix[p][p], kPull + kEdge * whole);
            for (std::size_t q = 0; q < p; ++q) value[p] -= matrix[p][q] * value[q];
        }
        for (std::size_t p = kSize; p-- > 0;) {
            value[p] /= matrix[p][p];
            for (std::size_t q = p + 1; q < kSize; ++q) value[p] -= matrix[q][p] * value[q];
        }
        return value;
    }

    const Lines& lines_;
    const std::size_t begin_, end_;
    const int threads_;
    Weights start_, mean_{};
    Square precision_{};
    double right_, wrong_, evidence_;
};

template <std::size_t Varied, bool Constant>
void fit_all(const Lines& lines, const double* start, const WeightPrior* prior, bool rising,
             double* weights, double* loss, double* slope, double* curvature, int threads) {
    constexpr std::size_t kSize = Varied + Constant;
    // One class has its rows divided among the threads, several are divided themselves.
    const int inside = lines.classes > 1 ? 1 : threads;
    parallel_for(lines.classes, threads, [&](std::size_t k) {
        const auto found = ClassFit<Varied, Constant>(lines, k, start, prior, inside).best(rising);
        std::copy_n(found.weights.begin(), kSize, weights + k * kSize);
        loss[k] = found.sums.loss;
        std::copy_n(found.sums.slope.begin(), kSize, slope + k * kSize);
        double* matrix = curvature + k * kSize * kSize;
        for (std::size_t p = 0; p < kSize; ++p)
            for (std::size_t q = 0; q <= p; ++q)
                matrix[p * kSize + q] = matrix[q * kSize + p] =
                    found.sums.curvature[p * (p + 1) / 2 + q];
    });
}

// Scales a feature of a class, and turns its sign where rows are right.
void scale(double* feature, const std::uint8_t* right, std::size_t rows, bool constant,
           double& mean, double& spread) {
    mean = 0.0;
    spread = 1.0;
    if (!rows) return;
    const auto count = static_cast<double>(rows);
    if (constant) {
        for (std::size_t i = 0; i < rows; ++i) mean += feature[i];
        mean /= count;
    }
    double squares = 0.0;
    for (std::size_t i = 0; i < rows; ++i) {
        feature[i] -= mean;
        squares += feature[i] * feature[i];
    }
    spread = std::sqrt(squares / count);
    const bool level = spread <= kLevel * std::abs(mean);
    if (level) spread = 1.0;
    const double times = level ? 0.0 : 1.0 / spread;
    for (std::size_t i = 0; i < rows; ++i) feature[i] *= right[i] ? -times : times;
}

}  // namespace

void make_features(const double* score, const Lines& lines, double* features, double* mean,
                   double* spread, int threads) {
    in_blocks(lines.rows, threads, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            const double inside = std::clamp(score[i], kEdge, 1.0 - kEdge);
            const double log = std::log(inside), log_not = -std::log1p(-inside);
            features[i] = lines.varied == 2 ? log : log + log_not;
            if (lines.varied == 2) features[lines.rows + i] = log_not;
        }
    });
    parallel_for(lines.classes * lines.varied, threads, [&](std::size_t task) {
        const std::size_t k = task / lines.varied, p = task % lines.varied;
        const auto begin = static_cast<std::size_t>(lines.offsets[k]);
        scale(features + p * lines.rows + begin, lines.right + begin,
              static_cast<std::size_t>(lines.offsets[k + 1]) - begin, lines.constant, mean[task],
              spread[task]);
    });
}

void fit_lines(const Lines& lines, const double* start, const WeightPrior* prior, bool rising,
               double* weights, double* loss, double* slope, double* curvature, int threads) {
    const auto fit = lines.varied == 2 ? fit_all<2, true>
                     : lines.constant  ? fit_all<1, true>
                                       : fit_all<1, false>;
    fit(lines, start, prior, rising, weights, loss, slope, curvature, threads);
}

}  // namespace lvdet
