// The Python module lvdet._native: arrays in, arrays out. Callers validate; nothing is
// converted, and the GIL is released while kernels run.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "accumulate.hpp"
#include "collect.hpp"
#include "finite.hpp"
#include "json_records.hpp"
#include "json_write.hpp"
#include "match.hpp"
#include "parallel.hpp"
#include "rank.hpp"
#include "rle.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace lvdet;

namespace {

template <class T>
using In = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
template <class T>
using InOut = nb::ndarray<T, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<nb::numpy, T, nb::c_contig>;

template <class T>
Out<T> wrap(T* data, std::initializer_list<std::size_t> shape, void (*free)(void*) noexcept) {
    nb::capsule owner(data, free);
    return Out<T>(data, shape, owner);
}
// An array that takes over a column's storage.
template <class T>
Out<T> take(Column<T>& column, std::size_t width = 0) {
    const std::size_t size = column.size();
    T* data = column.release();
    auto free = [](void* p) noexcept { std::free(p); };
    if (width) return wrap<T>(data, {size / width, width}, free);
    return wrap<T>(data, {size}, free);
}
Out<std::uint8_t> take(Bytes& bytes) {
    const Bytes::Storage storage = bytes.release();
    nb::capsule owner(new Bytes::Storage(storage), [](void* p) noexcept {
        auto* kept = static_cast<Bytes::Storage*>(p);
        Bytes::unmap_or_free(kept->data, kept->mapped);
        delete kept;
    });
    const std::size_t size[1] = {storage.size};
    return Out<std::uint8_t>(storage.data, 1, size, owner);
}
template <class T>
Out<T> take(std::vector<T>&& values, std::initializer_list<std::size_t> shape = {}) {
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    if (shape.size()) return Out<T>(kept->data(), shape, owner);
    const std::size_t size[1] = {kept->size()};
    return Out<T>(kept->data(), 1, size, owner);
}
template <class T>
Out<T> take_ids(const std::vector<T>& values) {
    return take(std::vector<T>(values));
}

template <class T>
Out<T> empty(std::initializer_list<std::size_t> shape) {
    std::size_t size = 1;
    for (const std::size_t n : shape) size *= n;
    T* data = new T[size]();
    return wrap<T>(data, shape, [](void* p) noexcept { delete[] static_cast<T*>(p); });
}

using ControlArray = std::optional<InOut<std::int64_t>>;

json::Control control_of(const ControlArray& array) {
    json::Control control;
    if (array) {
        control.bytes = reinterpret_cast<std::atomic<std::int64_t>*>(array->data());
        control.cancel = reinterpret_cast<std::atomic<std::int64_t>*>(array->data() + 1);
    }
    return control;
}

nb::list problem_list(const std::vector<json::Problem>& problems) {
    nb::list out;
    for (const auto& problem : problems)
        out.append(nb::make_tuple(problem.row, problem.byte, problem.what));
    return out;
}

nb::list text_list(const std::vector<std::string>& values) {
    nb::list out;
    for (const auto& value : values)
        out.append(nb::steal(
            PyUnicode_DecodeUTF8(value.data(), static_cast<Py_ssize_t>(value.size()), "replace")));
    return out;
}

nb::dict mask_dict(MaskColumns& masks) {
    Column<std::int64_t> offsets;
    *offsets.extend(1) = 0;
    offsets.append(masks.end.data(), masks.end.size());
    masks.end = {};
    nb::dict out;
    out["data"] = take(masks.data);
    out["offsets"] = take(offsets);
    out["kind"] = take(masks.kind);
    out["height"] = take(masks.height);
    out["width"] = take(masks.width);
    return out;
}

// Runs a reader without the GIL; a file that cannot be read is reported as (what, byte, row).
template <class Read>
nb::object failure_of(Read&& read) {
    try {
        nb::gil_scoped_release release;
        read();
    } catch (const json::FileError& error) {
        return nb::make_tuple(std::string(error.what()), error.byte, error.row);
    }
    return nb::none();
}

nb::dict read_annotations_json(int descriptor, bool masks, int threads, std::size_t chunk,
                               const ControlArray& control) {
    json::AnnotationFile file;
    nb::dict out;
    out["failure"] = failure_of([&] {
        json::read_annotations(json::File(descriptor), masks, threads, chunk, control_of(control),
                               file);
    });
    out["problems"] = problem_list(file.problems);
    out["problem_count"] = file.problem_count;
    out["has"] = nb::make_tuple(file.has_images, file.has_annotations, file.has_categories);
    json::AnnotationColumns& a = file.annotations;
    out["id"] = take(a.id);
    out["image_id"] = take(a.image_id);
    out["category_id"] = take(a.category_id);
    out["box"] = take(a.box, 4);
    out["area"] = take(a.area);
    out["ignore"] = take(a.ignore);
    out["crowd"] = take(a.crowd);
    out["masks"] = masks ? nb::object(mask_dict(a.masks)) : nb::none();
    json::ImageColumns& i = file.images;
    out["images.id"] = take(i.id);
    out["images.height"] = take(i.height);
    out["images.width"] = take(i.width);
    out["images.present"] = take(i.present);
    out["images.file_names"] = text_list(i.file_names);
    out["images.negative"] = take(i.negative);
    out["images.negative_end"] = take(i.negative_end);
    out["images.not_exhaustive"] = take(i.not_exhaustive);
    out["images.not_exhaustive_end"] = take(i.not_exhaustive_end);
    out["categories.id"] = take(file.categories.id);
    out["categories.names"] = text_list(file.categories.names);
    out["categories.frequency"] = text_list(file.categories.frequency);
    return out;
}

using MaskTuple = std::tuple<In<std::uint8_t>, In<std::int64_t>, In<std::uint8_t>, In<std::int32_t>,
                             In<std::int32_t>>;

MaskColumn column_of(const MaskTuple& masks) {
    // An empty array may have no storage; the column must still read as present.
    static const std::uint8_t none = 0;
    const std::uint8_t* data = std::get<0>(masks).data();
    return {data ? data : &none, std::get<1>(masks).data(), std::get<2>(masks).data(),
            std::get<3>(masks).data(), std::get<4>(masks).data()};
}
MaskColumn column_of(const std::optional<MaskTuple>& masks) {
    return masks ? column_of(*masks) : MaskColumn{};
}

// A detections reader's caps: (by image, limit, part of each known class, parts, part of others).
using CapTuple = std::tuple<bool, std::int64_t, In<std::int32_t>, std::int32_t, std::int32_t>;
// Where detections count: images and classes of objects, and lists of classes verified absent.
using CellTuple =
    std::tuple<In<std::int32_t>, In<std::int32_t>, In<std::int64_t>, In<std::int32_t>>;

VerifiedCells cells_of(const CellTuple& lists, std::size_t images, std::size_t categories) {
    VerifiedCells cells(images, categories);
    const auto& [image, category, offsets, absent] = lists;
    for (std::size_t i = 0; i < image.size(); ++i)
        cells.add(static_cast<std::size_t>(image.data()[i]),
                  static_cast<std::size_t>(category.data()[i]));
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i)
        for (std::int64_t k = offsets.data()[i]; k < offsets.data()[i + 1]; ++k)
            if (absent.data()[k] >= 0) cells.add(i, static_cast<std::size_t>(absent.data()[k]));
    return cells;
}

