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
    struct Step {
        std::int64_t wrong_before;
        std::uint64_t matched, ignored;
    };
    void restart(std::size_t thresholds, std::int64_t truth, const double* recalls) {
        reached_.set(truth, recalls);
        thresholds_ = thresholds;
        hits_ = 0;
        std::fill_n(right_, thresholds, 0);
        std::fill_n(not_wrong_, thresholds, 0);
        best_.assign(kRecalls * thresholds, 0.0);
        tied_ = false;
    }
    // Takes the next hit: how many rows without a match are wrong before it, and the bits of the
    // thresholds at which it is matched, and ignored.
    void step(const Step& hit) { take(hit, best_); }
    // Takes hits of one score: in their order, and, for the bounds, in the worst and in the best
    // order of all rows of that score, of which rows without a match are wrong before the first and
    // before the end. Hits that stand alone count the same in every order.
    void step_tied(const std::vector<Step>& hits, std::int64_t first, std::int64_t end) {
        if (!tied_) {
            tied_ = true;
            for (auto* best : {&in_order_, &lowest_, &highest_}) best->assign(best_.size(), 0.0);
        }
        std::int64_t low[kWord], high[kWord];
        for (std::size_t t = 0; t < thresholds_; ++t) {
            low[t] = end + hits_ + static_cast<std::int64_t>(hits.size()) - not_wrong_[t];
            high[t] = first + hits_ - not_wrong_[t];
        }
        for (const Step& hit : hits)
            for_each_bit(hit.matched | hit.ignored, [&](std::size_t t) { --low[t]; });
        for (const Step& hit : hits) {
            take(hit, in_order_, [&](std::size_t t, std::int64_t count) {
                raise(lowest_, t, count, low[t]);
                raise(highest_, t, count, high[t]);
            });
        }
    }
    // Brings together what step() and step_tied() found, once all hits are taken.
    void finish() {
        if (tied_)
            for (std::size_t k = 0; k < best_.size(); ++k) {
                lowest_[k] = std::max(lowest_[k], best_[k]);
                highest_[k] = std::max(highest_[k], best_[k]);
                best_[k] = std::max(best_[k], in_order_[k]);
            }
        for (auto* best : {&best_, &lowest_, &highest_})
            if (best == &best_ || tied_)
                for (std::size_t k = best->size() - thresholds_; k-- > 0;)
                    (*best)[k] = std::max((*best)[k], (*best)[k + thresholds_]);
    }
    bool tied() const { return tied_; }
    const std::vector<double>& lowest() const { return lowest_; }
    const std::vector<double>& highest() const { return highest_; }
    std::int64_t right(std::size_t t) const { return right_[t]; }
    const std::vector<double>& best() const { return best_; }

   private:
    void raise(std::vector<double>& best, std::size_t t, std::int64_t right, std::int64_t wrong) {
        const auto tp = static_cast<double>(right), fp = static_cast<double>(wrong);
        double& here = best[reached_(right) * thresholds_ + t];
        here = std::max(here, tp / (fp + tp + kEpsilon));
    }
    template <class Also>
    void take(const Step& hit, std::vector<double>& best, Also&& also) {
        // Counted once for all thresholds, and then the exceptions.
        const std::int64_t wrong = hit.wrong_before + hits_++;
        for_each_bit(hit.matched & ~hit.ignored, [&](std::size_t t) {
            const std::int64_t count = ++right_[t];
            raise(best, t, count, wrong - not_wrong_[t]);
            also(t, count);
        });
        for_each_bit(hit.matched | hit.ignored, [&](std::size_t t) { ++not_wrong_[t]; });
    }
    void take(const Step& hit, std::vector<double>& best) {
        if (hit.ignored == lowest_bits(thresholds_)) return;
        take(hit, best, [](std::size_t, std::int64_t) {});
    }

    Reached reached_;
    std::size_t thresholds_ = 0;
    std::int64_t hits_ = 0;
    std::int64_t right_[kWord], not_wrong_[kWord];
    bool tied_ = false;
    std::vector<double> best_;                         // [recalls, thresholds]
    std::vector<double> in_order_, lowest_, highest_;  // the same, of tied hits alone at first
};

}  // namespace lvdet
