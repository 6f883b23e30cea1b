// What all bindings share: arrays in, arrays out. Callers validate; nothing is converted, and the
// GIL is released while kernels run.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <memory>
#include <numeric>
#include <optional>

#include "columns.hpp"
#include "outcomes.hpp"
#include "rle.hpp"
#include "spill.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace lvdet {

// Each adds its functions to the module.
void bind_read(nb::module_& m);
void bind_masks(nb::module_& m);
void bind_ranks(nb::module_& m);
void bind_ledger(nb::module_& m);
void bind_match(nb::module_& m);
void bind_bootstrap(nb::module_& m);
void bind_calibrate(nb::module_& m);
void bind_plausibility(nb::module_& m);
void bind_build(nb::module_& m);

template <class T>
using In = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
template <class T>
using InOut = nb::ndarray<T, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<nb::numpy, T, nb::c_contig>;

// Keeps what an array shows for as long as the array lives.
template <class Owned>
nb::capsule owner_of(std::unique_ptr<Owned> owned) {
    nb::capsule owner(owned.get(), [](void* p) noexcept {
        std::default_delete<Owned>{}(static_cast<Owned*>(p));
    });
    owned.release();  // the capsule has it now
    return owner;
}
// Arrays that take over what holds their values, without a copy.
template <class T>
Out<T> take(Column<T>& column, std::size_t width = 0) {
    column.fit();
    auto kept = std::make_unique<Column<T>>(std::move(column));
    T* const data = kept->data();
    const std::size_t size = kept->size();
    const nb::capsule owner = owner_of(std::move(kept));
    if (width) return Out<T>(data, {size / width, width}, owner);
    return Out<T>(data, {size}, owner);
}
inline Out<std::uint8_t> take(Bytes& bytes) {
    bytes.finish();
    auto kept = std::make_unique<Bytes>(std::move(bytes));
    std::uint8_t* const data = kept->data();
    const std::size_t size = kept->size();
    return Out<std::uint8_t>(data, {size}, owner_of(std::move(kept)));
}
template <class T, class Allocator>
Out<T> take(std::vector<T, Allocator>&& values, std::initializer_list<std::size_t> shape) {
    auto kept = std::make_unique<std::vector<T, Allocator>>(std::move(values));
    T* const data = kept->data();
    return Out<T>(data, shape, owner_of(std::move(kept)));
}
template <class T, class Allocator>
Out<T> take(std::vector<T, Allocator>&& values) {
    const std::size_t size = values.size();
    return take(std::move(values), {size});
}

// An array of zeros.
template <class T>
Out<T> zeros(std::initializer_list<std::size_t> shape) {
    const std::size_t size =
        std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
    return take(std::vector<T>(size), shape);
}

// Items, and where each list of them begins: list i is items[offsets[i] .. offsets[i + 1]].
using ListTuple = std::tuple<In<std::int32_t>, In<std::int64_t>>;

// Wrong, hits and bits, as in outcomes.hpp.
using OutcomeTuple = std::tuple<In<std::uint8_t>, In<std::int32_t>, In<std::uint8_t>>;

inline Outcomes outcomes_of(const OutcomeTuple& outcomes, std::size_t thresholds) {
    const auto& [wrong, hits, bits] = outcomes;
    return {.wrong = wrong.data(),
            .hits = hits.data(),
            .bits = bits.data(),
            .rows = wrong.size(),
            .hit_count = hits.size(),
            .scopes = bits.shape(1),
            .bytes = bits.shape(3),
            .thresholds = thresholds};
}
inline nb::tuple take(OutcomeColumns&& outcomes, std::size_t scopes, std::size_t bytes) {
    const std::size_t hits = outcomes.hits.size();
    auto wrong = take(std::move(outcomes.wrong));
    auto rows = take(std::move(outcomes.hits));
    return nb::make_tuple(wrong, rows, take(std::move(outcomes.bits), {hits, scopes, 2, bytes}));
}

using MaskTuple = std::tuple<In<std::uint8_t>, In<std::int64_t>, In<std::uint8_t>, In<std::int32_t>,
                             In<std::int32_t>>;

inline MaskColumn column_of(const MaskTuple& masks) {
    // An empty array may have no storage; the column must still read as present.
    static const std::uint8_t none = 0;
    const std::uint8_t* data = std::get<0>(masks).data();
    return {.data = data ? data : &none,
            .offsets = std::get<1>(masks).data(),
            .kind = std::get<2>(masks).data(),
            .height = std::get<3>(masks).data(),
            .width = std::get<4>(masks).data()};
}
inline MaskColumn column_of(const std::optional<MaskTuple>& masks) {
    return masks ? column_of(*masks) : MaskColumn{};
}

}  // namespace lvdet
