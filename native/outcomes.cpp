#include "outcomes.hpp"

#include <algorithm>

#include "parallel.hpp"

namespace lvdet {

OutcomeColumns pool(const Outcomes& outcomes, const std::int32_t* order,
                    const std::int64_t* offsets, std::size_t classes, const std::uint8_t* member,
                    std::size_t pools, int threads) {
    constexpr std::uint8_t kHit = 1 << kMostPools;
    std::vector<std::uint8_t> scopes(classes, 0);
    for (std::size_t p = 0; p < pools; ++p)
        for (std::size_t c = 0; c < classes; ++c)
            scopes[c] |= static_cast<std::uint8_t>((member[p * classes + c] != 0) << p);

    Buffer<std::uint8_t> flags(outcomes.rows);
    parallel_for(classes, threads, [&](std::size_t c) {
        for (std::int64_t row = offsets[c]; row < offsets[c + 1]; ++row)
            flags[static_cast<std::size_t>(row)] = outcomes.wrong[row] & 1 ? scopes[c] : 0;
    });
    RankedBits is_hit(outcomes.rows);
    for (std::size_t h = 0; h < outcomes.hit_count; ++h) {
        flags[static_cast<std::size_t>(outcomes.hits[h])] = kHit;
        is_hit.set(static_cast<std::size_t>(outcomes.hits[h]));
    }
    is_hit.finish();

    OutcomeColumns out;
    out.wrong.resize(outcomes.rows);
    std::vector<std::vector<std::int32_t>> hits(count_blocks(outcomes.rows));
    in_blocks(outcomes.rows, threads, [&](std::size_t begin, std::size_t end) {
        auto& here = hits[begin / kBlockRows];
        for (std::size_t i = begin; i < end; ++i) {
            const std::uint8_t flag = flags[static_cast<std::size_t>(order[i])];
            out.wrong[i] = flag == kHit ? 0 : flag;
            if (flag == kHit) here.push_back(static_cast<std::int32_t>(i));
        }
    });
    for (const auto& here : hits) out.hits.insert(out.hits.end(), here.begin(), here.end());

    const std::size_t bytes = outcomes.bytes;
    out.bits.resize(out.hits.size() * pools * 2 * bytes);
    in_blocks(out.hits.size(), threads, [&](std::size_t begin, std::size_t end) {
        std::size_t c = 0;
        for (std::size_t h = begin; h < end; ++h) {
            const std::int32_t row = order[out.hits[h]];
            const std::uint8_t* const from =
                outcomes.of(is_hit.rank(static_cast<std::size_t>(row)), 0);
            c = static_cast<std::size_t>(std::upper_bound(offsets, offsets + classes + 1, row) -
                                         offsets) -
                1;
            std::uint8_t* to = out.bits.data() + h * pools * 2 * bytes;
            for (std::size_t p = 0; p < pools; ++p, to += 2 * bytes) {
                if (scopes[c] >> p & 1)
                    std::memcpy(to, from, 2 * bytes);
                else  // not of this pool: ignored at every threshold
                    std::memset(to + bytes, 0xff, bytes);
            }
        }
    });
    return out;
}

}  // namespace lvdet
