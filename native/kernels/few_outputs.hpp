// Products of rows with few outputs: blocks of rows x outputs are summed in registers.
#pragma once

#include "dense.hpp"
#include "kernelmill/panels.hpp"
#include "simd.hpp"

namespace kernelmill::KM_TARGET {

// Outputs that a block of rows meets at a time, and the rows of a block: sums fill the registers.
constexpr int outputs_together = vectors_per_panel == 1 ? 5 : 2;
constexpr int rows_with(int outputs) {
    const int fit = most_sums / (outputs * vectors_per_panel);
    return fit < 1 ? 1 : fit > 8 ? 8 : fit;
}

// The sum of 64 bytes of lanes, in one order on every target: halves, quarters, ...
template <class T>
KM_INLINE T sum_of_lanes(const Vec<T>* v) {
    alignas(64) T lanes[panel_width<T>];
    KM_UNROLL
    for (int i = 0; i < vectors_per_panel; ++i) store(lanes + i * width<T>, v[i]);
    KM_UNROLL
    for (size_t half = panel_width<T> / 2; half > 0; half /= 2) {
        for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
    }
    return lanes[0];
}

// out[r][c] (+)= <row r, weights c> over n elements, for R rows and C outputs. Lane k of 64 bytes
// takes the elements k, k + panel_width, ...
template <class T, int R, int C>
KM_INLINE void score_block(const T* x, ptrdiff_t x_stride, const T* weights,
                           ptrdiff_t weights_stride, size_t n, T* out, ptrdiff_t out_stride,
                           bool first) {
    constexpr int V = vectors_per_panel, w = width<T>;
    Vec<T> sum[R][C][V]{};
    size_t j = 0;
    for (; j + panel_width<T> <= n; j += panel_width<T>) {
        KM_UNROLL
        for (int v = 0; v < V; ++v) {
            Vec<T> weight[C];
            KM_UNROLL
            for (int c = 0; c < C; ++c) weight[c] = load(weights + c * weights_stride + j + v * w);
            KM_UNROLL
            for (int r = 0; r < R; ++r) {
                const Vec<T> value = load(x + r * x_stride + j + v * w);
                KM_UNROLL
                for (int c = 0; c < C; ++c) sum[r][c][v] = fma(value, weight[c], sum[r][c][v]);
            }
        }
    }
    if (j < n) {
        const int left = static_cast<int>(n - j);
        KM_UNROLL
        for (int v = 0; v < V; ++v) {
            const int here = left - v * w < 0 ? 0 : left - v * w > w ? w : left - v * w;
            for (int r = 0; r < R; ++r) {
                const Vec<T> value = load_first(x + r * x_stride + j + v * w, here);
                for (int c = 0; c < C; ++c) {
                    const Vec<T> weight =
                        load_first(weights + c * weights_stride + j + v * w, here);
                    sum[r][c][v] = fma(value, weight, sum[r][c][v]);
                }
            }
        }
    }
    KM_UNROLL
    for (int r = 0; r < R; ++r) {
        KM_UNROLL
        for (int c = 0; c < C; ++c) {
            const T total = sum_of_lanes<T>(sum[r][c]);
            T* to = out + r * out_stride + c;
            *to = first ? total : *to + total;
        }
    }
}

// All rows with C outputs.
template <class T, int C>
void score_outputs(const T* x, ptrdiff_t x_stride, size_t rows, const T* weights,
                   ptrdiff_t weights_stride, size_t n, T* out, ptrdiff_t out_stride, bool first) {
    constexpr int R = rows_with(C);
    size_t r = 0;
    for (; r + R <= rows; r += R) {
        const auto at = static_cast<ptrdiff_t>(r);
        score_block<T, R, C>(x + at * x_stride, x_stride, weights, weights_stride, n,
                             out + at * out_stride, out_stride, first);
    }
    for (; r < rows; ++r) {
        const auto at = static_cast<ptrdiff_t>(r);
        score_block<T, 1, C>(x + at * x_stride, x_stride, weights, weights_stride, n,
                             out + at * out_stride, out_stride, first);
    }
}

template <class T, int C>
void score_last_outputs(const T* x, ptrdiff_t x_stride, size_t rows, const T* weights,
                        ptrdiff_t weights_stride, size_t outputs, size_t n, T* out,
                        ptrdiff_t out_stride, bool first) {
    if (outputs == C) {
        score_outputs<T, C>(x, x_stride, rows, weights, weights_stride, n, out, out_stride, first);
    } else if constexpr (C > 1) {
        score_last_outputs<T, C - 1>(x, x_stride, rows, weights, weights_stride, outputs, n, out,
                                     out_stride, first);
    }
}

// out[r][c] = (or, unless `first`, +=) <row r, weights c> over n elements. Few rows at a time: they
// stay in the cache while they meet all outputs.
template <class T>
void score_rows(const T* x, ptrdiff_t x_stride, size_t rows, const T* weights,
                ptrdiff_t weights_stride, size_t outputs, size_t n, T* out, ptrdiff_t out_stride,
                bool first) {
    constexpr size_t C = outputs_together;
    constexpr size_t together = 8;
    for (size_t begin = 0; begin < rows; begin += together) {
        const size_t count = rows - begin < together ? rows - begin : together;
        const T* from = x + static_cast<ptrdiff_t>(begin) * x_stride;
        T* to = out + static_cast<ptrdiff_t>(begin) * out_stride;
        size_t c = 0;
        for (; c + C <= outputs; c += C) {
            score_outputs<T, outputs_together>(from, x_stride, count,
                                               weights + static_cast<ptrdiff_t>(c) * weights_stride,
                                               weights_stride, n, to + c, out_stride, first);
        }
        if (c < outputs) {
            score_last_outputs<T, outputs_together>(
                from, x_stride, count, weights + static_cast<ptrdiff_t>(c) * weights_stride,
                weights_stride, outputs - c, n, to + c, out_stride, first);
        }
    }
}

// Rows that are added at a time: their elements stay in registers while all outputs meet them.
constexpr int rows_added = most_sums >= 24 ? 8 : 4;
constexpr size_t many_outputs = 16;

// V vectors of columns of sums[c] += factors[r][c] * row r, for R rows, one after the other.
template <class T, int R, int V>
KM_INLINE void add_block(const T* x, ptrdiff_t x_stride, const T* factors, size_t outputs, T* sums,
                         ptrdiff_t sums_stride) {
    constexpr int w = width<T>;
    Vec<T> value[R][V];
    KM_UNROLL
    for (int r = 0; r < R; ++r) {
        KM_UNROLL
        for (int v = 0; v < V; ++v) {
            value[r][v] = load(x + r * x_stride + v * w);
            // Of many outputs few columns fit: too few for the hardware to foresee the next rows.
            if (outputs >= many_outputs) __builtin_prefetch(x + (R + r) * x_stride + v * w, 0, 2);
        }
    }
    for (size_t c = 0; c < outputs; ++c) {
        T* to = sums + static_cast<ptrdiff_t>(c) * sums_stride;
        Vec<T> sum[V];
        KM_UNROLL
        for (int v = 0; v < V; ++v) sum[v] = load(to + v * w);
        KM_UNROLL
        for (int r = 0; r < R; ++r) {
            const Vec<T> factor = broadcast(factors[static_cast<size_t>(r) * outputs + c]);
            KM_UNROLL
            for (int v = 0; v < V; ++v) sum[v] = fma(value[r][v], factor, sum[v]);
        }
        KM_UNROLL
        for (int v = 0; v < V; ++v) store(to + v * w, sum[v]);
    }
}

template <class T, int R>
KM_INLINE void add_rows(const T* x, ptrdiff_t x_stride, const T* factors, size_t outputs, size_t n,
                        T* sums, ptrdiff_t sums_stride) {
    constexpr size_t w = width<T>;
    size_t j = 0;
    for (; j + 2 * w <= n; j += 2 * w) {
        add_block<T, R, 2>(x + j, x_stride, factors, outputs, sums + j, sums_stride);
    }
    for (; j + w <= n; j += w) {
        add_block<T, R, 1>(x + j, x_stride, factors, outputs, sums + j, sums_stride);
    }
    if (j < n) {
        const int left = static_cast<int>(n - j);
        for (size_t c = 0; c < outputs; ++c) {
            T* to = sums + static_cast<ptrdiff_t>(c) * sums_stride + j;
            Vec<T> sum = load_first(to, left);
            for (int r = 0; r < R; ++r) {
                sum = fma(load_first(x + r * x_stride + j, left),
                          broadcast(factors[static_cast<size_t>(r) * outputs + c]), sum);
            }
            store_first(to, sum, left);
        }
    }
}

// sums[c] += factors[r][c] * row r over n columns, row after row.
template <class T>
void add_weighted_rows(const T* x, ptrdiff_t x_stride, size_t rows, const T* factors,
                       size_t outputs, size_t n, T* sums, ptrdiff_t sums_stride) {
    size_t r = 0;
    for (; r + rows_added <= rows; r += rows_added) {
        add_rows<T, rows_added>(x + static_cast<ptrdiff_t>(r) * x_stride, x_stride,
                                factors + r * outputs, outputs, n, sums, sums_stride);
    }
    for (; r < rows; ++r) {
        add_rows<T, 1>(x + static_cast<ptrdiff_t>(r) * x_stride, x_stride, factors + r * outputs,
                       outputs, n, sums, sums_stride);
    }
}

// to = factor * from.
template <class T>
void scale_row(const T* __restrict from, T factor, size_t n, T* __restrict to) {
    for (size_t i = 0; i < n; ++i) to[i] = factor * from[i];
}

// A step of weights, and of their average: last -= step * move, average += share * (last -
// average).
template <class T>
void step_row(T* __restrict last, T* __restrict average, const T* __restrict move, T step, T share,
              size_t n) {
    if (share == 1) {
        for (size_t i = 0; i < n; ++i) average[i] = last[i] -= step * move[i];
        return;
    }
    for (size_t i = 0; i < n; ++i) {
        last[i] -= step * move[i];
        average[i] += share * (last[i] - average[i]);
    }
}

}  // namespace kernelmill::KM_TARGET
