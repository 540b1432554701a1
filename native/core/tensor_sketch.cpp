#include "kernelmill/tensor_sketch.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "finite_check.hpp"
#include "kernel_table.hpp"
#include "ring_plan.hpp"
#include "scratch.hpp"

namespace kernelmill {
namespace {

constexpr size_t elements_per_piece = size_t(1) << 13;
constexpr size_t columns_at_once = 512;  // of the rows that go into lanes

// The count sketch number k of one row. Products are taken some at a time, since those of the next
// columns need not wait for the sums.
template <class T>
void add_row(const DenseRows<T>& x, size_t row, const CountSketches<T>& s, size_t k,
             T* __restrict to) {
    constexpr size_t together = 8;
    const T* __restrict from = x.data + static_cast<ptrdiff_t>(row) * x.stride;
    const int32_t* __restrict buckets = s.buckets + k * s.dim;
    const T* __restrict weights = s.weights + k * s.dim;
    size_t i = 0;
    for (; i + together <= s.dim; i += together) {
        T products[together];
        for (size_t j = 0; j < together; ++j) products[j] = weights[i + j] * from[i + j];
        for (size_t j = 0; j < together; ++j) to[buckets[i + j]] += products[j];
    }
    for (; i < s.dim; ++i) to[buckets[i]] += weights[i] * from[i];
}
template <class T, class Index>
void add_row(const SparseRows<T, Index>& x, size_t row, const CountSketches<T>& s, size_t k,
             T* to) {
    const int32_t* buckets = s.buckets + k * s.dim;
    const T* weights = s.weights + k * s.dim;
    x.for_entries(row, [&](size_t i, T value) { to[buckets[i]] += weights[i] * value; });
}

template <class T>
void start_row(const CountSketches<T>& s, size_t k, T* to) {
    if (s.offsets) {
        std::memcpy(to, s.offsets + k * s.length, s.length * sizeof(T));
    } else {
        std::fill_n(to, s.length, T(0));
    }
}

template <class T>
struct Problem {
    const KernelTable<T>& kernel;  // chosen once: another thread may change the instruction set
    bool* not_finite;
    CountSketches<T> sketches;
    const T* row_scales;
    T* out;
    ptrdiff_t out_stride;
    Execution execution;
    size_t n;     // length of the transforms
    bool folded;  // n is longer than a sketch

