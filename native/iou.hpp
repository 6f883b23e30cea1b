// Overlap of boxes and of masks, computed in the order of operations of the COCO tools, so that
// an overlap exactly at a threshold falls on the same side.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rle.hpp"

namespace lvdet {

// Intersection over union; over the detection's own area where the ground truth is a crowd.
inline double box_iou(const double* dt, const double* gt, bool crowd) {
    const double w = std::min(dt[2] + dt[0], gt[2] + gt[0]) - std::max(dt[0], gt[0]);
    if (w <= 0) return 0.0;
    const double h = std::min(dt[3] + dt[1], gt[3] + gt[1]) - std::max(dt[1], gt[1]);
    if (h <= 0) return 0.0;
    const double inner = w * h;
    const double dt_area = dt[2] * dt[3];
    const double outer = crowd ? dt_area : dt_area + gt[2] * gt[3] - inner;
    return inner / outer;
}

// A mask ready to be compared.
struct Shape {
    Runs runs;
    std::uint64_t area = 0;
    Box box{};
};

inline double mask_iou(const Shape& dt, const Shape& gt, bool crowd) {
    const std::uint64_t inner = intersection(dt.runs, gt.runs);
    if (inner == 0) return 0.0;
    const std::uint64_t outer = crowd ? dt.area : dt.area + gt.area - inner;
    return static_cast<double>(inner) / static_cast<double>(outer);
}

// No less than mask_iou, at a fraction of its cost: what the areas and boxes allow at most.
inline double mask_iou_bound(const Shape& dt, const Shape& gt, bool crowd) {
    const double w =
        std::min(dt.box.x + dt.box.w, gt.box.x + gt.box.w) - std::max(dt.box.x, gt.box.x);
    const double h =
        std::min(dt.box.y + dt.box.h, gt.box.y + gt.box.h) - std::max(dt.box.y, gt.box.y);
    if (w <= 0 || h <= 0) return 0.0;
    const auto dt_area = static_cast<double>(dt.area), gt_area = static_cast<double>(gt.area);
    const double inner = std::min({w * h, dt_area, gt_area});
    return inner / (crowd ? dt_area : dt_area + gt_area - inner);
}

}  // namespace lvdet