Collector* make_collector(In<std::int64_t> image_ids, In<std::int64_t> category_ids,
                          const std::vector<CapTuple>& caps, const std::optional<CellTuple>& cells,
                          std::size_t room, std::size_t mask_bytes, const std::string& folder,
                          int threads) {
    std::vector<Cap> limits;
    for (const auto& [by_image, limit, part, parts, others] : caps)
        limits.push_back({by_image,
                          limit,
                          {part.data(), part.data() + part.size()},
                          parts,
                          others,
                          Floors(static_cast<std::size_t>(limit))});
    auto* collector = new Collector(
        std::move(limits),
        cells ? cells_of(*cells, image_ids.size(), category_ids.size()) : VerifiedCells(), room,
        threads);
    for (std::size_t i = 0; i < image_ids.size(); ++i) collector->image_ids[image_ids.data()[i]];
    for (std::size_t i = 0; i < category_ids.size(); ++i)
        collector->category_ids[category_ids.data()[i]];
    collector->masks.data.spill_beyond(mask_bytes, folder);
    return collector;
}

nb::dict collect_json(Collector& collector, int descriptor, bool masks, int threads,
                      std::size_t chunk, const ControlArray& control) {
    json::DetectionReport report;
    nb::dict out;
    out["failure"] = failure_of([&] {
        json::read_detections(json::File(descriptor), masks, threads, chunk, control_of(control),
                              collector, report);
    });
    out["problems"] = problem_list(report.problems);
    out["problem_count"] = report.problem_count;
    out["rows"] = report.rows;
    out["rows_with_masks"] = report.rows_with_masks;
    out["rows_without_box"] = report.rows_without_box;
    return out;
}

