#include "kernelmill/fwht.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "kernel_table.hpp"
#include "lines.hpp"
#include "scratch.hpp"

namespace kernelmill {
namespace {

// Elements per piece of work: a few microseconds, enough to hide handing it out.
constexpr size_t elements_per_piece = size_t(1) << 13;
// A row shared by several threads is cut into parts no smaller than this.
constexpr int log2_smallest_shared_row = 17;
// Width of the tile that lines side by side are gathered into: wide enough to use the cache lines
// and pages that are fetched, less so for long lines, which make the tile tall. Even longer ones go
// one by one.
constexpr size_t tile_bytes(size_t n) { return n <= 4096 ? 256 : 128; }
constexpr size_t longest_tile_line = size_t(1) << 20;

template <class T>
struct Problem {
    ArrayView<const T> x;
    ArrayView<T> out;
    Lines lines;
    size_t n;
    int log2_n;
    ptrdiff_t x_step, out_step;  // byte distance of consecutive elements of a line
    T scale;
    Execution execution;

    const char* x_line(size_t i) const {
        return reinterpret_cast<const char*>(x.data) + lines.offset(0, i);
    }
    char* out_line(size_t i) const {
        return reinterpret_cast<char*>(out.data) + lines.offset(1, i);
    }
    size_t lines_per_piece() const { return std::max<size_t>(1, elements_per_piece / n); }
};

template <class T>
bool is_aligned(const void* p) {
    return reinterpret_cast<uintptr_t>(p) % alignof(T) == 0;
}

// Contiguous rows, one after another. Few long rows are first cut by passes that all threads share.
template <class T>
bool transform_rows(const T* src, T* dst, size_t rows, int log2_n, T scale,
                    const Execution& execution) {
    const auto& kernel = kernels<T>();
    const int threads = execution.n_threads > 0 ? execution.n_threads : get_num_threads();
    while (rows < static_cast<size_t>(threads) && log2_n >= log2_smallest_shared_row) {
        const size_t n = size_t(1) << log2_n, stride = n / 8;
        for (size_t i = 0; i < rows; ++i) {
            const bool done = parallel_for(
                stride, elements_per_piece / 8, execution, [&](size_t begin, size_t end) {
                    kernel.fwht_shared_pass(src + i * n, dst + i * n, stride, begin, end, scale);
                });
            if (!done) return false;
        }
        src = dst;
        scale = 1;
        rows *= 8;
        log2_n -= 3;
    }
    const size_t n = size_t(1) << log2_n;
    return parallel_for(rows, std::max<size_t>(1, elements_per_piece / n), execution,
                        [&](size_t begin, size_t end) {
                            kernel.fwht_rows(src + begin * n, dst + begin * n, end - begin, log2_n,
                                             scale);
                        });
}

template <class T>
bool transform_separate_rows(const Problem<T>& p) {
    const auto& kernel = kernels<T>();
    return parallel_for(
        p.lines.count(), p.lines_per_piece(), p.execution, [&](size_t begin, size_t end) {
            for (size_t i = begin; i < end; ++i) {
                kernel.fwht_rows(reinterpret_cast<const T*>(p.x_line(i)),
                                 reinterpret_cast<T*>(p.out_line(i)), 1, p.log2_n, p.scale);
            }
        });
}

// Lines that lie side by side (`adjacent` of them), some cache lines' worth at a time: what is
// fetched with an element is used as well.
template <class T>
bool transform_lanes(const Problem<T>& p, size_t adjacent) {
    const auto& kernel = kernels<T>();
    const size_t lanes = std::max(tile_bytes(p.n) / sizeof(T), static_cast<size_t>(kernel.width));
    const size_t tiles_per_run = (adjacent - 1) / lanes + 1;
    const size_t tiles = p.lines.count() / adjacent * tiles_per_run;
    ScratchPerThread<T> tiles_of_threads(lanes * p.n, p.execution);
    return parallel_for(tiles, std::max<size_t>(1, p.lines_per_piece() / lanes), p.execution,
                        [&](size_t begin, size_t end) {
                            T* tile = tiles_of_threads.mine();
                            for (size_t t = begin; t < end; ++t) {
                                const size_t first = t % tiles_per_run * lanes;
                                const size_t line = t / tiles_per_run * adjacent + first;
                                kernel.fwht_lanes(p.x_line(line), p.x_step, p.out_line(line),
                                                  p.out_step, std::min(lanes, adjacent - first),
                                                  tile, lanes, p.log2_n, p.scale);
                            }
                        });
}

template <class T>
bool transform_copies(const Problem<T>& p) {
    const auto& kernel = kernels<T>();
    ScratchPerThread<T> rows(p.n, p.execution);
    return parallel_for(p.lines.count(), p.lines_per_piece(), p.execution,
                        [&](size_t begin, size_t end) {
                            T* row = rows.mine();
                            for (size_t i = begin; i < end; ++i) {
                                gather(p.x_line(i), p.x_step, row, p.n);
                                kernel.fwht_rows(row, row, 1, p.log2_n, p.scale);
                                scatter(row, p.out_line(i), p.out_step, p.n);
                            }
                        });
}

}  // namespace

template <class T>
bool fwht(ArrayView<const T> x, ArrayView<T> out, int axis, bool normalize,
          const Execution& execution) {
    const ptrdiff_t length = x.shape[axis];
    if (length < 1 || !std::has_single_bit(static_cast<size_t>(length))) {
        throw std::invalid_argument("the transform's length must be a power of two, got " +
                                    std::to_string(length));
    }
    const auto n = static_cast<size_t>(length);
    const int log2_n = std::countr_zero(n);
    const T scale = normalize ? static_cast<T>(1 / std::sqrt(static_cast<double>(n))) : T(1);
    // Stopped halfway, a transform in place would leave neither the input nor the result.
    Execution stoppable = execution;
    stoppable.n_threads = most_participants(execution);  // one number for scratch and for threads
    if (static_cast<const void*>(x.data) == out.data) stoppable.interrupted = nullptr;

    if (axis == x.ndim - 1 && x.contiguous() && out.contiguous()) {
        return transform_rows(x.data, out.data, x.size() / n, log2_n, scale, stoppable);
    }
    Problem<T> p{x,
                 out,
                 Lines(x.ndim, x.shape, axis, {x.strides, out.strides}),
                 n,
                 log2_n,
                 x.strides[axis],
                 out.strides[axis],
                 scale,
                 stoppable};
    if (p.lines.count() == 0) return true;
    constexpr auto item = static_cast<ptrdiff_t>(sizeof(T));
    bool aligned = is_aligned<T>(x.data) && is_aligned<T>(out.data);
    for (int d = 0; d < x.ndim; ++d) {
        aligned = aligned && x.strides[d] % item == 0 && out.strides[d] % item == 0;
    }
    if (aligned && (n == 1 || (p.x_step == item && p.out_step == item))) {
        return transform_separate_rows(p);
    }
    if (n <= longest_tile_line) {
        const size_t adjacent = p.lines.bring_to_front(item);
        if (adjacent > 1) return transform_lanes(p, adjacent);
    }
    return transform_copies(p);
}

template bool fwht(ArrayView<const float>, ArrayView<float>, int, bool, const Execution&);
template bool fwht(ArrayView<const double>, ArrayView<double>, int, bool, const Execution&);

}  // namespace kernelmill
