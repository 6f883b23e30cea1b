// Fitting of calibration.
#include "bind_arrays.hpp"
#include "isotonic.hpp"
#include "logistic.hpp"

namespace lvdet {

namespace {

Lines lines_of(const double* features, In<std::uint8_t> right, In<std::int64_t> offsets,
               std::size_t varied, bool constant) {
    return {features,           right.data(), offsets.data(), right.size(),
            offsets.size() - 1, varied,       constant};
}

// [n] scores, [n] right, [c + 1] offsets to [varied, n] features of which each class's have mean 0
// and spread 1, and what these were, [c, varied] each.
nb::tuple scaled_features(In<double> score, In<std::uint8_t> right, In<std::int64_t> offsets,
                          std::size_t varied, bool constant, int threads) {
    const std::size_t classes = offsets.size() - 1;
    auto features = zeros<double>({varied, score.size()});
    auto mean = zeros<double>({classes, varied}), spread = zeros<double>({classes, varied});
    {
        nb::gil_scoped_release release;
        make_features(score.data(), lines_of(features.data(), right, offsets, varied, constant),
                      features.data(), mean.data(), spread.data(), threads);
    }
    return nb::make_tuple(features, mean, spread);
}

// [varied, n] features, [n] right, [c + 1] offsets, [c, P] start, [c, P] means and [c, P, P]
// inverse covariances of a prior or None to [c, P] weights, [c] losses, [c, P] slopes and [c, P, P]
// curvatures.
nb::tuple fit(In<double> features, In<std::uint8_t> right, In<std::int64_t> offsets,
              In<double> start, std::optional<std::tuple<In<double>, In<double>>> prior,
              bool rising, int threads) {
    const std::size_t classes = offsets.size() - 1, varied = features.shape(0);
    const std::size_t size = start.shape(1);
    auto weights = zeros<double>({classes, size}), loss = zeros<double>({classes});
    auto slope = zeros<double>({classes, size}), curvature = zeros<double>({classes, size, size});
    {
        nb::gil_scoped_release release;
        WeightPrior known{};
        if (prior) known = {std::get<0>(*prior).data(), std::get<1>(*prior).data()};
        fit_lines(lines_of(features.data(), right, offsets, varied, size > varied), start.data(),
                  prior ? &known : nullptr, rising, weights.data(), loss.data(), slope.data(),
                  curvature.data(), threads);
    }
    return nb::make_tuple(weights, loss, slope, curvature);
}

// [g] counts of right detections and of all, whole numbers, to [g] rising shares.
Out<double> isotonic(In<double> right, In<double> count) {
    auto fitted = zeros<double>({right.size()});
    {
        nb::gil_scoped_release release;
        fit_isotonic(right.data(), count.data(), right.size(), fitted.data());
    }
    return fitted;
}

}  // namespace

void bind_calibrate(nb::module_& m) {
    m.def("scaled_features", &scaled_features, "score"_a.noconvert(), "right"_a.noconvert(),
          "offsets"_a.noconvert(), "varied"_a, "constant"_a, "threads"_a);
    m.def("fit_lines", &fit, "features"_a.noconvert(), "right"_a.noconvert(),
          "offsets"_a.noconvert(), "start"_a.noconvert(), "prior"_a.none(), "rising"_a,
          "threads"_a);
    m.def("fit_isotonic", &isotonic, "right"_a.noconvert(), "count"_a.noconvert());
}

}  // namespace lvdet