// Adds rows; false where a score or box of them cannot be used.
bool collect_rows(Collector& collector, In<std::int64_t> image_id, In<std::int64_t> category_id,
                  In<double> score, const Boxes& box, const std::optional<MaskTuple>& masks) {
    nb::gil_scoped_release release;
    const std::size_t rows = score.size();
    std::vector<std::int32_t> image(rows), category(rows);
    for (std::size_t i = 0; i < rows; ++i) image[i] = collector.image_ids[image_id.data()[i]];
    for (std::size_t i = 0; i < rows; ++i)
        category[i] = collector.category_ids[category_id.data()[i]];
    bool usable = true;
    double here[4];
    for (std::size_t i = 0; i < rows; ++i) {
        box.copy(i, here);
        usable &= is_usable(score.data()[i], here);
    }
    collector.add({rows, image.data(), category.data(), score.data(), box, 0, column_of(masks)});
    return usable;
}

bool collect_boxes(Collector& collector, In<std::int64_t> image_id, In<std::int64_t> category_id,
                   In<double> score, In<double> box, const std::optional<MaskTuple>& masks) {
    return collect_rows(collector, image_id, category_id, score, Boxes::rows(box.data()), masks);
}

bool collect_sides(Collector& collector, In<std::int64_t> image_id, In<std::int64_t> category_id,
                   In<double> score, In<double> x, In<double> y, In<double> w, In<double> h,
                   const std::optional<MaskTuple>& masks) {
    return collect_rows(collector, image_id, category_id, score,
                        {x.data(), y.data(), w.data(), h.data(), 1}, masks);
}

// All that was collected, and the collector is empty.
nb::dict collected(Collector& collector, bool exact) {
    if (exact) {
        nb::gil_scoped_release release;
        collector.keep_best();
    }
    nb::dict out;
    const std::size_t details = collector.box.size() / 4;
    const bool with_masks = collector.masks.kind.size() > 0;
    if (with_masks) collector.masks.skip_to(details);
    out["image"] = take(collector.image);
    out["category"] = take(collector.category);
    out["score"] = take(collector.score);
    out["image_ids"] = take_ids(collector.image_ids.ids());
    out["category_ids"] = take_ids(collector.category_ids.ids());
    out["detail"] =
        collector.everywhere() ? nb::none() : nb::object(nb::cast(take(collector.detail)));
    out["file_row"] =
        collector.whole() ? nb::none() : nb::object(nb::cast(take(collector.file_row)));
    out["box"] = take(collector.box, 4);
    out["masks"] = with_masks ? nb::object(mask_dict(collector.masks)) : nb::none();
    out["total"] = collector.total;
    collector.per_image.resize(collector.image_ids.size());
    collector.first_of_image.resize(collector.image_ids.size(), -1);
    collector.per_category.resize(collector.category_ids.size());
    out["per_image"] = take(std::move(collector.per_image));
    out["first_of_image"] = take(std::move(collector.first_of_image));
    out["per_class"] = take(std::move(collector.per_category));
    return out;
}

