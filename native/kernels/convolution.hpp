// Circular convolution: forward on each operand, pointwise products, inverse, in one of two
// layouts.
//
//   lanes  a unit (see rings.hpp) holds one element of `width` rows: for short transforms;
//   rows   a unit holds `width` consecutive elements of one row. Splits stop at blocks of one unit
//          and a `width` x `width` transpose makes the remaining levels vertical too.
#pragma once

#include "rings.hpp"

namespace kernelmill::KM_TARGET {

// The last levels of `width` blocks of one unit each, side by side after a transpose.
template <class T>
KM_INLINE void transpose_tile(const T* const* from, T* to) {
    Vec<T> r[width<T>];
    KM_UNROLL
    for (int i = 0; i < width<T>; ++i) r[i] = load(from[i]);
    transpose<T>(r);
    KM_UNROLL
    for (int i = 0; i < width<T>; ++i) store(to + i * width<T>, r[i]);
}
template <class T>
KM_INLINE void transpose_in_place(T* tile) {
    Vec<T> r[width<T>];
    KM_UNROLL
    for (int i = 0; i < width<T>; ++i) r[i] = load(tile + i * width<T>);
    transpose<T>(r);
    KM_UNROLL
    for (int i = 0; i < width<T>; ++i) store(tile + i * width<T>, r[i]);
}

// Vectors of twiddles that one tile uses.
template <class T>
constexpr size_t tile_twiddles() {
    size_t count = 0;
    for (int block = width<T>; block > 1; block /= 4) {
        count += static_cast<size_t>(width<T> / block) * (block >= 4 ? 6 : 2);
    }
    return count;
}

template <class T>
KM_INLINE void split_tile(T* re, T* im, const T* twiddles) {
    constexpr int w = width<T>;
    KM_UNROLL
    for (int block = w; block >= 4; block /= 4) {
        KM_UNROLL
        for (int at = 0; at < w; at += block, twiddles += 6 * w) {
            const LaneTwiddle<T> twiddle{twiddles};
            split_in_four<T>(re + at * w, im + at * w, block / 4 * w, twiddle);
        }
    }
    if constexpr (log2_of(w) % 2 == 1) {
        KM_UNROLL
        for (int at = 0; at < w; at += 2, twiddles += 2 * w) {
            split_in_two<T>(re + at * w, im + at * w, w, load_complex(twiddles, twiddles + w));
        }
    }
}
template <class T>
KM_INLINE void join_tile(T* re, T* im, const T* twiddles) {
    constexpr int w = width<T>;
    twiddles += tile_twiddles<T>() * w;
    if constexpr (log2_of(w) % 2 == 1) {
        KM_UNROLL
        for (int at = w - 2; at >= 0; at -= 2) {
            twiddles -= 2 * w;
            join_two<T>(re + at * w, im + at * w, w, load_complex(twiddles, twiddles + w));
        }
    }
    KM_UNROLL
    for (int block = log2_of(w) % 2 ? 8 : 4; block <= w; block *= 4) {
        KM_UNROLL
        for (int at = w - block; at >= 0; at -= block) {
            twiddles -= 6 * w;
            const LaneTwiddle<T> twiddle{twiddles};
            join_four<T>(re + at * w, im + at * w, block / 4 * w, twiddle);
        }
    }
}

// Pointwise products of the complex rings of units [2, units), and of tiles laid out the same way.
template <class T>
KM_INLINE void multiply_complex(T* a_re, T* a_im, const T* b_re, const T* b_im, size_t count) {
    for (size_t k = 0; k < count; k += width<T>) {
        const Complex<T> product =
            load_complex(a_re + k, a_im + k) * load_complex(b_re + k, b_im + k);
        store_complex(a_re + k, a_im + k, product);
    }
}
template <class T>
KM_INLINE void multiply_rings(T* a, const T* b, size_t units, size_t first) {
    constexpr size_t w = width<T>;
    for (size_t m = first; m <= units; m *= 2) {
        const size_t re = m / 2 * w, im = re + m / 4 * w;
        multiply_complex<T>(a + re, a + im, b + re, b + im, m / 4 * w);
    }
}

// Layout `lanes`: buffer of n units.
template <class T>
void convolution_lanes_forward(const T* src, T* x, size_t n, T scale, const Twiddles<T>& twiddles) {
    split_real(src, x, n, true, scale, twiddles.nodes);
}
template <class T>
void convolution_lanes_multiply(T* a, const T* b, size_t n, T real_scale) {
    constexpr size_t w = width<T>;
    for (size_t k = 0; k < (n < 2 ? n : 2); ++k) {
        store(a + k * w, load(a + k * w) * load(b + k * w) * real_scale);
    }
    multiply_rings<T>(a, b, n, 4);
}
template <class T>
void convolution_lanes_inverse(T* x, T* dst, size_t n, const Twiddles<T>& twiddles) {
    join_real(x, dst, n, true, twiddles.nodes);
}

// Layout `rows`: buffer of n elements, then 2 * width units for tile 0: the width - 1 blocks of the
// small rings, which fill no tile of their own, gathered into one (its lane 0 is of no use).
template <class T>
KM_INLINE void tile_zero_sources(T* x, T** re, T** im) {
    constexpr size_t w = width<T>;
    re[0] = x;
    im[0] = x + w;
    for (size_t size = 1; size < w; size *= 2) {
        for (size_t b = 0; b < size; ++b) {
            re[size + b] = x + (2 * size + b) * w;
            im[size + b] = x + (3 * size + b) * w;
        }
    }
}
template <class T>
void convolution_row_forward(const T* src, T* x, size_t n, T scale, const Twiddles<T>& twiddles) {
    constexpr size_t w = width<T>;
    const size_t units = n / w;
    split_real(src, x, units, false, scale, twiddles.nodes);
    T *re[w], *im[w], *tile_re = x + n, *tile_im = x + n + w * w;
    tile_zero_sources<T>(x, re, im);
    transpose_tile<T>(re, tile_re);
    transpose_tile<T>(im, tile_im);
    split_tile<T>(tile_re, tile_im, twiddles.tiles);
    for (size_t ring = w; 4 * ring <= units; ring *= 2) {  // blocks ring ... 2 ring - 1
        for (size_t b = 0; b < ring; b += w) {
            T *r = x + (2 * ring + b) * w, *i = x + (3 * ring + b) * w;
            transpose_in_place(r);
            transpose_in_place(i);
            split_tile<T>(r, i, twiddles.tiles + (ring + b) / w * tile_twiddles<T>() * w);
        }
    }
}
template <class T>
void convolution_row_multiply(T* a, const T* b, size_t n, T real_scale) {
    constexpr size_t w = width<T>;
    // The real ring z^(2w) - 1 by the definition: sum over j of a[j] times b rotated by j.
    T twice[4 * w];
    for (size_t k = 0; k < 4 * w; k += w) store(twice + k, load(b + k % (2 * w)) * real_scale);
    Vec<T> low{}, high{};
    for (size_t j = 0; j < 2 * w; ++j) {
        const Vec<T> factor = broadcast<T>(a[j]);
        low = fma(factor, load(twice + 2 * w - j), low);
        high = fma(factor, load(twice + 3 * w - j), high);
    }
    store(a, low);
    store(a + w, high);
    multiply_complex<T>(a + n, a + n + w * w, b + n, b + n + w * w, w * w);
    multiply_rings<T>(a, b, n / w, 4 * w);
}
template <class T>
void convolution_row_inverse(T* x, T* dst, size_t n, const Twiddles<T>& twiddles) {
    constexpr size_t w = width<T>;
    const size_t units = n / w;
    T *re[w], *im[w], *tile_re = x + n, *tile_im = x + n + w * w;
    tile_zero_sources<T>(x, re, im);
    join_tile<T>(tile_re, tile_im, twiddles.tiles);
    transpose_in_place(tile_re);
    transpose_in_place(tile_im);
    for (size_t l = 1; l < w; ++l) {
        store(re[l], load(tile_re + l * w));
        store(im[l], load(tile_im + l * w));
    }
    for (size_t ring = w; 4 * ring <= units; ring *= 2) {
        for (size_t b = 0; b < ring; b += w) {
            T *r = x + (2 * ring + b) * w, *i = x + (3 * ring + b) * w;
            join_tile<T>(r, i, twiddles.tiles + (ring + b) / w * tile_twiddles<T>() * w);
            transpose_in_place(r);
            transpose_in_place(i);
        }
    }
    join_real(x, dst, units, false, twiddles.nodes);
}

// `width` rows of n elements into lanes and back; rows[i] may be the same for unused lanes.
template <class T>
void interleave_rows(const T* const* rows, T* tile, size_t n) {
    constexpr size_t w = width<T>;
    size_t k = 0;
    for (; k + w <= n; k += w) {
        Vec<T> r[w];
        KM_UNROLL
        for (size_t i = 0; i < w; ++i) r[i] = load(rows[i] + k);
        transpose<T>(r);
        KM_UNROLL
        for (size_t i = 0; i < w; ++i) store(tile + (k + i) * w, r[i]);
    }
    for (; k < n; ++k) {
        for (size_t i = 0; i < w; ++i) tile[k * w + i] = rows[i][k];
    }
}
template <class T>
void separate_rows(const T* tile, T* const* rows, size_t n) {
    constexpr size_t w = width<T>;
    size_t k = 0;
    for (; k + w <= n; k += w) {
        Vec<T> r[w];
        KM_UNROLL
        for (size_t i = 0; i < w; ++i) r[i] = load(tile + (k + i) * w);
        transpose<T>(r);
        KM_UNROLL
        for (size_t i = 0; i < w; ++i) store(rows[i] + k, r[i]);
    }
    for (; k < n; ++k) {
        for (size_t i = 0; i < w; ++i) rows[i][k] = tile[k * w + i];
    }
}

}  // namespace kernelmill::KM_TARGET
