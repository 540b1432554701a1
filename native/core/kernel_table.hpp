// What a target offers: plain function pointers, filled in by native/kernels/target.cpp.
#pragma once

#include <cstddef>

namespace kernelmill {

template <class T>
struct KernelTable {
    int width;  // lanes per vector

    // rows contiguous rows of 2^log2_n: dst = H (scale * src). src may be dst.
    void (*fwht_rows)(const T* src, T* dst, size_t rows, int log2_n, T scale);
    // One radix-8 pass at distance `stride` over columns [begin, end), multiples of width.
    void (*fwht_shared_pass)(const T* src, T* dst, size_t stride, size_t begin, size_t end,
                             T scale);
    // Up to `width` transforms side by side; consecutive elements are a byte stride apart. `tile`
    // is scratch for width << log2_n elements.
    void (*fwht_lanes)(const char* src, ptrdiff_t src_stride, char* dst, ptrdiff_t dst_stride,
                       int lanes, T* tile, int log2_n, T scale);
};

struct Target {
    const char* name;
    KernelTable<float> f32;
    KernelTable<double> f64;
};

const Target& active_target();

template <class T>
const KernelTable<T>& kernels();
template <>
inline const KernelTable<float>& kernels<float>() {
    return active_target().f32;
}
template <>
inline const KernelTable<double>& kernels<double>() {
    return active_target().f64;
}

}  // namespace kernelmill
