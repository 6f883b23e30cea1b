// Fitting of calibration.
#include "bind_arrays.hpp"
#include "logistic.hpp"

namespace lvdet {

namespace {

// [P, n] features, [c + 1] offsets, [c, P] weights to [c] losses, [c, P] slopes and [c, P, P]
// curvatures.
nb::tuple losses(In<double> features, In<std::int64_t> offsets, In<double> weights) {
    const std::size_t size = features.shape(0), classes = offsets.size() - 1;
    auto loss = zeros<double>({classes});
    auto slope = zeros<double>({classes, size});
    auto curvature = zeros<double>({classes, size, size});
    {
        nb::gil_scoped_release release;
        logistic_losses(features.data(), features.shape(1), size, offsets.data(), classes,
                        weights.data(), loss.data(), slope.data(), curvature.data());
    }
    return nb::make_tuple(loss, slope, curvature);
}

}  // namespace

void bind_calibrate(nb::module_& m) {
    m.def("logistic_losses", &losses, "features"_a.noconvert(), "offsets"_a.noconvert(),
          "weights"_a.noconvert());
}

}  // namespace lvdet