nb::bytes detections_json(In<std::int32_t> image, In<std::int32_t> category,
                          In<std::int64_t> image_ids, In<std::int64_t> category_ids,
                          In<double> score, In<double> box, bool with_box,
                          std::optional<MaskTuple> masks, std::size_t begin, std::size_t end,
                          const std::string& separator, int threads) {
    const json::DetectionRows rows{
        image.data(), category.data(), image_ids.data(), category_ids.data(),
        score.data(), box.data(),      with_box,         column_of(masks)};
    constexpr std::size_t kRows = 8192;
    std::vector<std::string> parts((end - begin + kRows - 1) / kRows);
    std::string all;
    {
        nb::gil_scoped_release release;
        parallel_for(parts.size(), threads, [&](std::size_t part) {
            const std::size_t from = begin + part * kRows;
            json::append_detections(rows, from, std::min(end, from + kRows), separator[0],
                                    parts[part]);
        });
        for (const auto& part : parts) all += part;
    }
    return nb::bytes(all.data(), all.size());
}

nb::list segmentations_json(const MaskTuple& masks) {
    const MaskColumn column = column_of(masks);
    nb::list out;
    std::string text;
    for (std::size_t i = 0; i < std::get<2>(masks).size(); ++i) {
        text.clear();
        json::append_segmentation(column, i, text);
        out.append(nb::str(text.data(), text.size()));
    }
    return out;
}

nb::tuple rle_encode(In<std::uint32_t> counts, In<std::int64_t> offsets) {
    std::vector<std::uint8_t> data;
    std::vector<std::int64_t> ends{0};
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
        const std::int64_t from = offsets.data()[i];
        encode_runs(counts.data() + from, static_cast<std::size_t>(offsets.data()[i + 1] - from),
                    data);
        ends.push_back(static_cast<std::int64_t>(data.size()));
    }
    return nb::make_tuple(take(std::move(data)), take(std::move(ends)));
}

// The bytes of some rows of a mask column, one after the other: (data, offsets).
nb::tuple take_masks(In<std::uint8_t> data, In<std::int64_t> offsets, In<std::int64_t> rows) {
    Column<std::uint8_t> taken;
    std::vector<std::int64_t> ends{0};
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::int64_t row = rows.data()[i];
        const std::int64_t from = offsets.data()[row];
        taken.append(data.data() + from, static_cast<std::size_t>(offsets.data()[row + 1] - from));
        ends.push_back(static_cast<std::int64_t>(taken.size()));
    }
    return nb::make_tuple(take(taken), take(std::move(ends)));
}

nb::bytes polygon_bytes(const std::vector<std::vector<double>>& parts) {
    std::vector<std::uint8_t> out;
    encode_polygons(parts, out);
    return nb::bytes(out.data(), out.size());
}

// The runs of each mask at the given sizes: (counts, offsets).
nb::tuple mask_runs(const MaskTuple& masks, In<std::int32_t> height, In<std::int32_t> width,
                    bool edges) {
    const MaskColumn column = column_of(masks);
    std::vector<std::uint32_t> counts;
    std::vector<std::int64_t> ends{0};
    Runs runs;
    for (std::size_t i = 0; i < std::get<2>(masks).size(); ++i) {
        const std::int64_t h = height.data()[i], w = width.data()[i];
        if (const char* wrong = row_runs(column, i, h, w, runs))
            throw nb::value_error((std::string(wrong) + ", row " + std::to_string(i)).c_str());
        if (edges) runs = boundary(runs, h, w, boundary_reach(h, w));
        counts.insert(counts.end(), runs.begin(), runs.end());
        ends.push_back(static_cast<std::int64_t>(counts.size()));
    }
    return nb::make_tuple(take(std::move(counts)), take(std::move(ends)));
}

Out<double> mask_boxes(const MaskTuple& masks) {
    const MaskColumn column = column_of(masks);
    const std::size_t rows = std::get<2>(masks).size();
    auto out = empty<double>({rows, 4});
    Runs runs;
    for (std::size_t i = 0; i < rows; ++i) {
        if (column.kind[i] == kMaskNone) continue;
        if (const char* wrong = check_row(column, i))
            throw nb::value_error((std::string(wrong) + ", row " + std::to_string(i)).c_str());
        Box box{0, 0, 0, 0};
        if (column.kind[i] == kMaskPolygons) {
            box = polygon_box(column.data + column.offsets[i]);
        } else {
            row_runs(column, i, column.height[i], column.width[i], runs);
            box = mask_box(runs, column.height[i]);
        }
        double* to = out.data() + 4 * i;
        to[0] = box.x, to[1] = box.y, to[2] = box.w, to[3] = box.h;
    }
    return out;
}

