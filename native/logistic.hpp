// Logistic regression of classes on one or two features of their scores, class by class.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lvdet {

// Rows of classes and what their log odds are linear in: `varied` features in columns (2: log s and
// -log(1 - s); 1: their sum) and, where `constant`, 1. Class k has the rows from offsets[k] to
// offsets[k + 1]. The features of a right row have their sign turned, so that odds are those of the
// wrong answer, and sums of what is lost keep their digits where odds are huge.
struct Lines {
    const double* features;
    const std::uint8_t* right;
    const std::int64_t* offsets;
    std::size_t rows, classes, varied;
    bool constant;

    std::size_t size() const { return varied + (constant ? 1 : 0); }
};

// Makes the features of scores, and gives those of each class the spread 1 and, where there is a
// constant to take it up, the mean 0. `mean` and `spread` ([classes, varied]) say what they were; a
// feature that is level is 0, and its spread 1. What `lines` points at is written to `features`.
void make_features(const double* score, const Lines& lines, double* features, double* mean,
                   double* spread, int threads);

// What is thought of weights beforehand, for each class: means and inverse covariances.
struct WeightPrior {
    const double* mean;
    const double* precision;
};

// The most likely weights of each class, from `start` on, and the log loss there without the prior
// (which may be null), with its slope and curvature. Where `rising`, the weights of features that
// vary are 0 or more.
void fit_lines(const Lines& lines, const double* start, const WeightPrior* prior, bool rising,
               double* weights, double* loss, double* slope, double* curvature, int threads);

}  // namespace lvdet
