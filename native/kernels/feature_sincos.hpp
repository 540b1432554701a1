// Sine and cosine as features need them: times a common scale, with a small absolute error.
//
// float64 has those of sincos.hpp. float32 features are dominated by them, so float32 has its own:
// x is reduced by whole half turns, which changes the sign of both and never exchanges them. The
// error is below 2.5e-7 (two units in the last place of 1), times scale, for |x| <= 2e5; beyond,
// and for what is not finite, lanes are redone one by one. Constants:
// tools/derive_sincos_constants.py.
#pragma once

#include "sincos.hpp"

namespace kernelmill::KM_TARGET {

struct HalfTurns {
    static constexpr float one_over_pi = 0x1.45f306p-2f;
    static constexpr float pi[2] = {0x1.921fb4p+1f, 0x1.4442d0p-23f};
    static constexpr int terms = 4;
    static constexpr float sine[terms] = {-0x1.555554p-3f, 0x1.11104cp-7f, -0x1.9fb654p-13f,
                                          0x1.619d92p-19f};
    static constexpr float cosine[terms] = {0x1.555556p-5f, -0x1.6c163ep-10f, 0x1.9fd748p-16f,
                                            -0x1.1d069cp-22f};
};

// x - q pi. Without a fused multiply-add, through float64.
KM_INLINE Vec<float> minus_half_turns(Vec<float> x, Vec<float> q) {
#if KM_HAS_FMA
    const Vec<float> r = fma(q, broadcast(-HalfTurns::pi[0]), x);
    return fma(q, broadcast(-HalfTurns::pi[1]), r);
#else
    typedef double Wide __attribute__((vector_size(2 * KM_VECTOR_BYTES)));
    const Wide wide =
        __builtin_convertvector(x, Wide) - __builtin_convertvector(q, Wide) * 0x1.921fb54442d18p+1;
    return __builtin_convertvector(wide, Vec<float>);
#endif
}

// N vectors at once, step by step, as in sincos_in_range.
template <int N>
KM_INLINE void half_turn_sincos(const Vec<float>* x, Vec<float>* sine, Vec<float>* cosine,
                                Vec<float> scale) {
    using C = HalfTurns;
    const Vec<float> rounder = broadcast(SincosConstants<float>::rounder);
    Vec<float> signed_scale[N], r[N], z[N], s[N], c[N];
    KM_UNROLL
    for (int i = 0; i < N; ++i) {
        const Vec<float> rounded = fma(x[i], broadcast(C::one_over_pi), rounder);
        const Vec<float> q = rounded - rounder;
        const Bits<float> odd = (Bits<float>)rounded << 31;  // as a sign
        signed_scale[i] = (Vec<float>)((Bits<float>)scale ^ odd);
        r[i] = minus_half_turns(x[i], q);
    }
    KM_UNROLL
    for (int i = 0; i < N; ++i) {
        z[i] = r[i] * r[i];
        s[i] = broadcast(C::sine[C::terms - 1]);
        c[i] = broadcast(C::cosine[C::terms - 1]);
    }
    KM_UNROLL
    for (int k = C::terms - 2; k >= 0; --k) {
        KM_UNROLL
        for (int i = 0; i < N; ++i) s[i] = fma(s[i], z[i], broadcast(C::sine[k]));
        KM_UNROLL
        for (int i = 0; i < N; ++i) c[i] = fma(c[i], z[i], broadcast(C::cosine[k]));
    }
    KM_UNROLL
    for (int i = 0; i < N; ++i) {
        const Vec<float> head = fma(z[i], broadcast(-0.5f), broadcast(1.f));
        cosine[i] = fma(z[i] * z[i], c[i], head) * signed_scale[i];
        sine[i] = fma(r[i] * z[i], s[i], r[i]) * signed_scale[i];
    }
}

template <class T, int N>
KM_INLINE void feature_sincos(const Vec<T>* x, Vec<T>* sine, Vec<T>* cosine, Vec<T> scale,
                              bool* not_finite) {
    if constexpr (sizeof(T) == 8) {
        sincos<T, N>(x, sine, cosine, not_finite);
        KM_UNROLL
        for (int i = 0; i < N; ++i) sine[i] *= scale, cosine[i] *= scale;
    } else {
        half_turn_sincos<N>(x, sine, cosine, scale);
        Bits<T> rare{};
        KM_UNROLL
        for (int i = 0; i < N; ++i) rare |= sincos_out_of_range<T>(x[i]);
        if (__builtin_expect(any_set<T>(rare), 0)) {
            for (int i = 0; i < N; ++i) {
                const Bits<T> which = sincos_out_of_range<T>(x[i]);
                Vec<T> s = sine[i], c = cosine[i];
                redo_sincos<T>(x[i], which, s, c, not_finite);
                sine[i] = select_by_sign<T>(which, s * scale, sine[i]);
                cosine[i] = select_by_sign<T>(which, c * scale, cosine[i]);
            }
        }
    }
}

}  // namespace kernelmill::KM_TARGET
