#include "collect.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "rank.hpp"

namespace lvdet {

namespace {

constexpr auto kMostRows = static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max());

template <class T>
void filter(Column<T>& column, const std::vector<std::uint8_t>& keep, std::size_t width = 1) {
    T* const data = column.data();
    std::size_t to = 0;
    for (std::size_t i = 0; i < keep.size(); ++i) {
        if (!keep[i]) continue;
        for (std::size_t k = 0; k < width; ++k) data[to * width + k] = data[i * width + k];
        ++to;
    }
    column.shrink(to * width);
}

// Appends `count` of the values, those of `picked`; `all` where that is each of them.
template <class T>
void append_picked(Column<T>& column, const T* values, const std::vector<std::int32_t>& picked,
                   std::size_t count, bool all) {
    if (all) return column.append(values, count);
    T* const to = column.extend(count);
    for (std::size_t k = 0; k < count; ++k) to[k] = values[picked[k]];
}

}  // namespace

Floors::Floors(std::size_t limit, std::vector<double> reached)
    : limit_(limit), reached_(std::move(reached)) {
    for (double& score : reached_) score = std::nextafter(score, -kInfinity);
}

void Floors::note(std::size_t group, double score) {
    std::vector<double>& best = best_[group];
    const std::size_t most = limit_ + limit_ / 2 + 8;
    if (best.size() == best.capacity())
        best.reserve(std::min(most, std::max<std::size_t>(2 * best.size(), 16)));
    best.push_back(score);
    if (best.size() < most) return;
    const auto last = best.begin() + static_cast<std::ptrdiff_t>(limit_ - 1);
    std::nth_element(best.begin(), last, best.end(), std::greater<>());
    floor_[group] = *last;
    best.resize(limit_);
}

void Collector::expect(std::size_t rows) {
    rows += score.size();
    if (!caps_.empty()) rows = std::min(rows, room_);
    image.reserve(rows);
    category.reserve(rows);
    score.reserve(rows);
    if (everywhere()) box.reserve(4 * rows);
}

void Collector::add(const NewRows& block) {
    if (score.size() + block.rows > kMostRows)
        throw CannotHold("more than 2,147,483,647 detections");
    count(block);
    if (whole())
        add_all(block);
    else
        add_wanted(block);
    total += static_cast<std::int64_t>(block.rows);
    if (!caps_.empty() && score.size() >= room_) {
        if (!choosing_) begin_choosing();
        drop_passed();
        room_ = std::max(room_, score.size() + score.size() * 2 / 5);
    }
}

void Collector::count(const NewRows& block) {
    per_image.resize(image_ids.size(), 0);
    first_of_image.resize(image_ids.size(), -1);
    per_category.resize(category_ids.size(), 0);
    if (choosing_) size_floors();
    while (capped_.size() < category_ids.size())
        capped_.push_back(std::any_of(caps_.begin(), caps_.end(), [&](const Cap& cap) {
            return cap.group(0, static_cast<std::int32_t>(capped_.size())) >= 0;
        }));
    for (std::size_t i = 0; i < block.rows; ++i) {
        const auto at = static_cast<std::size_t>(block.image[i]);
        if (per_image[at]++ == 0) first_of_image[at] = total + static_cast<std::int64_t>(i);
        ++per_category[static_cast<std::size_t>(block.category[i])];
    }
}

void Collector::add_all(const NewRows& block) {
    image.append(block.image, block.rows);
    category.append(block.category, block.rows);
    score.append(block.score, block.rows);
    if (block.box.step == 4) {
        box.append(block.box.x, 4 * block.rows);
    } else {
        double* place = box.extend(4 * block.rows);
        for (std::size_t i = 0; i < block.rows; ++i) block.box.copy(i, place + 4 * i);
    }
    if (!block.masks.kind) return;
    // Files without masks pay nothing for them: the columns begin with the first mask.
    masks.skip_to(score.size() - block.rows + block.first_mask);
    masks.append_all(block.masks, block.rows - block.first_mask);
}

void Collector::add_wanted(const NewRows& block) {
    const std::size_t before = score.size(), count = pick_wanted(block);
    const bool all = count == block.rows;
    if (!all) begin_gaps();
    append_picked(image, block.image, picked_, count, all);
    append_picked(category, block.category, picked_, count, all);
    append_picked(score, block.score, picked_, count, all);
    const std::size_t details = everywhere() ? count : pick_details(block, before, count);
    const std::size_t first = box.size() / 4;
    if (gaps_) {
        std::int64_t* const to = file_row.extend(details);
        for (std::size_t k = 0; k < details; ++k) to[k] = total + picked_[k];
    }
    double* to_box = box.extend(4 * details);
    for (std::size_t k = 0; k < details; ++k)
        block.box.copy(static_cast<std::size_t>(picked_[k]), to_box + 4 * k);
    if (!block.masks.kind) return;
    for (std::size_t k = 0; k < details; ++k) {
        const auto row = static_cast<std::size_t>(picked_[k]);
        if (row < block.first_mask) continue;
        masks.skip_to(first + k);
        masks.append(block.masks, row - block.first_mask);
    }
}

