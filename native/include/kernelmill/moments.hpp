// Sums over rows for least squares: products of all pairs of columns, and of columns with targets.
//
// This is the product of a matrix with its transpose, syrk in a BLAS. Here rows are centered,
// weighted and converted while they are packed, so that features in single precision are never
// copied to double precision. Sums have the same order for any number of threads: over ascending
// rows, in slabs of rows_per_slab.
#pragma once

#include <cstddef>

#include "kernelmill/few_outputs.hpp"
#include "kernelmill/rows.hpp"
#include "kernelmill/threads.hpp"

namespace kernelmill {

// Rows z of `dim` features, which count as (z - center) * factor, and a last row that is unchanged.
template <class T>
struct MomentRows {
    DenseRows<T> rows;
    size_t dim;
    const double* center;
    const double* factors;  // one for each row; null: all are one
    const double* last;
};

// Targets, one row for each of the rows above and one for the last row.
struct MomentTargets {
    const double* data;  // (rows.count + 1, count), contiguous
    size_t count;
};

// The maximum number of scratch elements that add_moments needs for this number of rows, without
// the last; the largest size_t if the number does not fit.
constexpr size_t moments_scratch(size_t rows, size_t dim, size_t targets) {
    constexpr size_t widest_panel = 64;  // on any target
    constexpr size_t to_align = 16;
    constexpr size_t most = ~size_t(0);
    if (rows == most || dim > most / 4 || targets > most / 4) return most;
    const size_t columns = dim + targets + 2 * widest_panel;
    if (rows + 1 > (most - to_align) / columns) return most;
    return (rows + 1) * columns + to_align;
}

// moments[i][j] += the products of columns i and j <= i over all rows, cross[t][j] += those of
// target t and column j. Products are in the precision P. Cannot be interrupted, since partial sums
// would be useless.
template <class P, class T>
void add_moments(const MomentRows<T>& rows, const MomentTargets& targets, P* scratch,
                 const MutableRows<double>& moments, const MutableRows<double>& cross,
                 const Execution& execution);

// sums[j] = the sum over i of factors[i] times column j of row i, in double precision. Without
// factors (null), they are one.
template <class T>
void sum_columns(const DenseRows<T>& rows, const double* factors, size_t dim, double* sums,
                 const Execution& execution);

}  // namespace kernelmill
