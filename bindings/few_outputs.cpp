// Products of rows with few outputs, and steps of descent: arrays in, one core call, result out.
#include "kernelmill/few_outputs.hpp"

#include <nanobind/nanobind.h>

#include "buffer.hpp"
#include "kernelmill/descent.hpp"
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

// x: (n, D); factors: (n, T), contiguous; directions: (k, D + 1); damping: (k,), contiguous; last,
// average and move: (T, D + 1), written. Returns the share of the step that was taken.
double descend_into(nb::handle x, nb::handle factors, nb::handle directions, nb::handle damping,
                    nb::handle last, nb::handle average, nb::handle move, double step, double alpha,
                    double constant, double curvature, double averaging, int n_threads) {
    const Buffer rows(x, Buffer::Access::read), by(factors, Buffer::Access::read),
        along(directions, Buffer::Access::read), less(damping, Buffer::Access::read);
    const Buffer to(last, Buffer::Access::write), mean(average, Buffer::Access::write),
        scratch(move, Buffer::Access::write);
    double share = 1;
    with_real_type(to, [&](auto zero) {
        using T = decltype(zero);
        const Batch<T> batch{matrix<T>(rows, "x must be a matrix of the dtype of last"),
                             contiguous<T>(by, kind_of<T>, "factors must have the dtype of last")};
        const Preconditioner<T> preconditioner{
            matrix<T>(along, "directions must be a matrix of the dtype of last"),
            contiguous<T>(less, kind_of<T>, "damping must have the dtype of last")};
        const DescentWeights<T> weights{
            output<T>(to, "last must be a matrix that does not overlap itself"),
            output<T>(mean, "average must be a matrix that does not overlap itself"),
            output<T>(scratch, "move must be a matrix that does not overlap itself")};
        require(same_shape(to, mean) && same_shape(to, scratch),
                "average and move must have the shape of last");
        require(to.extent(1) == rows.extent(1) + 1 && to.extent(1) == along.extent(1),
                "last and directions must have the columns of x and one more");
        require(by.ndim() == 2 && by.extent(0) == rows.extent(0) && by.extent(1) == to.extent(0),
                "factors must have the rows of x and a column for each row of last");
        require(less.ndim() == 1 && less.extent(0) == along.extent(0),
                "damping must have an element for each row of directions");
        for (const Buffer* written : {&to, &mean, &scratch}) {
            for (const Buffer* other : {&rows, &by, &along, &less, &to, &mean, &scratch}) {
                require(written == other || !written->overlaps(*other),
                        "last, average and move must not overlap another argument");
            }
        }
        const auto dim = static_cast<size_t>(rows.extent(1));
        const StepRule rule{step, alpha, constant, curvature, averaging};
        const size_t elements = (rows.size() + along.size() + to.size()) * weights.last.count;
        run(n_threads, elements, [&](const Execution& execution) {
            return descend<T>(batch, dim, preconditioner, rule, weights, share, execution);
        });
    });
    return share;
}

}  // namespace

void register_few_outputs(nb::module_& m) {
    m.def("score_rows", &score_rows_into, nb::arg("x"), nb::arg("weights"), nb::arg("out"),
          nb::arg("n_threads"));
    m.def("add_weighted_rows", &add_weighted_rows_into, nb::arg("x"), nb::arg("factors"),
          nb::arg("sums"), nb::arg("n_threads"));
    m.def("descend", &descend_into, nb::arg("x"), nb::arg("factors"), nb::arg("directions"),
          nb::arg("damping"), nb::arg("last"), nb::arg("average"), nb::arg("move"), nb::arg("step"),
          nb::arg("alpha"), nb::arg("constant"), nb::arg("curvature"), nb::arg("averaging"),
          nb::arg("n_threads"));
}

}  // namespace kernelmill::bindings
