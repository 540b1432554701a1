// Moments of rows: arrays in, one core call, sums out.
#include "kernelmill/moments.hpp"

#include <nanobind/nanobind.h>

#include "buffer.hpp"
#include "rows.hpp"
#include "run.hpp"

namespace kernelmill::bindings {
namespace {

template <class T>
DenseRows<T> matrix(const Buffer& buffer) {
    const auto view = buffer.as<const T>();
    return {view.data, row_stride(view), static_cast<size_t>(view.shape[0])};
}

MutableRows<double> output(const Buffer& buffer, size_t rows, size_t columns, const char* what) {
    require(buffer.ndim() == 2 && buffer.kind() == 'd' &&
                static_cast<size_t>(buffer.extent(0)) == rows &&
                static_cast<size_t>(buffer.extent(1)) == columns && !buffer.overlaps_itself(),
            what);
    const auto view = buffer.as<double>();
    return {view.data, row_stride(view), rows};
}

// `count` contiguous numbers, or null for None where that is allowed.
const double* vector(nb::handle given, const Buffer& buffer, size_t count, const char* what) {
    if (given.is_none()) return nullptr;
    const double* data = contiguous<double>(buffer, 'd', what);
    require(buffer.ndim() == 1 && buffer.size() == count, what);
    return data;
}

// x: (n, D); center and last: (D,); factors: (n,) or None; targets: (n + 1, T); scratch: of the
// dtype of the products; moments: (D, D), of which the lower triangle is added to; cross: (T, D).
void add_moments_into(nb::handle x, nb::handle center, nb::handle factors, nb::handle last,
                      nb::handle targets, nb::handle scratch, nb::handle moments, nb::handle cross,
                      int n_threads) {
    const Buffer rows(x, Buffer::Access::read), middle(center, Buffer::Access::read),
        more(last, Buffer::Access::read), aims(targets, Buffer::Access::read),
        work(scratch, Buffer::Access::write), to(moments, Buffer::Access::write),
        along(cross, Buffer::Access::write);
    const Buffer by(factors.is_none() ? center : factors, Buffer::Access::read);
    require(rows.ndim() == 2, "x must be a matrix");
    require(aims.ndim() == 2 && aims.extent(0) == rows.extent(0) + 1,
            "targets must be a matrix with the rows of x and one more");
    const auto n = static_cast<size_t>(rows.extent(0)), dim = static_cast<size_t>(rows.extent(1));
    const auto n_targets = static_cast<size_t>(aims.extent(1));
    const double* from = vector(center, middle, dim, "center must have a number for each column");
    const double* weights = vector(factors, by, n, "factors must have a number for each row of x");
    const double* shift = vector(last, more, dim, "last must have a number for each column of x");
    const double* each = contiguous<double>(aims, 'd', "targets must be contiguous float64");
    const auto result = output(to, dim, dim, "moments must be a float64 matrix of (D, D)");
    const auto products = output(along, n_targets, dim, "cross must be a float64 matrix of (T, D)");
    require(from && shift, "center and last must be arrays");
    for (const Buffer* written : {&work, &to, &along}) {
        for (const Buffer* other : {&rows, &middle, &by, &more, &aims, &work, &to, &along}) {
            require(written == other || !written->overlaps(*other),
                    "scratch, moments and cross must not overlap another argument");
        }
    }
    const auto add = [&](auto real, auto product) {
        using T = decltype(real);
        using P = decltype(product);
        P* memory = work.as<P>().data;
        require(work.as<P>().contiguous() && work.size() >= moments_scratch(n, dim, n_targets),
                "scratch must be contiguous, of (n + 1) * (D + T + 128) + 16 elements");
        const MomentRows<T> given{matrix<T>(rows), dim, from, weights, shift};
        run(n_threads, rows.size() * dim, [&](const Execution& execution) {
            add_moments<P, T>(given, {each, n_targets}, memory, result, products, execution);
            return true;
        });
    };
    with_real_type(work, [&](auto product) {
        with_real_type(rows, [&](auto real) {
            if constexpr (sizeof(real) <= sizeof(product)) {
                add(real, product);
            } else {
                require(false, "scratch must have the precision of x, or a higher one");
            }
        });
    });
}

// x: (n, D); factors: (n,) or None; sums: (D,), written.
void sum_columns_into(nb::handle x, nb::handle factors, nb::handle sums, int n_threads) {
    const Buffer rows(x, Buffer::Access::read), to(sums, Buffer::Access::write);
    const Buffer by(factors.is_none() ? x : factors, Buffer::Access::read);
    require(rows.ndim() == 2, "x must be a matrix");
    const auto n = static_cast<size_t>(rows.extent(0)), dim = static_cast<size_t>(rows.extent(1));
    const double* weights = vector(factors, by, n, "factors must have a number for each row of x");
    require(to.ndim() == 1 && to.kind() == 'd' && to.as<double>().contiguous() && to.size() == dim,
            "sums must have a float64 number for each column of x");
    require(!to.overlaps(rows) && (!weights || !to.overlaps(by)), "sums must not overlap an input");
    with_real_type(rows, [&](auto real) {
        using T = decltype(real);
        run(n_threads, rows.size(), [&](const Execution& execution) {
            sum_columns<T>(matrix<T>(rows), weights, dim, to.as<double>().data, execution);
            return true;
        });
    });
}

}  // namespace

void register_moments(nb::module_& m) {
    m.def("add_moments", &add_moments_into, nb::arg("x"), nb::arg("center"),
          nb::arg("factors").none(), nb::arg("last"), nb::arg("targets"), nb::arg("scratch"),
          nb::arg("moments"), nb::arg("cross"), nb::arg("n_threads"));
    m.def("sum_columns", &sum_columns_into, nb::arg("x"), nb::arg("factors").none(),
          nb::arg("sums"), nb::arg("n_threads"));
}

}  // namespace kernelmill::bindings
