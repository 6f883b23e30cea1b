#include "ledger.hpp"

#include <algorithm>
#include <functional>

#include "rank.hpp"

namespace lvdet {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Puts a score in the place of the lowest of a heap whose lowest is first.
void replace_lowest(std::vector<double>& heap, double score) {
    const std::size_t size = heap.size();
    std::size_t at = 0;
    for (std::size_t child = 1; child < size; child = 2 * at + 1) {
        if (child + 1 < size && heap[child + 1] < heap[child]) ++child;
        if (!(heap[child] < score)) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = score;
}

}  // namespace

std::size_t Ledger::place(std::int64_t category_id) {
    const auto at = static_cast<std::size_t>(classes_[category_id]);
    if (at == best_.size()) {
        best_.emplace_back();
        threshold_.push_back(limit_ ? -kInfinity : kInfinity);
    }
    return at;
}

void Ledger::note(const std::int64_t* category_id, const double* score, std::size_t rows) {
    for (std::size_t i = 0; i < rows; ++i) {
        const std::size_t of = place(category_id[i]);
        if (!(score[i] > threshold_[of])) continue;
        std::vector<double>& best = best_[of];
        if (best.size() == limit_) {
            replace_lowest(best, score[i]);
            threshold_[of] = best.front();
            continue;
        }
        if (best.size() == best.capacity())
            best.reserve(std::min(limit_, std::max<std::size_t>(2 * best.size(), 16)));
        best.push_back(score[i]);
        ++rows_;
        if (best.size() < limit_) continue;
        std::make_heap(best.begin(), best.end(), std::greater<>());
        threshold_[of] = best.front();
    }
}

void Ledger::choose(const std::int64_t* category_id, const double* score, std::size_t rows,
                    std::int64_t per_image, std::uint8_t* keep) {
    std::vector<std::int32_t> group(rows);
    for (std::size_t i = 0; i < rows; ++i) {
        const std::size_t of = place(category_id[i]);
        group[i] = static_cast<std::int32_t>(of);
        keep[i] = score[i] > threshold_[of];
    }
    const auto limit = static_cast<std::int64_t>(limit_);
    if (rows > limit_) keep_top(group.data(), best_.size(), score, rows, limit, keep, 1);
    if (per_image == 0) return;
    std::vector<std::uint8_t> best(rows, 1);
    std::fill(group.begin(), group.end(), 0);
    if (static_cast<std::int64_t>(rows) > per_image)
        keep_top(group.data(), 1, score, rows, per_image, best.data(), 1);
    for (std::size_t i = 0; i < rows; ++i) keep[i] |= best[i];
}

void Ledger::count(const std::int64_t* category_id, const double* score, std::size_t rows,
                   std::int64_t* left, std::uint8_t* keep) {
    for (std::size_t i = 0; i < rows; ++i) {
        const std::size_t of = place(category_id[i]);
        keep[i] = score[i] > threshold_[of] || (score[i] == threshold_[of] && left[of]-- > 0);
    }
}

std::vector<std::int64_t> Ledger::ties() const {
    std::vector<std::int64_t> equal(best_.size());
    for (std::size_t of = 0; of < best_.size(); ++of)
        equal[of] = std::count(best_[of].begin(), best_[of].end(), threshold_[of]);
    return equal;
}

void Ledger::thresholds(const std::int64_t* category_id, std::size_t count, double* out) {
    for (std::size_t i = 0; i < count; ++i) out[i] = threshold_[place(category_id[i])];
}

}  // namespace lvdet
