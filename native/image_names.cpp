#include "image_names.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <utility>

namespace lvdet {

namespace {

constexpr std::size_t kShown = 80;  // bytes of a text in a message

// A path with "/" between its parts, and without those that mean nothing.
std::string plain_path(std::string_view text) {
    std::string path;
    path.reserve(text.size());
    std::size_t begin = 0;
    while (begin <= text.size()) {
        const std::size_t end = std::min(text.find_first_of("/\\", begin), text.size());
        const std::string_view part = text.substr(begin, end - begin);
        const bool last = end == text.size();
        if (last || (!part.empty() && part != ".")) {
            path += part;
            if (!last) path += '/';
        }
        begin = end + 1;
    }
    return path;
}

struct Path {
    std::string_view folder, base;  // the folder ends with "/", or is empty
    explicit Path(std::string_view path) {
        const std::size_t slash = path.rfind('/');
        const std::size_t begin = slash == std::string_view::npos ? 0 : slash + 1;
        folder = path.substr(0, begin);
        base = path.substr(begin);
    }
};

// A file's name without its extension. A point that begins or ends it begins none.
std::string_view stem_of(std::string_view base) {
    const std::size_t point = base.rfind('.');
    if (point == std::string_view::npos || point == 0 || point + 1 == base.size()) return base;
    return base.substr(0, point);
}

// A path's folders end with these.
bool ends_with(std::string_view folders, std::string_view end) {
    return folders.ends_with(end) && (end.empty() || folders.size() == end.size() ||
                                      folders[folders.size() - end.size() - 1] == '/');
}

// Digits, perhaps after a minus, that an int64 can hold.
bool read_id(std::string_view text, std::int64_t& id) {
    const auto result = std::from_chars(text.data(), text.data() + text.size(), id);
    return result.ec == std::errc{} && result.ptr == text.data() + text.size();
}

// The text is how the id is written, without zeros before it.
bool is_text_of(std::string_view text, std::int64_t id) {
    return text == std::to_string(id);
}

// Bytes of the UTF-8 character that the text begins with, and its number; 0 where it is none.
std::size_t read_character(std::string_view text, unsigned& code) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned first = byte(0);
    if (first < 0x80) return code = first, 1;
    const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
    code = first & (0xffu >> (length + 1));
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xc0) != 0x80) return 0;
        code = code << 6 | (byte(i) & 0x3f);
    }
    const bool shortest = code >= (length == 4 ? 0x10000u : length == 3 ? 0x800u : 0x80u);
    return shortest && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? length : 0;
}

}  // namespace

std::string quoted(std::string_view text) {
    std::string out = "\"";
    const std::string_view whole = text;
    while (!text.empty()) {
        if (whole.size() - text.size() >= kShown) return out + "\"…";
        char escape[16];
        unsigned code = 0;
        const std::size_t length = read_character(text, code);
        if (length == 0) {
            std::snprintf(escape, sizeof escape, "\\x%02x", static_cast<unsigned char>(text[0]));
            out += escape;
        } else if (code == '"' || code == '\\') {
            out += {'\\', static_cast<char>(code)};
        } else if (code < 0x20 || (code >= 0x7f && code < 0xa0) ||
                   (code >= 0x2028 && code < 0x202f) ||
                   (code >= 0x2066 && code < 0x206a)) {  // ends a line, or turns the text around
            std::snprintf(escape, sizeof escape, "\\u%04x", code);
            out += escape;
        } else {
            out += text.substr(0, length);
        }
        text.remove_prefix(std::max<std::size_t>(length, 1));
    }
    return out + '"';
}

ImageNames::ImageNames(std::vector<std::int64_t> ids, std::vector<std::string> file_names)
    : known_(true), ids_(std::move(ids)), paths_(std::move(file_names)) {
    for (std::string& path : paths_)
        if (path.find('\\') != std::string::npos || path.find("./") != std::string::npos ||
            path.find("//") != std::string::npos || path.starts_with('/'))
            path = plain_path(path);
}

void ImageNames::build() const {
    for (std::size_t row = 0; row < paths_.size(); ++row) {
        const std::string_view base = Path(paths_[row]).base, stem = stem_of(base);
        if (base.empty()) continue;
        by_base_.emplace(base, row);
        if (stem != base) by_stem_.emplace(stem, row);
    }
}

std::vector<std::size_t> ImageNames::matches(std::string_view path) const {
    const Path text(path);
    std::vector<std::size_t> rows, exact, ends, shorter;
    const auto [stem, last_stem] = by_stem_.equal_range(text.base);
    const auto [base, last_base] = by_base_.equal_range(text.base);
    const auto sort_in = [&](std::size_t row, std::vector<std::size_t>& to) {
        const std::string_view folder = Path(paths_[row]).folder;
        if (ends_with(folder, text.folder))
            to.push_back(row);
        else if (ends_with(text.folder, folder))
            shorter.push_back(row);
    };
    for (auto at = stem; at != last_stem; ++at) sort_in(at->second, rows);
    for (auto at = base; at != last_base; ++at)
        sort_in(at->second, paths_[at->second] == path ? exact : ends);
    const std::vector<std::size_t>& named = exact.empty() ? ends : exact;
    rows.insert(rows.end(), named.begin(), named.end());
    if (rows.empty()) rows = std::move(shorter);
    std::sort(rows.begin(), rows.end());
    return rows;
}

bool ImageNames::has(std::int64_t id) const {
    return std::binary_search(ids_.begin(), ids_.end(), id);
}

std::string ImageNames::described(std::size_t row) const {
    return "image " + std::to_string(ids_[row]) + " (" + quoted(paths_[row]) + ")";
}

bool ImageNames::find(std::string_view text, std::int64_t& id, std::string& what) const {
    std::vector<std::size_t> rows;
    if (known_) {
        std::call_once(built_, [&] { build(); });
        rows = matches(plain_path(text));
    }
    std::int64_t number = 0;
    const bool digits = read_id(text, number);
    if (rows.size() > 1) {
        what = "image_id " + quoted(text) + " names both " + described(rows[0]) + " and " +
               described(rows[1]);
        return false;
    }
    if (rows.size() == 1) {
        id = ids_[rows[0]];
        if (!digits || number == id || !is_text_of(text, number) || !has(number)) return true;
        what = "image_id " + quoted(text) + " is the file name of " + described(rows[0]) +
               ", but the id of image " + std::to_string(number);
        return false;
    }
    if (digits) {
        id = number;
        return true;
    }
    what =
        "image_id " + quoted(text) +
        (known_ ? " is neither an id nor a file name in the annotations"
                : " is not a number: only the annotations can tell which image it is (images=GT, "
                  "--images GT)");
    return false;
}

}  // namespace lvdet
