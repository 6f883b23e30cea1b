#include "json_records.hpp"

#include <array>
#include <cmath>
#include <string_view>
#include <type_traits>

#include "finite.hpp"
#include "rle.hpp"

namespace lvdet::json {

namespace {

constexpr std::size_t kProblemsKept = 10000;

const char* kind_name(const Cursor& cursor) {
    switch (cursor.kind()) {
        case Kind::object: return "an object";
        case Kind::array: return "a list";
        case Kind::string: return "a string";
        case Kind::number: return "a number";
        case Kind::literal: return cursor.peek() == 'n' ? "null" : "true or false";
    }
    return "something else";
}

// The keys a record may have, each compared with the text in two words.
template <std::size_t N>
class Keys {
   public:
    constexpr explicit Keys(const std::array<std::string_view, N>& names) : names_(names) {
        for (std::size_t i = 0; i < N; ++i)
            for (std::size_t k = 0; k < 16 && k <= names[i].size(); ++k) {
                const char c = k < names[i].size() ? names[i][k] : '"';
                word_[i][k / 8] |= std::uint64_t{static_cast<unsigned char>(c)} << (k % 8 * 8);
                mask_[i][k / 8] |= std::uint64_t{0xff} << (k % 8 * 8);
            }
    }
    constexpr std::string_view operator[](std::size_t i) const { return names_[i]; }
    // `text`, after an opening quote, is key i and a closing quote.
    bool at(std::size_t i, const char* text) const {
        if (((detail::load8(text) ^ word_[i][0]) & mask_[i][0]) |
            ((detail::load8(text + 8) ^ word_[i][1]) & mask_[i][1]))
            return false;
        const std::string_view name = names_[i];
        return name.size() < 16 || (std::memcmp(text, name.data(), name.size()) == 0 &&
                                    text[name.size()] == '"');
    }

   private:
    std::array<std::string_view, N> names_;
    std::uint64_t word_[N][2] = {};
    std::uint64_t mask_[N][2] = {};
};
template <class... Names>
constexpr auto make_keys(Names... names) {
    return Keys<sizeof...(Names)>({std::string_view(names)...});
}

// What all blocks share: where their text stands in the file, and what was wrong in it.
class BlockBase {
   public:
    std::int64_t rows() const { return rows_; }
    void drop() {
        for (; !problems.empty() && problems.back().row == rows_; problems.pop_back())
            --problem_count;
    }
    std::vector<Problem> problems;
    std::int64_t problem_count = 0;

   protected:
    void restart(std::int64_t byte, const char* text) {
        byte_ = byte;
        text_ = text;
        rows_ = 0;
        problems.clear();
        problem_count = 0;
    }
    void report(const char* at, std::string what) {
        ++problem_count;
        if (problems.size() < kProblemsKept)
            problems.push_back({rows_, byte_ + (at - text_), std::move(what)});
    }
    void report_kind(Cursor& cursor, std::string_view key, const char* expected) {
        report(cursor.position(),
               std::string(key) + " is " + kind_name(cursor) + ", expected " + expected);
        cursor.skip_value();
    }

