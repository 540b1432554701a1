// Splitting polynomial rings: the transform under circular convolution.
//
// A convolution is a product in R[z]/(z^n - 1). The ring splits along
//     z^m - 1 = (z^(m/2) - 1)(z^(m/2) + 1),      R[z]/(z^(m/2) + 1) = C[z]/(z^(m/4) - i)
// where the right-hand isomorphism costs nothing: the first half of the coefficients are the real
// parts and the second half the imaginary ones. Complex rings split on, z^m - w^2 = (z^(m/2) - w)
// (z^(m/2) + w), with one constant w for a whole block. After the last split products are
// pointwise, and since every operand comes in the same scrambled order, no bit reversal is ever
// needed and no untangling of a half-length transform either.
//
// Everything is written on `units` of one vector; what a unit holds is up to the caller.
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

}  // namespace kernelmill::KM_TARGET
