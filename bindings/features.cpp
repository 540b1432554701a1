// Projections and their features: rows in, features out, in one core call.
#include "kernelmill/features.hpp"

#include <nanobind/nanobind.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <variant>

#include "buffer.hpp"
#include "kernelmill/dense.hpp"
#include "kernelmill/exponentials.hpp"
#include "kernelmill/fastfood.hpp"
#include "kernelmill/row_products.hpp"
#include "kernelmill/write_features.hpp"
#include "kernelmill/zonal.hpp"
#include "rows.hpp"
#include "run.hpp"

namespace kernelmill::bindings {
namespace {

// Where features go: a matrix whose rows are contiguous, with as many columns as there are
// features.
template <class T>
struct Output {
    Output(const Buffer& out, int kind, double scale, const std::optional<Buffer>& phases,
           bool* not_finite, size_t most_frequencies) {
        const auto view = out.as<T>();
        require(out.ndim() < 2 || out.size() == 0 || !out.overlaps_itself(),
                "out must not overlap itself");
        require(view.ndim == 2 && out.kind() == kind_of<T>, "out must be a matrix of real numbers");
        require(kind >= 0 && kind <= static_cast<int>(FeatureKind::times),
                "unknown kind of features");
        const auto columns = static_cast<size_t>(view.shape[1]);
        features.kind = static_cast<FeatureKind>(kind);
        const bool paired =
            features.kind == FeatureKind::cos_sin || features.kind == FeatureKind::complex;
        features.pairs = paired ? columns / 2 : 0;
        features.frequencies = paired ? (columns + 1) / 2 : columns;
        features.scale = static_cast<T>(scale);
        features.phases = nullptr;
        features.not_finite = not_finite;
        require(features.kind != FeatureKind::complex || columns % 2 == 0,
                "complex features take an even number of real columns");
        require(features.frequencies <= most_frequencies, "out has more columns than features");
        const bool needs_phases = features.kind == FeatureKind::cos_phase ||
                                  features.pairs < (paired ? features.frequencies : 0);
        if (needs_phases) {
            require(phases.has_value() && phases->size() >= features.frequencies,
                    "a phase for each frequency is needed");
            features.phases =
                contiguous<T>(*phases, kind_of<T>, "phases must have the dtype of out");
        }
        data = view.data;
        stride = row_stride(view);
        rows = static_cast<size_t>(view.shape[0]);
    }

