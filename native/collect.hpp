// Detections from any number of files as columns: all of them, or only those that budgets can
// keep, with boxes and masks only where these can matter.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "columns.hpp"
#include "mask_columns.hpp"
#include "parallel.hpp"

namespace lvdet {

// What a row of each group has to exceed to be among the best `limit` of it, as far as is known:
// never more than it really has to.
class Floors {
   public:
    // `reached` are scores that enough rows elsewhere have, of the first groups: a row with exactly
    // such a score may still come before them.
    explicit Floors(std::size_t limit, std::vector<double> reached = {});
    void resize(std::size_t groups) {
        for (std::size_t group = floor_.size(); group < groups; ++group)
            floor_.push_back(!limit_                   ? kInfinity
                             : group < reached_.size() ? reached_[group]
                                                       : -kInfinity);
        best_.resize(groups);
    }
    // A row that comes now could be among the best; equal scores lose to earlier ones.
    bool passes(std::size_t group, double score) const { return score > floor_[group]; }
    // A row that came before still could.
    bool may_stay(std::size_t group, double score) const { return score >= floor_[group]; }
    // Takes in a row that passes.
    void note(std::size_t group, double score);

   private:
    static constexpr double kInfinity = std::numeric_limits<double>::infinity();
    std::size_t limit_;
    std::vector<double> reached_, floor_;
    std::vector<std::vector<double>> best_;  // of each group, up to half as many again as `limit`
};

// A limit on the rows of each group. Rows that can no longer be among the best of theirs are
// dropped while others are still being read.
struct Cap {
    bool by_image;  // groups are parts of an image; else classes
    std::int64_t limit;
    std::vector<std::int32_t> part;  // [classes known beforehand] the part, -1 for none
    std::int32_t parts;              // of an image
    std::int32_t others;             // the part of classes not known beforehand, -1 for none
    Floors floors;

    std::int64_t group(std::int32_t image, std::int32_t category) const {
        const auto c = static_cast<std::size_t>(category);
        const std::int32_t here = c < part.size() ? part[c] : others;
        if (here < 0) return -1;
        return by_image ? std::int64_t{image} * parts + here : category;
    }
    std::size_t groups(std::size_t images, std::size_t categories) const {
        return by_image ? images * static_cast<std::size_t>(parts) : categories;
    }
};

// The (image, class) pairs in which a detection can be matched or be wrong.
class VerifiedCells {
   public:
    VerifiedCells() = default;
    VerifiedCells(std::size_t images, std::size_t categories)
        : categories_(categories), bits_((images * categories + 63) / 64) {}
    bool everywhere() const { return bits_.empty(); }
    void add(std::size_t image, std::size_t category) {
        const std::size_t at = image * categories_ + category;
        bits_[at / 64] |= std::uint64_t{1} << at % 64;
    }
    bool has(std::int32_t image, std::int32_t category) const {
        const std::size_t at =
            static_cast<std::size_t>(image) * categories_ + static_cast<std::size_t>(category);
        return static_cast<std::size_t>(category) < categories_ && at / 64 < bits_.size() &&
               bits_[at / 64] >> at % 64 & 1;
    }

   private:
    std::size_t categories_ = 0;
    std::vector<std::uint64_t> bits_;
};

// Boxes x, y, w, h one after the other, or in four columns.
struct Boxes {
    const double *x, *y, *w, *h;
    std::size_t step;

    // Where there are no rows, `box` may be null.
    static Boxes rows(const double* box) {
        return box ? Boxes{box, box + 1, box + 2, box + 3, 4} : Boxes{box, box, box, box, 4};
    }
    void copy(std::size_t row, double* to) const {
        to[0] = x[row * step], to[1] = y[row * step], to[2] = w[row * step], to[3] = h[row * step];
    }
};

// Rows to be added; image and category are places among the collector's ids.
struct NewRows {
    std::size_t rows;
    const std::int32_t *image, *category;
    const double* score;
    Boxes box;
    std::size_t first_mask;
    MaskColumn masks;  // of the rows from `first_mask` on; none where null
};

class Collector {
   public:
    // Rows of images behind the first `images` are counted and dropped, where that is not 0.
    Collector(std::vector<Cap> caps, VerifiedCells cells, std::size_t images, std::size_t room,
              int threads)
        : caps_(std::move(caps)),
          cells_(std::move(cells)),
          images_(images),
          room_(room),
          threads_(threads) {}

    void add(const NewRows& block);
    // Keeps exactly the best of each group, where there are caps.
    void keep_best();
    // The values of the rows with a box, where not all have one.
    template <class T>
    Column<T> of_details(Column<T>& column) {
        Column<T> out;
        out.reserve(detail.size());
        T* const to = out.extend(detail.size());
        in_blocks(detail.size(), threads_, [&](std::size_t begin, std::size_t end) {
            for (std::size_t k = begin; k < end; ++k) to[k] = column.data()[detail.data()[k]];
        });
        return out;
    }
    // Says how many rows are expected, so that room for them is taken at once.
    void expect(std::size_t rows);

    IdIndex image_ids, category_ids;
    Column<std::int32_t> image, category;
    Column<double> score;
    Column<std::int32_t> detail;    // rows with a box, where not all have one
    Column<std::int64_t> file_row;  // where those were among all rows, once some are dropped
    Column<double> box;
    MaskColumns masks;       // of the rows with a box, from the first mask on
    std::int64_t total = 0;  // rows added
    // How many rows each id has, and which is its first.
    std::vector<std::int64_t> per_image, per_category, first_of_image;
    // Every row that is kept has a box.
    bool everywhere() const { return cells_.everywhere(); }
    // Rows were dropped.
    bool gaps() const { return gaps_; }
    // No row is dropped and every one has a box.
    bool whole() const { return caps_.empty() && everywhere(); }

   private:
    void add_all(const NewRows& block);
    void add_wanted(const NewRows& block);
    void count(const NewRows& block);
    std::size_t pick_wanted(const NewRows& block);
    std::size_t pick_details(const NewRows& block, std::size_t before, std::size_t count);
    bool take_wanted(std::int32_t at, std::int32_t of, double value);
    void note(std::int32_t at, std::int32_t of, double value);
    void begin_gaps();
    void begin_choosing();
    void size_floors();
    std::size_t images() const { return images_ ? images_ : image_ids.size(); }
    void drop_passed();
    void filter_rows(const std::vector<std::uint8_t>& keep);
    void filter_details(const std::vector<std::uint8_t>& keep);

    std::vector<Cap> caps_;
    VerifiedCells cells_;
    std::size_t images_;
    std::size_t room_;  // rows held before those that were passed by others are dropped
    bool choosing_ = false;
    bool gaps_ = false;
    std::vector<std::uint8_t> capped_;  // [classes] a cap counts its rows
    std::vector<std::int32_t> picked_;  // rows of the block that is added
    int threads_;
};

}  // namespace lvdet
