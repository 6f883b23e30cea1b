// The best scores of each class while an inference loop adds images.
#include "bind_arrays.hpp"
#include "ledger.hpp"

namespace lvdet {

namespace {

void note_scores(Ledger& ledger, In<std::int64_t> category_id, In<double> score) {
    nb::gil_scoped_release release;
    ledger.note(category_id.data(), score.data(), score.size());
}

Out<std::uint8_t> choose_rows(Ledger& ledger, In<std::int64_t> category_id, In<double> score,
                              std::int64_t per_image) {
    auto keep = zeros<std::uint8_t>({score.size()});
    nb::gil_scoped_release release;
    ledger.choose(category_id.data(), score.data(), score.size(), per_image, keep.data());
    return keep;
}

Out<std::uint8_t> count_rows_of(Ledger& ledger, In<std::int64_t> category_id, In<double> score,
                                InOut<std::int64_t> left) {
    auto keep = zeros<std::uint8_t>({score.size()});
    nb::gil_scoped_release release;
    ledger.count(category_id.data(), score.data(), score.size(), left.data(), keep.data());
    return keep;
}

Out<double> thresholds_of(Ledger& ledger, In<std::int64_t> category_id) {
    auto out = zeros<double>({category_id.size()});
    nb::gil_scoped_release release;
    ledger.thresholds(category_id.data(), category_id.size(), out.data());
    return out;
}

}  // namespace

void bind_ledger(nb::module_& m) {
    nb::class_<Ledger>(m, "Ledger")
        .def(nb::init<std::size_t>(), "limit"_a)
        .def("note", &note_scores, "category_id"_a.noconvert(), "score"_a.noconvert())
        .def("choose", &choose_rows, "category_id"_a.noconvert(), "score"_a.noconvert(),
             "per_image"_a)
        .def("count", &count_rows_of, "category_id"_a.noconvert(), "score"_a.noconvert(),
             "left"_a.noconvert())
        .def("ties", [](const Ledger& ledger) { return take(ledger.ties()); })
        .def("thresholds", &thresholds_of, "category_id"_a.noconvert())
        .def_prop_ro("rows", &Ledger::rows)
        // The classes that were noted, and the threshold of each.
        .def("floors", [](const Ledger& ledger) {
            return nb::make_tuple(take(std::vector(ledger.ids())),
                                  take(std::vector(ledger.floors())));
        });
}

}  // namespace lvdet
