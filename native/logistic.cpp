#include "logistic.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

namespace lvdet {

namespace {

constexpr std::size_t kBatch = 256;  // rows worked on at a time, step by step, in the cache

template <std::size_t Size>
void of_class(const double* features, std::size_t rows, std::size_t begin, std::size_t end,
              const double* weights, double* loss, double* slope, double* curvature) {
    double total = 0.0;
    std::array<double, Size> first{};
    std::array<double, Size * Size> second{};
    double odds[kBatch], small[kBatch], chance[kBatch], spread[kBatch];
    for (std::size_t at = begin; at < end; at += kBatch) {
        const std::size_t count = std::min(kBatch, end - at);
        for (std::size_t i = 0; i < count; ++i) {
            double sum = 0.0;
            for (std::size_t p = 0; p < Size; ++p) sum += weights[p] * features[p * rows + at + i];
            odds[i] = sum;
        }
        // Of the two sides the one that cannot overflow.
        for (std::size_t i = 0; i < count; ++i) small[i] = std::exp(-std::abs(odds[i]));
        // log(1 + a) + log(1 + b) = log((1 + a)(1 + b)), and 256 factors of at most 2 fit.
        double product = 1.0;
        for (std::size_t i = 0; i < count; ++i) {
            const double part = 1.0 / (1.0 + small[i]);
            product *= 1.0 + small[i];
            total += std::max(odds[i], 0.0);
            chance[i] = odds[i] >= 0.0 ? part : small[i] * part;
            spread[i] = small[i] * part * part;
        }
        total += std::log(product);
        for (std::size_t p = 0; p < Size; ++p) {
            const double* mine = features + p * rows + at;
            for (std::size_t i = 0; i < count; ++i) first[p] += mine[i] * chance[i];
            for (std::size_t q = 0; q <= p; ++q) {
                const double* other = features + q * rows + at;
                double sum = 0.0;
                for (std::size_t i = 0; i < count; ++i) sum += mine[i] * other[i] * spread[i];
                second[p * Size + q] += sum;
            }
        }
    }
    *loss = total;
    for (std::size_t p = 0; p < Size; ++p) {
        slope[p] = first[p];
        for (std::size_t q = 0; q <= p; ++q)
            curvature[p * Size + q] = curvature[q * Size + p] = second[p * Size + q];
    }
}

}  // namespace

void logistic_losses(const double* features, std::size_t rows, std::size_t size,
                     const std::int64_t* offsets, std::size_t classes, const double* weights,
                     double* loss, double* slope, double* curvature) {
    const auto work = size == 1   ? of_class<1>
                      : size == 2 ? of_class<2>
                      : size == 3 ? of_class<3>
                                  : nullptr;
    if (!work) throw std::invalid_argument("logistic_losses: 1 to 3 features");
    for (std::size_t k = 0; k < classes; ++k)
        work(features, rows, static_cast<std::size_t>(offsets[k]),
             static_cast<std::size_t>(offsets[k + 1]), weights + k * size, loss + k,
             slope + k * size, curvature + k * size * size);
}

}  // namespace lvdet
