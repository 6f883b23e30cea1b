// From ranked, matched detections to average precision.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>

namespace lvdet {

// Which ranked rows are matched, and which do not count: one bit an IoU threshold,
// [rows, areas, 2, bytes], threshold t in bit t % 8 of byte t / 8, matched before ignored.
struct Outcomes {
    const std::uint8_t* bits;
    std::size_t areas, bytes, thresholds;
};

// A list of rows in rank order for each curve: order[offsets[c] .. offsets[c + 1]], or those row
// numbers themselves where `order` is null. Rows whose keep[row] is 0 are passed over (keep may be
// null). Or pools of classes: every curve has all of `order`, but for rows whose class it lacks,
// where member[curve, category[row]] is 0.
struct Rankings {
    const std::int32_t* order;
    const std::int64_t* offsets;
    std::size_t curves;
    const std::uint8_t* keep;
    const std::uint8_t* member = nullptr;
    const std::int32_t* category = nullptr;
    std::size_t categories = 0;
};

// The bits of up to 64 thresholds, in so many bytes.
inline std::uint64_t load_bits(const std::uint8_t* from, std::size_t bytes) {
    // Little-endian, as bits are numbered. Two bytes hold the usual ten thresholds.
    if (bytes == 2) return from[0] | static_cast<std::uint64_t>(from[1]) << 8;
    std::uint64_t word = 0;
    std::memcpy(&word, from, bytes);
    return word;
}

inline constexpr std::size_t kRecalls = 101;
// What the reference tools add to a number of detections before they divide by it.
inline constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

// For each curve, area and threshold, with truth[curve, area] objects to find:
//   precision  [curves, areas, thresholds]  mean of the 101 precisions
//   recall     [curves, areas, thresholds]  highest recall reached
//   points     [curves, areas, thresholds, 101], or null
// All are NaN where there is nothing to find. Areas are the first `areas` of the outcomes'.
void accumulate(const Outcomes& outcomes, const Rankings& rankings, std::size_t areas,
                const std::int64_t* truth, const double* recalls, double* precision, double* recall,
                double* points, int threads);

}  // namespace lvdet