    bool read_integer(Cursor& cursor, std::string_view key, std::int64_t& value) {
        if (!cursor.at_number()) {
            report_kind(cursor, key, "a whole number");
            return false;
        }
        const char* at = cursor.position();
        if (cursor.integer(value)) return true;
        report(at, std::string(key) + " is " +
                       std::string(at, static_cast<std::size_t>(cursor.position() - at)) +
                       ", expected a whole number");
        return false;
    }
    bool read_real(Cursor& cursor, std::string_view key, double& value) {
        if (!cursor.at_number()) {
            report_kind(cursor, key, "a number");
            return false;
        }
        value = cursor.number();
        return true;
    }
    bool read_flag(Cursor& cursor, std::string_view key, std::uint8_t& value) {
        if (cursor.kind() == Kind::literal) {
            if (cursor.literal("true")) return value = 1, true;
            if (cursor.literal("false")) return value = 0, true;
        } else if (cursor.kind() == Kind::number) {
            value = cursor.number() != 0.0;
            return true;
        }
        report_kind(cursor, key, "0 or 1");
        return false;
    }
    bool read_text(Cursor& cursor, std::string_view key, std::string& value) {
        if (cursor.kind() != Kind::string) {
            report_kind(cursor, key, "a string");
            return false;
        }
        value.clear();
        append_unescaped(cursor.string(), value);
        return true;
    }
    // A list whose items are numbers, given to visit(number) one by one.
    template <class Visit>
    bool read_numbers(Cursor& cursor, std::string_view key, Visit&& visit) {
        if (cursor.peek() != '[') {
            report_kind(cursor, key, "a list of numbers");
            return false;
        }
        cursor.expect('[', "");
        cursor.skip_space();
        if (cursor.accept(']')) return true;
        bool good = true;
        for (;;) {
            if (cursor.at_number()) {
                visit(cursor);
            } else {
                report_kind(cursor, std::string("an item of ") + std::string(key), "a number");
                good = false;
            }
            cursor.skip_space();
            if (cursor.accept(']')) return good;
            cursor.expect(',', "expected ',' or ']'");
            cursor.skip_space();
        }
    }
    bool read_box(Cursor& cursor, std::array<double, 4>& box) {
        const char* at = cursor.position();
        std::size_t count = 0;
        if (!read_numbers(cursor, "bbox", [&](Cursor& item) {
                const double value = item.number();
                if (count < 4) box[count] = value;
                ++count;
            }))
            return false;
        if (count == 4) return true;
        report(at, "bbox has " + std::to_string(count) + " numbers, expected 4 [x, y, w, h]");
        return false;
    }

    // The keys of one record, each given to visit(field) with the cursor at its value. `keys` are
    // the known ones; others are skipped. Records of a file have their keys in the same order,
    // so the key after the last one is tried first.
    template <std::size_t N, class Visit>
    void read_keys(Cursor& cursor, const Keys<N>& keys,
                   std::array<std::int8_t, N + 1>& follows, Visit&& visit) {
        cursor.expect('{', "expected '{'");
        cursor.skip_space();
        if (cursor.accept('}')) return;
        std::size_t last = N;
        for (;;) {
            int field = -1;
            const int guess = follows[last];
            if (guess >= 0 && cursor.peek() == '"') {
                const auto at = static_cast<std::size_t>(guess);
                const char* text = cursor.position() + 1;
                if (keys.at(at, text)) {
                    field = guess;
                    cursor.seek(text + keys[at].size() + 1);
                }
            }
            if (field < 0) {
                const String name = cursor.string();
                std::string plain;
                std::string_view key = name.raw;
                if (name.escaped) {
                    append_unescaped(name, plain);
                    key = plain;
                }
                for (std::size_t i = 0; i < N; ++i)
                    if (keys[i] == key) field = static_cast<int>(i);
                if (field >= 0) follows[last] = static_cast<std::int8_t>(field);
            }
            cursor.skip_space();
            cursor.expect(':', "expected ':'");
            cursor.skip_space();
            if (field >= 0) {
                last = static_cast<std::size_t>(field);
                visit(field);
            } else {
                cursor.skip_value();
            }
            cursor.skip_space();
            if (cursor.accept('}')) return;
            cursor.expect(',', "expected ',' or '}'");
            cursor.skip_space();
        }
    }

    std::int64_t byte_ = 0;
    const char* text_ = nullptr;
    std::int64_t rows_ = 0;
};

template <std::size_t N>
constexpr std::array<std::int8_t, N + 1> in_order() {
    std::array<std::int8_t, N + 1> follows{};
    for (std::size_t i = 0; i < N; ++i) follows[i] = static_cast<std::int8_t>(i + 1 < N ? i + 1 : -1);
    follows[N] = 0;
    return follows;
}

// A block of records that may carry masks.
class MaskedBlock : public BlockBase {
   public:
    bool with_masks = true;
    std::vector<std::uint8_t> mask_data, mask_kind;
    std::vector<std::int64_t> mask_end;
    std::vector<std::int32_t> mask_height, mask_width;
    std::size_t rows_before_masks = 0;

