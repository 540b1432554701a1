// Views of strided n-dimensional arrays. Strides are in bytes; they may be zero, negative or not a
// multiple of the element size.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kernelmill {

template <class T>
struct ArrayView {
    T* data;
    int ndim;
    const ptrdiff_t* shape;
    const ptrdiff_t* strides;

    // Whether elements are contiguous in C order, at addresses aligned for T.
    bool contiguous() const {
        auto step = static_cast<ptrdiff_t>(sizeof(T));
        for (int d = ndim - 1; d >= 0; --d) {
            if (shape[d] != 1 && strides[d] != step) return false;
            step *= shape[d];
        }
        return reinterpret_cast<uintptr_t>(data) % alignof(T) == 0;
    }

    size_t size() const {
        size_t count = 1;
        for (int d = 0; d < ndim; ++d) count *= static_cast<size_t>(shape[d]);
        return count;
    }
};

}  // namespace kernelmill
