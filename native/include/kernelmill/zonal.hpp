// Zonal polynomials of projections on directions, in place.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernelmill/threads.hpp"

namespace kernelmill {

// Columns starts[g] to starts[g + 1] of group g take weights[g] * r^powers[g] * p(z / r), p the
// polynomial of degree degrees[g] of the recurrence p_{j+1} = alpha_j u p_j - beta_j p_{j-1}.
template <class T>
struct ZonalGroups {
    size_t count;
    const int64_t* starts;
    const int64_t* degrees;
    const double* powers;
    const double* weights;
    const T* alpha;
    const T* beta;
};

// r is the root of squares[i] for row i. Where r is 0, groups of a degree above 0 give 0. Sets
// *not_finite, if it is given, if a result is NaN or infinite. Returns false if it was interrupted.
template <class T>
bool zonal(T* z, ptrdiff_t stride, size_t n_rows, const double* squares,
           const ZonalGroups<T>& groups, const Execution& execution, bool* not_finite = nullptr);

}  // namespace kernelmill
