// Orders of equal scores.
#include "bind_arrays.hpp"
#include "ties.hpp"

namespace lvdet {

namespace {

// Rows of another list, if any; their detections; the scores of those.
using ScoreTuple = std::tuple<std::optional<In<std::int32_t>>, In<std::int32_t>, In<double>>;

RowScores scores_of(const ScoreTuple& scores) {
    const auto& [order, detection, score] = scores;
    return {.order = order ? order->data() : nullptr,
            .detection = detection.data(),
            .score = score.data()};
}

Out<std::uint8_t> find_tied_hits(const OutcomeTuple& outcomes, In<std::int64_t> offsets,
                                 const ScoreTuple& scores, int threads) {
    auto tied = zeros<std::uint8_t>({std::get<1>(outcomes).size()});
    const Rankings rankings{
        .offsets = offsets.data(), .count = offsets.size() - 1, .keep = nullptr};
    nb::gil_scoped_release release;
    find_ties(outcomes_of(outcomes, 0), rankings, scores_of(scores), tied.data(), threads);
    return tied;
}

// The lowest and the highest mean precision of each ranking and threshold.
nb::tuple accumulate_tied(const OutcomeTuple& low, In<std::uint8_t> low_tied,
                          const OutcomeTuple& high, In<std::uint8_t> high_tied,
                          In<std::int64_t> offsets, std::optional<In<std::uint8_t>> keep,
                          const ScoreTuple& scores, In<std::int64_t> truth, In<double> recalls,
                          In<double> precision, int threads) {
    const std::size_t count = precision.shape(0), thresholds = precision.shape(1);
    const Rankings rankings{
        .offsets = offsets.data(), .count = count, .keep = keep ? keep->data() : nullptr};
    auto lowest = zeros<double>({count, thresholds});
    auto highest = zeros<double>({count, thresholds});
    {
        nb::gil_scoped_release release;
        accumulate_ties({outcomes_of(low, thresholds), low_tied.data()},
                        {outcomes_of(high, thresholds), high_tied.data()}, rankings,
                        scores_of(scores), truth.data(), recalls.data(), precision.data(),
                        lowest.data(), highest.data(), threads);
    }
    return nb::make_tuple(lowest, highest);
}

}  // namespace

void bind_ties(nb::module_& m) {
    m.def("find_ties", &find_tied_hits, "outcomes"_a, "offsets"_a.noconvert(), "scores"_a,
          "threads"_a);
    m.def("accumulate_ties", &accumulate_tied, "low"_a, "low_tied"_a.noconvert(), "high"_a,
          "high_tied"_a.noconvert(), "offsets"_a.noconvert(), "keep"_a.none(), "scores"_a,
          "truth"_a.noconvert(), "recalls"_a.noconvert(), "precision"_a.noconvert(), "threads"_a);
}

}  // namespace lvdet
