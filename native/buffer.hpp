// Vectors whose new values are not set to zero: what fills them may run on several threads, and
// touches their memory first.
#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace lvdet {

template <class T>
struct Unset : std::allocator<T> {
    template <class U>
    struct rebind {
        using other = Unset<U>;
    };
    template <class U, class... Arguments>
    void construct(U* place, Arguments&&... arguments) {
        if constexpr (sizeof...(Arguments) == 0)
            ::new (static_cast<void*>(place)) U;
        else
            ::new (static_cast<void*>(place)) U(std::forward<Arguments>(arguments)...);
    }
};

template <class T>
using Buffer = std::vector<T, Unset<T>>;

}  // namespace lvdet
