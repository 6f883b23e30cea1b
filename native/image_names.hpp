// Which image a text means: by its file's name, or by its id in digits.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lvdet {

// Looks texts up in a list of images. A text means the images whose file name it is, with or
// without the extension and some of the folders. Where some file name is just that text, names that
// only end with it do not count; names with fewer folders than the text count where no others do.
// Digits that are no file name are an id. Texts that mean two images are refused.
class ImageNames {
   public:
    // Nothing is known of images: all texts but digits are refused.
    ImageNames() = default;
    // By ascending id; an empty file name is unknown.
    ImageNames(std::vector<std::int64_t> ids, std::vector<std::string> file_names);

    // Finds the id; false where there is none, and `what` is what to say of it. Any number of
    // threads may ask.
    bool find(std::string_view text, std::int64_t& id, std::string& what) const;

   private:
    using Index = std::unordered_multimap<std::string_view, std::size_t>;
    void build() const;
    std::vector<std::size_t> matches(std::string_view path) const;
    bool has(std::int64_t id) const;
    std::string described(std::size_t row) const;

    bool known_ = false;
    std::vector<std::int64_t> ids_;
    std::vector<std::string> paths_;   // of each image's file
    mutable std::once_flag built_;     // at the first text: most files have none
    mutable Index by_base_, by_stem_;  // the last part of the path, with and without its extension
};

// A text in a message: in quotes, on one line, with escapes for what cannot be shown, and cut off
// where it is long.
std::string quoted(std::string_view text);

}  // namespace lvdet