    T scale_of(size_t row) const { return row_scales ? row_scales[row] : T(1); }
    T* out_row(size_t row) const { return out + static_cast<ptrdiff_t>(row) * out_stride; }
    // The complex part of the spectrum comes out n/2 times too large; a power of two, so exact.
    T transform_scale() const { return n >= 4 ? T(2) / static_cast<T>(n) : T(1); }
    size_t rows_per_piece() const {
        return std::max<size_t>(1, elements_per_piece / (n * sketches.degree));
    }
};

// The product of two sketches, 2 length - 1 units of `width` elements, modulo z^length - 1; then
// zeros up to n.
template <class T>
void fold(T* x, size_t length, size_t n, size_t width) {
    for (size_t i = 0; i < (length - 1) * width; ++i) x[i] += x[length * width + i];
    std::fill(x + length * width, x + n * width, T(0));
}

// Degree 1: nothing to convolve.
template <class T, class Input>
bool sketch_alone(const Problem<T>& p, const Input& x) {
    return parallel_for(x.count, p.rows_per_piece(), p.execution, [&](size_t begin, size_t end) {
        for (size_t row = begin; row < end; ++row) {
            T* to = p.out_row(row);
            start_row(p.sketches, 0, to);
            add_row(x, row, p.sketches, 0, to);
            for (size_t i = 0; p.row_scales && i < p.sketches.length; ++i) {
                to[i] *= p.row_scales[row];
            }
            check_finite(to, p.sketches.length, p.not_finite);
        }
    });
}

// One row at a time, transformed along itself.
template <class T, class Input>
bool sketch_rows(const Problem<T>& p, const Input& x) {
    const auto& kernel = p.kernel;
    const auto width = static_cast<size_t>(kernel.width);
    const auto twiddles = twiddles_for<T>(p.n / width, width);
    const T real_scale = static_cast<T>(width);  // see convolution.cpp
    const size_t size = p.n + 2 * width * width, length = p.sketches.length;
    ScratchPerThread<T> products(size, p.execution), factors(size, p.execution);
    return parallel_for(x.count, p.rows_per_piece(), p.execution, [&](size_t begin, size_t end) {
        T *product = products.mine(), *factor = factors.mine();
        const auto sketch = [&](size_t row, size_t k, T* to) {
            start_row(p.sketches, k, to);
            std::fill(to + length, to + p.n, T(0));
            add_row(x, row, p.sketches, k, to);
        };
        for (size_t row = begin; row < end; ++row) {
            sketch(row, 0, product);
            T scale = p.transform_scale() * p.scale_of(row);
            for (size_t k = 1; k < p.sketches.degree; ++k) {
                const bool starts = k == 1 || p.folded;
                if (starts) kernel.row.forward(product, product, p.n, scale, twiddles);
                scale = p.transform_scale();
                sketch(row, k, factor);
                kernel.row.forward(factor, factor, p.n, T(1), twiddles);
                kernel.row.multiply(product, factor, p.n, starts ? real_scale : T(1));
                if (p.folded) {
                    kernel.row.inverse(product, product, p.n, twiddles);
                    fold(product, length, p.n, 1);
                }
            }
            if (p.folded) {
                std::memcpy(p.out_row(row), product, length * sizeof(T));
            } else {
                kernel.row.inverse(product, p.out_row(row), p.n, twiddles);
            }
            check_finite(p.out_row(row), length, p.not_finite);
        }
    });
}

// The sketches of up to `width` rows from `first` on, side by side in a tile.
template <class T>
void add_lanes(const Problem<T>& p, const DenseRows<T>& x, size_t first, size_t used, size_t k,
               const T** from, T* columns, T* tile) {
    const auto& s = p.sketches;
    const auto width = static_cast<size_t>(p.kernel.width);
    for (size_t at = 0; at < s.dim; at += columns_at_once) {
        const size_t count = std::min(columns_at_once, s.dim - at);
        for (size_t l = 0; l < width; ++l) {  // unused lanes repeat the first
            from[l] = x.data + static_cast<ptrdiff_t>(first + (l < used ? l : 0)) * x.stride + at;
        }
        p.kernel.interleave_rows(from, columns, count);
        p.kernel.sketch_lanes(columns, s.buckets + k * s.dim + at, s.weights + k * s.dim + at,
                              count, tile);
    }
}
template <class T, class Index>
void add_lanes(const Problem<T>& p, const SparseRows<T, Index>& x, size_t first, size_t used,
               size_t k, const T**, T*, T* tile) {
    const auto& s = p.sketches;
    const auto width = static_cast<size_t>(p.kernel.width);
    const int32_t* buckets = s.buckets + k * s.dim;
    const T* weights = s.weights + k * s.dim;
    for (size_t l = 0; l < used; ++l) {
        x.for_entries(first + l, [&](size_t i, T value) {
            tile[static_cast<size_t>(buckets[i]) * width + l] += weights[i] * value;
        });
    }
}

// Transforms of `width` rows side by side: of a power of two, or of a length with odd factors.
template <class T>
struct ShortTransforms {
    const Problem<T>& p;
    Twiddles<T> twiddles = twiddles_for<T>(2 * width() * width(), width());
    // See convolution.cpp.
    T real_scale = p.n >= 4 ? T(0.5) : T(1) / static_cast<T>(p.n);

    size_t width() const { return static_cast<size_t>(p.kernel.width); }
    void forward(T* x, bool scaled) const {
        p.kernel.lanes.forward(x, x, p.n, scaled ? p.transform_scale() : T(1), twiddles);
    }
    void multiply(T* x, const T* factor, bool first) const {
        p.kernel.lanes.multiply(x, factor, p.n, first ? real_scale : T(1));
    }
    void inverse(T* x) const { p.kernel.lanes.inverse(x, x, p.n, twiddles); }
};
template <class T>
struct RingTransforms {
    const Problem<T>& p;
    RingPlan plan = ring_plan(p.n);
    const T* roots = p.sketches.ring_roots;

