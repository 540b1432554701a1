// Sine and cosine of the same argument, sharing one reduction to |r| <= pi/4.
//
// Within `sincos_limit` the error is below 2 units in the last place. Larger, infinite and NaN
// lanes are computed again one by one. Constants: tools/derive_sincos_constants.py.
#pragma once

#include "finite.hpp"
#include "simd.hpp"

namespace kernelmill {
// The slow way, for any argument (native/core/sincos.cpp).
void sincos_of_any(double x, double* sine, double* cosine);
}  // namespace kernelmill

namespace kernelmill::KM_TARGET {

template <class T>
struct SincosConstants;

template <>
struct SincosConstants<float> {
    static constexpr float limit = 2e5f;          // q < 2^17, far inside the rounding trick
    static constexpr float rounder = 12582912.f;  // 1.5 * 2^23: adding it rounds to an integer
    static constexpr float two_over_pi = 0x1.45f306p-1f;
    static constexpr float pi_2[3] = {0x1.921fb4p+0f, 0x1.4442d0p-24f, 0x1.846988p-48f};
    static constexpr int terms = 3;
    static constexpr float sine[terms] = {-0x1.555552p-3f, 0x1.110c28p-7f, -0x1.9ac9b0p-13f};
    static constexpr float cosine[terms] = {0x1.555554p-5f, -0x1.6c12d2p-10f, 0x1.9bd89cp-16f};
};

template <>
struct SincosConstants<double> {
    static constexpr double limit = 1.5e9;                // q < 2^30
    static constexpr double rounder = 6755399441055744.;  // 1.5 * 2^52
    static constexpr double two_over_pi = 0x1.45f306dc9c883p-1;
    static constexpr double pi_2[3] = {0x1.921fb54442d18p+0, 0x1.1a62633145c06p-54,
                                       0x1.c1cd129024e08p-107};
    static constexpr int terms = 6;
    static constexpr double sine[terms] = {-0x1.5555555555555p-3,  0x1.1111111110bb2p-7,
                                           -0x1.a01a019e83aaep-13, 0x1.71de37968a100p-19,
                                           -0x1.ae600b02b6262p-26, 0x1.5e0b19f8b1451p-33};
    static constexpr double cosine[terms] = {0x1.5555555555555p-5,  -0x1.6c16c16c16967p-10,
                                             0x1.a01a019f4eb01p-16, -0x1.27e4fa17da09ep-22,
                                             0x1.1eeb68e93b64cp-29, -0x1.907da367a37cbp-37};
};

// q[i] becomes x[i] - q[i] pi/2, to about one unit in the last place despite cancellation.
//
// With a fused multiply-add x - q A is exact (|x - q A| < 1 is a multiple of the last bit of A) and
// each further part is rounded once.
#if KM_HAS_FMA
template <class T, int N>
KM_INLINE void minus_quarter_turns(const Vec<T>* x, Vec<T>* q) {
    Vec<T> r[N];
    KM_UNROLL
    for (int i = 0; i < N; ++i) r[i] = x[i];
    KM_UNROLL
    for (int part = 0; part < 3; ++part) {
        const Vec<T> minus_part = broadcast<T>(-SincosConstants<T>::pi_2[part]);
        KM_UNROLL
        for (int i = 0; i < N; ++i) r[i] = fma(q[i], minus_part, r[i]);
    }
    KM_UNROLL
    for (int i = 0; i < N; ++i) q[i] = r[i];
}
#else
// Without one, float32 computes in float64.
KM_INLINE Vec<float> minus_quarter_turns_of(Vec<float> x, Vec<float> q) {
    typedef double Wide __attribute__((vector_size(2 * KM_VECTOR_BYTES)));
    const Wide x2 = __builtin_convertvector(x, Wide), q2 = __builtin_convertvector(q, Wide);
    const Wide r = (x2 - q2 * 0x1.921fb540p+0) - q2 * 0x1.10b4611a62633p-30;
    return __builtin_convertvector(r, Vec<float>);
}

// a - b; what the rounding loses goes into `lost`, exactly.
KM_INLINE Vec<double> subtract_exactly(Vec<double> a, Vec<double> b, Vec<double>& lost) {
    const Vec<double> difference = a - b, back = a - difference;
    lost = (a - (difference + back)) + (back - b);
    return difference;
}

// For float64, parts are so short that their products with q are exact.
KM_INLINE Vec<double> minus_quarter_turns_of(Vec<double> x, Vec<double> q) {
    Vec<double> lost3, lost4;
    Vec<double> r = (x - q * 0x1.921fb4p+0) - q * 0x1.4442d0p-24;  // exact
    r = subtract_exactly(r, q * 0x1.846988p-48, lost3);
    r = subtract_exactly(r, q * 0x1.8cc514p-72, lost4);
    r = r + ((lost3 + lost4) - q * 0x1.80dc1cd129024p-95);
    const Bits<double> zero = r == 0.0, sign_bit = Bits<double>{} + (int64_t(1) << 63);
    return (Vec<double>)((Bits<double>)r | (zero & (Bits<double>)x & sign_bit));  // -0 stays -0
}

template <class T, int N>
KM_INLINE void minus_quarter_turns(const Vec<T>* x, Vec<T>* q) {
    KM_UNROLL
    for (int i = 0; i < N; ++i) q[i] = minus_quarter_turns_of(x[i], q[i]);
}
#endif

// 1 - z/2 + z^2 p. The first two terms dominate; without a fused multiply-add, the rounding error
// of their sum is added back.
template <class T>
KM_INLINE Vec<T> cosine_sum(Vec<T> z, Vec<T> p) {
#if KM_HAS_FMA
    return fma(z * z, p, fma(z, broadcast<T>(T(-0.5)), broadcast<T>(1)));
#else
    const Vec<T> half = z * T(0.5), head = T(1) - half;
    return head + (((T(1) - head) - half) + z * z * p);
#endif
}

// N vectors at once: a single one is a dependency chain of about sixty cycles, and the operations
// of several fill each other's gaps. Lanes with |x| <= limit are correct; the others are undefined.
template <class T, int N>
KM_INLINE void sincos_in_range(const Vec<T>* x, Vec<T>* sine, Vec<T>* cosine) {
    using C = SincosConstants<T>;
    constexpr int sign_shift = 8 * sizeof(T) - 1;
    const Bits<T> sign_bit = Bits<T>{} + (typename Lanes<T>::integer(1) << sign_shift);
    const Vec<T> rounder = broadcast<T>(C::rounder);

    Bits<T> quadrant[N];  // its low bits are those of q, the number of quarter turns
    Vec<T> r[N], z[N], s[N], c[N];
    KM_UNROLL
    for (int i = 0; i < N; ++i) {
        const Vec<T> rounded = fma(x[i], broadcast<T>(C::two_over_pi), rounder);
        quadrant[i] = (Bits<T>)rounded;
        r[i] = rounded - rounder;
    }
    minus_quarter_turns<T, N>(x, r);
    KM_UNROLL
    for (int i = 0; i < N; ++i) {
        z[i] = r[i] * r[i];
        s[i] = broadcast<T>(C::sine[C::terms - 1]);
        c[i] = broadcast<T>(C::cosine[C::terms - 1]);
    }
    KM_UNROLL
    for (int k = C::terms - 2; k >= 0; --k) {
        KM_UNROLL
        for (int i = 0; i < N; ++i) s[i] = fma(s[i], z[i], broadcast<T>(C::sine[k]));
        KM_UNROLL
        for (int i = 0; i < N; ++i) c[i] = fma(c[i], z[i], broadcast<T>(C::cosine[k]));
    }
    KM_UNROLL
    for (int i = 0; i < N; ++i) {
        c[i] = cosine_sum<T>(z[i], c[i]);
        s[i] = fma(r[i] * z[i], s[i], r[i]);
        s[i] = (Vec<T>)((Bits<T>)s[i] | ((Bits<T>)r[i] & sign_bit));  // the sine of -0 is -0
    }
    KM_UNROLL
    for (int i = 0; i < N; ++i) {
        const Bits<T> odd = quadrant[i] << sign_shift;
        const Bits<T> flip_sine = (quadrant[i] << (sign_shift - 1)) & sign_bit;
        const Bits<T> flip_cosine = ((quadrant[i] + 1) << (sign_shift - 1)) & sign_bit;
        sine[i] = (Vec<T>)((Bits<T>)select_by_sign<T>(odd, c[i], s[i]) ^ flip_sine);
        cosine[i] = (Vec<T>)((Bits<T>)select_by_sign<T>(odd, s[i], c[i]) ^ flip_cosine);
    }
}

template <class T>
KM_INLINE Bits<T> sincos_out_of_range(Vec<T> x) {
    constexpr int sign_shift = 8 * sizeof(T) - 1;
    const Bits<T> magnitude =
        (Bits<T>)x & ~(Bits<T>{} + (typename Lanes<T>::integer(1) << sign_shift));
    return ~((Vec<T>)magnitude <= SincosConstants<T>::limit);  // NaN counts as out of range
}

// Not inlined: it is rarely needed, and would cost the callers registers.
template <class T>
__attribute__((noinline)) void redo_lanes(const T* x, const T* which, T* sine, T* cosine,
                                          bool* not_finite) {
    for (int i = 0; i < width<T>; ++i) {
        if (which[i] == T(0)) continue;
        if (!(x[i] - x[i] == T(0))) report_not_finite(not_finite);
        double s, c;
        sincos_of_any(static_cast<double>(x[i]), &s, &c);
        sine[i] = static_cast<T>(s);
        cosine[i] = static_cast<T>(c);
    }
}
template <class T>
KM_INLINE void redo_sincos(Vec<T> x, Bits<T> which, Vec<T>& sine, Vec<T>& cosine,
                           bool* not_finite) {
    T lanes[4][width<T>];
    store(lanes[0], x);
    store(lanes[1], select_by_sign<T>(which, broadcast<T>(1), broadcast<T>(0)));
    store(lanes[2], sine);
    store(lanes[3], cosine);
    redo_lanes<T>(lanes[0], lanes[1], lanes[2], lanes[3], not_finite);
    sine = load(lanes[2]);
    cosine = load(lanes[3]);
}

// N vectors of arbitrary arguments. Those that are not finite are reported.
template <class T, int N>
KM_INLINE void sincos(const Vec<T>* x, Vec<T>* sine, Vec<T>* cosine, bool* not_finite = nullptr) {
    sincos_in_range<T, N>(x, sine, cosine);
    Bits<T> rare{};
    KM_UNROLL
    for (int i = 0; i < N; ++i) rare |= sincos_out_of_range<T>(x[i]);
    if (__builtin_expect(any_set<T>(rare), 0)) {
        for (int i = 0; i < N; ++i) {
            redo_sincos<T>(x[i], sincos_out_of_range<T>(x[i]), sine[i], cosine[i], not_finite);
        }
    }
}

// Elementwise over n contiguous elements; sine or cosine may be x.
template <class T>
void sincos_array(const T* x, T* sine, T* cosine, size_t n) {
    constexpr int w = width<T>, together = 3;
    size_t i = 0;
    for (; i + together * w <= n; i += together * w) {
        Vec<T> in[together], s[together], c[together];
        KM_UNROLL
        for (int k = 0; k < together; ++k) in[k] = load(x + i + k * w);
        sincos<T, together>(in, s, c);
        KM_UNROLL
        for (int k = 0; k < together; ++k) {
            store(sine + i + k * w, s[k]);
            store(cosine + i + k * w, c[k]);
        }
    }
    for (; i < n; i += w) {
        const int count = static_cast<int>(n - i < w ? n - i : w);
        Vec<T> s, c;
        const Vec<T> in = load_first(x + i, count);
        sincos<T, 1>(&in, &s, &c);
        store_first(sine + i, s, count);
        store_first(cosine + i, c, count);
    }
}

}  // namespace kernelmill::KM_TARGET
