// Overlaps between masks of one image at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "bounds.hpp"
#include "iou.hpp"
#include "match.hpp"

namespace lvdet {

// Some detections and objects of an image, their masks ready to be compared; keeps its working
// memory from one image to the next.
class Comparer {
   public:
    Comparer(const Truth& truth, const Detections& found, Overlap overlap)
        : truth_(truth), found_(found), overlap_(overlap) {}

    void load(std::int32_t image, const std::int32_t* truth_rows, std::size_t truths,
              const std::int32_t* found_rows, std::size_t founds) {
        height_ = truth_.height[image];
        width_ = truth_.width[image];
        reach_ = boundary_reach(height_, width_);
        edge_of_ = -1;
        found_shapes_.resize(std::max(founds, found_shapes_.size()));
        for (std::size_t d = 0; d < founds; ++d) {
            load_mask(found_.masks, found_rows[d], true, found_shapes_[d]);
            if (truths == 0) continue;
            found_shapes_[d].box = mask_box(found_shapes_[d].runs, height_);
            require_edges(found_shapes_[d].box, true, found_rows[d]);
        }
        if (founds == 0) return;
        truth_shapes_.resize(std::max(truths, truth_shapes_.size()));
        truth_edges_.resize(truth_shapes_.size());
        for (std::size_t g = 0; g < truths; ++g) {
            load_mask(truth_.masks, truth_rows[g], false, truth_shapes_[g]);
            truth_shapes_[g].box = mask_box(truth_shapes_[g].runs, height_);
            if (overlap_ != Overlap::boundary) continue;
            require_edges(truth_shapes_[g].box, false, truth_rows[g]);
            truth_edges_[g].runs = boundary(truth_shapes_[g].runs, height_, width_, reach_);
            truth_edges_[g].area = mask_area(truth_edges_[g].runs);
        }
    }

    // Pixels of the d-th detection loaded.
    double found_area(std::size_t d) const { return static_cast<double>(found_shapes_[d].area); }

    // The overlap of the d-th detection and the g-th object loaded; where that is less than
    // `lowest`, anything less.
    double overlap(std::size_t d, std::size_t g, bool crowd, double lowest) const {
        const Shape &a = found_shapes_[d], &b = truth_shapes_[g];
        if (mask_iou_bound(a, b, crowd) < lowest) return 0.0;
        const double whole = mask_iou(a, b, crowd);
        if (overlap_ == Overlap::segm || crowd || whole < lowest) return whole;
        return std::min(whole, mask_iou(found_edges(d), truth_edges_[g], crowd));
    }

   private:
    const Shape& found_edges(std::size_t d) const {
        if (edge_of_ != static_cast<std::int64_t>(d)) {
            edge_.runs = boundary(found_shapes_[d].runs, height_, width_, reach_);
            edge_.area = mask_area(edge_.runs);
            edge_of_ = static_cast<std::int64_t>(d);
        }
        return edge_;
    }

    void require_edges(const Box& box, bool detection, std::int32_t row) const {
        if (overlap_ == Overlap::boundary && box.w * box.h > kLargestBoundary)
            throw MaskError(kBoundaryTooLarge, detection, row);
    }

    void load_mask(const MaskColumn& masks, std::int32_t row, bool detection, Shape& shape) const {
        if (const char* wrong =
                row_runs(masks, static_cast<std::size_t>(row), height_, width_, shape.runs))
            throw MaskError(wrong, detection, row);
        shape.area = mask_area(shape.runs);
    }

    const Truth& truth_;
    const Detections& found_;
    Overlap overlap_;
    std::int64_t height_ = 0, width_ = 0, reach_ = 0;
    std::vector<Shape> found_shapes_, truth_shapes_, truth_edges_;
    mutable Shape edge_;
    mutable std::int64_t edge_of_ = -1;
};

}  // namespace lvdet