   protected:
    void restart(std::int64_t byte, const char* text) {
        BlockBase::restart(byte, text);
        mask_data.clear();
        mask_kind.clear();
        mask_end.clear();
        mask_height.clear();
        mask_width.clear();
        rows_before_masks = 0;
    }
    void begin_mask() {
        kind_ = kMaskNone;
        height_ = width_ = 0;
        mask_begin_ = mask_end.empty() ? 0 : static_cast<std::size_t>(mask_end.back());
        if (mask_data.size() != mask_begin_) mask_data.resize(mask_begin_);
    }
    // Rows before the first mask are left out, and counted in again when the block is committed.
    void keep_mask() {
        if (kind_ == kMaskNone && mask_kind.empty()) {
            ++rows_before_masks;
            return;
        }
        mask_kind.push_back(kind_);
        mask_end.push_back(static_cast<std::int64_t>(mask_data.size()));
        mask_height.push_back(height_);
        mask_width.push_back(width_);
    }

    void read_segmentation(Cursor& cursor) {
        mask_data.resize(mask_begin_);
        kind_ = kMaskNone;
        if (!with_masks) return cursor.skip_value();
        switch (cursor.kind()) {
            case Kind::object: return read_rle(cursor);
            case Kind::array: return read_polygons(cursor);
            default:
                if (cursor.literal("null")) return;
                report_kind(cursor, "segmentation", "RLE {size, counts} or a list of polygons");
        }
    }
    Box box_of_mask() const {
        if (kind_ == kMaskPolygons) return polygon_box(mask_data.data() + mask_begin_);
        Runs runs;
        decode_runs(mask_data.data() + mask_begin_, mask_data.size() - mask_begin_, runs);
        return mask_box(runs, height_);
    }

    std::uint8_t kind_ = kMaskNone;
    std::int32_t height_ = 0, width_ = 0;

   private:
    void read_rle(Cursor& cursor) {
        static constexpr auto keys = make_keys("size", "counts");
        const char* const at = cursor.position();
        std::array<std::int64_t, 2> size = {-1, -1};
        std::size_t sizes = 0;
        bool counted = false, good = true;
        std::string text;
        read_keys(cursor, keys, rle_follows_, [&](int field) {
            if (field == 0) {
                sizes = 0;
                good &= read_numbers(cursor, "segmentation size", [&](Cursor& item) {
                    std::int64_t value = -1;
                    if (!item.integer(value)) value = -1;
                    if (sizes < 2) size[sizes] = value;
                    ++sizes;
                });
            } else if (cursor.kind() == Kind::string) {
                counted = true;
                const String counts = cursor.string();
                std::string_view raw = counts.raw;
                if (counts.escaped) {
                    text.clear();
                    append_unescaped(counts, text);
                    raw = text;
                }
                mask_data.resize(mask_begin_);
                mask_data.insert(mask_data.end(), raw.begin(), raw.end());
            } else {
                counted = true;
                runs_.clear();
                good &= read_numbers(cursor, "segmentation counts", [&](Cursor& item) {
                    std::int64_t value = -1;
                    if (!item.integer(value) || value < 0 || value > 0xffffffffLL) {
                        if (good) report(item.position(), "RLE has a run that is not a length");
                        good = false;
                        value = 0;
                    }
                    runs_.push_back(static_cast<std::uint32_t>(value));
                });
                mask_data.resize(mask_begin_);
                encode_runs(runs_.data(), runs_.size(), mask_data);
            }
        });
        if (!good) return;
        if (sizes != 2 || size[0] < 0 || size[1] < 0 || size[0] > 1000000 || size[1] > 1000000)
            return report(at, "RLE has no usable size, expected [height, width]");
        if (!counted) return report(at, "RLE has no counts");
        kind_ = kMaskRle;
        height_ = static_cast<std::int32_t>(size[0]);
        width_ = static_cast<std::int32_t>(size[1]);
        if (const char* wrong = check_rle(mask_data.data() + mask_begin_,
                                          mask_data.size() - mask_begin_, size[0] * size[1])) {
            report(at, std::string(wrong) + " (" + std::to_string(size[0]) + " x " +
                           std::to_string(size[1]) + ")");
            kind_ = kMaskNone;
        }
    }

