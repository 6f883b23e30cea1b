// What shows that a results file is not what its owner thinks.
#include "bind_arrays.hpp"
#include "repeats.hpp"

namespace lvdet {

namespace {

nb::dict repeated_rows(In<std::int32_t> image, In<std::int32_t> category, In<double> score,
                       In<double> box, std::optional<In<std::int32_t>> detail, std::size_t images,
                       int threads) {
    Repeats found;
    {
        nb::gil_scoped_release release;
        found = find_repeats({.rows = image.size(),
                              .image = image.data(),
                              .category = category.data(),
                              .score = score.data(),
                              .box = box.data(),
                              .detail = detail ? detail->data() : nullptr,
                              .details = detail ? detail->size() : 0},
                             images, threads);
    }
    nb::dict out;
    out["image"] = take(std::move(found.image));
    out["times"] = take(std::move(found.times));
    out["distinct"] = take(std::move(found.distinct));
    out["boxed"] = take(std::move(found.boxed));
    out["runs"] = take(std::move(found.runs));
    out["rows"] = take(std::move(found.rows));
    out["offsets"] = take(std::move(found.offsets));
    return out;
}

}  // namespace

void bind_plausibility(nb::module_& m) {
    m.def("repeated_rows", &repeated_rows, "image"_a.noconvert(), "category"_a.noconvert(),
          "score"_a.noconvert(), "box"_a.noconvert(), "detail"_a.none(), "images"_a, "threads"_a);
}

}  // namespace lvdet
