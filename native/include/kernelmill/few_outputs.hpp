// Products of rows of features with few outputs: scores of rows, and sums of weighted rows.
//
// The products of a linear model with few outputs (1 to 64, say) are too narrow for the blocks of a
// BLAS. Sums have the same order for any number of threads: scores are added in lanes of 64 bytes
// over blocks of 8192 features, sums of rows over ascending rows.
#pragma once

#include <cstddef>

#include "kernelmill/rows.hpp"
#include "kernelmill/threads.hpp"

namespace kernelmill {

// A matrix whose rows are contiguous, `stride` elements apart.
template <class T>
struct MutableRows {
    T* data;
    ptrdiff_t stride;
    size_t count;
};

// out[i][c] = <row i, weights[c]> over `dim` features. Returns false if it was interrupted.
template <class T>
bool score_rows(const DenseRows<T>& rows, const DenseRows<T>& weights, size_t dim,
                const MutableRows<T>& out, const Execution& execution);

// The same for rows `begin` to `end`, on the calling thread.
template <class T>
void score_some_rows(const DenseRows<T>& rows, const DenseRows<T>& weights, size_t dim,
                     const MutableRows<T>& out, size_t begin, size_t end);

// sums[c] += the sum over i of factors[i][c] times row i, over `dim` features. Factors are
// contiguous, one row of sums.count for each row. Returns false if it was interrupted.
template <class T>
bool add_weighted_rows(const DenseRows<T>& rows, const T* factors, size_t dim,
                       const MutableRows<T>& sums, const Execution& execution);

}  // namespace kernelmill
