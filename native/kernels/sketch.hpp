// Count sketch of `width` rows side by side.
#pragma once

#include "simd.hpp"

namespace kernelmill::KM_TARGET {

// tile[buckets[i]] += weights[i] x[i] for n vectors, each of one coordinate of `width` rows.
template <class T>
void sketch_lanes(const T* x, const int32_t* buckets, const T* weights, size_t n, T* tile) {
    constexpr size_t w = width<T>;
    for (size_t i = 0; i < n; ++i) {
        T* to = tile + static_cast<size_t>(buckets[i]) * w;
        store(to, load(to) + load(x + i * w) * weights[i]);
    }
}

}  // namespace kernelmill::KM_TARGET