// What is wrong with the masks: a list of (row, what).
nb::list mask_problems(const MaskTuple& masks) {
    const MaskColumn column = column_of(masks);
    nb::list out;
    for (std::size_t i = 0; i < std::get<2>(masks).size(); ++i)
        if (const char* wrong = check_row(column, i)) out.append(nb::make_tuple(i, wrong));
    return out;
}

void keep_top_rows(In<std::int32_t> group, std::size_t groups, In<double> score, std::int64_t limit,
                   InOut<std::uint8_t> keep, int threads) {
    nb::gil_scoped_release release;
    keep_top(group.data(), groups, score.data(), score.size(), limit, keep.data(), threads);
}

Out<std::int32_t> order_by_falling_score(In<double> score) {
    auto out = empty<std::int32_t>({score.size()});
    nb::gil_scoped_release release;
    order_by_score(score.data(), score.size(), out.data());
    return out;
}

Out<std::int64_t> count_group_rows(In<std::int32_t> group, std::size_t groups) {
    std::vector<std::int64_t> count;
    {
        nb::gil_scoped_release release;
        count = count_rows(group.data(), groups, group.size());
    }
    return take(std::move(count));
}

nb::tuple number_row_pairs(In<std::int32_t> a, std::size_t a_count, In<std::int32_t> b,
                           std::size_t b_count) {
    auto out = empty<std::int32_t>({a.size()});
    std::int64_t count = 0;
    {
        nb::gil_scoped_release release;
        count = number_pairs(a.data(), a_count, b.data(), b_count, a.size(), out.data());
    }
    return nb::make_tuple(out, count);
}

// The rows of each group by falling score, and where each group begins.
nb::tuple rank_group_rows(In<std::int32_t> group, std::size_t groups, In<double> score,
                          int threads) {
    Grouping out;
    {
        nb::gil_scoped_release release;
        out = rank_groups(group.data(), groups, score.data(), score.size(), threads);
    }
    return nb::make_tuple(take(std::move(out.rows)), take(std::move(out.offsets)));
}

using OrderingTuple = std::tuple<In<std::int32_t>, In<std::int64_t>>;

Ordering ordering_of(const OrderingTuple& ordering) {
    const auto& [rows, offsets] = ordering;
    return {rows.data(), offsets.data(), offsets.size() - 1};
}

Out<std::int32_t> find_row_places(const OrderingTuple& ordering, In<std::int32_t> wanted,
                                  int threads) {
    auto out = empty<std::int32_t>({wanted.size()});
    nb::gil_scoped_release release;
    find_places(ordering_of(ordering), std::get<0>(ordering).size(), wanted.data(), wanted.size(),
                out.data(), threads);
    return out;
}

Out<std::int32_t> count_rows_before(const OrderingTuple& ordering,
                                    std::optional<In<std::uint8_t>> keep, In<std::int32_t> place,
                                    In<std::int32_t> group, int threads) {
    auto out = empty<std::int32_t>({place.size()});
    nb::gil_scoped_release release;
    count_before(ordering_of(ordering), keep ? keep->data() : nullptr, place.data(), group.data(),
                 place.size(), out.data(), threads);
    return out;
}

Out<std::uint8_t> keep_first_rows(const OrderingTuple& ordering,
                                  std::optional<In<std::uint8_t>> keep, std::int64_t limit,
                                  int threads) {
    auto out = empty<std::uint8_t>({std::get<0>(ordering).size()});
    nb::gil_scoped_release release;
    keep_first(ordering_of(ordering), keep ? keep->data() : nullptr, limit, out.data(), threads);
    return out;
}

