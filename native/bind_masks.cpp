// Encoded masks.
#include <stdexcept>

#include "bind_arrays.hpp"
#include "iou.hpp"
#include "json_write.hpp"
#include "parallel.hpp"
#include "paste.hpp"

namespace lvdet {

namespace {

// Refuses a row with which something is wrong.
void require(const char* wrong, std::size_t row) {
    if (wrong) throw std::invalid_argument(wrong + (", row " + std::to_string(row)));
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

// Maps in their boxes as strings: (data, offsets).
nb::tuple paste_masks_of(In<float> map, In<double> box, In<std::int32_t> height,
                         In<std::int32_t> width, int threads) {
    const PasteInput input{.map = map.data(),
                           .box = box.data(),
                           .height = height.data(),
                           .width = width.data(),
                           .masks = map.shape(0),
                           .side = map.shape(1)};
    EncodedMasks out;
    {
        nb::gil_scoped_release release;
        out = paste_masks(input, threads);
    }
    return nb::make_tuple(take(std::move(out.data)), take(std::move(out.offsets)));
}

// The bytes of some rows of a mask column, one after another: (data, offsets).
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
        require(row_runs(column, i, h, w, runs), i);
        const Box box = edges ? mask_box(runs, h) : Box{0, 0, 0, 0};
        require(box.w * box.h > kLargestBoundary ? kBoundaryTooLarge : nullptr, i);
        if (edges) runs = boundary(runs, h, w, boundary_reach(h, w));
        counts.insert(counts.end(), runs.begin(), runs.end());
        ends.push_back(static_cast<std::int64_t>(counts.size()));
    }
    return nb::make_tuple(take(std::move(counts)), take(std::move(ends)));
}

// The columns of pixels that the edges of all polygons cross in images of these widths.
std::uint64_t mask_crossings(const MaskTuple& masks, In<std::int32_t> width) {
    const MaskColumn column = column_of(masks);
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < std::get<2>(masks).size(); ++i) {
        const std::uint8_t* const data = column.data + column.offsets[i];
        const auto size = static_cast<std::size_t>(column.offsets[i + 1] - column.offsets[i]);
        if (column.kind[i] != kMaskPolygons || check_polygons(data, size)) continue;
        for_each_polygon(
            data, [&](const std::vector<double>& xy) { sum += crossings(xy, width.data()[i]); });
    }
    return sum;
}

Out<double> mask_boxes(const MaskTuple& masks) {
    const MaskColumn column = column_of(masks);
    const std::size_t rows = std::get<2>(masks).size();
    auto out = zeros<double>({rows, 4});
    Runs runs;
    for (std::size_t i = 0; i < rows; ++i) {
        if (column.kind[i] == kMaskNone) continue;
        require(check_row(column, i), i);
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

std::vector<Shape> shapes_of(const MaskColumn& column, std::size_t rows) {
    std::vector<Shape> shapes(rows);
    for (std::size_t i = 0; i < rows; ++i) {
        require(row_runs(column, i, column.height[i], column.width[i], shapes[i].runs), i);
        shapes[i].area = mask_area(shapes[i].runs);
        shapes[i].box = mask_box(shapes[i].runs, column.height[i]);
    }
    return shapes;
}

// Overlaps of every detection with every object, [D, G]; -1 where masks whose boxes overlap differ
// in size.
Out<double> mask_overlaps(const MaskTuple& found, const MaskTuple& truth, In<std::uint8_t> crowd,
                          int threads) {
    const MaskColumn dt = column_of(found), gt = column_of(truth);
    const std::vector<Shape> dt_shapes = shapes_of(dt, std::get<2>(found).size());
    const std::vector<Shape> gt_shapes = shapes_of(gt, std::get<2>(truth).size());
    auto out = zeros<double>({dt_shapes.size(), gt_shapes.size()});
    double* const to = out.data();
    nb::gil_scoped_release release;
    parallel_for(dt_shapes.size(), threads, [&](std::size_t d) {
        for (std::size_t g = 0; g < gt_shapes.size(); ++g) {
            if (mask_iou_bound(dt_shapes[d], gt_shapes[g], crowd.data()[g] != 0) == 0) continue;
            const bool same = dt.height[d] == gt.height[g] && dt.width[d] == gt.width[g];
            to[d * gt_shapes.size() + g] =
                same ? mask_iou(dt_shapes[d], gt_shapes[g], crowd.data()[g] != 0) : -1.0;
        }
    });
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

}  // namespace

void bind_masks(nb::module_& m) {
    m.attr("LARGEST_SIDE") = kLargestSide;
    m.attr("FARTHEST") = kFarthest;
    m.attr("LARGEST_MASK") = kLargestMask;
    m.attr("MOST_CROSSINGS") = kMostCrossings;
    m.attr("CROSSINGS") = kCrossings;
    m.attr("CROSSINGS_PER_BYTE") = kCrossingsPerByte;
    m.attr("LARGEST_BOUNDARY") = static_cast<std::int64_t>(kLargestBoundary);
    m.attr("DEEPEST") = kDeepest;
    m.attr("LONGEST_NUMBER") = kLongestNumber;
    m.attr("LARGEST_RECORD") = kLargestRecord;
    m.def("segmentations_json", &segmentations_json, "masks"_a);
    m.def("rle_encode", &rle_encode, "counts"_a.noconvert(), "offsets"_a.noconvert());
    m.def("paste_masks", &paste_masks_of, "map"_a.noconvert(), "box"_a.noconvert(),
          "height"_a.noconvert(), "width"_a.noconvert(), "threads"_a);
    m.def("take_masks", &take_masks, "data"_a.noconvert(), "offsets"_a.noconvert(),
          "rows"_a.noconvert());
    m.def("polygon_bytes", &polygon_bytes, "parts"_a);
    m.def("mask_crossings", &mask_crossings, "masks"_a, "width"_a.noconvert());
    m.def("mask_runs", &mask_runs, "masks"_a, "height"_a.noconvert(), "width"_a.noconvert(),
          "edges"_a);
    m.def("mask_boxes", &mask_boxes, "masks"_a);
    m.def("mask_overlaps", &mask_overlaps, "found"_a, "truth"_a, "crowd"_a.noconvert(),
          "threads"_a);
    m.def("mask_problems", &mask_problems, "masks"_a);
}

}  // namespace lvdet
