// The log loss of logistic regression and its derivatives, class by class.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lvdet {

// Rows of `size` features in columns: feature p of row i is features[p * rows + i], with the sign
// turned where the row is right, so that odds are those of the wrong answer. Class k has the rows
// from offsets[k] to offsets[k + 1] and the weights from weights[k * size] on. Of each class gives
// the sum of log(1 + e^odds) over its rows, `size` slopes and `size` x `size` curvatures.
void logistic_losses(const double* features, std::size_t rows, std::size_t size,
                     const std::int64_t* offsets, std::size_t classes, const double* weights,
                     double* loss, double* slope, double* curvature);

}  // namespace lvdet
