// Exponentials of projections, in place.
#pragma once

#include <cstddef>

#include "kernelmill/threads.hpp"

namespace kernelmill {

// Element (i, j) of z becomes exp((z_ij + columns[j]) + rows[i]), and a finite number in any case.
// Rows of z are `stride` elements apart. Returns false if it was interrupted.
template <class T>
bool exponentials(T* z, ptrdiff_t stride, size_t n_rows, size_t n_columns, const T* columns,
                  const double* rows, const Execution& execution);

}  // namespace kernelmill
