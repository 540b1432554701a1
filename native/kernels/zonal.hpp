// Polynomials of projections by a three-term recurrence: p_0 = 1, p_1 = alpha_0 u,
// p_{j+1} = alpha_j u p_j - beta_j p_{j-1}.
#pragma once

#include "finite.hpp"
#include "simd.hpp"

namespace kernelmill::KM_TARGET {

template <class T, int N>
KM_INLINE void recurrence(Vec<T>* u, const T* alpha, const T* beta, int degree) {
    Vec<T> before[N], now[N];
    KM_UNROLL
    for (int i = 0; i < N; ++i) {
        before[i] = broadcast<T>(1);
        now[i] = u[i] * alpha[0];
    }
    for (int j = 1; j < degree; ++j) {
        const Vec<T> a = broadcast<T>(alpha[j]), b = broadcast<T>(-beta[j]);
        KM_UNROLL
        for (int i = 0; i < N; ++i) {
            const Vec<T> next = fma(a * u[i], now[i], b * before[i]);
            before[i] = now[i];
            now[i] = next;
        }
    }
    KM_UNROLL
    for (int i = 0; i < N; ++i) u[i] = now[i];
}

// z[i] becomes factor * p_degree(z[i] * inverse), for i < n. Returns whether these are finite;
// `factor` is.
template <class T>
bool zonal_row(T* z, size_t n, T inverse, T factor, const T* alpha, const T* beta, int degree) {
    constexpr int w = width<T>, together = 4;
    const Vec<T> scale = broadcast<T>(factor);
    if (degree == 0) {
        for (size_t j = 0; j < n; ++j) z[j] = factor;
        return true;
    }
    Vec<T> mark[together]{};
    size_t j = 0;
    for (; j + together * w <= n; j += together * w) {
        Vec<T> u[together];
        KM_UNROLL
        for (int i = 0; i < together; ++i) u[i] = load(z + j + i * w) * inverse;
        recurrence<T, together>(u, alpha, beta, degree);
        KM_UNROLL
        for (int i = 0; i < together; ++i) {
            u[i] *= scale;
            store(z + j + i * w, u[i]);
            mark[i] = see<T>(mark[i], u[i]);
        }
    }
    for (; j < n; j += w) {
        const int count = static_cast<int>(n - j < w ? n - j : w);
        Vec<T> u = load_first(z + j, count) * inverse;
        recurrence<T, 1>(&u, alpha, beta, degree);
        u *= scale;
        store_first(z + j, u, count);
        mark[0] = see<T>(mark[0], u);
    }
    return has_seen_finite<T>((mark[0] + mark[1]) + (mark[2] + mark[3]));
}

}  // namespace kernelmill::KM_TARGET
