// Isotonic regression of shares.
#pragma once

#include <cstddef>

namespace lvdet {

// fitted [groups]: the rising shares nearest to right / count, squared and weighted by count. Both
// are whole numbers, so pooled shares are exact up to one rounding.
void fit_isotonic(const double* right, const double* count, std::size_t groups, double* fitted);

}  // namespace lvdet
