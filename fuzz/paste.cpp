// A detector's maps stretched over boxes: whatever the numbers are, masks are whole, and the same
// on several threads.
#include "paste.hpp"

#include "rle.hpp"
#include "target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace lvdet;
    fuzz::Input input(data, size);
    const std::size_t side = 1 + input.take<std::uint8_t>() % 8, masks = 1 + side % 3;
    const bool raw = input.take<std::uint8_t>() & 1;
    std::vector<std::int32_t> height, width;
    std::vector<double> box;
    std::vector<float> map;
    for (std::size_t i = 0; i < masks; ++i) {
        height.push_back(input.take<std::uint8_t>());
        width.push_back(input.take<std::uint8_t>());
        for (int k = 0; k < 4; ++k)
            box.push_back(raw ? input.take<double>() : input.take<std::int16_t>() / 64.0);
    }
    for (std::size_t i = 0; i < masks * side * side; ++i)
        map.push_back(raw ? input.take<float>()
                          : static_cast<float>(input.take<std::uint8_t>()) / 255.0f);
    const PasteInput all{map.data(), box.data(), height.data(), width.data(), masks, side};
    const EncodedMasks one = paste_masks(all, 1), two = paste_masks(all, 2);
    REQUIRE(one.data == two.data && one.offsets == two.offsets);
    REQUIRE(one.offsets.size() == masks + 1);
    for (std::size_t i = 0; i < masks; ++i) {
        const auto from = static_cast<std::size_t>(one.offsets[i]);
        const auto length = static_cast<std::size_t>(one.offsets[i + 1]) - from;
        REQUIRE(check_rle(one.data.data() + from, length, std::int64_t{height[i]} * width[i]) ==
                nullptr);
    }
    return 0;
}
