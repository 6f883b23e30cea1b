// What all bindings share: arrays in, arrays out. Callers validate; nothing is converted, and the
// GIL is released while kernels run.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "columns.hpp"
#include "rle.hpp"
#include "spill.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace lvdet {

// Each adds its functions to the module.
void bind_read(nb::module_& m);
void bind_masks(nb::module_& m);
void bind_ranks(nb::module_& m);
void bind_match(nb::module_& m);
void bind_bootstrap(nb::module_& m);
void bind_calibrate(nb::module_& m);

template <class T>
using In = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
template <class T>
using InOut = nb::ndarray<T, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<nb::numpy, T, nb::c_contig>;

template <class T>
Out<T> wrap(T* data, std::initializer_list<std::size_t> shape, void (*free)(void*) noexcept) {
    nb::capsule owner(data, free);
    return Out<T>(data, shape, owner);
}
// An array that takes over a column's storage.
template <class T>
Out<T> take(Column<T>& column, std::size_t width = 0) {
    const std::size_t size = column.size();
    T* data = column.release();
    auto free = [](void* p) noexcept { std::free(p); };
    if (width) return wrap<T>(data, {size / width, width}, free);
    return wrap<T>(data, {size}, free);
}
inline Out<std::uint8_t> take(Bytes& bytes) {
    const Bytes::Storage storage = bytes.release();
    nb::capsule owner(new Bytes::Storage(storage), [](void* p) noexcept {
        auto* kept = static_cast<Bytes::Storage*>(p);
        Bytes::unmap_or_free(kept->data, kept->mapped);
        delete kept;
    });
    const std::size_t size[1] = {storage.size};
    return Out<std::uint8_t>(storage.data, 1, size, owner);
}
template <class T>
Out<T> take(std::vector<T>&& values, std::initializer_list<std::size_t> shape = {}) {
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    if (shape.size()) return Out<T>(kept->data(), shape, owner);
    const std::size_t size[1] = {kept->size()};
    return Out<T>(kept->data(), 1, size, owner);
}
template <class T>
Out<T> take_ids(const std::vector<T>& values) {
    return take(std::vector<T>(values));
}

template <class T>
Out<T> empty(std::initializer_list<std::size_t> shape) {
    std::size_t size = 1;
    for (const std::size_t n : shape) size *= n;
    T* data = new T[size]();
    return wrap<T>(data, shape, [](void* p) noexcept { delete[] static_cast<T*>(p); });
}

using MaskTuple = std::tuple<In<std::uint8_t>, In<std::int64_t>, In<std::uint8_t>, In<std::int32_t>,
                             In<std::int32_t>>;

inline MaskColumn column_of(const MaskTuple& masks) {
    // An empty array may have no storage; the column must still read as present.
    static const std::uint8_t none = 0;
    const std::uint8_t* data = std::get<0>(masks).data();
    return {data ? data : &none, std::get<1>(masks).data(), std::get<2>(masks).data(),
            std::get<3>(masks).data(), std::get<4>(masks).data()};
}
inline MaskColumn column_of(const std::optional<MaskTuple>& masks) {
    return masks ? column_of(*masks) : MaskColumn{};
}

}  // namespace lvdet
