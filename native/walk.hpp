// Down one ranking: the precision at each recall.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "accumulate.hpp"
#include "bits.hpp"

namespace lvdet {

inline constexpr std::size_t kWord = 64;

// The highest of the 101 recalls that so many right detections reach. Comparing counts in place of
// quotients would round differently, so the quotient itself decides.
class Reached {
   public:
    void set(std::int64_t truth, const double* recalls) {
        const auto objects = static_cast<double>(truth);
        level_.resize(static_cast<std::size_t>(truth) + 1);
        std::int64_t count = 1;  // recall 0 is that of the first right detection
        for (std::size_t r = 0; r < kRecalls; ++r) {
            const std::int64_t before = count;
            count = std::max(count, static_cast<std::int64_t>(recalls[r] * objects) - 1);
            while (static_cast<double>(count) / objects < recalls[r]) ++count;
            if (r) fill(before, count, r - 1);
        }
        fill(count, truth + 1, kRecalls - 1);
    }
    // Of a count from 1 on; more than there are objects reach no more than all of them.
    std::size_t operator()(std::int64_t count) const {
        return level_[std::min(static_cast<std::size_t>(count), level_.size() - 1)];
    }

   private:
    void fill(std::int64_t from, std::int64_t to, std::size_t level) {
        for (std::int64_t n = from; n < to; ++n)
            level_[static_cast<std::size_t>(n)] = static_cast<std::uint8_t>(level);
    }
    std::vector<std::uint8_t> level_;
};

// The curves of up to 64 thresholds, walked together down the hits of one ranking. The best
// precision is kept for each recall; what comes later holds for the recalls before it too.
class Walk {
   public:
    void restart(std::size_t thresholds, std::int64_t truth, const double* recalls) {
        reached_.set(truth, recalls);
        thresholds_ = thresholds;
        hits_ = 0;
        std::fill_n(right_, thresholds, 0);
        std::fill_n(not_wrong_, thresholds, 0);
        best_.assign(kRecalls * thresholds, 0.0);
    }
    // Takes the next hit: how many rows without a match are wrong before it, and the bits of the
    // thresholds at which it is matched, and ignored.
    void step(std::int64_t wrong_before, std::uint64_t matched, std::uint64_t ignored) {
        if (ignored == lowest_bits(thresholds_)) return;
        // Counted once for all thresholds, and then the exceptions.
        const std::int64_t wrong = wrong_before + hits_++;
        for_each_bit(matched & ~ignored, [&](std::size_t t) {
            const std::int64_t count = ++right_[t];
            const auto tp = static_cast<double>(count);
            const auto fp = static_cast<double>(wrong - not_wrong_[t]);
            double& best = best_[reached_(count) * thresholds_ + t];
            best = std::max(best, tp / (fp + tp + kEpsilon));
        });
        for_each_bit(matched | ignored, [&](std::size_t t) { ++not_wrong_[t]; });
    }
    // Takes hits of one score, given by their bits, together: in the best of all orders, where `wrong`
    // rows without a match are before them all, or in the worst, where they are before the last.
    struct Bits {
        std::uint64_t matched, ignored;
    };
    void step_together(std::int64_t wrong, const std::vector<Bits>& hits, bool best_order) {
        if (!best_order) pass(hits);
        const std::int64_t before = wrong + hits_;
        for (const Bits& hit : hits)
            for_each_bit(hit.matched & ~hit.ignored, [&](std::size_t t) {
                const std::int64_t count = ++right_[t];
                const auto tp = static_cast<double>(count);
                const auto fp = static_cast<double>(before - not_wrong_[t]);
                double& best = best_[reached_(count) * thresholds_ + t];
                best = std::max(best, tp / (fp + tp + kEpsilon));
            });
        if (best_order) pass(hits);
    }
    // The precision of each threshold at a recall, once the recalls are taken from the last.
    const double* precisions(std::size_t recall) {
        double* const here = best_.data() + recall * thresholds_;
        if (recall + 1 < kRecalls)
            for (std::size_t t = 0; t < thresholds_; ++t)
                here[t] = std::max(here[t], here[t + thresholds_]);
        return here;
    }
    std::int64_t right(std::size_t t) const { return right_[t]; }
    const std::vector<double>& best() const { return best_; }

   private:
    void pass(const std::vector<Bits>& hits) {
        hits_ += static_cast<std::int64_t>(hits.size());
        for (const Bits& hit : hits)
            for_each_bit(hit.matched | hit.ignored, [&](std::size_t t) { ++not_wrong_[t]; });
    }

    Reached reached_;
    std::size_t thresholds_ = 0;
    std::int64_t hits_ = 0;
    std::int64_t right_[kWord], not_wrong_[kWord];
    std::vector<double> best_;  // [recalls, thresholds]
};

}  // namespace lvdet
