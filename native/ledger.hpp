// The best scores of each class so far, and what a further one has to exceed.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "columns.hpp"

namespace lvdet {

// The best `limit` scores of each class: 8 bytes each, and no more of them. Until a class has so
// many they are only collected; then they are a heap, of which the lowest is the class's threshold.
class Ledger {
   public:
    explicit Ledger(std::size_t limit) : limit_(limit) {}

    // Takes in scores.
    void note(const std::int64_t* category_id, const double* score, std::size_t rows);
    // keep[i]: row i of an image is above its class's threshold and among the best `limit` of its
    // class in the image, or among the best `per_image` of the image. Of equal scores the earlier
    // rows count.
    void choose(const std::int64_t* category_id, const double* score, std::size_t rows,
                std::int64_t per_image, std::uint8_t* keep);
    // keep[i]: row i is among the best of its class, where all rows noted are passed in the order
    // of noting. `left` says for each class how many rows of just its threshold still count.
    void count(const std::int64_t* category_id, const double* score, std::size_t rows,
               std::int64_t* left, std::uint8_t* keep);
    // How many of the best of each class have just its threshold: `left` for the first rows.
    std::vector<std::int64_t> ties() const;
    // What a score of each class has to exceed: -inf where fewer than `limit` were noted.
    void thresholds(const std::int64_t* category_id, std::size_t count, double* out);

    // How many scores are among the best.
    std::int64_t rows() const { return rows_; }
    // The classes that were noted, and their thresholds.
    const std::vector<std::int64_t>& ids() const { return classes_.ids(); }
    const std::vector<double>& floors() const { return threshold_; }

   private:
    std::size_t place(std::int64_t category_id);

    std::size_t limit_;
    std::int64_t rows_ = 0;
    IdIndex classes_;
    std::vector<double> threshold_;
    std::vector<std::vector<double>> best_;
};

}  // namespace lvdet
