// Matching, accumulating, and what unmatched detections overlap.
#include "accumulate.hpp"
#include "bind_arrays.hpp"
#include "match.hpp"
#include "overlaps.hpp"

namespace lvdet {

namespace {

using ListPair = std::tuple<In<std::int64_t>, In<std::int32_t>>;

Lists lists_of(const std::optional<ListPair>& lists) {
    if (!lists) return {};
    return {std::get<0>(*lists).data(), std::get<1>(*lists).data()};
}

Overlap overlap_of(const std::string& name) {
    return name == "segm" ? Overlap::segm : name == "boundary" ? Overlap::boundary : Overlap::bbox;
}

nb::tuple failure_of(const MaskError& error) {
    return nb::make_tuple(std::string(error.what()), error.detection, error.row);
}

nb::dict match_detections(In<std::int32_t> gt_image, In<std::int32_t> gt_category,
                          In<double> gt_box, In<double> gt_area, In<std::uint8_t> gt_ignore,
                          In<std::uint8_t> gt_crowd, In<std::uint8_t> gt_reads_unmatched,
                          std::optional<MaskTuple> gt_masks, In<std::int32_t> image_height,
                          In<std::int32_t> image_width, std::size_t categories,
                          std::optional<ListPair> negative, std::optional<ListPair> not_exhaustive,
                          In<std::int32_t> dt_image, In<std::int32_t> dt_category,
                          In<std::int32_t> dt_image_rows, In<std::int32_t> dt_category_rows,
                          In<double> dt_score, In<double> dt_box, std::optional<MaskTuple> dt_masks,
                          const std::string& overlap, const std::vector<double>& thresholds,
                          const std::vector<double>& area_low, const std::vector<double>& area_high,
                          bool drop_empty, bool area_from_box, bool partners, int threads) {
    const Truth truth{gt_image.size(),
                      image_height.size(),
                      categories,
                      gt_image.data(),
                      gt_category.data(),
                      gt_box.data(),
                      gt_area.data(),
                      gt_ignore.data(),
                      gt_crowd.data(),
                      gt_reads_unmatched.data(),
                      column_of(gt_masks),
                      image_height.data(),
                      image_width.data(),
                      lists_of(negative),
                      lists_of(not_exhaustive)};
    const Found found{dt_image.size(),      dt_image.data(),         dt_category.data(),
                      dt_image_rows.data(), dt_category_rows.data(), dt_score.data(),
                      dt_box.data(),        column_of(dt_masks)};
    const Settings settings{overlap_of(overlap), thresholds,    area_low, area_high,
                            drop_empty,          area_from_box, partners, threads};
    Matched matched;
    nb::dict out;
    out["failure"] = nb::none();
    try {
        nb::gil_scoped_release release;
        matched = match(truth, found, settings);
    } catch (const MaskError& error) {
        out["failure"] = failure_of(error);
        return out;
    }
    const std::size_t rows = matched.detection.size(), areas = area_low.size();
    const std::size_t bytes = (thresholds.size() + 7) / 8;
    out["detection"] = take(std::move(matched.detection));
    out["position"] = take(std::move(matched.position));
    out["category_offsets"] = take(std::move(matched.category_offsets));
    out["outcomes"] = take(std::move(matched.outcomes), {rows, areas, 2, bytes});
    out["truth"] = take(std::move(matched.truth), {categories, areas});
    out["partner"] = nb::none();
    if (partners) out["partner"] = take(std::move(matched.partner), {rows, thresholds.size()});
    return out;
}

nb::dict nearest_objects(In<std::int32_t> gt_image, In<std::int32_t> gt_category, In<double> gt_box,
                         std::optional<MaskTuple> gt_masks, In<std::uint8_t> gt_target,
                         In<std::int32_t> image_height, In<std::int32_t> image_width,
                         In<std::int32_t> dt_image, In<std::int32_t> dt_category,
                         In<std::int32_t> dt_image_rows, In<std::int32_t> dt_category_rows,
                         In<double> dt_box, std::optional<MaskTuple> dt_masks,
                         In<std::int32_t> rows, const std::string& overlap, int threads) {
    Truth truth{};
    truth.rows = gt_image.size();
    truth.images = image_height.size();
    truth.image = gt_image.data();
    truth.category = gt_category.data();
    truth.box = gt_box.data();
    truth.masks = column_of(gt_masks);
    truth.height = image_height.data();
    truth.width = image_width.data();
    Found found{};
    found.rows = dt_image.size();
    found.image = dt_image.data();
    found.category = dt_category.data();
    found.image_rows = dt_image_rows.data();
    found.category_rows = dt_category_rows.data();
    found.box = dt_box.data();
    found.masks = column_of(dt_masks);
    Nearest best;
    nb::dict out;
    out["failure"] = nb::none();
    try {
        nb::gil_scoped_release release;
        best = nearest(truth, found, gt_target.data(), rows.data(), rows.size(),
                       overlap_of(overlap), threads);
    } catch (const MaskError& error) {
        out["failure"] = failure_of(error);
        return out;
    }
    out["truth"] = take(std::move(best.truth), {rows.size(), 2});
    out["overlap"] = take(std::move(best.overlap), {rows.size(), 2});
    return out;
}

nb::tuple accumulate_rankings(In<std::uint8_t> outcome_bits, std::size_t thresholds,
                              std::optional<In<std::int32_t>> order, In<std::int64_t> offsets,
                              std::optional<In<std::uint8_t>> keep, In<std::int64_t> truth,
                              In<double> recalls, bool points, int threads) {
    const std::size_t curves = offsets.size() - 1;
    const std::size_t areas = truth.shape(1);
    const Outcomes outcomes{outcome_bits.data(), outcome_bits.shape(1), outcome_bits.shape(3),
                            thresholds};
    const Rankings rankings{order ? order->data() : nullptr, offsets.data(), curves,
                            keep ? keep->data() : nullptr};
    auto precision = empty<double>({curves, areas, thresholds});
    auto recall = empty<double>({curves, areas, thresholds});
    auto at_recall = empty<double>({points ? curves : 0, areas, thresholds, kRecalls});
    {
        nb::gil_scoped_release release;
        accumulate(outcomes, rankings, areas, truth.data(), recalls.data(), precision.data(),
                   recall.data(), points ? at_recall.data() : nullptr, threads);
    }
    return nb::make_tuple(precision, recall, at_recall);
}

}  // namespace

void bind_match(nb::module_& m) {
    m.def("match", &match_detections, "gt_image"_a.noconvert(), "gt_category"_a.noconvert(),
          "gt_box"_a.noconvert(), "gt_area"_a.noconvert(), "gt_ignore"_a.noconvert(),
          "gt_crowd"_a.noconvert(), "gt_reads_unmatched"_a.noconvert(), "gt_masks"_a.none(),
          "image_height"_a.noconvert(), "image_width"_a.noconvert(), "categories"_a,
          "negative"_a.none(), "not_exhaustive"_a.none(), "dt_image"_a.noconvert(),
          "dt_category"_a.noconvert(), "dt_image_rows"_a.noconvert(),
          "dt_category_rows"_a.noconvert(), "dt_score"_a.noconvert(), "dt_box"_a.noconvert(),
          "dt_masks"_a.none(), "overlap"_a, "thresholds"_a, "area_low"_a, "area_high"_a,
          "drop_empty"_a, "area_from_box"_a, "partners"_a, "threads"_a);
    m.def("nearest_objects", &nearest_objects, "gt_image"_a.noconvert(),
          "gt_category"_a.noconvert(), "gt_box"_a.noconvert(), "gt_masks"_a.none(),
          "gt_target"_a.noconvert(), "image_height"_a.noconvert(), "image_width"_a.noconvert(),
          "dt_image"_a.noconvert(), "dt_category"_a.noconvert(), "dt_image_rows"_a.noconvert(),
          "dt_category_rows"_a.noconvert(), "dt_box"_a.noconvert(), "dt_masks"_a.none(),
          "rows"_a.noconvert(), "overlap"_a, "threads"_a);
    m.def("accumulate", &accumulate_rankings, "outcomes"_a.noconvert(), "thresholds"_a,
          "order"_a.none(), "offsets"_a.noconvert(), "keep"_a.none(), "truth"_a.noconvert(),
          "recalls"_a.noconvert(), "points"_a, "threads"_a);
}

}  // namespace lvdet