    void read_polygons(Cursor& cursor) {
        const char* const at = cursor.position();
        std::vector<std::vector<double>> parts;
        bool good = true;
        cursor.expect('[', "");
        cursor.skip_space();
        if (!cursor.accept(']')) {
            for (;;) {
                std::vector<double> part;
                good &= read_numbers(cursor, "a polygon of segmentation", [&](Cursor& item) {
                    part.push_back(item.number());
                });
                parts.push_back(std::move(part));
                cursor.skip_space();
                if (cursor.accept(']')) break;
                cursor.expect(',', "expected ',' or ']'");
                cursor.skip_space();
            }
        }
        if (!good) return;
        if (parts.empty()) return report(at, "segmentation is an empty list of polygons");
        for (const auto& part : parts) {
            if (part.size() < 6 || part.size() % 2)
                return report(at, "a polygon of segmentation has " + std::to_string(part.size()) +
                                      " numbers, expected x, y of 3 or more points");
            for (const double value : part)
                if (!(std::fabs(value) <= 1e6))
                    return report(at, "a polygon of segmentation has a coordinate outside any image");
        }
        kind_ = kMaskPolygons;
        encode_polygons(parts, mask_data);
    }

    std::size_t mask_begin_ = 0;
    std::array<std::int8_t, 3> rle_follows_ = in_order<2>();
    Runs runs_;
};

class DetectionBlock : public MaskedBlock {
   public:
    IdIndex image_ids, category_ids;
    std::vector<std::int32_t> image, category;
    std::vector<double> score;
    std::vector<std::array<double, 4>> box;
    std::int64_t with_mask_count = 0, without_box_count = 0;
    bool usable = true;

    void clear(std::int64_t byte, const char* text) {
        restart(byte, text);
        image_ids.clear();
        category_ids.clear();
        image.clear();
        category.clear();
        score.clear();
        box.clear();
        with_mask_count = without_box_count = 0;
        usable = true;
    }
    void record(Cursor& cursor) {
        static constexpr auto keys = make_keys("image_id", "category_id", "bbox", "score", "segmentation", "annotations", "images");
        const char* const at = cursor.position();
        unsigned seen = 0;
        image_id_ = category_id_ = 0;
        score_ = 0.0;
        box_ = {0, 0, 0, 0};
        box_missing_ = false;
        begin_mask();
        read_keys(cursor, keys, follows_, [&](int field) {
            seen |= 1u << field;
            switch (field) {
                case 0: read_integer(cursor, keys[0], image_id_); break;
                case 1: read_integer(cursor, keys[1], category_id_); break;
                case 2: read_box(cursor, box_); break;
                case 3: read_real(cursor, keys[3], score_); break;
                case 4: read_segmentation(cursor); break;
                default: cursor.skip_value();
            }
        });
        if ((seen & 0xf) == 0xf) return;
        if (seen >> 5)
            throw SyntaxError{at, "this is an annotation file, expected a list of detections"};
        for (const std::size_t field : {0, 1, 3})
            if (!(seen >> field & 1)) report(at, "there is no " + std::string(keys[field]));
        if (seen & 4) return;
        box_missing_ = true;
        if (kind_ != kMaskNone) {
            const Box made = box_of_mask();
            box_ = {made.x, made.y, made.w, made.h};
        } else if (!(seen & 16)) {
            report(at, "there is neither bbox nor segmentation");
        }
    }
    void keep() {
        with_mask_count += kind_ != kMaskNone;
        without_box_count += box_missing_;
        usable &= is_usable(score_, box_.data());
        image.push_back(image_ids[image_id_]);
        category.push_back(category_ids[category_id_]);
        score.push_back(score_);
        box.push_back(box_);
        keep_mask();
        ++rows_;
    }

