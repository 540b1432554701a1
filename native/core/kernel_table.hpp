// The kernels of a target: plain function pointers, filled in by native/kernels/target.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fastfood_group.hpp"
#include "kernelmill/features.hpp"
#include "ring_steps.hpp"
#include "twiddles.hpp"

namespace kernelmill {

template <class T>
struct KernelTable {
    int width;  // lanes per vector

    // rows contiguous rows of 2^log2_n: dst = H (scale * src). src may be dst.
    void (*fwht_rows)(const T* src, T* dst, size_t rows, int log2_n, T scale);
    // One radix-8 pass at distance `stride` over columns [begin, end), multiples of width.
    void (*fwht_shared_pass)(const T* src, T* dst, size_t stride, size_t begin, size_t end,
                             T scale);
    // `used` <= lanes transforms side by side; consecutive elements are a byte stride apart. `tile`
    // is scratch for lanes << log2_n elements, lanes a multiple of width.
    void (*fwht_lanes)(const char* src, ptrdiff_t src_stride, char* dst, ptrdiff_t dst_stride,
                       size_t used, T* tile, size_t lanes, int log2_n, T scale);

    // Elementwise over n contiguous elements; sine or cosine may be x.
    void (*sincos)(const T* x, T* sine, T* cosine, size_t n);

    // z[j] becomes exp((z[j] + column[j]) + row).
    void (*exponentials_row)(T* z, const T* column, T row, size_t n);
    // z[j] becomes factor * p(z[j] * inverse), p of this degree in the recurrence of alpha and
    // beta. Returns whether the results are finite, if factor is.
    bool (*zonal_row)(T* z, size_t n, T inverse, T factor, const T* alpha, const T* beta,
                      int degree);

    // Steps of a circular convolution of power-of-two length n: forward on each operand, multiply
    // into the first, inverse. One row at a time from length 2 width^2 up, in a buffer of
    // n + 2 width^2 elements; below that `width` rows side by side, in one of n * width elements.
    // `src` and `dst` are the input and the output, in the same layout, and may be the buffer.
    // `real_scale` applies to the part of the spectrum that stays real.
    struct Convolution {
        void (*forward)(const T* src, T* buffer, size_t n, T scale, const Twiddles<T>& twiddles);
        void (*multiply)(T* buffer, const T* factor, size_t n, T real_scale);
        void (*inverse)(T* buffer, T* dst, size_t n, const Twiddles<T>& twiddles);
    };
    Convolution row, lanes;
    // `width` rows of n elements to and from the side-by-side layout.
    void (*interleave_rows)(const T* const* rows, T* tile, size_t n);
    void (*separate_rows)(const T* tile, T* const* rows, size_t n);

    // The same for a plan of another length: rows side by side, in place. `scaled` applies the
    // segments' scales, of which one multiplication of several needs them.
    void (*rings_forward)(T* x, const RingStep* steps, size_t count, const T* roots);
    void (*rings_multiply)(T* x, const T* factor, const RingSegment* segments, size_t count,
                           bool scaled);
    void (*rings_inverse)(T* x, const RingStep* steps, size_t count, const T* roots);

    // tile[buckets[i]] += weights[i] x[i] for n vectors of `width` rows side by side.
    void (*sketch_lanes)(const T* x, const int32_t* buckets, const T* weights, size_t n, T* tile);

    // Whether n contiguous elements are finite.
    bool (*all_finite)(const T* x, size_t n);

    // Features of projections z, times `outer` where given, of frequencies first, first + 1, ...
    void (*features_row)(const T* z, const T* outer, size_t n, size_t first,
                         const Features<T>& features, T* row);
    // A group of Fastfood blocks, for `rows` <= width rows in a tile and for one row: see
    // native/kernels/fastfood.hpp.
    void (*fastfood_tile_layout)(int levels, int* log2_part, size_t* gap);
    void (*fastfood_tile)(const FastfoodGroup<T>& group, const T* x, T* a, T* b,
                          const Features<T>& features, T* out, ptrdiff_t out_stride, int rows);
    void (*fastfood_row)(const FastfoodGroup<T>& group, const T* x, T* a, T* b,
                         const Features<T>& features, T* out);

    // tile = (or, unless `first`, +=) rows times `k_count` coordinates of `panels` panels of
    // frequencies. Rows are block_stride<T> apart in x, panels panel_stride elements in `packed`,
    // which points to the first of these coordinates.
    void (*dense_tile)(const T* x, size_t rows, const T* packed, size_t panel_stride, size_t panels,
                       size_t k_count, T* tile, size_t tile_stride, bool first);
    // The same for whole rows in compressed form, with 32-bit and with 64-bit indices: see
    // SparseRows. Panels have `dim` coordinates each.
    void (*sparse_tile_32)(const T* values, const int32_t* indices, size_t stored,
                           const int32_t* starts, size_t rows, const T* packed, size_t dim,
                           size_t panels, T* tile, size_t tile_stride);
    void (*sparse_tile_64)(const T* values, const int64_t* indices, size_t stored,
                           const int64_t* starts, size_t rows, const T* packed, size_t dim,
                           size_t panels, T* tile, size_t tile_stride);

    // out[r][c] = (or, unless `first`, +=) <row r, weights c> over n elements, and
    // sums[c] += factors[r][c] row r: see native/kernels/few_outputs.hpp. Strides in elements.
    void (*score_rows)(const T* x, ptrdiff_t x_stride, size_t rows, const T* weights,
                       ptrdiff_t weights_stride, size_t outputs, size_t n, T* out,
                       ptrdiff_t out_stride, bool first);
    void (*add_weighted_rows)(const T* x, ptrdiff_t x_stride, size_t rows, const T* factors,
                              size_t outputs, size_t n, T* sums, ptrdiff_t sums_stride);

    // to = factor * from; last -= step * move, average += share * (last - average).
    void (*scale_row)(const T* from, T factor, size_t n, T* to);
    void (*step_row)(T* last, T* average, const T* move, T step, T share, size_t n);

    // Products of columns over many rows, and sums of columns: see native/kernels/moments.hpp.
    int moments_panel;  // lanes
    void (*pack_floats)(const float* x, ptrdiff_t stride, size_t rows, const double* center,
                        const double* factors, size_t columns, T* packed);
    void (*pack_doubles)(const double* x, ptrdiff_t stride, size_t rows, const double* center,
                         const double* factors, size_t columns, T* packed);
    void (*moments_tile)(const T* left, const T* right, size_t rows, size_t first_row,
                         size_t last_row, size_t first_column, size_t last_column, double* out,
                         ptrdiff_t out_stride, bool triangle);
    void (*sum_columns)(const T* x, ptrdiff_t stride, size_t rows, const double* factors,
                        size_t columns, double* sums);
};

struct Target {
    const char* name;
    KernelTable<float> f32;
    KernelTable<double> f64;
};

const Target& active_target();

template <class T>
const KernelTable<T>& kernels();
template <>
inline const KernelTable<float>& kernels<float>() {
    return active_target().f32;
}
template <>
inline const KernelTable<double>& kernels<double>() {
    return active_target().f64;
}

}  // namespace kernelmill
