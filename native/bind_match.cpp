// Matching, accumulating, and what unmatched detections overlap.
#include <stdexcept>

#include "accumulate.hpp"
#include "bind_arrays.hpp"
#include "bits.hpp"
#include "curve_points.hpp"
#include "match.hpp"
#include "overlaps.hpp"

namespace lvdet {

namespace {

Lists lists_of(const std::optional<ListTuple>& lists) {
    if (!lists) return {};
    const auto& [items, offsets] = *lists;
    return {.offsets = offsets.data(), .items = items.data()};
}

Overlap overlap_of(const std::string& name) {
    if (name == "bbox") return Overlap::bbox;
    if (name == "segm") return Overlap::segm;
    if (name == "boundary") return Overlap::boundary;
    throw std::invalid_argument("overlap is \"" + name + "\", expected bbox, segm or boundary");
}

// The columns of the ground truth, and of its images.
struct TruthColumns {
    In<std::int32_t> image, category;
    In<double> box, area;
    In<std::uint8_t> ignore, crowd, reads_unmatched;
    std::optional<MaskTuple> masks;
    In<std::int32_t> image_height, image_width;
    std::size_t categories;
    std::optional<ListTuple> negative, not_exhaustive;

    Truth view() const {
        return {.rows = image.size(),
                .images = image_height.size(),
                .categories = categories,
                .image = image.data(),
                .category = category.data(),
                .box = box.data(),
                .area = area.data(),
                .ignore = ignore.data(),
                .crowd = crowd.data(),
                .reads_unmatched = reads_unmatched.data(),
                .masks = column_of(masks),
                .height = image_height.data(),
                .width = image_width.data(),
                .negative = lists_of(negative),
                .not_exhaustive = lists_of(not_exhaustive)};
    }
};

// The columns of detections.
struct DetectionColumns {
    In<std::int32_t> image, category, image_rows, category_rows;
    In<double> score, box;
    std::optional<MaskTuple> masks;
    std::optional<In<double>> area;
    std::optional<In<std::uint8_t>> leaves_free;

