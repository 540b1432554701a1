#include "kernelmill/convolution.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernel_table.hpp"
#include "lines.hpp"
#include "scratch.hpp"

namespace kernelmill {
namespace {

constexpr size_t elements_per_piece = size_t(1) << 13;

template <class T>
struct Problem {
    const KernelTable<T>& kernel;  // chosen once: another thread may change the instruction set
    const ArrayView<const T>* operands;
    size_t count;
    ArrayView<T> out;
    Lines lines;
    size_t n;
    Execution execution;

    // A line of an operand: where it is if possible, else copied to `space`.
    const T* read(size_t operand, size_t line, T* space) const {
        const auto& x = operands[operand];
        const ptrdiff_t step = x.strides[x.ndim - 1];
        const char* from = reinterpret_cast<const char*>(x.data) + lines.offset(operand, line);
        if (usable_in_place(from, step)) return reinterpret_cast<const T*>(from);
        gather(from, step, space, n);
        return space;
    }
    // Where to write a line of the result: its own place if possible, else `space`, from where
    // `finish` copies it.
    T* place(size_t line, T* space) const {
        char* to = out_line(line);
        return usable_in_place(to, out_step()) ? reinterpret_cast<T*>(to) : space;
    }
    void finish(const T* from, size_t line) const {
        char* to = out_line(line);
        if (static_cast<const void*>(from) != to) scatter(from, to, out_step(), n);
    }
    // The complex part of the spectrum comes out n/2 times too large; a power of two, so exact.
    T scale() const { return n >= 4 ? T(2) / static_cast<T>(n) : T(1); }

  private:
    ptrdiff_t out_step() const { return out.strides[out.ndim - 1]; }
    char* out_line(size_t line) const {
        return reinterpret_cast<char*>(out.data) + lines.offset(count, line);
    }
    static bool usable_in_place(const void* line, ptrdiff_t step) {
        return step == static_cast<ptrdiff_t>(sizeof(T)) &&
               reinterpret_cast<uintptr_t>(line) % alignof(T) == 0;
    }
};

template <class T>
bool convolve_rows(const Problem<T>& p) {
    const auto& kernel = p.kernel;
    const auto width = static_cast<size_t>(kernel.width);
    const auto twiddles = twiddles_for<T>(p.n / width, width);
    // The ring z^(2 width) - 1 has seen fewer levels than the complex ones.
    const T real_scale = static_cast<T>(width);
    const size_t size = p.n + 2 * width * width;
    ScratchPerThread<T> products(size, p.execution), factors(size, p.execution);
    return parallel_for(
        p.lines.count(), std::max<size_t>(1, elements_per_piece / p.n), p.execution,
        [&](size_t begin, size_t end) {
            T *product = products.mine(), *factor = factors.mine();
            for (size_t i = begin; i < end; ++i) {
                kernel.row.forward(p.read(0, i, product), product, p.n, p.scale(), twiddles);
                for (size_t k = 1; k < p.count; ++k) {
                    kernel.row.forward(p.read(k, i, factor), factor, p.n, T(1), twiddles);
                    kernel.row.multiply(product, factor, p.n, k == 1 ? real_scale : T(1));
                }
                T* result = p.place(i, product);
                kernel.row.inverse(product, result, p.n, twiddles);
                p.finish(result, i);
            }
        });
}

template <class T>
bool convolve_lanes(const Problem<T>& p) {
    const auto& kernel = p.kernel;
    const auto width = static_cast<size_t>(kernel.width);
    const auto twiddles = twiddles_for<T>(2 * width * width, width);
    // The real part has seen one level more than the complex ones.
    const T real_scale = p.n >= 4 ? T(0.5) : T(1) / static_cast<T>(p.n);
    const size_t tiles = (p.lines.count() - 1) / width + 1, size = p.n * width;
    ScratchPerThread<T> copies(size, p.execution), products(size, p.execution),
        factors(size, p.execution);
    return parallel_for(
        tiles, std::max<size_t>(1, elements_per_piece / p.n / width), p.execution,
        [&](size_t begin, size_t end) {
            T *rows = copies.mine(), *product = products.mine(), *factor = factors.mine();
            std::vector<const T*> from(width);
            std::vector<T*> to(width);
            const auto space = [&](size_t lane) { return rows + lane * p.n; };
            for (size_t t = begin; t < end; ++t) {
                const size_t first = t * width, used = std::min(width, p.lines.count() - first);
                const auto forward = [&](size_t operand, T* tile, T scale) {
                    // Unused lanes repeat the first line; their results are not read.
                    for (size_t l = 0; l < width; ++l) {
                        from[l] = l < used ? p.read(operand, first + l, space(l)) : from[0];
                    }
                    kernel.interleave_rows(from.data(), tile, p.n);
                    kernel.lanes.forward(tile, tile, p.n, scale, twiddles);
                };
                forward(0, product, p.scale());
                for (size_t k = 1; k < p.count; ++k) {
                    forward(k, factor, T(1));
                    kernel.lanes.multiply(product, factor, p.n, k == 1 ? real_scale : T(1));
                }
                kernel.lanes.inverse(product, product, p.n, twiddles);
                for (size_t l = 0; l < width; ++l) {
                    to[l] = l < used ? p.place(first + l, space(l)) : space(l);
                }
                kernel.separate_rows(product, to.data(), p.n);
                for (size_t l = 0; l < used; ++l) p.finish(to[l], first + l);
            }
        });
}

template <class T>
bool copy_lines(const Problem<T>& p) {
    ScratchPerThread<T> rows(p.n, p.execution);
    return parallel_for(p.lines.count(), std::max<size_t>(1, elements_per_piece / p.n), p.execution,
                        [&](size_t begin, size_t end) {
                            T* row = rows.mine();
                            for (size_t i = begin; i < end; ++i) {
                                p.finish(p.read(0, i, row), i);
                            }
                        });
}

}  // namespace

template <class T>
bool circular_convolve(const ArrayView<const T>* operands, size_t count, ArrayView<T> out,
                       const Execution& execution) {
    const ptrdiff_t length = out.shape[out.ndim - 1];
    if (length < 1 || !std::has_single_bit(static_cast<size_t>(length))) {
        throw std::invalid_argument("the convolution's length must be a power of two, got " +
                                    std::to_string(length));
    }
    std::vector<const ptrdiff_t*> strides;
    for (size_t k = 0; k < count; ++k) strides.push_back(operands[k].strides);
    strides.push_back(out.strides);
    Problem<T> p{kernels<T>(),
                 operands,
                 count,
                 out,
                 Lines(out.ndim, out.shape, out.ndim - 1, std::move(strides)),
                 static_cast<size_t>(length),
                 execution};
    if (p.lines.count() == 0) return true;
    p.execution.n_threads = most_participants(execution);  // one number for scratch and for threads
    for (size_t k = 0; k < count; ++k) {
        // Stopped halfway, a result in place would have eaten its operand.
        if (static_cast<const void*>(operands[k].data) == out.data) {
            p.execution.interrupted = nullptr;
        }
    }
    if (count == 1) return copy_lines(p);
    const auto width = static_cast<size_t>(p.kernel.width);
    return p.n >= 2 * width * width ? convolve_rows(p) : convolve_lanes(p);
}

template bool circular_convolve(const ArrayView<const float>*, size_t, ArrayView<float>,
                                const Execution&);
template bool circular_convolve(const ArrayView<const double>*, size_t, ArrayView<double>,
                                const Execution&);

}  // namespace kernelmill
