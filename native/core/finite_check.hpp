// Whether what a call writes is finite, found out while it is in the cache.
#pragma once

#include <cstddef>

#include "kernel_table.hpp"

namespace kernelmill {

// Sets *not_finite, if it is given, unless all n elements are finite. Any thread may do so.
template <class T>
void check_finite(const T* x, size_t n, bool* not_finite) {
    if (not_finite && !kernels<T>().all_finite(x, n)) {
        __atomic_store_n(not_finite, true, __ATOMIC_RELAXED);
    }
}

}  // namespace kernelmill
