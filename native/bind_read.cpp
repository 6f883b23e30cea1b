// Reading and writing files.
#include "bind_arrays.hpp"
#include "collect.hpp"
#include "finite.hpp"
#include "image_names.hpp"
#include "json_records.hpp"
#include "json_write.hpp"
#include "parallel.hpp"

namespace lvdet {

namespace {

using ControlArray = std::optional<InOut<std::int64_t>>;

json::Control control_of(const ControlArray& array) {
    json::Control control;
    if (array) {
        control.bytes = array->data();
        control.cancel = array->data() + 1;
        if (array->size() > 2) control.arrived = array->data() + 2;
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
        json::File source(descriptor);
        source.control = control_of(control);
        json::read_annotations(source, masks, threads, chunk, source.control, file);
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
    out["images.addresses"] = text_list(i.addresses);
    out["images.negative"] = take(i.negative);
    out["images.negative_end"] = take(i.negative_end);
    out["images.not_exhaustive"] = take(i.not_exhaustive);
    out["images.not_exhaustive_end"] = take(i.not_exhaustive_end);
    out["categories.id"] = take(file.categories.id);
    out["categories.names"] = text_list(file.categories.names);
    out["categories.frequency"] = text_list(file.categories.frequency);
    return out;
}

// A detections reader's caps: (by image, limit, part of each known class, parts, part of others,
// scores that enough rows of the first groups are known to have).
using CapTuple =
    std::tuple<bool, std::int64_t, In<std::int32_t>, std::int32_t, std::int32_t, In<double>>;
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

Collector make_collector(In<std::int64_t> image_ids, In<std::int64_t> category_ids,
                         const std::vector<CapTuple>& caps, const std::optional<CellTuple>& cells,
                         std::size_t room, std::size_t mask_bytes, const std::string& folder,
                         int threads) {
    std::vector<Cap> limits;
    for (const auto& [by_image, limit, part, parts, others, reached] : caps)
        limits.push_back({.by_image = by_image,
                          .limit = limit,
                          .part = {part.data(), part.data() + part.size()},
                          .parts = parts,
                          .others = others,
                          .floors = Floors(static_cast<std::size_t>(limit),
                                           {reached.data(), reached.data() + reached.size()})});
    Collector collector(
        std::move(limits),
        cells ? cells_of(*cells, image_ids.size(), category_ids.size()) : VerifiedCells(),
        image_ids.size(), room, threads);
    for (std::size_t i = 0; i < image_ids.size(); ++i) collector.image_ids[image_ids.data()[i]];
    for (std::size_t i = 0; i < category_ids.size(); ++i)
        collector.category_ids[category_ids.data()[i]];
    collector.masks.data.spill_beyond(mask_bytes, folder);
    return collector;
}

// Where a file is to be read on, and its size when reading began.
struct FilePlace {
    json::Place at;
    std::int64_t size;
};

// Adds the rows of a file from `place` on, or from its beginning, for about `most` bytes.
nb::dict collect_json(Collector& collector, int descriptor, bool masks, int threads,
                      std::size_t chunk, const ControlArray& control,
                      const std::optional<FilePlace>& place, std::int64_t most,
                      const ImageNames* names) {
    static const ImageNames unknown;
    json::File file = place ? json::File(descriptor, place->size) : json::File(descriptor);
    file.control = control_of(control);
    json::Place at = place ? place->at : json::Place{};
    json::DetectionReport report;
    nb::dict out;
    out["failure"] = failure_of([&] {
        json::read_detections(file, at, most, masks, names ? *names : unknown, threads, chunk,
                              file.control, collector, report);
    });
    const bool more = out["failure"].is_none() && !at.ended;
    out["place"] = more ? nb::cast(FilePlace{at, file.size}) : nb::none();
    out["problems"] = problem_list(report.problems);
    out["problem_count"] = report.problem_count;
    out["rows"] = report.rows;
    out["rows_with_masks"] = report.rows_with_masks;
    out["rows_without_box"] = report.rows_without_box;
    return out;
}

// The ids that texts name, 0 for those that name none, and (place, what) for each of these.
nb::tuple find_images(const ImageNames& names, const std::vector<std::string>& texts) {
    auto ids = zeros<std::int64_t>({texts.size()});
    nb::list problems;
    for (std::size_t i = 0; i < texts.size(); ++i) {
        std::string what;
        if (!names.find(texts[i], ids.data()[i], what)) {
            ids.data()[i] = 0;
            problems.append(nb::make_tuple(i, what));
        }
    }
    return nb::make_tuple(ids, problems);
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
    collector.add({.rows = rows,
                   .image = image.data(),
                   .category = category.data(),
                   .score = score.data(),
                   .box = box,
                   .first_mask = 0,
                   .masks = column_of(masks)});
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
    Column<std::int32_t> image, category;
    Column<double> score;
    {
        nb::gil_scoped_release release;
        if (exact) collector.keep_best();
        if (!collector.everywhere()) {
            image = collector.of_details(collector.image);
            category = collector.of_details(collector.category);
            score = collector.of_details(collector.score);
        }
    }
    nb::dict out;
    out["detailed"] = collector.everywhere()
                          ? nb::none()
                          : nb::object(nb::make_tuple(take(image), take(category), take(score)));
    const std::size_t details = collector.box.size() / 4;
    const bool with_masks = collector.masks.kind.size() > 0;
    if (with_masks) collector.masks.skip_to(details);
    out["image"] = take(collector.image);
    out["category"] = take(collector.category);
    out["score"] = take(collector.score);
    out["image_ids"] = take(std::vector(collector.image_ids.ids()));
    out["category_ids"] = take(std::vector(collector.category_ids.ids()));
    out["detail"] =
        collector.everywhere() ? nb::none() : nb::object(nb::cast(take(collector.detail)));
    out["file_row"] =
        collector.gaps() ? nb::object(nb::cast(take(collector.file_row))) : nb::none();
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
    const json::DetectionRows rows{.image = image.data(),
                                   .category = category.data(),
                                   .image_ids = image_ids.data(),
                                   .category_ids = category_ids.data(),
                                   .score = score.data(),
                                   .box = box.data(),
                                   .with_box = with_box,
                                   .masks = column_of(masks)};
    constexpr std::size_t kRows = 8192;
    std::vector<std::string> parts(count_blocks<kRows>(end - begin));
    std::size_t size = 0;
    {
        nb::gil_scoped_release release;
        in_blocks<kRows>(end - begin, threads, [&](std::size_t from, std::size_t to) {
            json::append_detections(rows, begin + from, begin + to, separator[0],
                                    parts[from / kRows]);
        });
        for (const auto& part : parts) size += part.size();
    }
    auto all =
        nb::steal<nb::bytes>(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size)));
    if (!all.is_valid()) nb::raise_python_error();
    char* to = PyBytes_AsString(all.ptr());
    for (const auto& part : parts) to = std::copy(part.begin(), part.end(), to);
    return all;
}

// Distinct ids by first appearance, and the place of each row's id among them.
nb::tuple encode_ids(In<std::int64_t> ids) {
    IdIndex index;
    auto rows = zeros<std::int32_t>({ids.size()});
    {
        nb::gil_scoped_release release;
        for (std::size_t i = 0; i < ids.size(); ++i) rows.data()[i] = index[ids.data()[i]];
    }
    return nb::make_tuple(take(std::vector(index.ids())), rows);
}

// The first row with a score or box that is not finite, or a negative size; -1 if all are good.
std::int64_t first_bad_row(In<double> score, In<double> box, int threads) {
    std::vector<std::int64_t> bad(count_blocks(score.size()), -1);
    {
        nb::gil_scoped_release release;
        in_blocks(score.size(), threads, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) {
                if (is_usable(score.data()[i], box.data() + 4 * i)) continue;
                bad[begin / kBlockRows] = static_cast<std::int64_t>(i);
                return;
            }
        });
    }
    for (const std::int64_t row : bad)
        if (row >= 0) return row;
    return -1;
}

}  // namespace

