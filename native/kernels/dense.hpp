// Rows times panels of frequencies: blocks of rows x vectors are summed in registers.
//
// Every sum runs over ascending k, one multiply-add at a time, whatever the shape of the block it
// is in; only independent sums share a block.
#pragma once

#include "kernelmill/panels.hpp"
#include "simd.hpp"

namespace kernelmill::KM_TARGET {

// Sums held in registers at a time: what leaves room for a row of W, a broadcast and, without a
// fused multiply-add, the product.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int most_sums = 24;  // of 32 registers
#elif KM_HAS_FMA
constexpr int most_sums = 12;  // of 16
#else
constexpr int most_sums = 8;
#endif

constexpr int vectors_per_panel = static_cast<int>(panel_bytes) / KM_VECTOR_BYTES;
constexpr int rows_together =
    most_sums / vectors_per_panel < 12 ? most_sums / vectors_per_panel : 12;

// Panels that `rows` rows meet at a time: several where the rows alone are too few sums to keep the
// multipliers busy.
constexpr int panels_together(int rows) {
    const int fit = most_sums / (rows * vectors_per_panel);
    return fit >= 4 ? 4 : fit >= 2 ? 2 : 1;
}

// tile[r][...] (+)= sum over k of x[r][k] packed[p][k][...], for R rows and P panels.
template <class T, int R, int P>
KM_INLINE void dense_block(const T* x, const T* packed, size_t panel_stride, size_t k_count,
                           T* tile, size_t tile_stride, bool first) {
    constexpr int V = vectors_per_panel, w = width<T>;
    Vec<T> sum[R][P * V];
    KM_UNROLL
    for (int r = 0; r < R; ++r) {
        KM_UNROLL
        for (int v = 0; v < P * V; ++v) {
            sum[r][v] = first ? Vec<T>{} : load(tile + r * tile_stride + v * w);
        }
    }
    for (size_t k = 0; k < k_count; ++k) {
        Vec<T> frequency[P * V];
        KM_UNROLL
        for (int p = 0; p < P; ++p) {
            KM_UNROLL
            for (int v = 0; v < V; ++v) {
                frequency[p * V + v] = load(packed + p * panel_stride + k * panel_width<T> + v * w);
            }
        }
        KM_UNROLL
        for (int r = 0; r < R; ++r) {
            const Vec<T> value = broadcast(x[r * block_stride<T> + k]);
            KM_UNROLL
            for (int v = 0; v < P * V; ++v) sum[r][v] = fma(value, frequency[v], sum[r][v]);
        }
    }
    KM_UNROLL
    for (int r = 0; r < R; ++r) {
        KM_UNROLL
        for (int v = 0; v < P * V; ++v) store(tile + r * tile_stride + v * w, sum[r][v]);
    }
}

// A number of rows that is a multiple of R. A panel stays in the cache while all rows meet it.
template <class T, int R>
void dense_rows(const T* x, size_t rows, const T* packed, size_t panel_stride, size_t panels,
                size_t k_count, T* tile, size_t tile_stride, bool first) {
    constexpr int P = panels_together(R);
    size_t p = 0;
    for (; p + P <= panels; p += P) {
        for (size_t r = 0; r < rows; r += R) {
            dense_block<T, R, P>(x + r * block_stride<T>, packed + p * panel_stride, panel_stride,
                                 k_count, tile + r * tile_stride + p * panel_width<T>, tile_stride,
                                 first);
        }
    }
    if constexpr (P > 1) {
        for (; p < panels; ++p) {
            for (size_t r = 0; r < rows; r += R) {
                dense_block<T, R, 1>(
                    x + r * block_stride<T>, packed + p * panel_stride, panel_stride, k_count,
                    tile + r * tile_stride + p * panel_width<T>, tile_stride, first);
            }
        }
    }
}

// The last 1 to R rows.
template <class T, int R, class... Rest>
void dense_last_rows(const T* x, size_t rows, Rest... rest) {
    if (rows == R) {
        dense_rows<T, R>(x, rows, rest...);
    } else if constexpr (R > 1) {
        dense_last_rows<T, R - 1>(x, rows, rest...);
    }
}

// Rows of x are block_stride apart; `packed` points to the first coordinate of the block in the
// first panel. The tile is overwritten if `first`, else added to.
template <class T>
void dense_tile(const T* x, size_t rows, const T* packed, size_t panel_stride, size_t panels,
                size_t k_count, T* tile, size_t tile_stride, bool first) {
    const size_t last = rows % rows_together, full = rows - last;
    if (full > 0) {
        dense_rows<T, rows_together>(x, full, packed, panel_stride, panels, k_count, tile,
                                     tile_stride, first);
    }
    if (last > 0) {
        dense_last_rows<T, rows_together - 1>(x + full * block_stride<T>, last, packed,
                                              panel_stride, panels, k_count,
                                              tile + full * tile_stride, tile_stride, first);
    }
}

// A number that another thread may change, read once. Negative ones are large.
template <class Index>
KM_INLINE size_t read_once(const Index* from) {
    return static_cast<size_t>(__atomic_load_n(from, __ATOMIC_RELAXED));
}

template <class T, class Index, int P>
KM_INLINE void sparse_row(const T* values, const Index* indices, size_t first, size_t end,
                          const T* packed, size_t dim, T* tile) {
    constexpr int V = vectors_per_panel, w = width<T>;
    const size_t panel_stride = dim * panel_width<T>;
    Vec<T> sum[P * V]{};
    for (size_t e = first; e < end; ++e) {
        const size_t column = read_once(indices + e);
        if (column >= dim) continue;
        const T* from = packed + column * panel_width<T>;
        const Vec<T> value = broadcast(values[e]);
        KM_UNROLL
        for (int p = 0; p < P; ++p) {
            KM_UNROLL
            for (int v = 0; v < V; ++v) {
                sum[p * V + v] = fma(value, load(from + p * panel_stride + v * w), sum[p * V + v]);
            }
        }
    }
    KM_UNROLL
    for (int v = 0; v < P * V; ++v) store(tile + v * w, sum[v]);
}

// starts[0] to starts[rows] are places in values and indices, which have `stored` elements.
template <class T, class Index>
void sparse_tile(const T* values, const Index* indices, size_t stored, const Index* starts,
                 size_t rows, const T* packed, size_t dim, size_t panels, T* tile,
                 size_t tile_stride) {
    constexpr int P = panels_together(1);
    for (size_t p = 0; p < panels;) {
        const bool several = p + P <= panels;
        const T* from = packed + p * dim * panel_width<T>;
        for (size_t r = 0; r < rows; ++r) {
            const size_t first = read_once(starts + r), next = read_once(starts + r + 1);
            const size_t end = next < stored ? next : stored;
            T* to = tile + r * tile_stride + p * panel_width<T>;
            if (several) {
                sparse_row<T, Index, P>(values, indices, first, end, from, dim, to);
            } else {
                sparse_row<T, Index, 1>(values, indices, first, end, from, dim, to);
            }
        }
        p += several ? P : 1;
    }
}

}  // namespace kernelmill::KM_TARGET