    Features<T> features{};
    T* data;
    ptrdiff_t stride;
    size_t rows;
};

// permutation, if there is one, must hold numbers below the size of a block: the caller has seen to
// it. weights: (T, columns of out), and scores: (rows of x, T), written; or both none. Returns,
// like the others, whether all features are finite.
bool fastfood_into(nb::handle x, nb::handle out, nb::handle signs, nb::handle permutation,
                   nb::handle inner, nb::handle outer, size_t blocks_per_group, size_t first_turn,
                   int kind, double scale, nb::handle phases, nb::handle weights, nb::handle scores,
                   int n_threads) {
    const Buffer to(out, Buffer::Access::write), b(signs, Buffer::Access::read),
        g(inner, Buffer::Access::read), s(outer, Buffer::Access::read);
    std::optional<Buffer> p, phase, by, scored;
    require(weights.is_none() == scores.is_none(), "weights and scores come together");
    if (!weights.is_none()) by.emplace(weights, Buffer::Access::read);
    if (!scores.is_none()) scored.emplace(scores, Buffer::Access::write);
    if (!permutation.is_none()) p.emplace(permutation, Buffer::Access::read);
    if (!phases.is_none()) phase.emplace(phases, Buffer::Access::read);
    require(b.ndim() == 3 && g.ndim() == 2 && same_shape(g, s), "factors must have fitting shapes");
    const auto blocks = static_cast<size_t>(g.extent(0)), size = static_cast<size_t>(g.extent(1));
    require(std::has_single_bit(size), "the size of a block must be a power of two");
    require(blocks_per_group >= 1 && blocks_per_group <= std::max<size_t>(1, blocks),
            "a group has from one to all of the blocks");
    require(first_turn == size || (first_turn >= 8 && first_turn < size &&
                                   std::has_single_bit(first_turn) && blocks >= blocks_per_group),
            "first_turn must be a power of two from 8 to the size of a block, and the group whole");
    const size_t groups = (blocks + blocks_per_group - 1) / blocks_per_group;
    require(static_cast<size_t>(b.extent(0)) >= groups && (b.extent(1) == 1 || b.extent(1) == 2) &&
                static_cast<size_t>(b.extent(2)) == size,
            "signs must have one or two rows for each group");
    if (p) {
        require(p->ndim() == 2 && static_cast<size_t>(p->extent(0)) >= groups &&
                    static_cast<size_t>(p->extent(1)) == size,
                "permutation must have a row for each group");
    }
    bool not_finite = false;
    with_real_type(to, [&](auto zero) {
        using T = decltype(zero);
        const Input<T> input(x);
        const Output<T> output(to, kind, scale, phase, &not_finite, blocks * size);
        require(input.count == output.rows, "out must have as many rows as x");
        require(output.features.kind != FeatureKind::times, "only dense products multiply");
        require(input.dim <= size, "x has more columns than a block");
        const FastfoodFactors<T> factors{
            std::countr_zero(size),
            input.dim,
            blocks,
            blocks_per_group,
            first_turn,
            static_cast<int>(b.extent(1)),
            contiguous<T>(b, kind_of<T>, "signs must have the dtype of out"),
            p ? contiguous<int32_t>(*p, 'i', "permutation must be int32") : nullptr,
            contiguous<T>(g, kind_of<T>, "inner must have the dtype of out"),
            contiguous<T>(s, kind_of<T>, "outer must have the dtype of out")};
        std::optional<Scoring<T>> scoring;
        if (by) {
            require(by->ndim() == 2 && scored->ndim() == 2 && by->kind() == kind_of<T> &&
                        scored->kind() == kind_of<T>,
                    "weights and scores must be matrices of the dtype of out");
            require(by->extent(1) == to.extent(1) && scored->extent(0) == to.extent(0) &&
                        scored->extent(1) == by->extent(0),
                    "scores must have the rows of out and a column for each row of weights");
            require((scored->size() == 0 || !scored->overlaps_itself()) && !scored->overlaps(to) &&
                        !scored->overlaps(*by) && !by->overlaps(to),
                    "scores and weights must not overlap another argument");
            const auto rows = by->template as<const T>();
            const auto result = scored->template as<T>();
            scoring = Scoring<T>{{rows.data, row_stride(rows), static_cast<size_t>(by->extent(0))},
                                 static_cast<size_t>(to.extent(1)),
                                 {result.data, row_stride(result), output.rows}};
        }
        const size_t used = std::min(blocks, output.features.frequencies / size + blocks_per_group);
        run(n_threads, input.count * used * size, [&](const Execution& execution) {
            return fastfood<T>(input.rows, factors, output.features, output.data, output.stride,
                               scoring ? &*scoring : nullptr, execution);
        });
    });
    return !not_finite;
}

// Elements that `count` frequencies of `dim` coordinates take when they are packed.
size_t dense_packed_size(size_t count, size_t dim, size_t itemsize) {
    require(itemsize == sizeof(float) || itemsize == sizeof(double), "itemsize must be 4 or 8");
    return itemsize == sizeof(float) ? packed_size<float>(count, dim)
                                     : packed_size<double>(count, dim);
}

// w: (m, d); out: one-dimensional, dense_packed_size elements.
void pack_into(nb::handle w, nb::handle out) {
    const Buffer from(w, Buffer::Access::read), to(out, Buffer::Access::write);
    require(from.ndim() == 2 && from.kind() == to.kind(), "w must be a matrix of the dtype of out");
    with_real_type(from, [&](auto zero) {
        using T = decltype(zero);
        const auto m = static_cast<size_t>(from.extent(0)), d = static_cast<size_t>(from.extent(1));
        require(to.ndim() == 1 && to.size() == packed_size<T>(m, d) && to.as<T>().contiguous(),
                "out must be one-dimensional and as long as the packed frequencies");
        const T* rows = contiguous<T>(from, kind_of<T>, "w must be contiguous");
        run(1, from.size(), [&](const Execution&) {
            pack_frequencies(rows, m, d, to.as<T>().data);
            return true;
        });
    });
}

// packed: what pack_into made of (m, d). Its frequency j is frequency first + j of the features.
bool dense_into(nb::handle x, nb::handle packed, size_t m, size_t first, nb::handle out, int kind,
                double scale, nb::handle phases, int n_threads) {
    const Buffer to(out, Buffer::Access::write), frequencies(packed, Buffer::Access::read);
    std::optional<Buffer> phase;
    if (!phases.is_none()) phase.emplace(phases, Buffer::Access::read);
    bool not_finite = false;
    with_real_type(to, [&](auto zero) {
        using T = decltype(zero);
        const Input<T> input(x);
        const Output<T> output(to, kind, scale, phase, &not_finite,
                               std::numeric_limits<size_t>::max());
        require(input.count == output.rows, "out must have as many rows as x");
        const T* elements =
            contiguous<T>(frequencies, kind_of<T>, "packed must have the dtype of out");
        require(m <= output.features.frequencies && first <= output.features.frequencies - m,
                "out has fewer columns than features");
        require((m == 0 || input.dim <= frequencies.size()) &&
                    frequencies.size() == packed_size<T>(m, input.dim),
                "packed must hold m frequencies of as many coordinates as x has columns");
        const Frequencies<T> w{elements, m, input.dim};
        run(n_threads, input.count * m * std::max<size_t>(1, input.dim / 16),
            [&](const Execution& execution) {
                return dense_features<T>(input.rows, w, first, output.features, output.data,
                                         output.stride, execution);
            });
    });
    return !not_finite;
}

// Features of projections z of frequencies first, first + 1, ..., times `outer` where it is given.
bool features_into(nb::handle z, nb::handle outer, size_t first, nb::handle out, int kind,
                   double scale, nb::handle phases, int n_threads) {
    const Buffer to(out, Buffer::Access::write);
    std::optional<Buffer> s, phase;
    if (!outer.is_none()) s.emplace(outer, Buffer::Access::read);
    if (!phases.is_none()) phase.emplace(phases, Buffer::Access::read);
    bool not_finite = false;
    with_real_type(to, [&](auto zero) {
        using T = decltype(zero);
        const Input<T> input(z);
        const auto* rows = std::get_if<DenseRows<T>>(&input.rows);
        require(rows != nullptr, "z must be dense");
        const size_t n = input.dim;
        const Output<T> output(to, kind, scale, phase, &not_finite,
                               std::numeric_limits<size_t>::max());
        require(input.count == output.rows, "out must have as many rows as z");
        require(!s || s->size() == n, "outer must have an element for each column of z");
        require(first <= output.features.frequencies, "first is beyond the columns of out");
        const T* factors =
            s ? contiguous<T>(*s, kind_of<T>, "outer must have the dtype of out") : nullptr;
        run(n_threads, input.count * n, [&](const Execution& execution) {
            return write_features<T>(rows->data, rows->stride, rows->count, n, factors, first,
                                     output.features, output.data, output.stride, execution);
        });
    });
    return !not_finite;
}

// A matrix that is worked on in place.
template <class T>
struct InPlace {
    explicit InPlace(const Buffer& z) {
        require(z.ndim() == 2 && (z.size() == 0 || !z.overlaps_itself()),
                "z must be a matrix that does not overlap itself");
        const auto view = z.as<T>();
        data = view.data;
        stride = row_stride(view);
        rows = static_cast<size_t>(view.shape[0]);
        columns = static_cast<size_t>(view.shape[1]);
    }

