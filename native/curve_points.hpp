// Precision and score at given recalls, as the reference tools tabulate them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "accumulate.hpp"
#include "outcomes.hpp"

namespace lvdet {

// The recalls at which a curve is read.
struct Recalls {
    const double* at;
    std::size_t count;
};

// precision and score [rankings, thresholds, recalls]: the highest precision at or beyond the first
// row that reaches a recall, and the score of that row; 0 at recalls that are not reached, and at
// those listed behind one. recall [rankings, thresholds]: the highest reached. All are NaN where
// there is nothing to find.
struct CurveTables {
    double *precision, *score, *recall;
};

// The tables of one scope. truth [rankings] objects to find; score [rows].
void curve_points(const Outcomes& outcomes, std::size_t scope, const Rankings& rankings,
                  const std::int64_t* truth, const Recalls& recalls, const double* score,
                  const CurveTables& tables, int threads);

}  // namespace lvdet
