// Resampling.
#include "bind_arrays.hpp"
#include "bootstrap.hpp"

namespace lvdet {

namespace {

nb::tuple resample_images(const OutcomeTuple& outcomes, std::size_t thresholds,
                          In<std::int32_t> image, In<std::int32_t> category,
                          In<std::int64_t> offsets, In<std::int32_t> place, In<std::uint8_t> old,
                          In<std::int32_t> pooled, const ListTuple& ranked, const ListTuple& truth,
                          In<std::int32_t> group, std::size_t groups, std::int64_t budget,
                          In<std::uint8_t> weights, In<double> recalls, int threads) {
    const std::size_t classes = group.size(), blocks = weights.shape(0);
    const Sample sample{
        .images = weights.shape(1),
        .classes = classes,
        .outcomes = outcomes_of(outcomes, thresholds),
        .image = image.data(),
        .category = category.data(),
        .offsets = offsets.data(),
        .place = place.data(),
        .old = old.data(),
        .pooled = pooled.data(),
        .ranked = std::get<0>(ranked).data(),
        .ranked_from = std::get<1>(ranked).data(),
        .truth = std::get<0>(truth).data(),
        .truth_from = std::get<1>(truth).data(),
        .group = group.data(),
        .groups = groups,
        .budget = budget,
    };
    auto by_old = zeros<double>({blocks * kLanes, classes});
    auto by_fixed = zeros<double>({blocks * kLanes, classes});
    auto pool = zeros<double>({blocks * kLanes, 1 + groups});
    {
        nb::gil_scoped_release release;
        resample(sample, weights.data(), blocks, recalls.data(), by_old.data(), by_fixed.data(),
                 pool.data(), threads);
    }
    return nb::make_tuple(by_old, by_fixed, pool);
}

}  // namespace

void bind_bootstrap(nb::module_& m) {
    m.attr("LANES") = kLanes;
    m.def("resample", &resample_images, "outcomes"_a, "thresholds"_a, "image"_a.noconvert(),
          "category"_a.noconvert(), "offsets"_a.noconvert(), "place"_a.noconvert(),
          "old"_a.noconvert(), "pooled"_a.noconvert(), "ranked"_a, "truth"_a, "group"_a.noconvert(),
          "groups"_a, "budget"_a, "weights"_a.noconvert(), "recalls"_a.noconvert(), "threads"_a);
}

}  // namespace lvdet
