// The vector operations of one instruction set. Every kernel uses only these, and is compiled once
// per target with another KM_TARGET, KM_VECTOR_BYTES and set of flags.
//
// Rules for everything below native/kernels: live in namespace kernelmill::KM_TARGET, call no
// standard-library function and no inline function that is shared between targets. The linker keeps
// one copy of such a function, and it may be the one built for a machine the user does not have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#if !defined(KM_TARGET) || !defined(KM_VECTOR_BYTES) || !defined(KM_HAS_FMA)
#error "compile native/kernels/target.cpp with KM_TARGET, KM_VECTOR_BYTES and KM_HAS_FMA"
#endif

#define KM_INLINE static inline __attribute__((always_inline))
#define KM_UNROLL _Pragma("GCC unroll 16")

namespace kernelmill::KM_TARGET {

template <class T>
struct Lanes;

template <>
struct Lanes<float> {
    typedef float vector __attribute__((vector_size(KM_VECTOR_BYTES)));
    typedef float unaligned __attribute__((vector_size(KM_VECTOR_BYTES), aligned(4), may_alias));
    typedef int32_t bits __attribute__((vector_size(KM_VECTOR_BYTES)));
    typedef int32_t integer;
};

template <>
struct Lanes<double> {
    typedef double vector __attribute__((vector_size(KM_VECTOR_BYTES)));
    typedef double unaligned __attribute__((vector_size(KM_VECTOR_BYTES), aligned(8), may_alias));
    typedef int64_t bits __attribute__((vector_size(KM_VECTOR_BYTES)));
    typedef int64_t integer;
};

template <class T>
using Vec = typename Lanes<T>::vector;
template <class T>
using Bits = typename Lanes<T>::bits;

// Lanes per vector.
template <class T>
constexpr int width = KM_VECTOR_BYTES / static_cast<int>(sizeof(T));

constexpr int log2_of(int n) { return n <= 1 ? 0 : 1 + log2_of(n / 2); }

template <class T>
KM_INLINE Vec<T> load(const T* p) {
    return *reinterpret_cast<const typename Lanes<T>::unaligned*>(p);
}

template <class T>
KM_INLINE void store(T* p, Vec<T> v) {
    *reinterpret_cast<typename Lanes<T>::unaligned*>(p) = v;
}

// Compilers remove x - 0, since it is x for every x; 0 + x would have to turn -0 into 0.
template <class T>
KM_INLINE Vec<T> broadcast(T x) {
    return x - Vec<T>{};
}

// The first `count` lanes from memory, zero in the others.
template <class T>
KM_INLINE Vec<T> load_first(const T* p, int count) {
    Vec<T> v{};
    for (int i = 0; i < count; ++i) v[i] = p[i];
    return v;
}

template <class T>
KM_INLINE void store_first(T* p, Vec<T> v, int count) {
    for (int i = 0; i < count; ++i) p[i] = v[i];
}

// a * b + c: rounded once on targets with a fused multiply-add, otherwise twice.
#if KM_HAS_FMA && defined(__x86_64__) && KM_VECTOR_BYTES == 64
KM_INLINE Vec<float> fma(Vec<float> a, Vec<float> b, Vec<float> c) {
    return (Vec<float>)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
KM_INLINE Vec<double> fma(Vec<double> a, Vec<double> b, Vec<double> c) {
    return (Vec<double>)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}
#elif KM_HAS_FMA && defined(__x86_64__)
KM_INLINE Vec<float> fma(Vec<float> a, Vec<float> b, Vec<float> c) {
    return (Vec<float>)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
KM_INLINE Vec<double> fma(Vec<double> a, Vec<double> b, Vec<double> c) {
    return (Vec<double>)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}
#elif KM_HAS_FMA && defined(__aarch64__)
KM_INLINE Vec<float> fma(Vec<float> a, Vec<float> b, Vec<float> c) {
    return (Vec<float>)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}
KM_INLINE Vec<double> fma(Vec<double> a, Vec<double> b, Vec<double> c) {
    return (Vec<double>)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
}
#else
KM_INLINE Vec<float> fma(Vec<float> a, Vec<float> b, Vec<float> c) { return a * b + c; }
KM_INLINE Vec<double> fma(Vec<double> a, Vec<double> b, Vec<double> c) { return a * b + c; }
#endif

// a in the lanes where the sign bit of `which` is set, b in the others.
template <class T>
KM_INLINE Vec<T> select_by_sign(Bits<T> which, Vec<T> a, Vec<T> b) {
#if defined(__x86_64__) && KM_VECTOR_BYTES == 32
    if constexpr (sizeof(T) == 4) {
        return (Vec<T>)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)which);
    } else {
        return (Vec<T>)_mm256_blendv_pd((__m256d)b, (__m256d)a, (__m256d)which);
    }
#else
    const Bits<T> mask = which < 0;
    return (Vec<T>)((mask & (Bits<T>)a) | (~mask & (Bits<T>)b));
#endif
}

// Whether any bit of the mask is set.
template <class T>
KM_INLINE bool any_set(Bits<T> mask) {
#if defined(__AVX512F__) && KM_VECTOR_BYTES == 64
    return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#elif defined(__x86_64__) && KM_VECTOR_BYTES == 32
    return !_mm256_testz_si256((__m256i)mask, (__m256i)mask);
#elif defined(__x86_64__) && KM_VECTOR_BYTES == 16
    return _mm_movemask_epi8((__m128i)mask) != 0;
#elif defined(__aarch64__)
    return vmaxvq_u32((uint32x4_t)mask) != 0;
#else
    for (int i = 0; i < width<T>; ++i) {
        if (mask[i]) return true;
    }
    return false;
#endif
}

// Lane i of the result is lane index(i) of a (index < width) or of b (index - width).
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define KM_HAS_SHUFFLEVECTOR 1
#endif
#endif
template <class T, class Index, size_t... I>
KM_INLINE Vec<T> shuffle_lanes(Vec<T> a, Vec<T> b, Index, std::index_sequence<I...>) {
    constexpr Index index{};
#if defined(KM_HAS_SHUFFLEVECTOR)
    return __builtin_shufflevector(a, b, index(static_cast<int>(I))...);
#else
    return __builtin_shuffle(a, b, Bits<T>{index(static_cast<int>(I))...});
#endif
}
template <class T, class Index>
KM_INLINE Vec<T> shuffle(Vec<T> a, Vec<T> b, Index index) {
    return shuffle_lanes<T>(a, b, index, std::make_index_sequence<width<T>>{});
}

template <int distance>
struct ExchangeAt {
    constexpr int operator()(int lane) const { return lane ^ distance; }
};

// W x W transpose in registers. Within the 128-bit parts first, where every step is one cheap
// instruction on all targets; then the parts themselves.
template <int per_part, int step, int high>
struct InterleavePart {  // groups of `step` lanes taken in turn from a and b, lower or upper half
    int width;
    constexpr int operator()(int lane) const {
        const int part = lane / per_part, at = lane % per_part;
        const int group = at / step, from_b = group % 2;
        const int source = part * per_part + high * (per_part / 2) + (group / 2) * step + at % step;
        return from_b ? width + source : source;
    }
};
template <class T, int step, int high>
struct Interleave {
    constexpr int operator()(int lane) const {
        return InterleavePart<16 / static_cast<int>(sizeof(T)), step, high>{width<T>}(lane);
    }
};
template <class T, int distance, int high>
struct ExchangeParts {  // part c of the result: from a where bit `distance` of c is 0, else from b
    constexpr int operator()(int lane) const {
        constexpr int per_part = 16 / static_cast<int>(sizeof(T));
        const int part = lane / per_part, at = lane % per_part;
        const int base = part & ~distance;
        const int source = (high ? base + distance : base) * per_part + at;
        return (part & distance) ? width<T> + source : source;
    }
};

template <class T, int distance>
KM_INLINE void exchange_parts(Vec<T>* r) {
    constexpr int per_part = 16 / static_cast<int>(sizeof(T)), parts = width<T> / per_part;
    KM_UNROLL
    for (int g = 0; g < parts; ++g) {
        if (g & distance) continue;
        KM_UNROLL
        for (int j = 0; j < per_part; ++j) {
            Vec<T>&a = r[g * per_part + j], &b = r[(g + distance) * per_part + j];
            const Vec<T> low = shuffle<T>(a, b, ExchangeParts<T, distance, 0>{});
            b = shuffle<T>(a, b, ExchangeParts<T, distance, 1>{});
            a = low;
        }
    }
}

template <class T>
KM_INLINE void transpose(Vec<T>* r) {
    constexpr int per_part = 16 / static_cast<int>(sizeof(T)), parts = width<T> / per_part;
    KM_UNROLL
    for (int g = 0; g < width<T>; g += per_part) {
        Vec<T>* q = r + g;
        if constexpr (per_part == 4) {
            const Vec<T> a = shuffle<T>(q[0], q[1], Interleave<T, 1, 0>{});
            const Vec<T> b = shuffle<T>(q[0], q[1], Interleave<T, 1, 1>{});
            const Vec<T> c = shuffle<T>(q[2], q[3], Interleave<T, 1, 0>{});
            const Vec<T> d = shuffle<T>(q[2], q[3], Interleave<T, 1, 1>{});
            q[0] = shuffle<T>(a, c, Interleave<T, 2, 0>{});
            q[1] = shuffle<T>(a, c, Interleave<T, 2, 1>{});
            q[2] = shuffle<T>(b, d, Interleave<T, 2, 0>{});
            q[3] = shuffle<T>(b, d, Interleave<T, 2, 1>{});
        } else {
            const Vec<T> a = shuffle<T>(q[0], q[1], Interleave<T, 1, 0>{});
            q[1] = shuffle<T>(q[0], q[1], Interleave<T, 1, 1>{});
            q[0] = a;
        }
    }
    if constexpr (parts >= 2) exchange_parts<T, 1>(r);
    if constexpr (parts >= 4) exchange_parts<T, 2>(r);
}

}  // namespace kernelmill::KM_TARGET
