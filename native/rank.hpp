// Order by score: the best of each group, and stable sorting.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "buffer.hpp"

namespace lvdet {

struct Scored {
    double score;
    std::int32_t row;
    // Before `other` in the ranking: by descending score, equal scores by row.
    bool operator<(const Scored& other) const {
        return score > other.score || (score == other.score && row < other.row);
    }
};

// Clears `keep` for all but the `limit` highest scores of each group, earlier rows first among
// equals. Rows not kept before, or of a negative group, neither count nor change.
void keep_top(const std::int32_t* group, std::size_t groups, const double* score, std::size_t rows,
              std::int64_t limit, std::uint8_t* keep, int threads);

// How many rows each group has.
std::vector<std::int64_t> count_rows(const std::int32_t* group, std::size_t groups,
                                     std::size_t rows);

// A number for each distinct (a, b) pair, the same for equal pairs; returns how many there are.
std::int64_t number_pairs(const std::int32_t* a, std::size_t a_count, const std::int32_t* b,
                          std::size_t b_count, std::size_t rows, std::int32_t* number);

// The rows, rising, whose group is one of the members: `member` is not 0.
std::vector<std::int32_t> rows_of_members(const std::int32_t* group, const std::uint8_t* member,
                                          std::size_t rows, int threads);

// The row numbers grouped by `group` (counting sort, stable), and where each group begins.
// Rows of a negative group are left out.
struct Grouping {
    Buffer<std::int32_t> rows;
    std::vector<std::int64_t> offsets;
};
Grouping group_rows(const std::int32_t* group, std::size_t groups, std::size_t rows,
                    int threads = 1);

// The same with the rows of each group by descending score, equal scores by row.
Grouping rank_groups(const std::int32_t* group, std::size_t groups, const double* score,
                     std::size_t rows, int threads);

// Rows by class and falling score, equal scores by row; and the places of that list in one ranking
// over all classes: by descending score, equal scores by row again. Every row has a class.
struct ClassRanking {
    Grouping by_class;
    Buffer<std::int32_t> together;
};
ClassRanking rank_classes(const double* score, const std::int32_t* category, std::size_t rows,
                          std::size_t categories, int threads);

// What rank_groups made: every row once, group after group.
struct Ordering {
    const std::int32_t* rows;
    const std::int64_t* offsets;
    std::size_t groups;
};

// Where each of `wanted` stands in the ordering of `rows` rows.
void find_places(const Ordering& ordering, std::size_t rows, const std::int32_t* wanted,
                 std::size_t count, std::int32_t* place, int threads);

inline constexpr std::int32_t kNotKept = std::numeric_limits<std::int32_t>::max();

// How many kept rows of its group stand before each of `count` rows, given by their places in the
// ordering and their groups; kNotKept for a row that is not kept itself. `keep` is by row, null
// for all.
void count_before(const Ordering& ordering, const std::uint8_t* keep, const std::int32_t* place,
                  const std::int32_t* group, std::size_t count, std::int32_t* before, int threads);

// out[row]: whether a row is kept and among the first `limit` such rows of its group. `keep` is
// null for all.
void keep_first(const Ordering& ordering, const std::uint8_t* keep, std::int64_t limit,
                std::uint8_t* out, int threads);

}  // namespace lvdet