    void forward(T* x, bool) const {
        p.kernel.rings_forward(x, plan.steps.data(), plan.steps.size(), roots);
    }
    void multiply(T* x, const T* factor, bool first) const {
        p.kernel.rings_multiply(x, factor, plan.segments.data(), plan.segments.size(), first);
    }
    void inverse(T* x) const {
        p.kernel.rings_inverse(x, plan.steps.data(), plan.steps.size(), roots);
    }
};

// `width` rows at a time, one in each lane.
template <class T, class Input, class Transforms>
bool sketch_tiles(const Problem<T>& p, const Input& x, const Transforms& transforms) {
    const auto& s = p.sketches;
    const auto width = static_cast<size_t>(p.kernel.width);
    const size_t tiles = (x.count + width - 1) / width, size = p.n * width;
    ScratchPerThread<T> products(size, p.execution), factors(size, p.execution),
        blocks(std::min(columns_at_once, s.dim) * width, p.execution);
    const size_t grain = std::max<size_t>(1, p.rows_per_piece() / width);
    return parallel_for(tiles, grain, p.execution, [&](size_t begin, size_t end) {
        T *product = products.mine(), *factor = factors.mine(), *columns = blocks.mine();
        std::vector<const T*> from(width);
        std::vector<T*> to(width);
        for (size_t t = begin; t < end; ++t) {
            const size_t first = t * width, used = std::min(width, x.count - first);
            const auto sketch = [&](size_t k, T* tile) {
                std::fill_n(tile, size, T(0));
                for (size_t j = 0; s.offsets && j < s.length; ++j) {
                    std::fill_n(tile + j * width, width, s.offsets[k * s.length + j]);
                }
                add_lanes(p, x, first, used, k, from.data(), columns, tile);
            };
            sketch(0, product);
            for (size_t i = 0; p.row_scales && i < s.length * width; i += width) {
                for (size_t l = 0; l < used; ++l) product[i + l] *= p.row_scales[first + l];
            }
            for (size_t k = 1; k < s.degree; ++k) {
                const bool starts = k == 1 || p.folded;
                if (starts) transforms.forward(product, true);
                sketch(k, factor);
                transforms.forward(factor, false);
                transforms.multiply(product, factor, starts);
                if (p.folded) {
                    transforms.inverse(product);
                    fold(product, s.length, p.n, width);
                }
            }
            if (!p.folded) transforms.inverse(product);
            // Unused lanes write to the factor, which is no longer needed.
            for (size_t l = 0; l < width; ++l) {
                to[l] = l < used ? p.out_row(first + l) : factor + l * s.length;
            }
            p.kernel.separate_rows(product, to.data(), s.length);
            for (size_t l = 0; l < used; ++l) check_finite(to[l], s.length, p.not_finite);
        }
    });
}

}  // namespace

template <class T>
bool tensor_sketch(const Rows<T>& x, const CountSketches<T>& sketches, const T* row_scales, T* out,
                   ptrdiff_t out_stride, const Execution& execution, bool* not_finite) {
    const size_t rows = count_of(x), length = sketches.length;
    if (rows == 0 || length == 0) return true;
    Problem<T> p{kernels<T>(), not_finite, sketches, row_scales, out,
                 out_stride,   execution,  length,   false};
    p.execution.n_threads = most_participants(execution);  // one number for scratch and for threads
    const bool has_roots = sketches.ring_roots && ring_roots_size(length) > 0;
    if (sketches.degree > 1 && !std::has_single_bit(length) && !has_roots) {
        p.n = std::bit_ceil(2 * length - 1);
        p.folded = true;
    }
    const auto width = static_cast<size_t>(p.kernel.width);
    return std::visit(
        [&](const auto& input) {
            if (sketches.degree == 1) return sketch_alone(p, input);
            if (has_roots) return sketch_tiles(p, input, RingTransforms<T>{p});
            if (p.n >= 2 * width * width) return sketch_rows(p, input);
            return sketch_tiles(p, input, ShortTransforms<T>{p});
        },
        x);
}

template bool tensor_sketch(const Rows<float>&, const CountSketches<float>&, const float*, float*,
                            ptrdiff_t, const Execution&, bool*);
template bool tensor_sketch(const Rows<double>&, const CountSketches<double>&, const double*,
                            double*, ptrdiff_t, const Execution&, bool*);

}  // namespace kernelmill
