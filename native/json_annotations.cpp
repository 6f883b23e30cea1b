#include <type_traits>

#include "json_masks.hpp"
#include "json_top.hpp"

namespace lvdet::json {

namespace {

class AnnotationBlock : public MaskedBlock {
   public:
    std::vector<std::int64_t> id, image_id, category_id;
    std::vector<double> area, box;
    std::vector<std::uint8_t> ignore, crowd;

    void clear(std::int64_t byte, const char* text) {
        restart(byte, text);
        id.clear();
        image_id.clear();
        category_id.clear();
        area.clear();
        box.clear();
        ignore.clear();
        crowd.clear();
    }
    void record(Cursor& cursor) {
        static constexpr auto keys = make_keys("id", "image_id", "category_id", "bbox", "area",
                                               "iscrowd", "ignore", "segmentation");
        const char* const at = cursor.position();
        unsigned seen = 0;
        id_ = image_id_ = category_id_ = 0;
        area_ = 0.0;
        box_ = {0, 0, 0, 0};
        ignore_ = crowd_ = 0;
        begin_mask();
        read_keys(cursor, keys, follows_, [&](int field) {
            seen |= 1u << field;
            switch (field) {
                case 0: read_integer(cursor, keys[0], id_); break;
                case 1: read_integer(cursor, keys[1], image_id_); break;
                case 2: read_integer(cursor, keys[2], category_id_); break;
                case 3: read_box(cursor, box_); break;
                case 4: read_real(cursor, keys[4], area_); break;
                case 5: read_flag(cursor, keys[5], crowd_); break;
                case 6: read_flag(cursor, keys[6], ignore_); break;
                default: read_segmentation(cursor);
            }
        });
        for (std::size_t field = 0; field < 5; ++field)
            if (!(seen >> field & 1)) report(at, std::string(keys[field]) + " is missing");
    }
    void keep() {
        id.push_back(id_);
        image_id.push_back(image_id_);
        category_id.push_back(category_id_);
        area.push_back(area_);
        box.insert(box.end(), box_.begin(), box_.end());
        ignore.push_back(ignore_);
        crowd.push_back(crowd_);
        keep_mask();
        ++rows_;
    }

   private:
    std::int64_t id_ = 0, image_id_ = 0, category_id_ = 0;
    double area_ = 0.0;
    std::array<double, 4> box_{};
    std::uint8_t ignore_ = 0, crowd_ = 0;
    std::array<std::int8_t, 9> follows_ = in_order<8>();
};

class ImageBlock : public BlockBase {
   public:
    std::vector<std::int64_t> id, negative, negative_end, not_exhaustive, not_exhaustive_end;
    std::vector<std::int32_t> height, width;
    std::vector<std::uint8_t> present;
    std::vector<std::string> file_names, addresses;

    void clear(std::int64_t byte, const char* text) {
        restart(byte, text);
        id.clear();
        negative.clear();
        negative_end.clear();
        not_exhaustive.clear();
        not_exhaustive_end.clear();
        height.clear();
        width.clear();
        present.clear();
        file_names.clear();
        addresses.clear();
    }
    void record(Cursor& cursor) {
        static constexpr auto keys = make_keys("id", "height", "width", "file_name", "coco_url",
                                               "neg_category_ids", "not_exhaustive_category_ids");
        const char* const at = cursor.position();
        id_ = height_ = width_ = 0;
        file_name_.clear();
        address_.clear();
        negative_.clear();
        not_exhaustive_.clear();
        seen_ = 0;
        read_keys(cursor, keys, follows_, [&](int field) {
            seen_ |= 1u << field;
            switch (field) {
                case 0: read_integer(cursor, keys[0], id_); break;
                case 1: read_size(cursor, keys[1], height_); break;
                case 2: read_size(cursor, keys[2], width_); break;
                case 3: read_text(cursor, keys[3], file_name_); break;
                case 4: {
                    // LVIS v1 names its files only at the end of this address: COCO's
                    // "train2017/000000000009.jpg".
                    std::string url;
                    if (!read_text(cursor, keys[4], url)) break;
                    std::size_t slash = url.rfind('/');
                    if (slash != std::string::npos && slash > 0) slash = url.rfind('/', slash - 1);
                    address_ = slash == std::string::npos ? url : url.substr(slash + 1);
                    break;
                }
                case 5: read_ids(cursor, keys[5], negative_); break;
                default: read_ids(cursor, keys[6], not_exhaustive_);
            }
        });
        if (!(seen_ & 1)) report(at, "id is missing");
    }
    void keep() {
        id.push_back(id_);
        height.push_back(static_cast<std::int32_t>(height_));
        width.push_back(static_cast<std::int32_t>(width_));
        negative.insert(negative.end(), negative_.begin(), negative_.end());
        negative_end.push_back(static_cast<std::int64_t>(negative.size()));
        not_exhaustive.insert(not_exhaustive.end(), not_exhaustive_.begin(), not_exhaustive_.end());
        not_exhaustive_end.push_back(static_cast<std::int64_t>(not_exhaustive.size()));
        // The two lists, then height and width.
        present.push_back(static_cast<std::uint8_t>((seen_ >> 5 & 3) | (seen_ >> 1 & 3) << 2));
        file_names.push_back(seen_ & 8u ? file_name_ : address_);
        addresses.push_back(address_);
        ++rows_;
    }