   private:
    std::int64_t image_id_ = 0, category_id_ = 0;
    double score_ = 0.0;
    std::array<double, 4> box_{};
    bool box_missing_ = false;
    std::array<std::int8_t, 8> follows_ = in_order<7>();
};

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
        static constexpr auto keys = make_keys("id", "image_id", "category_id", "bbox", "area", "iscrowd", "ignore", "segmentation");
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
            if (!(seen >> field & 1)) report(at, "there is no " + std::string(keys[field]));
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
    std::vector<std::uint8_t> has_lists;
    std::vector<std::string> file_names;

    void clear(std::int64_t byte, const char* text) {
        restart(byte, text);
        id.clear();
        negative.clear();
        negative_end.clear();
        not_exhaustive.clear();
        not_exhaustive_end.clear();
        height.clear();
        width.clear();
        has_lists.clear();
        file_names.clear();
    }
    void record(Cursor& cursor) {
        static constexpr auto keys = make_keys("id", "height", "width", "file_name", "coco_url", "neg_category_ids",
            "not_exhaustive_category_ids");
        const char* const at = cursor.position();
        id_ = height_ = width_ = 0;
        file_name_.clear();
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
                    if (!read_text(cursor, keys[4], url) || seen_ & 8u) break;
                    std::size_t slash = url.rfind('/');
                    if (slash != std::string::npos && slash > 0) slash = url.rfind('/', slash - 1);
                    file_name_ = slash == std::string::npos ? url : url.substr(slash + 1);
                    break;
                }
                case 5: read_ids(cursor, keys[5], negative_); break;
                default: read_ids(cursor, keys[6], not_exhaustive_);
            }
        });
        for (std::size_t field = 0; field < 3; ++field)
            if (!(seen_ >> field & 1)) report(at, "there is no " + std::string(keys[field]));
    }
    void keep() {
        id.push_back(id_);
        height.push_back(static_cast<std::int32_t>(height_));
        width.push_back(static_cast<std::int32_t>(width_));
        negative.insert(negative.end(), negative_.begin(), negative_.end());
        negative_end.push_back(static_cast<std::int64_t>(negative.size()));
        not_exhaustive.insert(not_exhaustive.end(), not_exhaustive_.begin(), not_exhaustive_.end());
        not_exhaustive_end.push_back(static_cast<std::int64_t>(not_exhaustive.size()));
        has_lists.push_back(static_cast<std::uint8_t>(seen_ >> 5 & 3));
        file_names.push_back(file_name_);
        ++rows_;
    }

   private:
    void read_size(Cursor& cursor, std::string_view key, std::int64_t& value) {
        const char* const at = cursor.position();
        if (!read_integer(cursor, key, value) || (value >= 0 && value <= 1000000)) return;
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
                report(at, "an item of " + std::string(key) + " is not a whole number");
        });
    }

    std::int64_t id_ = 0, height_ = 0, width_ = 0;
    std::string file_name_;
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
                    read_text(cursor, keys[2], frequency_);
                    if (frequency_ != "r" && frequency_ != "c" && frequency_ != "f")
                        report(at, "frequency is not \"r\", \"c\" or \"f\"");
            }
        });
        if (!(seen & 1)) report(at, "there is no id");
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

// The same block with masks passed by.
template <class Block>
class WithoutMasks : public Block {
   public:
    WithoutMasks() { this->with_masks = false; }
};

template <class T>
void append(Column<T>& column, const std::vector<T>& values) {
    column.append(values.data(), values.size());
}

// Positions in a block become positions in the whole: all move by `shift`.
void append_shifted(Column<std::int64_t>& column, const std::vector<std::int64_t>& values,
                    std::size_t shift) {
    std::int64_t* place = column.extend(values.size());
    for (const std::int64_t value : values) *place++ = value + static_cast<std::int64_t>(shift);
}

