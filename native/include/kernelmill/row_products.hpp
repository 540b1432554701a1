// Inner products of rows with a vector, or with themselves.
#pragma once

#include <cstddef>

#include "kernelmill/rows.hpp"
#include "kernelmill/threads.hpp"

namespace kernelmill {

// out[i] = <row i, vector>, or the square of row i without a vector. Sums are in double precision
// and in the same order for dense and sparse rows on every machine. Returns false if it was
// interrupted.
template <class T>
bool row_products(const Rows<T>& rows, size_t dim, const double* vector, double* out,
                  const Execution& execution);

}  // namespace kernelmill
