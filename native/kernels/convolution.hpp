// Circular convolution by a real Fourier transform that is never put in order.
//
// A convolution is a product in R[z]/(z^n - 1). The ring splits along
//     z^m - 1 = (z^(m/2) - 1)(z^(m/2) + 1),      R[z]/(z^(m/2) + 1) = C[z]/(z^(m/4) - i)
// where the right-hand isomorphism costs nothing: the first half of the coefficients are the real
// parts and the second half the imaginary ones. Complex rings split on, z^m - w^2 = (z^(m/2) - w)
// (z^(m/2) + w), with one constant w for a whole block. After the last split products are
// pointwise, and since every operand comes in the same scrambled order, no bit reversal is ever
// needed and no untangling of a half-length transform either.
//
// Everything is written on `units` of one vector. Two layouts share the code:
//   lanes  a unit holds one element of `width` rows: for short transforms;
//   rows   a unit holds `width` consecutive elements of one row. Splits stop at blocks of one unit
//          and a `width` x `width` transpose makes the remaining levels vertical too.
#pragma once

#include "../core/twiddles.hpp"
#include "simd.hpp"

namespace kernelmill::KM_TARGET {

template <class T>
struct Complex {
    Vec<T> re, im;
};

template <class T>
KM_INLINE Complex<T> operator+(Complex<T> a, Complex<T> b) {
    return {a.re + b.re, a.im + b.im};
}
template <class T>
KM_INLINE Complex<T> operator-(Complex<T> a, Complex<T> b) {
    return {a.re - b.re, a.im - b.im};
}
template <class T>
KM_INLINE Complex<T> operator*(Complex<T> a, Complex<T> b) {
    return {fma(a.re, b.re, -(a.im * b.im)), fma(a.re, b.im, a.im * b.re)};
}
template <class T>
KM_INLINE Complex<T> conjugate(Complex<T> a) {
    return {a.re, -a.im};
}
template <class T>
KM_INLINE Complex<T> times_i(Complex<T> a) {
    return {-a.im, a.re};
}
template <class T>
KM_INLINE Complex<T> load_complex(const T* re, const T* im) {
    return {load(re), load(im)};
}
template <class T>
KM_INLINE void store_complex(T* re, T* im, Complex<T> a) {
    store(re, a.re);
    store(im, a.im);
}

// The constants of one block: the same in all lanes, or different ones.
template <class T>
struct BroadcastTwiddle {
    const T* at;
    KM_INLINE Complex<T> get(const T* p) { return {broadcast<T>(p[0]), broadcast<T>(p[1])}; }
    Complex<T> quarter() const { return get(at); }
    Complex<T> half() const { return get(at + 2); }
    Complex<T> three_quarters() const { return get(at + 4); }
};
template <class T>
struct LaneTwiddle {
    const T* at;
    KM_INLINE Complex<T> get(const T* p) { return {load(p), load(p + width<T>)}; }
    Complex<T> quarter() const { return get(at); }
    Complex<T> half() const { return get(at + 2 * width<T>); }
    Complex<T> three_quarters() const { return get(at + 4 * width<T>); }
};

// One block of 4 * stride or 2 * stride elements into its four or two factors, and back.
template <class T, class Twiddle>
KM_INLINE void split_in_four(T* re, T* im, size_t stride, Twiddle twiddle) {
    const Complex<T> w1 = twiddle.quarter(), w2 = twiddle.half(), w3 = twiddle.three_quarters();
    for (size_t k = 0; k < stride; k += width<T>) {
        T *r = re + k, *i = im + k;
        const Complex<T> a0 = load_complex(r, i);
        const Complex<T> a1 = load_complex(r + stride, i + stride) * w1;
        const Complex<T> a2 = load_complex(r + 2 * stride, i + 2 * stride) * w2;
        const Complex<T> a3 = load_complex(r + 3 * stride, i + 3 * stride) * w3;
        const Complex<T> e0 = a0 + a2, e1 = a0 - a2, o0 = a1 + a3, o1 = times_i(a1 - a3);
        store_complex(r, i, e0 + o0);
        store_complex(r + stride, i + stride, e0 - o0);
        store_complex(r + 2 * stride, i + 2 * stride, e1 + o1);
        store_complex(r + 3 * stride, i + 3 * stride, e1 - o1);
    }
}
template <class T, class Twiddle>
KM_INLINE void join_four(T* re, T* im, size_t stride, Twiddle twiddle) {
    const Complex<T> w1 = conjugate(twiddle.quarter()), w2 = conjugate(twiddle.half()),
                     w3 = conjugate(twiddle.three_quarters());
    for (size_t k = 0; k < stride; k += width<T>) {
        T *r = re + k, *i = im + k;
        const Complex<T> y0 = load_complex(r, i);
        const Complex<T> y1 = load_complex(r + stride, i + stride);
        const Complex<T> y2 = load_complex(r + 2 * stride, i + 2 * stride);
        const Complex<T> y3 = load_complex(r + 3 * stride, i + 3 * stride);
        const Complex<T> e0 = y0 + y1, o0 = y0 - y1, e1 = y2 + y3, o1 = times_i(y3 - y2);
        store_complex(r, i, e0 + e1);
        store_complex(r + stride, i + stride, (o0 + o1) * w1);
        store_complex(r + 2 * stride, i + 2 * stride, (e0 - e1) * w2);
        store_complex(r + 3 * stride, i + 3 * stride, (o0 - o1) * w3);
    }
}
template <class T>
KM_INLINE void split_in_two(T* re, T* im, size_t stride, Complex<T> w) {
    for (size_t k = 0; k < stride; k += width<T>) {
        const Complex<T> a = load_complex(re + k, im + k);
        const Complex<T> b = load_complex(re + k + stride, im + k + stride) * w;
        store_complex(re + k, im + k, a + b);
        store_complex(re + k + stride, im + k + stride, a - b);
    }
}
template <class T>
KM_INLINE void join_two(T* re, T* im, size_t stride, Complex<T> w) {
    for (size_t k = 0; k < stride; k += width<T>) {
        const Complex<T> a = load_complex(re + k, im + k);
        const Complex<T> b = load_complex(re + k + stride, im + k + stride);
        store_complex(re + k, im + k, a + b);
        store_complex(re + k + stride, im + k + stride, (a - b) * conjugate(w));
    }
}

// Largest block, in units, that goes through its levels breadth first; larger ones are split once
// and each factor done on its own, while it is in the cache.
constexpr size_t units_breadth_first = 8192 / KM_VECTOR_BYTES;

// A complex ring of `units` units at `node`, into blocks of one unit.
template <class T>
void split_ring(T* re, T* im, size_t units, size_t node, const T* nodes) {
    constexpr size_t w = width<T>;
    const auto twiddle = [&](size_t j) { return BroadcastTwiddle<T>{nodes + 6 * j}; };
    if (units > units_breadth_first) {
        const size_t quarter = units / 4;
        split_in_four<T>(re, im, quarter * w, twiddle(node));
        for (size_t j = 0; j < 4; ++j) {
            split_ring(re + j * quarter * w, im + j * quarter * w, quarter, 4 * node + j, nodes);
        }
        return;
    }
    size_t blocks = 1, block = units;
    for (; block >= 4; block /= 4, blocks *= 4) {
        for (size_t b = 0; b < blocks; ++b) {
            const size_t at = b * block * w;
            split_in_four<T>(re + at, im + at, block / 4 * w, twiddle(node * blocks + b));
        }
    }
    if (block == 2) {
        for (size_t b = 0; b < blocks; ++b) {
            const size_t at = b * 2 * w;
            split_in_two<T>(re + at, im + at, w, twiddle(node * blocks + b).half());
        }
    }
}

template <class T>
void join_ring(T* re, T* im, size_t units, size_t node, const T* nodes) {
    constexpr size_t w = width<T>;
    const auto twiddle = [&](size_t j) { return BroadcastTwiddle<T>{nodes + 6 * j}; };
    if (units > units_breadth_first) {
        const size_t quarter = units / 4;
        for (size_t j = 0; j < 4; ++j) {
            join_ring(re + j * quarter * w, im + j * quarter * w, quarter, 4 * node + j, nodes);
        }
        join_four<T>(re, im, quarter * w, twiddle(node));
        return;
    }
    size_t blocks = units, block = 1;
    if (__builtin_ctzll(units) % 2 == 1) {  // an odd number of levels: the last was one of radix 2
        block = 2;
        blocks /= 2;
        for (size_t b = 0; b < blocks; ++b) {
            const size_t at = b * 2 * w;
            join_two<T>(re + at, im + at, w, twiddle(node * blocks + b).half());
        }
    }
    for (; blocks >= 4; block *= 4, blocks /= 4) {
        for (size_t b = 0; b < blocks / 4; ++b) {
            const size_t at = b * block * 4 * w;
            join_four<T>(re + at, im + at, block * w, twiddle(node * (blocks / 4) + b));
        }
    }
}

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

// Two levels of a real ring of 4 * quarter elements (or one, at the bottom), from `src` to `x`.
template <class T>
KM_INLINE void split_real_levels(const T* src, T* x, size_t quarter, bool two_levels, T scale) {
    for (size_t k = 0; k < quarter; k += width<T>) {
        const Vec<T> a0 = load(src + k) * scale, a1 = load(src + k + quarter) * scale,
                     a2 = load(src + k + 2 * quarter) * scale,
                     a3 = load(src + k + 3 * quarter) * scale;
        const Vec<T> s0 = a0 + a2, s1 = a1 + a3;
        store(x + k + 2 * quarter, a0 - a2);
        store(x + k + 3 * quarter, a1 - a3);
        store(x + k, two_levels ? s0 + s1 : s0);
        store(x + k + quarter, two_levels ? s0 - s1 : s1);
    }
}

// Real levels: the ring z^units - 1 of scale * src into complex rings and, at the bottom, units 0
// and 1 of x, which stay real (lanes: fully split; rows: the ring z^(2 width) - 1).
template <class T>
void split_real(const T* src, T* x, size_t units, bool to_the_end, T scale, const T* nodes) {
    constexpr size_t w = width<T>;
    if (units < 4) {
        for (size_t k = 0; k < units * w; k += w) store(x + k, load(src + k) * scale);
    }
    for (size_t m = units; m >= 4; m /= 4) {
        const size_t quarter = m / 4 * w;
        const bool two_levels = m >= 8;
        if (m == units) {
            split_real_levels<T>(src, x, quarter, two_levels, scale);
        } else {
            split_real_levels<T>(x, x, quarter, two_levels, T(1));
        }
        split_ring(x + 2 * quarter, x + 3 * quarter, m / 4, 1, nodes);
        if (!two_levels) break;
        split_ring(x + quarter, x + quarter + quarter / 2, m / 8, 1, nodes);
    }
    if (to_the_end && units >= 2) {
        const Vec<T> a = load(x), b = load(x + w);
        store(x, a + b);
        store(x + w, a - b);
    }
}

// The way back, the last pass into dst, which may be x.
template <class T>
void join_real(T* x, T* dst, size_t units, bool to_the_end, const T* nodes) {
    constexpr size_t w = width<T>;
    if (to_the_end && units >= 2) {
        const Vec<T> a = load(x), b = load(x + w);
        store(x, a + b);
        store(x + w, a - b);
    }
    size_t m = 8;  // the real ring that the next pass of two levels completes
    if (units >= 4 && __builtin_ctzll(units) % 2 == 0) {
        join_ring(x + 2 * w, x + 3 * w, 1, 1, nodes);
        T* to = units == 4 ? dst : x;
        for (size_t k = 0; k < 2 * w; k += w) {
            const Vec<T> s = load(x + k), d = load(x + 2 * w + k);
            store(to + k, s + d);
            store(to + 2 * w + k, s - d);
        }
        m = 16;
    }
    for (; m <= units; m *= 4) {
        const size_t quarter = m / 4 * w;
        join_ring(x + quarter, x + quarter + quarter / 2, m / 8, 1, nodes);
        join_ring(x + 2 * quarter, x + 3 * quarter, m / 4, 1, nodes);
        T* to = m == units ? dst : x;
        for (size_t k = 0; k < quarter; k += w) {
            const T* from = x + k;
            const Vec<T> a = load(from), b = load(from + quarter), d0 = load(from + 2 * quarter),
                         d1 = load(from + 3 * quarter);
            const Vec<T> s0 = a + b, s1 = a - b;
            store(to + k, s0 + d0);
            store(to + k + quarter, s1 + d1);
            store(to + k + 2 * quarter, s0 - d0);
            store(to + k + 3 * quarter, s1 - d1);
        }
    }
    if (units < 4 && dst != x) {
        for (size_t k = 0; k < units * w; k += w) store(dst + k, load(x + k));
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
