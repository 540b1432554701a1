// Products of rows with few outputs: arrays in, one core call, result out.
#include "kernelmill/few_outputs.hpp"

#include <nanobind/nanobind.h>

#include "buffer.hpp"
#include "rows.hpp"
#include "run.hpp"

namespace kernelmill::bindings {
namespace {

template <class T>
DenseRows<T> matrix(const Buffer& buffer, const char* what) {
    require(buffer.ndim() == 2 && buffer.kind() == kind_of<T>, what);
    const auto view = buffer.as<const T>();
    return {view.data, row_stride(view), static_cast<size_t>(view.shape[0])};
}

template <class T>
MutableRows<T> output(const Buffer& buffer, const char* what) {
    require(buffer.ndim() == 2 && buffer.kind() == kind_of<T> &&
                (buffer.size() == 0 || !buffer.overlaps_itself()),
            what);
    const auto view = buffer.as<T>();
    return {view.data, row_stride(view), static_cast<size_t>(view.shape[0])};
}

// x: (n, D); weights: (T, D); out: (n, T).
void score_rows_into(nb::handle x, nb::handle weights, nb::handle out, int n_threads) {
    const Buffer rows(x, Buffer::Access::read), by(weights, Buffer::Access::read),
        to(out, Buffer::Access::write);
    with_real_type(to, [&](auto zero) {
        using T = decltype(zero);
        const auto from = matrix<T>(rows, "x must be a matrix of the dtype of out");
        const auto factors = matrix<T>(by, "weights must be a matrix of the dtype of out");
        const auto result = output<T>(to, "out must be a matrix that does not overlap itself");
        require(rows.extent(1) == by.extent(1), "weights must have the columns of x");
        require(to.extent(0) == rows.extent(0) && to.extent(1) == by.extent(0),
                "out must have the rows of x and a column for each row of weights");
        require(!to.overlaps(rows) && !to.overlaps(by), "out must not overlap an input");
        const auto dim = static_cast<size_t>(rows.extent(1));
        run(n_threads, rows.size() * factors.count, [&](const Execution& execution) {
            return score_rows<T>(from, factors, dim, result, execution);
        });
    });
}

// x: (n, D); factors: (n, T), contiguous; sums: (T, D), added to.
void add_weighted_rows_into(nb::handle x, nb::handle factors, nb::handle sums, int n_threads) {
    const Buffer rows(x, Buffer::Access::read), by(factors, Buffer::Access::read),
        to(sums, Buffer::Access::write);
    with_real_type(to, [&](auto zero) {
        using T = decltype(zero);
        const auto from = matrix<T>(rows, "x must be a matrix of the dtype of sums");
        const T* each = contiguous<T>(by, kind_of<T>, "factors must have the dtype of sums");
        const auto result = output<T>(to, "sums must be a matrix that does not overlap itself");
        require(by.ndim() == 2 && by.extent(0) == rows.extent(0) && by.extent(1) == to.extent(0),
                "factors must have the rows of x and a column for each row of sums");
        require(rows.extent(1) == to.extent(1), "sums must have the columns of x");
        require(!to.overlaps(rows) && !to.overlaps(by), "sums must not overlap an input");
        const auto dim = static_cast<size_t>(rows.extent(1));
        run(n_threads, rows.size() * result.count, [&](const Execution& execution) {
            return add_weighted_rows<T>(from, each, dim, result, execution);
        });
    });
}

}  // namespace

void register_few_outputs(nb::module_& m) {
    m.def("score_rows", &score_rows_into, nb::arg("x"), nb::arg("weights"), nb::arg("out"),
          nb::arg("n_threads"));
    m.def("add_weighted_rows", &add_weighted_rows_into, nb::arg("x"), nb::arg("factors"),
          nb::arg("sums"), nb::arg("n_threads"));
}

}  // namespace kernelmill::bindings
