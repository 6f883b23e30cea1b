// Order by score.
#include "bind_arrays.hpp"
#include "parallel.hpp"
#include "rank.hpp"

namespace lvdet {

namespace {

void keep_top_rows(In<std::int32_t> group, std::size_t groups, In<double> score, std::int64_t limit,
                   InOut<std::uint8_t> keep, int threads) {
    nb::gil_scoped_release release;
    keep_top(group.data(), groups, score.data(), score.size(), limit, keep.data(), threads);
}

// The rows by class and falling score, and the places of that list by descending score over all
// classes.
nb::tuple rank_class_rows(In<double> score, In<std::int32_t> category, std::size_t categories,
                          int threads) {
    ClassRanking out;
    {
        nb::gil_scoped_release release;
        out = rank_classes(score.data(), category.data(), score.size(), categories, threads);
    }
    return nb::make_tuple(take(std::move(out.by_class.rows)), take(std::move(out.together)));
}

Out<std::int64_t> count_group_rows(In<std::int32_t> group, std::size_t groups) {
    std::vector<std::int64_t> count;
    {
        nb::gil_scoped_release release;
        count = count_rows(group.data(), groups, group.size());
    }
    return take(std::move(count));
}

Out<std::int32_t> pick_rows_of_members(In<std::int32_t> group, In<std::uint8_t> member,
                                       int threads) {
    std::vector<std::int32_t> rows;
    {
        nb::gil_scoped_release release;
        rows = rows_of_members(group.data(), member.data(), group.size(), threads);
    }
    return take(std::move(rows));
}

nb::tuple number_row_pairs(In<std::int32_t> a, std::size_t a_count, In<std::int32_t> b,
                           std::size_t b_count) {
    auto out = zeros<std::int32_t>({a.size()});
    std::int64_t count = 0;
    {
        nb::gil_scoped_release release;
        count = number_pairs(a.data(), a_count, b.data(), b_count, a.size(), out.data());
    }
    return nb::make_tuple(out, count);
}

// The rows of each group by descending score, and where each group begins.
nb::tuple rank_group_rows(In<std::int32_t> group, std::size_t groups, In<double> score,
                          int threads) {
    Grouping out;
    {
        nb::gil_scoped_release release;
        out = rank_groups(group.data(), groups, score.data(), score.size(), threads);
    }
    return nb::make_tuple(take(std::move(out.rows)), take(std::move(out.offsets)));
}

Ordering ordering_of(const ListTuple& ordering) {
    const auto& [rows, offsets] = ordering;
    return {.rows = rows.data(), .offsets = offsets.data(), .groups = offsets.size() - 1};
}

Out<std::int32_t> find_row_places(const ListTuple& ordering, In<std::int32_t> wanted, int threads) {
    auto out = zeros<std::int32_t>({wanted.size()});
    nb::gil_scoped_release release;
    find_places(ordering_of(ordering), std::get<0>(ordering).size(), wanted.data(), wanted.size(),
                out.data(), threads);
    return out;
}

Out<std::int32_t> count_rows_before(const ListTuple& ordering, std::optional<In<std::uint8_t>> keep,
                                    In<std::int32_t> place, In<std::int32_t> group, int threads) {
    auto out = zeros<std::int32_t>({place.size()});
    nb::gil_scoped_release release;
    count_before(ordering_of(ordering), keep ? keep->data() : nullptr, place.data(), group.data(),
                 place.size(), out.data(), threads);
    return out;
}

Out<std::uint8_t> keep_first_rows(const ListTuple& ordering, std::optional<In<std::uint8_t>> keep,
                                  std::int64_t limit, int threads) {
    auto out = zeros<std::uint8_t>({std::get<0>(ordering).size()});
    nb::gil_scoped_release release;
    keep_first(ordering_of(ordering), keep ? keep->data() : nullptr, limit, out.data(), threads);
    return out;
}

// values[at] of every place.
template <class T>
Out<T> take_values(In<T> values, In<std::int32_t> at, int threads) {
    Buffer<T> out(at.size());
    {
        nb::gil_scoped_release release;
        in_blocks(at.size(), threads,
                  [to = out.data(), from = values.data(), place = at.data()](std::size_t begin,
                                                                             std::size_t end) {
                      for (std::size_t i = begin; i < end; ++i) to[i] = from[place[i]];
                  });
    }
    return take(std::move(out));
}

}  // namespace

void bind_ranks(nb::module_& m) {
    m.def("keep_top", &keep_top_rows, "group"_a.noconvert(), "groups"_a, "score"_a.noconvert(),
          "limit"_a, "keep"_a.noconvert(), "threads"_a);
    m.def("count_rows", &count_group_rows, "group"_a.noconvert(), "groups"_a);
    m.def("rows_of_members", &pick_rows_of_members, "group"_a.noconvert(), "member"_a.noconvert(),
          "threads"_a);
    m.def("rank_classes", &rank_class_rows, "score"_a.noconvert(), "category"_a.noconvert(),
          "categories"_a, "threads"_a);
    m.def("number_pairs", &number_row_pairs, "a"_a.noconvert(), "a_count"_a, "b"_a.noconvert(),
          "b_count"_a);
    m.def("rank_groups", &rank_group_rows, "group"_a.noconvert(), "groups"_a, "score"_a.noconvert(),
          "threads"_a);
    m.def("find_places", &find_row_places, "ordering"_a, "wanted"_a.noconvert(), "threads"_a);
    m.def("count_before", &count_rows_before, "ordering"_a, "keep"_a.none(), "place"_a.noconvert(),
          "group"_a.noconvert(), "threads"_a);
    m.def("keep_first", &keep_first_rows, "ordering"_a, "keep"_a.none(), "limit"_a, "threads"_a);
    m.def("take_flags", &take_values<std::uint8_t>, "flags"_a.noconvert(), "at"_a.noconvert(),
          "threads"_a);
    m.def("take_rows", &take_values<std::int32_t>, "rows"_a.noconvert(), "at"_a.noconvert(),
          "threads"_a);
}

}  // namespace lvdet
