// Views of strided n-dimensional arrays. Strides are in bytes and may be anything, also zero,
// negative or not a multiple of the element size.
#pragma once

#include <array>
#include <cstddef>

namespace kernelmill {

constexpr int most_dimensions = 64;  // as many as NumPy has

template <class T>
struct ArrayView {
    T* data;
    int ndim;
    const ptrdiff_t* shape;
    const ptrdiff_t* strides;
};

}  // namespace kernelmill
