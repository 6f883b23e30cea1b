#include <cmath>
#include <cstdio>

#include "finite.hpp"
#include "json_masks.hpp"
#include "json_top.hpp"

namespace lvdet::json {

namespace {

class DetectionBlock : public MaskedBlock {
   public:
    IdIndex image_ids, category_ids;
    std::vector<std::int32_t> image, category;
    std::vector<double> score;
    std::vector<std::array<double, 4>> box;
    std::int64_t with_mask_count = 0, without_box_count = 0;
    const ImageNames* names = nullptr;

    void clear(std::int64_t byte, const char* text) {
        restart(byte, text);
        image_ids.clear();
        category_ids.clear();
        image.clear();
        category.clear();
        score.clear();
        box.clear();
        with_mask_count = without_box_count = 0;
    }
    void record(Cursor& cursor) {
        static constexpr auto keys = make_keys("image_id", "category_id", "bbox", "score",
                                               "segmentation", "annotations", "images");
        const char* const at = begin_ = cursor.position();
        box_missing_ = false;
        begin_mask();
        if (shape_.match(cursor, [&](int field, Cursor& item) __attribute__((always_inline)) {
                switch (field) {
                    case 0: return item.short_integer(image_id_);
                    case 1: return item.short_integer(category_id_);
                    case 2: return item.simple_numbers(box_);
                    default: return item.simple_number(score_);
                }
            }))
            return;
        unsigned seen = 0;
        image_id_ = category_id_ = 0;
        score_ = 0.0;
        box_ = {0, 0, 0, 0};
        read_keys(cursor, keys, follows_, [&](int field) {
            seen |= 1u << field;
            switch (field) {
                case 0: read_image(cursor, keys[0]); break;
                case 1: read_integer(cursor, keys[1], category_id_); break;
                case 2: read_box(cursor, box_); break;
                case 3: read_real(cursor, keys[3], score_); break;
                case 4: read_segmentation(cursor); break;
                default: cursor.skip_value();
            }
        });
        if ((seen & 0xf) == 0xf) {
            if (rows_ == 0) shape_.learn({at, cursor.position()}, keys);
            return;
        }
        if (seen >> 5)
            throw SyntaxError{at, "this is an annotation file, expected a list of detections"};
        for (const std::size_t field : {0, 1, 3})
            if (!(seen >> field & 1)) report(at, std::string(keys[field]) + " is missing");
        if (seen & 4) return;
        box_missing_ = true;
        if (kind_ != kMaskNone) {
            const Box made = box_of_mask();
            box_ = {made.x, made.y, made.w, made.h};
        } else if (!(seen & 16) || (with_masks && !reported())) {
            report(at, "has neither bbox nor segmentation");
        }
    }
    void keep() {
        with_mask_count += kind_ != kMaskNone;
        without_box_count += box_missing_;
        if (!is_usable(score_, box_.data())) report(begin_, unusable());
        image.push_back(image_ids[image_id_]);
        category.push_back(category_ids[category_id_]);
        score.push_back(score_);
        box.push_back(box_);
        keep_mask();
        ++rows_;
    }

   private:
    void read_image(Cursor& cursor, std::string_view key) {
        if (cursor.peek() != '"') {
            read_integer(cursor, key, image_id_);
            return;
        }
        const char* const at = cursor.position();
        const String name = cursor.string();
        if (name.raw == last_name_) {  // rows of an image mostly follow each other
            image_id_ = last_named_;
            return;
        }
        std::string text, what;
        append_unescaped(name, text);
        if (!names->find(text, image_id_, what)) {
            report(at, std::move(what));
        } else if (name.raw.size() <= kLongestName) {
            last_name_ = name.raw;
            last_named_ = image_id_;
        }
    }
    std::string unusable() const {
        const auto number = [](double value) {
            char text[32];
            std::snprintf(text, sizeof text, "%g", value);
            return std::string(text);
        };
        if (!std::isfinite(score_))
            return "score is " + number(score_) + ", expected a finite number";
        std::string list = "bbox is [";
        bool finite = true;
        for (std::size_t k = 0; k < 4; ++k) {
            list += (k ? ", " : "") + number(box_[k]);
            finite &= std::isfinite(box_[k]);
        }
        return list + (finite ? "], expected a non-negative width and height"
                              : "], expected finite numbers");
    }

    const char* begin_ = nullptr;  // of the record
    std::int64_t image_id_ = 0, category_id_ = 0;
    static constexpr std::size_t kLongestName = 1 << 12;  // kept, in bytes
    std::string last_name_ = "\"";                        // as it was written; at first, no string
    std::int64_t last_named_ = 0;
    double score_ = 0.0;
    std::array<double, 4> box_{};
    bool box_missing_ = false;
    std::array<std::int8_t, 8> follows_ = in_order<7>();
    Shape<4> shape_;
};

// A block's ids as places among all ids.
void rename(std::vector<std::int32_t>& rows, const IdIndex& block_ids, IdIndex& ids) {
    std::vector<std::int32_t> renamed;
    for (const std::int64_t id : block_ids.ids()) renamed.push_back(ids[id]);
    for (std::int32_t& row : rows) row = renamed[static_cast<std::size_t>(row)];
}

}  // namespace

void read_detections(const File& file, Place& place, std::int64_t most, bool masks,
                     const ImageNames& names, int threads, std::size_t chunk,
                     const Control& control, Collector& out, DetectionReport& report) {
    TopLevel top(file);
    if (top.at_end()) top.fail("the file is empty");
    const bool list = top.accept('[');
    if (!list && top.peek() != '{') top.fail("expected a list of detections, '['");
    const Layout layout = list ? Layout::array : Layout::lines;
    if (place.byte == 0) place.byte = top.position();
    const std::int64_t length = std::min(most, file.size - place.byte);
    auto commit = [&](DetectionBlock& block) {
        if (report.rows == 0 && block.rows() > 0) {
            // The first block tells how many rows to expect.
            const double bytes = static_cast<double>(
                std::min<std::int64_t>(static_cast<std::int64_t>(chunk), length));
            out.expect(static_cast<std::size_t>(1.05 * static_cast<double>(block.rows()) / bytes *
                                                static_cast<double>(length)));
        }
        rename(block.image, block.image_ids, out.image_ids);
        rename(block.category, block.category_ids, out.category_ids);
        out.add({.rows = static_cast<std::size_t>(block.rows()),
                 .image = block.image.data(),
                 .category = block.category.data(),
                 .score = block.score.data(),
                 .box = Boxes::rows(block.box.empty() ? nullptr : block.box.data()->data()),
                 .first_mask = block.rows_before_masks,
                 .masks = block.with_mask_count ? block.masks() : MaskColumn{}});
        append_problems(report.problems, report.problem_count, block, place.row + report.rows, "");
        report.rows += block.rows();
        report.rows_with_masks += block.with_mask_count;
        report.rows_without_box += block.without_box_count;
    };
    const std::int64_t until = place.byte + length;
    auto read = [&]<class Block>(Block empty) {
        empty.names = &names;
        return read_records<Block>(file, place, until, layout, threads, chunk, control, commit,
                                   empty);
    };
    place = masks ? read(DetectionBlock{}) : read(WithoutMasks<DetectionBlock>{});
    top.seek(place.byte);
    if (place.ended && !top.at_end()) top.fail("unexpected content after the end of the list");
}

}  // namespace lvdet::json