void bind_read(nb::module_& m) {
    nb::exception<CannotHold>(m, "CannotHold", PyExc_RuntimeError);
    nb::class_<FilePlace>(m, "FilePlace")
        .def_prop_ro("byte", [](const FilePlace& place) { return place.at.byte; })
        .def_prop_ro("row", [](const FilePlace& place) { return place.at.row; });
    nb::class_<ImageNames>(m, "ImageNames")
        .def(nb::init<>())
        .def(
            "__init__",
            [](ImageNames* self, In<std::int64_t> ids, std::vector<std::string> file_names) {
                new (self) ImageNames({ids.data(), ids.data() + ids.size()}, std::move(file_names));
            },
            "ids"_a.noconvert(), "file_names"_a)
        .def("find", &find_images, "texts"_a);
    nb::class_<Collector>(m, "Collector")
        .def(nb::new_(&make_collector), "image_ids"_a.noconvert(), "category_ids"_a.noconvert(),
             "caps"_a, "cells"_a.none(), "room"_a, "mask_bytes"_a, "folder"_a, "threads"_a)
        .def("read_json", &collect_json, "descriptor"_a, "masks"_a, "threads"_a, "chunk"_a,
             "control"_a.none(), "place"_a.none() = nb::none(),
             "most"_a = std::numeric_limits<std::int64_t>::max(), "names"_a.none() = nb::none())
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
    m.def("encode_ids", &encode_ids, "ids"_a.noconvert());
    m.def("first_bad_row", &first_bad_row, "score"_a.noconvert(), "box"_a.noconvert(), "threads"_a);
}

}  // namespace lvdet
