// Overlaps of one object's box with those of many detections.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "iou.hpp"

namespace lvdet {

// The boxes of some detections, a column for each side, so that several are looked at at once.
class BoxOverlaps {
   public:
    void load(const double* boxes, const std::int32_t* rows, std::size_t count) {
        for (auto* column : {&left_, &top_, &right_, &bottom_, &area_}) column->resize(count);
        near_.resize(count);
        box_.resize(count);
        for (std::size_t d = 0; d < count; ++d) {
            const double* const box = box_[d] = boxes + 4 * static_cast<std::size_t>(rows[d]);
            left_[d] = box[0];
            top_[d] = box[1];
            right_[d] = box[2] + box[0];
            bottom_[d] = box[3] + box[1];
            area_[d] = box[2] * box[3];
        }
    }
    // Calls visit(d, IoU) for each detection whose IoU with the object is `lowest` or more, and
    // perhaps for some that are less by rounding.
    template <class Visit>
    void overlaps(const double* object, bool crowd, double lowest, Visit&& visit) {
        find_near(object, crowd, lowest * (1 - 1e-9));
        for (std::size_t d = 0; d < near_.size(); ++d)
            if (near_[d]) visit(d, box_iou(box_[d], object, crowd));
    }

   private:
    // Without a division and without a branch: most detections are nowhere near.
    void find_near(const double* object, bool crowd, double least) {
        const double right = object[2] + object[0], bottom = object[3] + object[1];
        const double area = crowd ? 0.0 : object[2] * object[3], both = crowd ? 0.0 : 1.0;
        for (std::size_t d = 0; d < near_.size(); ++d) {
            const double w = std::min(right_[d], right) - std::max(left_[d], object[0]);
            const double h = std::min(bottom_[d], bottom) - std::max(top_[d], object[1]);
            const double inner = w * h;
            near_[d] = (w > 0) & (h > 0) & (inner >= least * (area_[d] + area - both * inner));
        }
    }

    std::vector<const double*> box_;
    std::vector<double> left_, top_, right_, bottom_, area_;
    std::vector<std::uint8_t> near_;
};

}  // namespace lvdet
