// Features of given projections.
#pragma once

#include <cstddef>

#include "kernelmill/features.hpp"
#include "kernelmill/threads.hpp"

namespace kernelmill {

// Features of n projections of each row, of frequencies first, first + 1, ..., times outer[0 .. n)
// where that is given. Strides of z and of the output are in elements. Returns false if it
// was interrupted.
template <class T>
bool write_features(const T* z, ptrdiff_t z_stride, size_t rows, size_t n, const T* outer,
                    size_t first, const Features<T>& features, T* out, ptrdiff_t out_stride,
                    const Execution& execution);

}  // namespace kernelmill