// flags[group] of every row.
Out<std::uint8_t> take_flags(In<std::uint8_t> flags, In<std::int32_t> group, int threads) {
    auto out = empty<std::uint8_t>({group.size()});
    nb::gil_scoped_release release;
    in_blocks(group.size(), threads,
              [to = out.data(), from = flags.data(), at = group.data()](std::size_t begin,
                                                                        std::size_t end) {
                  for (std::size_t i = begin; i < end; ++i) to[i] = from[at[i]];
              });
    return out;
}

// Distinct ids by first appearance, and the place of each row's id among them.
nb::tuple encode_ids(In<std::int64_t> ids) {
    IdIndex index;
    auto rows = empty<std::int32_t>({ids.size()});
    {
        nb::gil_scoped_release release;
        for (std::size_t i = 0; i < ids.size(); ++i) rows.data()[i] = index[ids.data()[i]];
    }
    return nb::make_tuple(take_ids(index.ids()), rows);
}

// The first row with a score or box that is not finite, or a negative size; -1 if all are good.
std::int64_t first_bad_row(In<double> score, In<double> box, int threads) {
    constexpr std::size_t kRows = 1 << 16;
    const std::size_t rows = score.size();
    std::vector<std::int64_t> bad((rows + kRows - 1) / kRows, -1);
    {
        nb::gil_scoped_release release;
        parallel_for(bad.size(), threads, [&](std::size_t part) {
            const std::size_t end = std::min(rows, (part + 1) * kRows);
            for (std::size_t i = part * kRows; i < end; ++i) {
                if (is_usable(score.data()[i], box.data() + 4 * i)) continue;
                bad[part] = static_cast<std::int64_t>(i);
                return;
            }
        });
    }
    for (const std::int64_t row : bad)
        if (row >= 0) return row;
    return -1;
}

using ListPair = std::tuple<In<std::int64_t>, In<std::int32_t>>;