    Detections view() const {
        return {.rows = image.size(),
                .image = image.data(),
                .category = category.data(),
                .image_rows = image_rows.data(),
                .category_rows = category_rows.data(),
                .score = score.data(),
                .box = box.data(),
                .masks = column_of(masks),
                .area = area ? area->data() : nullptr,
                .leaves_free = leaves_free ? leaves_free->data() : nullptr};
    }
};

// Runs a kernel without the GIL; a mask that cannot be used is reported as (what, whether it is a
// detection's, row).
template <class Kernel>
nb::object failure_of(Kernel&& kernel) {
    try {
        nb::gil_scoped_release release;
        kernel();
    } catch (const MaskError& error) {
        return nb::make_tuple(std::string(error.what()), error.detection, error.row);
    }
    return nb::none();
}

nb::dict match_detections(const TruthColumns& truth, const DetectionColumns& found,
                          const Settings& settings, int threads) {
    Matched matched;
    nb::dict out;
    out["failure"] =
        failure_of([&] { matched = match(truth.view(), found.view(), settings, threads); });
    if (!out["failure"].is_none()) return out;
    const std::size_t areas = settings.area_low.size();
    out["detection"] = take(std::move(matched.detection));
    out["position"] = take(std::move(matched.position));
    out["category_offsets"] = take(std::move(matched.category_offsets));
    out["together"] = take(std::move(matched.together));
    out["outcomes"] =
        take(std::move(matched.outcomes), areas, bytes_for(settings.thresholds.size()));
    out["truth"] = take(std::move(matched.truth), {truth.categories, areas});
    auto& [contested, reached] = matched.contested;
    const std::size_t rows = contested.size();
    auto contested_rows = take(std::move(contested));
    out["contested"] = nb::make_tuple(
        contested_rows, take(std::move(reached), {rows, bytes_for(settings.thresholds.size())}));
    out["partner"] = out["overlap"] = out["objects"] = nb::none();
    if (settings.partners_at >= 0) {
        out["partner"] = take(std::move(matched.partner));
        out["overlap"] = take(std::move(matched.overlap));
    }
    if (settings.every_partner) {
        const std::size_t thresholds = settings.thresholds.size();
        const std::size_t hits = matched.partners.size() / (areas * thresholds);
        out["partners"] = take(std::move(matched.partners), {hits, areas, thresholds});
    }
    if (settings.objects)
        out["objects"] = take(std::move(matched.objects),
                              {truth.image.size(), areas, bytes_for(settings.thresholds.size())});
    return out;
}

nb::dict nearest_objects(const TruthColumns& truth, const DetectionColumns& found,
                         In<std::uint8_t> target, In<std::int32_t> rows, const std::string& overlap,
                         int threads) {
    const Overlap compared = overlap_of(overlap);
    Nearest best;
    nb::dict out;
    out["failure"] = failure_of([&] {
        best = nearest(truth.view(), found.view(), target.data(), rows.data(), rows.size(),
                       compared, threads);
    });
    if (!out["failure"].is_none()) return out;
    out["truth"] = take(std::move(best.truth), {rows.size(), 2});
    out["overlap"] = take(std::move(best.overlap), {rows.size(), 2});
    return out;
}

// Rows kept, if not all; precision and recall, and the lowest and highest precision.
using KnownTuple =
    std::tuple<std::optional<In<std::uint8_t>>, In<double>, In<double>, In<double>, In<double>>;

Known known_of(const KnownTuple& curves) {
    const auto& [keep, precision, recall, lowest, highest] = curves;
    return {.keep = keep ? keep->data() : nullptr,
            .precision = precision.data(),
            .recall = recall.data(),
            .lowest = lowest.data(),
            .highest = highest.data()};
}

// Rows of another list, if any; their detections; the scores of those.
using ScoreTuple = std::tuple<std::optional<In<std::int32_t>>, In<std::int32_t>, In<double>>;
// Which hits are tied, and the scores.
using TieTuple = std::tuple<In<std::uint8_t>, ScoreTuple>;

RowScores scores_of(const ScoreTuple& scores) {
    const auto& [order, detection, score] = scores;
    return {.order = order ? order->data() : nullptr,
            .detection = detection.data(),
            .score = score.data()};
}

nb::tuple accumulate_rankings(const OutcomeTuple& outcome_columns, std::size_t thresholds,
                              In<std::int64_t> offsets, std::optional<In<std::uint8_t>> keep,
                              In<std::int64_t> truth, In<double> recalls,
                              const std::vector<KnownTuple>& known_curves,
                              const std::optional<TieTuple>& tied, bool points, int threads) {
    const std::size_t count = truth.shape(0), scopes = truth.shape(1);
    const Outcomes outcomes = outcomes_of(outcome_columns, thresholds);
    const Rankings rankings{
        .offsets = offsets.data(), .count = count, .keep = keep ? keep->data() : nullptr};
    std::vector<Known> known;
    for (const KnownTuple& curves : known_curves) known.push_back(known_of(curves));
    const std::size_t bounded = tied ? count : 0;
    auto lowest = zeros<double>({bounded, thresholds});
    auto highest = zeros<double>({bounded, thresholds});
    Ties ties{};
    if (tied)
        ties = {std::get<0>(*tied).data(), scores_of(std::get<1>(*tied)), lowest.data(),
                highest.data()};
    auto precision = zeros<double>({count, scopes, thresholds});
    auto recall = zeros<double>({count, scopes, thresholds});
    auto at_recall = zeros<double>({points ? count : 0, scopes, thresholds, kRecalls});
    {
        nb::gil_scoped_release release;
        accumulate(outcomes, rankings, scopes, truth.data(), recalls.data(), known,
                   tied ? &ties : nullptr, precision.data(), recall.data(),
                   points ? at_recall.data() : nullptr, threads);
    }
    return nb::make_tuple(precision, recall, lowest, highest, at_recall);
}

nb::tuple curve_points_of(const OutcomeTuple& outcome_columns, std::size_t thresholds,
                          std::size_t scope, In<std::int64_t> offsets,
                          std::optional<In<std::uint8_t>> keep, In<std::int64_t> truth,
                          In<double> recalls, In<double> score, int threads) {
    const std::size_t count = truth.size();
    auto precision = zeros<double>({count, thresholds, recalls.size()});
    auto at_score = zeros<double>({count, thresholds, recalls.size()});
    auto recall = zeros<double>({count, thresholds});
    {
        nb::gil_scoped_release release;
        curve_points(
            outcomes_of(outcome_columns, thresholds), scope,
            {.offsets = offsets.data(), .count = count, .keep = keep ? keep->data() : nullptr},
            truth.data(), {.at = recalls.data(), .count = recalls.size()}, score.data(),
            {.precision = precision.data(), .score = at_score.data(), .recall = recall.data()},
            threads);
    }
    return nb::make_tuple(precision, at_score, recall);
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

nb::tuple pool_outcomes(const OutcomeTuple& outcome_columns, In<std::int32_t> order,
                        In<std::int64_t> offsets, In<std::uint8_t> member, int threads) {
    const Outcomes outcomes = outcomes_of(outcome_columns, 0);
    OutcomeColumns out;
    {
        nb::gil_scoped_release release;
        out = pool(outcomes, order.data(), offsets.data(), member.shape(1), member.data(),
                   member.shape(0), threads);
    }
    return take(std::move(out), member.shape(0), outcomes.bytes);
}

}  // namespace

void bind_match(nb::module_& m) {
    nb::class_<TruthColumns>(m, "Truth")
        .def(nb::init<In<std::int32_t>, In<std::int32_t>, In<double>, In<double>, In<std::uint8_t>,
                      In<std::uint8_t>, In<std::uint8_t>, std::optional<MaskTuple>,
                      In<std::int32_t>, In<std::int32_t>, std::size_t, std::optional<ListTuple>,
                      std::optional<ListTuple>>(),
             nb::kw_only(), "image"_a.noconvert(), "category"_a.noconvert(), "box"_a.noconvert(),
             "area"_a.noconvert(), "ignore"_a.noconvert(), "crowd"_a.noconvert(),
             "reads_unmatched"_a.noconvert(), "masks"_a.none(), "image_height"_a.noconvert(),
             "image_width"_a.noconvert(), "categories"_a, "negative"_a.none(),
             "not_exhaustive"_a.none());
    nb::class_<DetectionColumns>(m, "Detections")
        .def(nb::init<In<std::int32_t>, In<std::int32_t>, In<std::int32_t>, In<std::int32_t>,
                      In<double>, In<double>, std::optional<MaskTuple>, std::optional<In<double>>,
                      std::optional<In<std::uint8_t>>>(),
             nb::kw_only(), "image"_a.noconvert(), "category"_a.noconvert(),
             "image_rows"_a.noconvert(), "category_rows"_a.noconvert(), "score"_a.noconvert(),
             "box"_a.noconvert(), "masks"_a.none(), "area"_a.none() = nb::none(),
             "leaves_free"_a.none() = nb::none());
    nb::class_<Settings>(m, "MatchSettings")
        .def(nb::new_([](const std::string& overlap, std::vector<double> thresholds,
                         std::vector<double> area_low, std::vector<double> area_high,
                         bool drop_empty, bool area_from_box, int partners_at, bool objects,
                         bool every_partner) {
                 if (area_low.size() > kMostScopes)
                     throw std::invalid_argument("more ranges of area than there are bits");
                 return Settings{.overlap = overlap_of(overlap),
                                 .thresholds = std::move(thresholds),
                                 .area_low = std::move(area_low),
                                 .area_high = std::move(area_high),
                                 .drop_empty = drop_empty,
                                 .area_from_box = area_from_box,
                                 .partners_at = partners_at,
                                 .objects = objects,
                                 .every_partner = every_partner};
             }),
             nb::kw_only(), "overlap"_a, "thresholds"_a, "area_low"_a, "area_high"_a,
             "drop_empty"_a, "area_from_box"_a, "partners_at"_a, "objects"_a = false,
             "every_partner"_a = false);
    m.def("match", &match_detections, "truth"_a, "found"_a, "settings"_a, "threads"_a);
    m.def("nearest_objects", &nearest_objects, "truth"_a, "found"_a, "target"_a.noconvert(),
          "rows"_a.noconvert(), "overlap"_a, "threads"_a);
    m.def("accumulate", &accumulate_rankings, "outcomes"_a, "thresholds"_a, "offsets"_a.noconvert(),
          "keep"_a.none(), "truth"_a.noconvert(), "recalls"_a.noconvert(), "known"_a,
          "ties"_a.none(), "points"_a, "threads"_a);
    m.def("curve_points", &curve_points_of, "outcomes"_a, "thresholds"_a, "scope"_a,
          "offsets"_a.noconvert(), "keep"_a.none(), "truth"_a.noconvert(), "recalls"_a.noconvert(),
          "score"_a.noconvert(), "threads"_a);
    m.def("find_ties", &find_tied_hits, "outcomes"_a, "offsets"_a.noconvert(), "scores"_a,
          "threads"_a);
    m.def("pool_outcomes", &pool_outcomes, "outcomes"_a, "order"_a.noconvert(),
          "offsets"_a.noconvert(), "member"_a.noconvert(), "threads"_a);
    m.attr("MOST_POOLS") = kMostPools;
}

}  // namespace lvdet
