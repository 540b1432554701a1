// The exponential function of sums: exp(z_j + column_j + row).
//
// exp(v) = 2^n exp(r) with n the integer next to v / ln 2, so that |r| <= ln(2) / 2, where the
// Taylor polynomial with one more term than a minimax polynomial has is as good as exact: its
// coefficients are 1 / k!.
#pragma once

#include "simd.hpp"

namespace kernelmill::KM_TARGET {

template <class T>
struct ExponentialConstants;

// ln2[0] has so few digits that n times it is exact, ln2[1] is the rest.
template <>
struct ExponentialConstants<float> {
    static constexpr float lowest = -104.f, highest = 88.72283f;  // what gives 0 and the maximum
    static constexpr float rounder = 12582912.f;                  // 1.5 * 2^23
    static constexpr int mantissa_bits = 23, bias = 127;
    static constexpr float log2_e = 0x1.715476p+0f;
    static constexpr float ln2[2] = {0x1.62e4p-1f, 0x1.7f7d1cp-20f};
    static constexpr int degree = 7;
};

template <>
struct ExponentialConstants<double> {
    static constexpr double lowest = -746., highest = 709.782712893383973;
    static constexpr double rounder = 6755399441055744.;  // 1.5 * 2^52
    static constexpr int mantissa_bits = 52, bias = 1023;
    static constexpr double log2_e = 0x1.71547652b82fep+0;
    static constexpr double ln2[2] = {0x1.62e42fefa2p-1, 0x1.9ef35793c7673p-41};
    static constexpr int degree = 13;
};

constexpr double inverse_factorial(int k) { return k <= 1 ? 1.0 : inverse_factorial(k - 1) / k; }

// exp of N vectors, step by step so that their chains overlap. Results are finite: what would
// overflow becomes (nearly) the largest number, and what is not a number 0.
template <class T, int N>
KM_INLINE void exponential(Vec<T>* v) {
    using C = ExponentialConstants<T>;
    const Vec<T> rounder = broadcast<T>(C::rounder), lowest = broadcast<T>(C::lowest),
                 highest = broadcast<T>(C::highest);
    Vec<T> n[N], r[N], p[N];
    KM_UNROLL
    for (int i = 0; i < N; ++i) {
        v[i] = select_by_sign<T>(v[i] > lowest, v[i], lowest);
        v[i] = select_by_sign<T>(v[i] < highest, v[i], highest);
        n[i] = (v[i] * C::log2_e + rounder) - rounder;
        r[i] = fma(n[i], broadcast<T>(-C::ln2[0]), v[i]);
        r[i] = fma(n[i], broadcast<T>(-C::ln2[1]), r[i]);
        p[i] = broadcast<T>(static_cast<T>(inverse_factorial(C::degree)));
    }
    KM_UNROLL
    for (int k = C::degree - 1; k >= 0; --k) {
        const Vec<T> coefficient = broadcast<T>(static_cast<T>(inverse_factorial(k)));
        KM_UNROLL
        for (int i = 0; i < N; ++i) p[i] = fma(p[i], r[i], coefficient);
    }
    // 2^n in two factors: one alone would leave the range where the result is next to its ends.
    KM_UNROLL
    for (int i = 0; i < N; ++i) {
        const Vec<T> half = n[i] * T(0.5) + rounder;
        const Vec<T> other = (n[i] - (half - rounder)) + rounder;
        const Bits<T> first = ((Bits<T>)half + C::bias) << C::mantissa_bits;
        const Bits<T> second = ((Bits<T>)other + C::bias) << C::mantissa_bits;
        v[i] = (p[i] * (Vec<T>)first) * (Vec<T>)second;
    }
}

// z[j] becomes exp((z[j] + column[j]) + row).
template <class T>
void exponentials_row(T* z, const T* column, T row, size_t n) {
    constexpr int w = width<T>, together = 4;
    size_t j = 0;
    for (; j + together * w <= n; j += together * w) {
        Vec<T> v[together];
        KM_UNROLL
        for (int i = 0; i < together; ++i)
            v[i] = (load(z + j + i * w) + load(column + j + i * w)) + row;
        exponential<T, together>(v);
        KM_UNROLL
        for (int i = 0; i < together; ++i) store(z + j + i * w, v[i]);
    }
    for (; j < n; j += w) {
        const int count = static_cast<int>(n - j < w ? n - j : w);
        Vec<T> v = (load_first(z + j, count) + load_first(column + j, count)) + row;
        exponential<T, 1>(&v);
        store_first(z + j, v, count);
    }
}

}  // namespace kernelmill::KM_TARGET