// From now on rows are not where they were in the file; small files seldom pay for that.
void Collector::begin_gaps() {
    if (gaps_) return;
    gaps_ = true;
    const std::size_t rows = box.size() / 4;
    std::int64_t* const to = file_row.extend(rows);
    for (std::size_t k = 0; k < rows; ++k)
        to[k] = everywhere() ? static_cast<std::int64_t>(k) : detail.data()[k];
}

// Picks the rows that may be among the best of a group; returns how many. Rows are written before
// it is known whether they are picked: half of them may be, and no branch could be foretold.
std::size_t Collector::pick_wanted(const NewRows& block) {
    if (picked_.size() < block.rows) picked_.resize(block.rows);
    std::size_t count = 0;
    for (std::size_t i = 0; i < block.rows; ++i) {
        const std::int32_t at = block.image[i], of = block.category[i];
        picked_[count] = static_cast<std::int32_t>(i);
        if (choosing_)
            count += take_wanted(at, of, block.score[i]);
        else  // until there are many rows, any of a class that counts may be
            count += caps_.empty() | ((static_cast<std::size_t>(at) < images()) &
                                      capped_[static_cast<std::size_t>(of)]);
    }
    return count;
}

// Picks those of the picked rows that are in cells that count. The first is row `before`.
std::size_t Collector::pick_details(const NewRows& block, std::size_t before, std::size_t count) {
    std::int32_t* const to = detail.extend(count);
    std::size_t details = 0;
    for (std::size_t k = 0; k < count; ++k) {
        const std::int32_t i = picked_[k];
        to[details] = static_cast<std::int32_t>(before + k);
        picked_[details] = i;
        details += cells_.has(block.image[i], block.category[i]);
    }
    detail.shrink(detail.size() - count + details);
    return details;
}

// The row may be among the best of a group, and is taken in.
bool Collector::take_wanted(std::int32_t at, std::int32_t of, double value) {
    if (static_cast<std::size_t>(at) >= images()) return false;
    const bool wanted = std::any_of(caps_.begin(), caps_.end(), [&](const Cap& cap) {
        const std::int64_t group = cap.group(at, of);
        return group >= 0 && cap.floors.passes(static_cast<std::size_t>(group), value);
    });
    if (wanted) note(at, of, value);
    return wanted;
}

void Collector::note(std::int32_t at, std::int32_t of, double value) {
    for (Cap& cap : caps_) {
        const std::int64_t group = cap.group(at, of);
        if (group >= 0 && cap.floors.passes(static_cast<std::size_t>(group), value))
            cap.floors.note(static_cast<std::size_t>(group), value);
    }
}

// From now on it is known what rows have to exceed; small files never pay for that.
void Collector::begin_choosing() {
    choosing_ = true;
    size_floors();
    for (std::size_t i = 0; i < score.size(); ++i)
        note(image.data()[i], category.data()[i], score.data()[i]);
}

void Collector::size_floors() {
    for (Cap& cap : caps_) cap.floors.resize(cap.groups(images(), category_ids.size()));
}

// Drops the rows that so many better ones have followed that no group keeps them.
void Collector::drop_passed() {
    std::vector<std::uint8_t> keep(score.size(), 0);
    for (std::size_t i = 0; i < keep.size(); ++i)
        for (const Cap& cap : caps_) {
            const std::int64_t group = cap.group(image.data()[i], category.data()[i]);
            keep[i] |=
                group >= 0 && cap.floors.may_stay(static_cast<std::size_t>(group), score.data()[i]);
        }
    filter_rows(keep);
}

void Collector::keep_best() {
    if (caps_.empty()) return;
    const std::size_t rows = score.size();
    std::vector<std::uint8_t> keep(rows, 0), best(rows);
    std::vector<std::int32_t> group(rows);
    for (const Cap& cap : caps_) {
        for (std::size_t i = 0; i < rows; ++i) {
            group[i] = static_cast<std::int32_t>(cap.group(image.data()[i], category.data()[i]));
            best[i] = group[i] >= 0;
        }
        keep_top(group.data(), cap.groups(images(), category_ids.size()), score.data(), rows,
                 cap.limit, best.data(), threads_);
        for (std::size_t i = 0; i < rows; ++i) keep[i] |= best[i];
    }
    filter_rows(keep);
}

void Collector::filter_details(const std::vector<std::uint8_t>& keep) {
    filter(box, keep, 4);
    filter(file_row, keep);
    if (masks.kind.size() == 0) return;
    masks.skip_to(keep.size());
    masks.filter(keep.data());
}

void Collector::filter_rows(const std::vector<std::uint8_t>& keep) {
    begin_gaps();
    if (everywhere())
        filter_details(keep);
    else {
        std::vector<std::uint8_t> keep_detail(detail.size());
        std::int32_t* const rows = detail.data();
        std::size_t row = 0, kept = 0;
        for (std::size_t k = 0; k < detail.size(); ++k) {
            for (; row < static_cast<std::size_t>(rows[k]); ++row) kept += keep[row];
            keep_detail[k] = keep[row];
            rows[k] = static_cast<std::int32_t>(kept);
        }
        filter(detail, keep_detail);
        filter_details(keep_detail);
    }
    filter(image, keep);
    filter(category, keep);
    filter(score, keep);
}

}  // namespace lvdet
