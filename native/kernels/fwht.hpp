// Walsh-Hadamard kernels, Hadamard (natural) order, unnormalized but for one factor on the input.
//
// Every variant runs the butterflies (a, b) -> (a + b, a - b) in the same order, from distance n/2
// down to distance 1. A value then passes through the same roundings whatever the vector width and
// however the loops are blocked, so results are equal to the last bit on every instruction set.
#pragma once

#include "simd.hpp"

namespace kernelmill::KM_TARGET {

// A 1 that the compiler cannot see through. Some AMD cores add on two ports and multiply-add on two
// others, so a - b computed as a * 1 - b, which rounds the same, uses ports that would lie idle.
template <class T>
KM_INLINE Vec<T> opaque_one() {
    Vec<T> one = broadcast<T>(1);
#if KM_HAS_FMA && defined(__x86_64__)
    asm("" : "+x"(one));
#endif
    return one;
}

template <class T>
KM_INLINE Vec<T> subtract_on_multiplier(Vec<T> a, Vec<T> b, Vec<T> one) {
#if KM_HAS_FMA && defined(__x86_64__) && KM_VECTOR_BYTES == 32
    return fma(a, one, -b);
#else
    (void)one;
    return a - b;
#endif
}

template <class T, int radix>
KM_INLINE void butterflies(Vec<T>* r, Vec<T> one) {
    KM_UNROLL
    for (int half = radix / 2; half >= 1; half /= 2) {
        KM_UNROLL
        for (int i = 0; i < radix; ++i) {
            if (i & half) continue;
            const Vec<T> a = r[i], b = r[i + half];
            const bool balance = radix == 8 && (i == 0 || i == 3 || i == 5);
            r[i] = a + b;
            r[i + half] = balance ? subtract_on_multiplier<T>(a, b, one) : a - b;
        }
    }
}

// Signs of the in-register step at `distance`: + in the lower lane of a pair, - in the upper.
template <class T, int distance, size_t... I>
KM_INLINE Vec<T> pair_signs(std::index_sequence<I...>) {
    return Vec<T>{(static_cast<int>(I) & distance ? T(-1) : T(1))...};
}

template <class T, int distance>
KM_INLINE Vec<T> butterfly_in_register(Vec<T> v) {
    const Vec<T> signs = pair_signs<T, distance>(std::make_index_sequence<width<T>>{});
    return fma(v, signs, shuffle<T>(v, v, ExchangeAt<distance>{}));  // exact product: one rounding
}

// Distances `from`, from/2, ..., 1 inside a vector.
template <class T, int from>
KM_INLINE Vec<T> hadamard_in_register(Vec<T> v) {
    if constexpr (from >= 1) {
        v = butterfly_in_register<T, from>(v);
        v = hadamard_in_register<T, from / 2>(v);
    }
    return v;
}

// One pass of radix 2, 4 or 8 at element distance `stride` over the columns [begin, end) of one
// block of radix * stride elements, a vector of columns at a time.
template <class T, int radix, bool scaled>
KM_INLINE void fwht_columns(const T* src, T* dst, size_t stride, size_t begin, size_t end,
                            T scale) {
    const Vec<T> one = opaque_one<T>(), factor = broadcast<T>(scale);
    for (size_t k = begin; k < end; k += width<T>) {
        const T* from = src + k;
        Vec<T> r[radix];
        KM_UNROLL
        for (int i = 0; i < radix; ++i) {
            if (i == 4) from += 4 * stride;
            r[i] = load(from + (i % 4) * stride);
            if (scaled) r[i] *= factor;
        }
        butterflies<T, radix>(r, one);
        T* to = dst + k;
        KM_UNROLL
        for (int i = 0; i < radix; ++i) {
            if (i == 4) to += 4 * stride;
            store(to + (i % 4) * stride, r[i]);
        }
    }
}

// In place there is one set of addresses to keep in registers instead of two.
template <class T, int radix, bool scaled>
KM_INLINE void fwht_pass(const T* src, T* dst, size_t stride, size_t begin, size_t end, T scale) {
    if (src == dst) {
        fwht_columns<T, radix, scaled>(dst, dst, stride, begin, end, scale);
    } else {
        fwht_columns<T, radix, scaled>(src, dst, stride, begin, end, scale);
    }
}

// The last levels: `vectors` vectors of one block, then the lanes of each. Sixteen are more than
// the registers hold: after the first level the upper half waits in dst.
template <class T, int vectors, bool scaled>
KM_INLINE void fwht_base(const T* src, T* dst, T scale) {
    constexpr int w = width<T>;
    if constexpr (vectors > 8) {
        constexpr int half = vectors / 2;
        const Vec<T> factor = broadcast<T>(scale);
        Vec<T> sums[half];
        KM_UNROLL
        for (int i = 0; i < half; ++i) {
            Vec<T> a = load(src + i * w), b = load(src + (i + half) * w);
            if (scaled) a *= factor, b *= factor;
            sums[i] = a + b;
            store(dst + (i + half) * w, a - b);
        }
        butterflies<T, half>(sums, opaque_one<T>());
        KM_UNROLL
        for (int i = 0; i < half; ++i) {
            store(dst + i * w, hadamard_in_register<T, w / 2>(sums[i]));
        }
        fwht_base<T, half, false>(dst + half * w, dst + half * w, scale);
    } else {
        const Vec<T> factor = broadcast<T>(scale);
        Vec<T> r[vectors];
        KM_UNROLL
        for (int i = 0; i < vectors; ++i) {
            r[i] = load(src + i * w);
            if (scaled) r[i] *= factor;
        }
        butterflies<T, vectors>(r, opaque_one<T>());
        KM_UNROLL
        for (int i = 0; i < vectors; ++i) store(dst + i * w, hadamard_in_register<T, w / 2>(r[i]));
    }
}

// Radix of the next pass when `levels` are left above the base: eights, but 4 = 2 + 2 rather than
// 3 + 1, since a radix-2 pass moves as much memory as a radix-8 pass and does a third of the work.
constexpr int fwht_next_log2_radix(int levels) {
    if (levels == 4 || levels == 2) return 2;
    return levels >= 3 ? 3 : levels;
}

// A base block of 8 vectors and three lane levels is done in registers. With one level too many for
// radix-8 passes (1, 4, 7, ...) a base of 16 vectors, though it spills, is cheaper than a pass of
// radix 2 or two of radix 4.
template <class T>
constexpr int fwht_log2_smallest_base = 3 + log2_of(width<T>);

template <class T, int log2_n>
constexpr int fwht_log2_base =
    fwht_log2_smallest_base<T> + ((log2_n - fwht_log2_smallest_base<T>) % 3 == 1 ? 1 : 0);

// How many elements of short rows go through the passes together.
constexpr size_t fwht_group = 1024;

// `total` elements of rows that fit the first-level cache, pass by pass over all of them: a block
// that is read again at once would wait for its own stores. The size of a row is a template
// parameter, for with constant trip counts short rows cost no more than their butterflies.
template <class T, int log2_block, bool scaled>
KM_INLINE void fwht_cached_passes(const T* src, T* dst, size_t total, T scale) {
    constexpr size_t block = size_t(1) << log2_block;
    if constexpr (log2_block == fwht_log2_base<T, log2_block>) {
        for (size_t j = 0; j < total; j += block) {
            fwht_base<T, block / width<T>, scaled>(src + j, dst + j, scale);
        }
    } else {
        constexpr int next = fwht_next_log2_radix(log2_block - fwht_log2_base<T, log2_block>);
        constexpr size_t stride = block >> next;
        for (size_t j = 0; j < total; j += block) {
            fwht_pass<T, (1 << next), scaled>(src + j, dst + j, stride, 0, stride, scale);
        }
        fwht_cached_passes<T, log2_block - next, false>(dst, dst, total, scale);
    }
}

template <class T, int log2_n, bool scaled>
void fwht_cached_rows(const T* src, T* dst, size_t rows, T scale) {
    constexpr size_t n = size_t(1) << log2_n;
    constexpr size_t group = n < fwht_group ? fwht_group / n : 1;
    size_t i = 0;
    for (; i + group <= rows; i += group) {
        fwht_cached_passes<T, log2_n, scaled>(src + i * n, dst + i * n, group * n, scale);
    }
    if (i < rows) {
        fwht_cached_passes<T, log2_n, scaled>(src + i * n, dst + i * n, (rows - i) * n, scale);
    }
}

// Rows of at least one base block. The first pass reads src and scales; the rest is in place.
template <class T, bool scaled>
void fwht_long_rows(const T* src, T* dst, size_t rows, int log2_n, T scale) {
    constexpr int base = fwht_log2_smallest_base<T>;
    switch (log2_n - base) {
        case 0: return fwht_cached_rows<T, base, scaled>(src, dst, rows, scale);
        case 1: return fwht_cached_rows<T, base + 1, scaled>(src, dst, rows, scale);
        case 2: return fwht_cached_rows<T, base + 2, scaled>(src, dst, rows, scale);
        case 3: return fwht_cached_rows<T, base + 3, scaled>(src, dst, rows, scale);
        case 4: return fwht_cached_rows<T, base + 4, scaled>(src, dst, rows, scale);
        case 5: return fwht_cached_rows<T, base + 5, scaled>(src, dst, rows, scale);
        case 6: return fwht_cached_rows<T, base + 6, scaled>(src, dst, rows, scale);
        default: break;
    }
    const size_t n = size_t(1) << log2_n;
    const size_t eighth = n / 8;
    for (size_t i = 0; i < rows; ++i) {
        fwht_pass<T, 8, scaled>(src + i * n, dst + i * n, eighth, 0, eighth, scale);
        fwht_long_rows<T, false>(dst + i * n, dst + i * n, 8, log2_n - 3, scale);
    }
}

template <class T>
KM_INLINE void fwht_scalar_row(const T* src, T* dst, size_t n, T scale) {
    for (size_t i = 0; i < n; ++i) dst[i] = src[i] * scale;
    for (size_t half = n / 2; half >= 1; half /= 2) {
        for (size_t j = 0; j < n; j += 2 * half) {
            for (size_t k = j; k < j + half; ++k) {
                const T a = dst[k], b = dst[k + half];
                dst[k] = a + b;
                dst[k + half] = a - b;
            }
        }
    }
}

// Rows of at most one vector: as many whole rows as a vector holds at a time.
template <class T, int n>
KM_INLINE void fwht_tiny_rows(const T* src, T* dst, size_t rows, T scale) {
    const size_t total = rows * n;
    size_t i = 0;
    for (; i + width<T> <= total; i += width<T>) {
        store(dst + i, hadamard_in_register<T, n / 2>(load(src + i) * scale));
    }
    for (; i < total; i += n) fwht_scalar_row(src + i, dst + i, n, scale);
}

template <class T, int vectors>
KM_INLINE void fwht_short_rows(const T* src, T* dst, size_t rows, T scale) {
    constexpr size_t n = vectors * width<T>;
    for (size_t i = 0; i < rows; ++i) fwht_base<T, vectors, true>(src + i * n, dst + i * n, scale);
}

// `rows` contiguous rows of 2^log2_n, each replaced by H (scale * row). src may be dst.
template <class T>
void fwht_rows(const T* src, T* dst, size_t rows, int log2_n, T scale) {
    constexpr int log2_width = log2_of(width<T>);
    if (log2_n > log2_width + 2) {
        if (scale == T(1)) return fwht_long_rows<T, false>(src, dst, rows, log2_n, scale);
        return fwht_long_rows<T, true>(src, dst, rows, log2_n, scale);
    }
    if (log2_n == log2_width + 2) return fwht_short_rows<T, 4>(src, dst, rows, scale);
    if (log2_n == log2_width + 1) return fwht_short_rows<T, 2>(src, dst, rows, scale);
    switch (log2_n) {
        case 0: return fwht_tiny_rows<T, 1>(src, dst, rows, scale);
        case 1: return fwht_tiny_rows<T, 2>(src, dst, rows, scale);
        case 2:
            if constexpr (width<T> >= 4) return fwht_tiny_rows<T, 4>(src, dst, rows, scale);
            [[fallthrough]];
        case 3:
            if constexpr (width<T> >= 8) return fwht_tiny_rows<T, 8>(src, dst, rows, scale);
            [[fallthrough]];
        default:
            if constexpr (width<T> >= 16) return fwht_tiny_rows<T, 16>(src, dst, rows, scale);
    }
}

// One radix-8 pass of a row that several threads share.
template <class T>
void fwht_shared_pass(const T* src, T* dst, size_t stride, size_t begin, size_t end, T scale) {
    fwht_pass<T, 8, true>(src, dst, stride, begin, end, scale);
}

// All levels of `lanes` transforms side by side, a multiple of width: row k of the tile holds
// element k of each.
template <class T>
void fwht_tile(T* tile, size_t lanes, int log2_n) {
    const size_t total = lanes << log2_n;
    size_t block = total;
    for (int levels = log2_n; levels > 0;) {
        const int next = fwht_next_log2_radix(levels);
        const size_t stride = block >> next;
        for (size_t j = 0; j < total; j += block) {
            T* at = tile + j;
            if (next == 3) fwht_columns<T, 8, false>(at, at, stride, 0, stride, T(1));
            if (next == 2) fwht_columns<T, 4, false>(at, at, stride, 0, stride, T(1));
            if (next == 1) fwht_columns<T, 2, false>(at, at, stride, 0, stride, T(1));
        }
        block = stride;
        levels -= next;
    }
}

// `used` transforms side by side, in a tile of `lanes`. Byte strides, and any alignment.
template <class T>
void fwht_lanes(const char* src, ptrdiff_t src_stride, char* dst, ptrdiff_t dst_stride, size_t used,
                T* tile, size_t lanes, int log2_n, T scale) {
    constexpr size_t w = width<T>;
    const size_t n = size_t(1) << log2_n, whole = used / w * w, rest = (used - whole) * sizeof(T);
    for (size_t k = 0; k < n; ++k, src += src_stride) {
        T* row = tile + k * lanes;
        Vec<T> v;
        for (size_t l = 0; l < whole; l += w) {
            __builtin_memcpy(&v, src + l * sizeof(T), sizeof v);
            store(row + l, v * scale);
        }
        for (size_t l = whole; l < lanes; l += w) {
            v = Vec<T>{};
            if (l < used) __builtin_memcpy(&v, src + l * sizeof(T), rest);
            store(row + l, v * scale);
        }
    }
    fwht_tile(tile, lanes, log2_n);
    for (size_t k = 0; k < n; ++k, dst += dst_stride) {
        const T* row = tile + k * lanes;
        for (size_t l = 0; l < whole; l += w) {
            const Vec<T> v = load(row + l);
            __builtin_memcpy(dst + l * sizeof(T), &v, sizeof v);
        }
        if (rest) __builtin_memcpy(dst + whole * sizeof(T), row + whole, rest);
    }
}

}  // namespace kernelmill::KM_TARGET
