// Texts that name images: an input is lines, the names of files, an empty line, and what is looked
// up among them.
#include "image_names.hpp"

#include "target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    std::vector<std::int64_t> ids;
    std::vector<std::string> names, texts;
    bool asked = false;
    for (std::size_t begin = 0; begin <= size;) {
        const std::size_t end = std::min(input.find('\n', begin), size);
        const std::string line(input.substr(begin, end - begin));
        if (asked) {
            texts.push_back(line);
        } else if (line.empty()) {
            asked = true;
        } else {
            ids.push_back(static_cast<std::int64_t>(ids.size()) * 7);
            names.push_back(line);
        }
        begin = end + 1;
    }
    const lvdet::ImageNames known(ids, names);
    for (const std::vector<std::string>& asks : {texts, names})
        for (const std::string& text : asks) {
            std::int64_t id = -1;
            std::string what;
            if (known.find(text, id, what)) {
                REQUIRE(what.empty());
                REQUIRE(std::find(ids.begin(), ids.end(), id) != ids.end() ||
                        std::strtoll(text.c_str(), nullptr, 10) == id);
            } else {
                REQUIRE(!what.empty());
                REQUIRE(what.find('\n') == std::string::npos);
            }
            REQUIRE(!lvdet::quoted(text).empty());
        }
    return 0;
}
