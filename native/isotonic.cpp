#include "isotonic.hpp"

#include <algorithm>
#include <vector>

namespace lvdet {

void fit_isotonic(const double* right, const double* count, std::size_t groups, double* fitted) {
    struct Pool {
        double right, count;
        std::size_t end;
        double share() const { return right / count; }
    };
    std::vector<Pool> pools;
    for (std::size_t g = 0; g < groups; ++g) {
        Pool last{right[g], count[g], g + 1};
        // Pools that fall are one: what comes later cannot part them again.
        while (!pools.empty() && pools.back().share() >= last.share()) {
            last.right += pools.back().right;
            last.count += pools.back().count;
            pools.pop_back();
        }
        pools.push_back(last);
    }
    std::size_t begin = 0;
    for (const Pool& pool : pools) {
        std::fill(fitted + begin, fitted + pool.end, pool.share());
        begin = pool.end;
    }
}

}  // namespace lvdet
