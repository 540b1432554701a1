// Splitting rings whose size has odd prime factors: z^m - w^r is the product of z^(m/r) - w u over
// the r-th roots of unity u. Rows side by side: a unit is one vector.
#pragma once

#include "../core/ring_steps.hpp"
#include "rings.hpp"

namespace kernelmill::KM_TARGET {

// cos and sin of 2 pi k / R for all k, by those of k = 1, ..., (R - 1) / 2.
template <class T, int R>
struct Circle {
    static constexpr int half = (R - 1) / 2;
    Vec<T> cosines[half + 1], sines[half + 1];

    KM_INLINE Circle at(const T* roots) {
        Circle c;
        KM_UNROLL
        for (int k = 1; k <= half; ++k) {
            c.cosines[k] = broadcast<T>(roots[2 * k - 2]);
            c.sines[k] = broadcast<T>(roots[2 * k - 1]);
        }
        return c;
    }
    // sum + cos(2 pi k / R) x, and the same with the sine.
    KM_INLINE Vec<T> add_cosine(const Circle& c, int k, Vec<T> x, Vec<T> sum) {
        k %= R;
        return fma(c.cosines[k <= half ? k : R - k], x, sum);
    }
    KM_INLINE Vec<T> add_sine(const Circle& c, int k, Vec<T> x, Vec<T> sum) {
        k %= R;
        return fma(k <= half ? c.sines[k] : -c.sines[R - k], x, sum);
    }
};

template <class T, int R>
void split_real_odd(T* x, size_t stride, const T* circle) {
    using C = Circle<T, R>;
    constexpr int half = C::half;
    const C c = C::at(circle);
    for (size_t j = 0; j < stride; j += width<T>) {
        T* at = x + j;
        const Vec<T> first = load(at);
        Vec<T> sums[half], differences[half], total = first;
        KM_UNROLL
        for (int t = 1; t <= half; ++t) {
            const Vec<T> a = load(at + t * stride), b = load(at + (R - t) * stride);
            sums[t - 1] = a + b;
            differences[t - 1] = a - b;
            total += sums[t - 1];
        }
        store(at, total);
        KM_UNROLL
        for (int q = 1; q <= half; ++q) {
            Vec<T> re = first, im{};
            KM_UNROLL
            for (int t = 1; t <= half; ++t) {
                re = C::add_cosine(c, q * t, sums[t - 1], re);
                im = C::add_sine(c, q * t, differences[t - 1], im);
            }
            store(at + (2 * q - 1) * stride, re);
            store(at + 2 * q * stride, im);
        }
    }
}
template <class T, int R>
void join_real_odd(T* x, size_t stride, const T* circle) {
    using C = Circle<T, R>;
    constexpr int half = C::half;
    const C c = C::at(circle);
    for (size_t j = 0; j < stride; j += width<T>) {
        T* at = x + j;
        const Vec<T> first = load(at);
        Vec<T> re[half], im[half], total = first;
        KM_UNROLL
        for (int q = 1; q <= half; ++q) {
            const Vec<T> a = load(at + (2 * q - 1) * stride), b = load(at + 2 * q * stride);
            re[q - 1] = a + a;
            im[q - 1] = b + b;
            total += re[q - 1];
        }
        store(at, total);
        KM_UNROLL
        for (int t = 1; t <= half; ++t) {
            Vec<T> even = first, odd{};
            KM_UNROLL
            for (int q = 1; q <= half; ++q) {
                even = C::add_cosine(c, q * t, re[q - 1], even);
                odd = C::add_sine(c, q * t, im[q - 1], odd);
            }
            store(at + t * stride, even + odd);
            store(at + (R - t) * stride, even - odd);
        }
    }
}

// The discrete Fourier transform of R numbers, a[0] to a[R - 1], with the sign `forward` of i.
template <class T, int R, bool forward>
KM_INLINE void short_transform(Complex<T>* a, const Circle<T, R>& c) {
    using C = Circle<T, R>;
    constexpr int half = C::half;
    Complex<T> sums[half], differences[half], total = a[0];
    KM_UNROLL
    for (int t = 1; t <= half; ++t) {
        sums[t - 1] = a[t] + a[R - t];
        differences[t - 1] = forward ? times_i(a[t] - a[R - t]) : times_i(a[R - t] - a[t]);
        total = total + sums[t - 1];
    }
    KM_UNROLL
    for (int q = 1; q <= half; ++q) {
        Complex<T> even = a[0], odd{};
        KM_UNROLL
        for (int t = 1; t <= half; ++t) {
            even = {C::add_cosine(c, q * t, sums[t - 1].re, even.re),
                    C::add_cosine(c, q * t, sums[t - 1].im, even.im)};
            odd = {C::add_sine(c, q * t, differences[t - 1].re, odd.re),
                   C::add_sine(c, q * t, differences[t - 1].im, odd.im)};
        }
        a[q] = even + odd;
        a[R - q] = even - odd;
    }
    a[0] = total;
}

template <class T, int R>
void split_odd(T* re, T* im, const RingStep& step, const T* circle, const T* roots) {
    const size_t stride = step.stride * width<T>;
    const auto c = Circle<T, R>::at(circle);
    for (size_t b = 0; b < step.blocks; ++b, re += R * stride, im += R * stride) {
        Complex<T> w[R];
        KM_UNROLL
        for (int t = 1; t < R; ++t, roots += 2) w[t] = BroadcastTwiddle<T>::get(roots);
        for (size_t j = 0; j < stride; j += width<T>) {
            Complex<T> a[R];
            a[0] = load_complex(re + j, im + j);
            KM_UNROLL
            for (int t = 1; t < R; ++t) {
                a[t] = load_complex(re + j + t * stride, im + j + t * stride) * w[t];
            }
            short_transform<T, R, true>(a, c);
            KM_UNROLL
            for (int q = 0; q < R; ++q) {
                store_complex(re + j + q * stride, im + j + q * stride, a[q]);
            }
        }
    }
}
template <class T, int R>
void join_odd(T* re, T* im, const RingStep& step, const T* circle, const T* roots) {
    const size_t stride = step.stride * width<T>;
    const auto c = Circle<T, R>::at(circle);
    for (size_t b = 0; b < step.blocks; ++b, re += R * stride, im += R * stride) {
        Complex<T> w[R];
        KM_UNROLL
        for (int t = 1; t < R; ++t, roots += 2) w[t] = conjugate(BroadcastTwiddle<T>::get(roots));
        for (size_t j = 0; j < stride; j += width<T>) {
            Complex<T> a[R];
            KM_UNROLL
            for (int q = 0; q < R; ++q) {
                a[q] = load_complex(re + j + q * stride, im + j + q * stride);
            }
            short_transform<T, R, false>(a, c);
            store_complex(re + j, im + j, a[0]);
            KM_UNROLL
            for (int t = 1; t < R; ++t) {
                store_complex(re + j + t * stride, im + j + t * stride, a[t] * w[t]);
            }
        }
    }
}

// Sum and difference of the halves: its own inverse, but for a factor of 2.
template <class T>
void halves(T* x, size_t stride) {
    for (size_t j = 0; j < stride; j += width<T>) {
        const Vec<T> a = load(x + j), b = load(x + j + stride);
        store(x + j, a + b);
        store(x + j + stride, a - b);
    }
}

template <class T, int R>
KM_INLINE void step_odd(T* x, const RingStep& step, const T* roots, bool forward, const T* circle) {
    constexpr size_t w = width<T>;
    if (step.real) {
        (forward ? split_real_odd<T, R> : join_real_odd<T, R>)(x, step.stride * w, circle);
    } else {
        (forward ? split_odd<T, R> : join_odd<T, R>)(x + step.re * w, x + step.im * w, step, circle,
                                                     roots + step.roots);
    }
}
template <class T>
void ring_step(T* x, const RingStep& step, const T* roots, bool forward) {
    constexpr size_t w = width<T>;
    const size_t stride = step.stride * w;
    T *re = x + step.re * w, *im = x + step.im * w;
    const T* twiddles = roots + step.roots;
    switch (step.radix) {  // the circles come first among the roots, the largest radix first
        case 13: return step_odd<T, 13>(x, step, roots, forward, roots);
        case 11: return step_odd<T, 11>(x, step, roots, forward, roots + 12);
        case 7: return step_odd<T, 7>(x, step, roots, forward, roots + 22);
        case 5: return step_odd<T, 5>(x, step, roots, forward, roots + 28);
        case 3: return step_odd<T, 3>(x, step, roots, forward, roots + 32);
        case 4:
            for (size_t b = 0; b < step.blocks; ++b, twiddles += 6) {
                const size_t at = b * 4 * stride;
                const BroadcastTwiddle<T> twiddle{twiddles};
                forward ? split_in_four<T>(re + at, im + at, stride, twiddle)
                        : join_four<T>(re + at, im + at, stride, twiddle);
            }
            return;
        default:
            if (step.real) return halves(x, stride);
            for (size_t b = 0; b < step.blocks; ++b, twiddles += 2) {
                const size_t at = b * 2 * stride;
                const Complex<T> half = BroadcastTwiddle<T>::get(twiddles);
                forward ? split_in_two<T>(re + at, im + at, stride, half)
                        : join_two<T>(re + at, im + at, stride, half);
            }
    }
}

template <class T>
void rings_forward(T* x, const RingStep* steps, size_t count, const T* roots) {
    for (size_t s = 0; s < count; ++s) ring_step(x, steps[s], roots, true);
}
template <class T>
void rings_inverse(T* x, const RingStep* steps, size_t count, const T* roots) {
    for (size_t s = count; s-- > 0;) ring_step(x, steps[s], roots, false);
}
template <class T>
void rings_multiply(T* a, const T* b, const RingSegment* segments, size_t count, bool scaled) {
    constexpr size_t w = width<T>;
    for (size_t s = 0; s < count; ++s) {
        const RingSegment& segment = segments[s];
        const size_t re = segment.re * w, im = segment.im * w;
        const Vec<T> scale = broadcast<T>(scaled ? static_cast<T>(segment.scale) : T(1));
        for (size_t j = 0; j < segment.units * w; j += w) {
            if (segment.real) {
                store(a + re + j, load(a + re + j) * load(b + re + j) * scale);
                continue;
            }
            const Complex<T> x = load_complex(a + re + j, a + im + j);
            const Complex<T> product = x * load_complex(b + re + j, b + im + j);
            store_complex(a + re + j, a + im + j, {product.re * scale, product.im * scale});
        }
    }
}

}  // namespace kernelmill::KM_TARGET