// Rows without a mask, up to `rows` in all.
void append_no_masks(MaskColumns& out, std::size_t rows) {
    while (out.kind.size() < rows) {
        *out.end.extend(1) = static_cast<std::int64_t>(out.data.size());
        *out.kind.extend(1) = kMaskNone;
        *out.height.extend(1) = 0;
        *out.width.extend(1) = 0;
    }
}

// The masks of a block whose first row is row `rows` of all.
void append_masks(MaskColumns& out, const MaskedBlock& block, std::int64_t rows) {
    append_no_masks(out, static_cast<std::size_t>(rows) + block.rows_before_masks);
    const std::size_t before = out.data.size();
    out.data.append(block.mask_data.data(),
                    block.mask_end.empty() ? 0 : static_cast<std::size_t>(block.mask_end.back()));
    append_shifted(out.end, block.mask_end, before);
    append(out.kind, block.mask_kind);
    append(out.height, block.mask_height);
    append(out.width, block.mask_width);
}

void append_problems(std::vector<Problem>& out, std::int64_t& count, const BlockBase& block,
                     std::int64_t rows_before, const std::string& list) {
    count += block.problem_count;
    for (const Problem& problem : block.problems) {
        if (out.size() >= kProblemsKept) break;
        out.push_back({rows_before + problem.row, problem.byte, list + problem.what});
    }
}

// New rows for a block's ids among all ids.
void append_rows(Column<std::int32_t>& out, const std::vector<std::int32_t>& rows,
                 const IdIndex& block_ids, IdIndex& ids) {
    std::vector<std::int32_t> renamed;
    for (const std::int64_t id : block_ids.ids()) renamed.push_back(ids[id]);
    std::int32_t* place = out.extend(rows.size());
    for (const std::int32_t row : rows) *place++ = renamed[static_cast<std::size_t>(row)];
}

// The top of an annotation file, where lists too long to hold are only passed by.
class TopLevel {
   public:
    explicit TopLevel(const File& file) : file_(file) { refill(0); }

    std::int64_t position() const { return offset_ + static_cast<std::int64_t>(at_); }
    void seek(std::int64_t position) { refill(position); }
    // The next character, 0 at the end of the file.
    char peek() {
        if (at_ == size_) refill(position());
        return at_ == size_ ? '\0' : text_[at_];
    }
    char take() {
        const char c = peek();
        if (at_ == size_) fail("the file is cut off here");
        ++at_;
        return c;
    }
    char peek_past_space() {
        char c;
        while ((c = peek()) == ' ' || c == '\n' || c == '\r' || c == '\t') ++at_;
        return c;
    }
    void expect(char c, const char* what) {
        if (peek_past_space() != c || at_ == size_) fail(at_ == size_ ? "the file is cut off here" : what);
        ++at_;
    }
    std::string key() {
        expect('"', "expected a key in quotes");
        std::string raw;
        for (char c; (c = take()) != '"';) {
            raw += c;
            if (c == '\\') raw += take();
        }
        std::string plain;
        append_unescaped({raw, true}, plain);
        return plain;
    }
    void skip_value() {
        int depth = 0;
        peek_past_space();
        do {
            const char c = take();
            if (c == '"') {
                for (char d; (d = take()) != '"';)
                    if (d == '\\') take();
            } else if (c == '{' || c == '[') {
                ++depth;
            } else if (c == '}' || c == ']') {
                --depth;
            }
        } while (depth > 0 || (peek() != ',' && peek() != '}' && peek() != '\0'));
    }
    [[noreturn]] void fail(const char* what) const { throw FileError(what, position(), -1); }

   private:
    void refill(std::int64_t position) {
        text_.resize(1 << 16);
        offset_ = position;
        at_ = 0;
        size_ = file_.read(position, text_.data(), text_.size());
    }

    const File& file_;
    std::vector<char> text_;
    std::int64_t offset_ = 0;
    std::size_t at_ = 0, size_ = 0;
};

}  // namespace