Lists lists_of(const std::optional<ListPair>& lists) {
    if (!lists) return {};
    return {std::get<0>(*lists).data(), std::get<1>(*lists).data()};
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
                          bool drop_empty, bool area_from_box, int threads) {
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
    const Settings settings{overlap == "segm"       ? Overlap::segm
                            : overlap == "boundary" ? Overlap::boundary
                                                    : Overlap::bbox,
                            thresholds,
                            area_low,
                            area_high,
                            drop_empty,
                            area_from_box,
                            threads};
    Matched matched;
    nb::dict out;
    out["failure"] = nb::none();
    try {
        nb::gil_scoped_release release;
        matched = match(truth, found, settings);
    } catch (const MaskError& error) {
        out["failure"] = nb::make_tuple(std::string(error.what()), error.detection, error.row);
        return out;
    }
    const std::size_t rows = matched.detection.size(), areas = area_low.size();
    const std::size_t bytes = (thresholds.size() + 7) / 8;
    out["detection"] = take(std::move(matched.detection));
    out["position"] = take(std::move(matched.position));
    out["category_offsets"] = take(std::move(matched.category_offsets));
    out["outcomes"] = take(std::move(matched.outcomes), {rows, areas, 2, bytes});
    out["truth"] = take(std::move(matched.truth), {categories, areas});
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

NB_MODULE(_native, m) {
    nb::class_<Collector>(m, "Collector")
        .def(nb::new_(&make_collector), "image_ids"_a.noconvert(), "category_ids"_a.noconvert(),
             "caps"_a, "cells"_a.none(), "room"_a, "mask_bytes"_a, "folder"_a, "threads"_a)
        .def("read_json", &collect_json, "descriptor"_a, "masks"_a, "threads"_a, "chunk"_a,
             "control"_a.none())
        .def("expect", &Collector::expect, "rows"_a)
        .def("add", &collect_boxes, "image_id"_a.noconvert(), "category_id"_a.noconvert(),
             "score"_a.noconvert(), "box"_a.noconvert(), "masks"_a.none())
        .def("add_sides", &collect_sides, "image_id"_a.noconvert(), "category_id"_a.noconvert(),
             "score"_a.noconvert(), "x"_a.noconvert(), "y"_a.noconvert(), "w"_a.noconvert(),
             "h"_a.noconvert(), "masks"_a.none())
        .def("collected", &collected, "exact"_a);
    m.def("read_annotations_json", &read_annotations_json, "descriptor"_a, "masks"_a, "threads"_a,
          "chunk"_a, "control"_a.none());
    m.def("detections_json", &detections_json, "image"_a.noconvert(), "category"_a.noconvert(),
          "image_ids"_a.noconvert(), "category_ids"_a.noconvert(), "score"_a.noconvert(),
          "box"_a.noconvert(), "with_box"_a, "masks"_a.none(), "begin"_a, "end"_a, "separator"_a,
          "threads"_a);
    m.def("segmentations_json", &segmentations_json, "masks"_a);
    m.def("rle_encode", &rle_encode, "counts"_a.noconvert(), "offsets"_a.noconvert());
    m.def("take_masks", &take_masks, "data"_a.noconvert(), "offsets"_a.noconvert(),
          "rows"_a.noconvert());
    m.def("polygon_bytes", &polygon_bytes, "parts"_a);
    m.def("mask_runs", &mask_runs, "masks"_a, "height"_a.noconvert(), "width"_a.noconvert(),
          "edges"_a);
    m.def("mask_boxes", &mask_boxes, "masks"_a);
    m.def("mask_problems", &mask_problems, "masks"_a);
    m.def("keep_top", &keep_top_rows, "group"_a.noconvert(), "groups"_a, "score"_a.noconvert(),
          "limit"_a, "keep"_a.noconvert(), "threads"_a);
    m.def("count_rows", &count_group_rows, "group"_a.noconvert(), "groups"_a);
    m.def("order_by_falling_score", &order_by_falling_score, "score"_a.noconvert());
    m.def("number_pairs", &number_row_pairs, "a"_a.noconvert(), "a_count"_a, "b"_a.noconvert(),
          "b_count"_a);
    m.def("rank_groups", &rank_group_rows, "group"_a.noconvert(), "groups"_a, "score"_a.noconvert(),
          "threads"_a);
    m.def("find_places", &find_row_places, "ordering"_a, "wanted"_a.noconvert(), "threads"_a);
    m.def("count_before", &count_rows_before, "ordering"_a, "keep"_a.none(), "place"_a.noconvert(),
          "group"_a.noconvert(), "threads"_a);
    m.def("keep_first", &keep_first_rows, "ordering"_a, "keep"_a.none(), "limit"_a, "threads"_a);
    m.def("take_flags", &take_flags, "flags"_a.noconvert(), "group"_a.noconvert(), "threads"_a);
    m.def("encode_ids", &encode_ids, "ids"_a.noconvert());
    m.def("first_bad_row", &first_bad_row, "score"_a.noconvert(), "box"_a.noconvert(), "threads"_a);
    m.def("match", &match_detections, "gt_image"_a.noconvert(), "gt_category"_a.noconvert(),
          "gt_box"_a.noconvert(), "gt_area"_a.noconvert(), "gt_ignore"_a.noconvert(),
          "gt_crowd"_a.noconvert(), "gt_reads_unmatched"_a.noconvert(), "gt_masks"_a.none(),
          "image_height"_a.noconvert(), "image_width"_a.noconvert(), "categories"_a,
          "negative"_a.none(), "not_exhaustive"_a.none(), "dt_image"_a.noconvert(),
          "dt_category"_a.noconvert(), "dt_image_rows"_a.noconvert(),
          "dt_category_rows"_a.noconvert(), "dt_score"_a.noconvert(), "dt_box"_a.noconvert(),
          "dt_masks"_a.none(), "overlap"_a, "thresholds"_a, "area_low"_a, "area_high"_a,
          "drop_empty"_a, "area_from_box"_a, "threads"_a);
    m.def("accumulate", &accumulate_rankings, "outcomes"_a.noconvert(), "thresholds"_a,
          "order"_a.none(), "offsets"_a.noconvert(), "keep"_a.none(), "truth"_a.noconvert(),
          "recalls"_a.noconvert(), "points"_a, "threads"_a);
}