   private:
    void read_size(Cursor& cursor, std::string_view key, std::int64_t& value) {
        const char* const at = cursor.position();
        if (!read_integer(cursor, key, value) || (value >= 0 && value <= kLargestSide)) return;
        report(at, std::string(key) + " is " + std::to_string(value) + ", expected 0 to 1,000,000");
        value = 0;
    }
    void read_ids(Cursor& cursor, std::string_view key, std::vector<std::int64_t>& ids) {
        ids.clear();
        read_numbers(cursor, key, [&](Cursor& item) {
            std::int64_t value = 0;
            const char* const at = item.position();
            if (item.integer(value))
                ids.push_back(value);
            else
                report(at, "an item of " + std::string(key) + " is not an integer");
        });
    }

    std::int64_t id_ = 0, height_ = 0, width_ = 0;
    std::string file_name_, address_;
    std::vector<std::int64_t> negative_, not_exhaustive_;
    unsigned seen_ = 0;
    std::array<std::int8_t, 8> follows_ = in_order<7>();
};

class CategoryBlock : public BlockBase {
   public:
    std::vector<std::int64_t> id;
    std::vector<std::string> names, frequency;

    void clear(std::int64_t byte, const char* text) {
        restart(byte, text);
        id.clear();
        names.clear();
        frequency.clear();
    }
    void record(Cursor& cursor) {
        static constexpr auto keys = make_keys("id", "name", "frequency");
        const char* const at = cursor.position();
        unsigned seen = 0;
        id_ = 0;
        name_.clear();
        frequency_.clear();
        read_keys(cursor, keys, follows_, [&](int field) {
            seen |= 1u << field;
            switch (field) {
                case 0: read_integer(cursor, keys[0], id_); break;
                case 1: read_text(cursor, keys[1], name_); break;
                default:
                    if (read_text(cursor, keys[2], frequency_) && frequency_ != "r" &&
                        frequency_ != "c" && frequency_ != "f")
                        report(at, "frequency is not \"r\", \"c\" or \"f\"");
            }
        });
        if (!(seen & 1)) report(at, "id is missing");
    }
    void keep() {
        id.push_back(id_);
        names.push_back(name_);
        frequency.push_back(frequency_);
        ++rows_;
    }

   private:
    std::int64_t id_ = 0;
    std::string name_, frequency_;
    std::array<std::int8_t, 4> follows_ = in_order<3>();
};

}  // namespace

void read_annotations(const File& file, bool masks, int threads, std::size_t chunk,
                      const Control& control, AnnotationFile& out) {
    TopLevel top(file);
    if (top.at_end()) top.fail("the file is empty");
    if (top.peek() == '[')
        top.fail(
            "this is a list, like a results file, expected an annotation file: an object with "
            "images, annotations and categories");
    top.expect('{',
               "expected an annotation file: an object with images, annotations and "
               "categories");
    auto read_list = [&]<class Block>(std::type_identity<Block>, auto&& commit) {
        top.expect('[', "expected a list");
        top.seek(read_records<Block>(file, {top.position()}, file.size, Layout::array, threads,
                                     chunk, control, commit)
                     .byte);
    };
    auto commit_annotations = [&](AnnotationBlock& block) {
        AnnotationColumns& to = out.annotations;
        append_problems(out.problems, out.problem_count, block, to.rows, "annotations: ");
        append(to.id, block.id);
        append(to.image_id, block.image_id);
        append(to.category_id, block.category_id);
        append(to.box, block.box);
        append(to.area, block.area);
        append(to.ignore, block.ignore);
        append(to.crowd, block.crowd);
        if (masks) {
            to.masks.skip_to(static_cast<std::size_t>(to.rows) + block.rows_before_masks);
            to.masks.append_all(block.masks(), block.mask_kind.size());
        }
        to.rows += block.rows();
    };
    auto commit_images = [&](ImageBlock& block) {
        ImageColumns& to = out.images;
        append_problems(out.problems, out.problem_count, block, to.rows, "images: ");
        append(to.id, block.id);
        append(to.height, block.height);
        append(to.width, block.width);
        append(to.present, block.present);
        append_shifted(to.negative_end, block.negative_end, to.negative.size());
        append(to.negative, block.negative);
        append_shifted(to.not_exhaustive_end, block.not_exhaustive_end, to.not_exhaustive.size());
        append(to.not_exhaustive, block.not_exhaustive);
        to.file_names.insert(to.file_names.end(), block.file_names.begin(), block.file_names.end());
        to.addresses.insert(to.addresses.end(), block.addresses.begin(), block.addresses.end());
        to.rows += block.rows();
    };
    auto commit_categories = [&](CategoryBlock& block) {
        CategoryColumns& to = out.categories;
        append_problems(out.problems, out.problem_count, block, to.rows, "categories: ");
        append(to.id, block.id);
        to.names.insert(to.names.end(), block.names.begin(), block.names.end());
        to.frequency.insert(to.frequency.end(), block.frequency.begin(), block.frequency.end());
        to.rows += block.rows();
    };
    for (bool more = top.peek() != '}'; more; more = top.accept(',')) {
        const std::string key = top.key();
        top.expect(':', "expected ':'");
        auto once = [&](bool& seen) {
            if (seen) top.fail("the file contains this list twice");
            seen = true;
        };
        if (key == "annotations") {
            once(out.has_annotations);
            if (masks)
                read_list(std::type_identity<AnnotationBlock>{}, commit_annotations);
            else
                read_list(std::type_identity<WithoutMasks<AnnotationBlock>>{}, commit_annotations);
        } else if (key == "images") {
            once(out.has_images);
            read_list(std::type_identity<ImageBlock>{}, commit_images);
        } else if (key == "categories") {
            once(out.has_categories);
            read_list(std::type_identity<CategoryBlock>{}, commit_categories);
        } else {
            top.skip_value();
        }
    }
    top.expect('}', "expected ',' or '}'");
    if (!top.at_end()) top.fail("unexpected content after the end of the object");
}

}  // namespace lvdet::json
