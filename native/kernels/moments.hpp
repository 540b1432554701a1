// Products of columns with columns over many rows: blocks of columns x columns are summed in
// registers.
//
// Columns are packed in panels: packed[panel][row][lane]. One packing serves both sides of a
// product. A block takes whole vectors of lanes from one side and single lanes, broadcast, from the
// other.
#pragma once

#include "kernelmill/panels.hpp"
#include "simd.hpp"

namespace kernelmill::KM_TARGET {

// Vectors of a panel, and lanes of the other side in a block: their sums fill the registers.
#if defined(__AVX512F__)
constexpr int panel_vectors = 3, lanes_together = 8;  // 24 of 32 registers
#elif defined(__aarch64__)
constexpr int panel_vectors = 6, lanes_together = 4;  // 24 of 32
#elif KM_HAS_FMA
constexpr int panel_vectors = 3, lanes_together = 4;  // 12 of 16
#else
constexpr int panel_vectors = 2, lanes_together = 4;  // 8 of 16
#endif
template <class T>
constexpr int moments_panel = panel_vectors * width<T>;

// One panel: (x - center) * factor for `columns` lanes, zero in the others.
template <class P, class T>
void pack_panel(const T* x, ptrdiff_t stride, size_t rows, const double* center,
                const double* factors, size_t columns, P* packed) {
    constexpr size_t lanes = moments_panel<P>;
    if (columns == lanes) {
        for (size_t k = 0; k < rows; ++k, x += stride, packed += lanes) {
            const double factor = factors ? factors[k] : 1.0;
            for (size_t i = 0; i < lanes; ++i) {
                packed[i] = static_cast<P>((static_cast<double>(x[i]) - center[i]) * factor);
            }
        }
        return;
    }
    for (size_t k = 0; k < rows; ++k, x += stride, packed += lanes) {
        const double factor = factors ? factors[k] : 1.0;
        for (size_t i = 0; i < columns; ++i) {
            packed[i] = static_cast<P>((static_cast<double>(x[i]) - center[i]) * factor);
        }
        for (size_t i = columns; i < lanes; ++i) packed[i] = 0;
    }
}

// out[j][i] += the sum over k of left[k][j] right[k][i], both in panels; of the lanes below
// `lanes`, and of the columns below `columns` and, on the diagonal, of those up to diagonal + j.
template <class P>
KM_INLINE void moments_block(const P* left, const P* right, size_t k_count, double* out,
                             ptrdiff_t out_stride, int lanes, int columns, int diagonal) {
    constexpr int V = panel_vectors, R = lanes_together, w = width<P>, panel = moments_panel<P>;
    KM_UNROLL
    for (int j = 0; j < R; ++j) {
        if (j >= lanes) break;
        for (int i = 0; i < panel; i += 8) __builtin_prefetch(out + j * out_stride + i, 1, 3);
    }
    Vec<P> sum[R][V]{};
    for (size_t k = 0; k < k_count; ++k) {
        Vec<P> value[V];
        KM_UNROLL
        for (int v = 0; v < V; ++v) value[v] = load(right + v * w);
        KM_UNROLL
        for (int j = 0; j < R; ++j) {
            const Vec<P> other = broadcast(left[j]);
            KM_UNROLL
            for (int v = 0; v < V; ++v) sum[j][v] = fma(value[v], other, sum[j][v]);
        }
        left += panel;
        right += panel;
    }
    alignas(64) P sums[R * panel];
    KM_UNROLL
    for (int j = 0; j < R; ++j) {
        KM_UNROLL
        for (int v = 0; v < V; ++v) store(sums + j * panel + v * w, sum[j][v]);
    }
    if (lanes == R && columns == panel && diagonal >= panel - 1) {
        for (int j = 0; j < R; ++j) {
            double* to = out + j * out_stride;
            for (int i = 0; i < panel; ++i) to[i] += static_cast<double>(sums[j * panel + i]);
        }
        return;
    }
    for (int j = 0; j < lanes; ++j) {
        double* to = out + j * out_stride;
        for (int i = 0; i < columns && i <= diagonal + j; ++i) {
            to[i] += static_cast<double>(sums[j * panel + i]);
        }
    }
}

// out[r][c] += the products of lanes r and c, for rows [first_row, last_row) of `left` and columns
// [first_column, last_column) of `right`, both first ones at the beginning of panels. With
// `triangle`, only where c <= r.
template <class P>
void moments_tile(const P* left, const P* right, size_t rows, size_t first_row, size_t last_row,
                  size_t first_column, size_t last_column, double* out, ptrdiff_t out_stride,
                  bool triangle) {
    constexpr size_t panel = moments_panel<P>, R = lanes_together, slab = rows_per_slab<P>;
    for (size_t k = 0; k < rows; k += slab) {
        const size_t k_count = rows - k < slab ? rows - k : slab;
        for (size_t r = first_row; r < last_row; r += R) {
            const P* from = left + (r / panel * rows + k) * panel + r % panel;
            const int lanes = static_cast<int>(last_row - r < R ? last_row - r : R);
            for (size_t c = first_column; c < last_column; c += panel) {
                if (triangle && c >= r + R) break;
                const int columns =
                    static_cast<int>(last_column - c < panel ? last_column - c : panel);
                const int diagonal = triangle && c + panel > r
                                         ? static_cast<int>(r) - static_cast<int>(c)
                                         : static_cast<int>(panel);
                moments_block<P>(from, right + (c / panel * rows + k) * panel, k_count,
                                 out + static_cast<ptrdiff_t>(r) * out_stride + c, out_stride,
                                 lanes, columns, diagonal);
            }
        }
    }
}

// sums[j] += factors[i] * x[i][j], in double precision.
template <class T>
void sum_columns(const T* x, ptrdiff_t stride, size_t rows, const double* factors, size_t columns,
                 double* sums) {
    for (size_t i = 0; i < rows; ++i, x += stride) {
        const double factor = factors ? factors[i] : 1.0;
        for (size_t j = 0; j < columns; ++j) sums[j] += factor * static_cast<double>(x[j]);
    }
}

}  // namespace kernelmill::KM_TARGET