void read_detections(const File& file, bool masks, int threads, std::size_t chunk,
                     const Control& control, DetectionColumns& out) {
    TopLevel top(file);
    const char c = top.peek_past_space();
    if (c == '\0') top.fail("the file is empty");
    if (c != '[' && c != '{') top.fail("expected a list of detections, '['");
    const Layout layout = c == '[' ? Layout::array : Layout::lines;
    if (c == '[') top.take();
    const std::int64_t begin = top.position();
    auto commit = [&](DetectionBlock& block) {
        if (out.rows == 0 && block.rows() > 0) {
            // The first block tells how many rows to expect; room for them is taken at once.
            const double bytes = static_cast<double>(std::min<std::int64_t>(
                static_cast<std::int64_t>(chunk), file.size - begin));
            const auto rows = static_cast<std::size_t>(
                1.05 * static_cast<double>(block.rows()) / bytes *
                static_cast<double>(file.size - begin));
            out.image.reserve(rows);
            out.category.reserve(rows);
            out.score.reserve(rows);
            out.box.reserve(4 * rows);
        }
        append_rows(out.image, block.image, block.image_ids, out.image_ids);
        append_rows(out.category, block.category, block.category_ids, out.category_ids);
        append(out.score, block.score);
        if (!block.box.empty()) out.box.append(block.box.data()->data(), 4 * block.box.size());
        // Files without masks pay nothing for them: the columns begin with the first mask.
        if (out.rows_with_masks + block.with_mask_count > 0)
            append_masks(out.masks, block, out.rows);
        append_problems(out.problems, out.problem_count, block, out.rows, "");
        out.rows += block.rows();
        out.rows_with_masks += block.with_mask_count;
        out.rows_without_box += block.without_box_count;
        out.usable &= block.usable;
    };
    const std::int64_t end =
        masks ? read_records<DetectionBlock>(file, begin, layout, threads, chunk, control,
                                             commit)
              : read_records<WithoutMasks<DetectionBlock>>(file, begin, layout, threads,
                                                           chunk, control, commit);
    top.seek(end);
    if (top.peek_past_space() != '\0') top.fail("there is more after the end of the list");
}

void read_annotations(const File& file, bool masks, int threads, std::size_t chunk,
                      const Control& control, AnnotationFile& out) {
    TopLevel top(file);
    const char c = top.peek_past_space();
    if (c == '\0') top.fail("the file is empty");
    if (c == '[')
        top.fail("this is a list, as a results file is, expected an annotation file: an object "
                 "with images, annotations and categories");
    top.expect('{', "expected an annotation file: an object with images, annotations and "
                    "categories");
    auto read_list = [&]<class Block>(std::type_identity<Block>, auto&& commit) {
        top.expect('[', "expected a list");
        top.seek(read_records<Block>(file, top.position(), Layout::array, threads, chunk, control,
                                     commit));
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
        if (masks) append_masks(to.masks, block, to.rows);
        to.rows += block.rows();
    };
    auto commit_images = [&](ImageBlock& block) {
        ImageColumns& to = out.images;
        append_problems(out.problems, out.problem_count, block, to.rows, "images: ");
        append(to.id, block.id);
        append(to.height, block.height);
        append(to.width, block.width);
        append(to.has_lists, block.has_lists);
        append_shifted(to.negative_end, block.negative_end, to.negative.size());
        append(to.negative, block.negative);
        append_shifted(to.not_exhaustive_end, block.not_exhaustive_end, to.not_exhaustive.size());
        append(to.not_exhaustive, block.not_exhaustive);
        to.file_names.insert(to.file_names.end(), block.file_names.begin(), block.file_names.end());
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
    bool more = top.peek_past_space() != '}';
    while (more) {
        top.peek_past_space();
        const std::string key = top.key();
        top.expect(':', "expected ':'");
        top.peek_past_space();
        auto once = [&](bool& seen) {
            if (seen) top.fail("the same list stands in the file twice");
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
        more = top.peek_past_space() == ',';
        if (more) top.take();
    }
    top.expect('}', "expected ',' or '}'");
    if (top.peek_past_space() != '\0') top.fail("there is more after the end of the file's object");
}

}  // namespace lvdet::json