    T* data;
    ptrdiff_t stride;
    size_t rows, columns;
};

void exponentials_of(nb::handle z, nb::handle columns, nb::handle rows, int n_threads) {
    const Buffer to(z, Buffer::Access::write), of_columns(columns, Buffer::Access::read),
        of_rows(rows, Buffer::Access::read);
    with_real_type(to, [&](auto zero) {
        using T = decltype(zero);
        const InPlace<T> matrix(to);
        require(of_columns.size() == matrix.columns && of_rows.size() == matrix.rows,
                "columns and rows must have an element for each");
        const T* c = contiguous<T>(of_columns, kind_of<T>, "columns must have the dtype of z");
        const double* r = contiguous<double>(of_rows, 'd', "rows must be float64");
        run(n_threads, matrix.rows * matrix.columns, [&](const Execution& execution) {
            return exponentials<T>(matrix.data, matrix.stride, matrix.rows, matrix.columns, c, r,
                                   execution);
        });
    });
}

// starts, degrees: int64; powers, weights: float64; alpha, beta: of the dtype of z, as many as the
// highest degree.
bool zonal_of(nb::handle z, nb::handle squares, nb::handle starts, nb::handle degrees,
              nb::handle powers, nb::handle weights, nb::handle alpha, nb::handle beta,
              int n_threads) {
    const Buffer to(z, Buffer::Access::write), of_rows(squares, Buffer::Access::read),
        s(starts, Buffer::Access::read), n(degrees, Buffer::Access::read),
        k(powers, Buffer::Access::read), w(weights, Buffer::Access::read),
        a(alpha, Buffer::Access::read), b(beta, Buffer::Access::read);
    bool not_finite = false;
    with_real_type(to, [&](auto zero) {
        using T = decltype(zero);
        const InPlace<T> matrix(to);
        require(of_rows.size() == matrix.rows, "squares must have an element for each row");
        require(n.size() + 1 == s.size() && k.size() == n.size() && w.size() == n.size() &&
                    s.kind() == n.kind() && (s.kind() == 'l' || s.kind() == 'q'),
                "groups must be described by int64 and float64 arrays of fitting lengths");
        const ZonalGroups<T> groups{n.size(),
                                    contiguous<int64_t>(s, s.kind(), "starts must be contiguous"),
                                    contiguous<int64_t>(n, n.kind(), "degrees must be contiguous"),
                                    contiguous<double>(k, 'd', "powers must be float64"),
                                    contiguous<double>(w, 'd', "weights must be float64"),
                                    contiguous<T>(a, kind_of<T>, "alpha must have the dtype of z"),
                                    contiguous<T>(b, kind_of<T>, "beta must have the dtype of z")};
        const auto most = static_cast<int64_t>(
            std::min<size_t>(std::min(a.size(), b.size()), std::numeric_limits<int>::max()));
        require(groups.starts[0] == 0 &&
                    groups.starts[groups.count] == static_cast<int64_t>(matrix.columns),
                "groups must hold all columns");
        for (size_t g = 0; g < groups.count; ++g) {
            require(groups.starts[g] <= groups.starts[g + 1], "starts must not decrease");
            require(groups.degrees[g] >= 0 && groups.degrees[g] <= most,
                    "alpha and beta must be as long as the highest degree");
        }
        const double* r = contiguous<double>(of_rows, 'd', "squares must be float64");
        run(n_threads, matrix.rows * matrix.columns, [&](const Execution& execution) {
            return zonal<T>(matrix.data, matrix.stride, matrix.rows, r, groups, execution,
                            &not_finite);
        });
    });
    return !not_finite;
}

// like: an array of the dtype of x, which may be a tuple.
void row_products_into(nb::handle x, nb::handle like, nb::handle vector, nb::handle out,
                       int n_threads) {
    const Buffer to(out, Buffer::Access::write), kind(like, Buffer::Access::read);
    std::optional<Buffer> v;
    if (!vector.is_none()) v.emplace(vector, Buffer::Access::read);
    const auto result = to.as<double>();
    require(to.kind() == 'd' && result.contiguous(), "out must be float64 and contiguous");
    with_real_type(kind, [&](auto zero) {
        using T = decltype(zero);
        const Input<T> input(x);
        require(to.size() == input.count, "out must have an element for each row");
        require(!v || v->size() == input.dim, "vector must have an element for each column");
        const double* factors = v ? contiguous<double>(*v, 'd', "vector must be float64") : nullptr;
        run(n_threads, input.count * input.dim, [&](const Execution& execution) {
            return row_products<T>(input.rows, input.dim, factors, result.data, execution);
        });
    });
}

}  // namespace

void register_features(nb::module_& m) {
    using nb::arg;
    // Constants that Python needs too. Panels of float are the wider ones: whole panels of them are
    // whole panels of double.
    nb::dict kinds;
    kinds["projection"] = static_cast<int>(FeatureKind::projection);
    kinds["cos_sin"] = static_cast<int>(FeatureKind::cos_sin);
    kinds["complex"] = static_cast<int>(FeatureKind::complex);
    kinds["cos_phase"] = static_cast<int>(FeatureKind::cos_phase);
    kinds["times"] = static_cast<int>(FeatureKind::times);
    m.attr("feature_kinds") = kinds;
    m.attr("panel_columns") = panel_width<float>;
    m.attr("tile_columns") = panels_per_tile * panel_width<float>;
    m.attr("tile_rows") = rows_per_tile;
    m.def("dense_packed_size", &dense_packed_size, arg("count"), arg("dim"), arg("itemsize"));
    m.def("fastfood", &fastfood_into, arg("x"), arg("out"), arg("signs"), arg("permutation").none(),
          arg("inner"), arg("outer"), arg("blocks_per_group"), arg("first_turn"), arg("kind"),
          arg("scale"), arg("phases").none(), arg("weights").none(), arg("scores").none(),
          arg("n_threads"));
    m.def("dense_pack", &pack_into, arg("w"), arg("out"));
    m.def("dense", &dense_into, arg("x"), arg("packed"), arg("m"), arg("first"), arg("out"),
          arg("kind"), arg("scale"), arg("phases").none(), arg("n_threads"));
    m.def("features", &features_into, arg("z"), arg("outer").none(), arg("first"), arg("out"),
          arg("kind"), arg("scale"), arg("phases").none(), arg("n_threads"));
    m.def("exponentials", &exponentials_of, arg("z"), arg("columns"), arg("rows"),
          arg("n_threads"));
    m.def("zonal", &zonal_of, arg("z"), arg("squares"), arg("starts"), arg("degrees"),
          arg("powers"), arg("weights"), arg("alpha"), arg("beta"), arg("n_threads"));
    m.def("row_products", &row_products_into, arg("x"), arg("like"), arg("vector").none(),
          arg("out"), arg("n_threads"));
}

}  // namespace kernelmill::bindings
