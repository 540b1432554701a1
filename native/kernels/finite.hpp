// Whether numbers are finite.
#pragma once

#include "simd.hpp"

namespace kernelmill::KM_TARGET {

// A mark of zeros stays zero as long as the vectors it sees are finite: 0 times NaN or infinity is
// NaN, and stays so in a sum.
template <class T>
KM_INLINE Vec<T> see(Vec<T> mark, Vec<T> v) {
    return fma(v, Vec<T>{}, mark);
}
template <class T>
KM_INLINE bool has_seen_finite(Vec<T> mark) {
    T total = 0;
    for (int i = 0; i < width<T>; ++i) total += mark[i];
    return total == 0;
}

template <class T>
bool all_finite(const T* x, size_t n) {
    constexpr size_t w = width<T>, together = 4;
    Vec<T> mark[together]{};
    size_t j = 0;
    for (; j + together * w <= n; j += together * w) {
        KM_UNROLL
        for (size_t i = 0; i < together; ++i) mark[i] = see<T>(mark[i], load(x + j + i * w));
    }
    for (; j + w <= n; j += w) mark[0] = see<T>(mark[0], load(x + j));
    if (j < n) mark[0] = see<T>(mark[0], load_first(x + j, static_cast<int>(n - j)));
    return has_seen_finite<T>((mark[0] + mark[1]) + (mark[2] + mark[3]));
}

// Any thread may report; a caller that does not want to know gives no place.
KM_INLINE void report_not_finite(bool* place) {
    if (place) __atomic_store_n(place, true, __ATOMIC_RELAXED);
}

}  // namespace kernelmill::KM_TARGET
