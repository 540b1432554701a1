#include "kernelmill/convolution.hpp"

#include <algorithm>
#include <bit>
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
    const ArrayView<const T>* operands;
    size_t count;
    ArrayView<T> out;
    Lines lines;
    size_t n;
    Execution execution;

    int axis() const { return out.ndim - 1; }
    void read(size_t operand, size_t line, T* to) const {
        const auto& x = operands[operand];
        gather(reinterpret_cast<const char*>(x.data) + lines.offset(operand, line),
               x.strides[axis()], to, n);
    }
    void write(const T* from, size_t line) const {
        scatter(from, reinterpret_cast<char*>(out.data) + lines.offset(count, line),
                out.strides[axis()], n);
    }
    // The complex part of the spectrum comes out n/2 times too large; a power of two, so exact.
    T scale() const { return n >= 4 ? T(2) / static_cast<T>(n) : T(1); }
};

template <class T>
void multiply_by(T* x, size_t n, T factor) {
    for (size_t k = 0; k < n; ++k) x[k] *= factor;
}

template <class T>
bool convolve_rows(const Problem<T>& p) {
    const auto& kernel = kernels<T>();
    const auto width = static_cast<size_t>(kernel.width);
    const auto twiddles = twiddles_for<T>(p.n / width, width);
    return parallel_for(p.lines.count(), std::max<size_t>(1, elements_per_piece / p.n), p.execution,
                        [&](size_t begin, size_t end) {
                            const size_t size = p.n + 2 * width * width;
                            Scratch<T> product(size), factor(size);
                            for (size_t i = begin; i < end; ++i) {
                                p.read(0, i, product.data());
                                multiply_by(product.data(), p.n, p.scale());
                                kernel.row.forward(product.data(), p.n, twiddles);
                                for (size_t k = 1; k < p.count; ++k) {
                                    p.read(k, i, factor.data());
                                    kernel.row.forward(factor.data(), p.n, twiddles);
                                    // The ring z^(2 width) - 1 has seen fewer levels than the
                                    // complex ones.
                                    kernel.row.multiply(product.data(), factor.data(), p.n,
                                                        k == 1 ? static_cast<T>(width) : T(1));
                                }
                                kernel.row.inverse(product.data(), p.n, twiddles);
                                p.write(product.data(), i);
                            }
                        });
}

template <class T>
bool convolve_lanes(const Problem<T>& p) {
    const auto& kernel = kernels<T>();
    const auto width = static_cast<size_t>(kernel.width);
    const auto twiddles = twiddles_for<T>(2 * width * width, width);
    const size_t tiles = (p.lines.count() - 1) / width + 1;
    // The real part has seen one level more than the complex ones.
    const T real_scale = p.n >= 4 ? T(0.5) : T(1) / static_cast<T>(p.n);
    return parallel_for(
        tiles, std::max<size_t>(1, elements_per_piece / p.n / width), p.execution,
        [&](size_t begin, size_t end) {
            Scratch<T> rows(p.n * width), product(p.n * width), factor(p.n * width);
            std::vector<T*> row(width);
            for (size_t l = 0; l < width; ++l) row[l] = rows.data() + l * p.n;
            for (size_t t = begin; t < end; ++t) {
                const size_t first = t * width, used = std::min(width, p.lines.count() - first);
                const auto read = [&](size_t operand, T* tile) {
                    std::fill(rows.data() + used * p.n, rows.data() + width * p.n, T(0));
                    for (size_t l = 0; l < used; ++l) p.read(operand, first + l, row[l]);
                    kernel.interleave_rows(row.data(), tile, p.n);
                };
                read(0, product.data());
                multiply_by(product.data(), p.n * width, p.scale());
                kernel.lanes.forward(product.data(), p.n, twiddles);
                for (size_t k = 1; k < p.count; ++k) {
                    read(k, factor.data());
                    kernel.lanes.forward(factor.data(), p.n, twiddles);
                    kernel.lanes.multiply(product.data(), factor.data(), p.n,
                                          k == 1 ? real_scale : T(1));
                }
                kernel.lanes.inverse(product.data(), p.n, twiddles);
                kernel.separate_rows(product.data(), row.data(), p.n);
                for (size_t l = 0; l < used; ++l) p.write(row[l], first + l);
            }
        });
}

template <class T>
bool copy_lines(const Problem<T>& p) {
    return parallel_for(p.lines.count(), std::max<size_t>(1, elements_per_piece / p.n), p.execution,
                        [&](size_t begin, size_t end) {
                            Scratch<T> row(p.n);
                            for (size_t i = begin; i < end; ++i) {
                                p.read(0, i, row.data());
                                p.write(row.data(), i);
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
    Problem<T> p{operands,
                 count,
                 out,
                 Lines(out.ndim, out.shape, out.ndim - 1, std::move(strides)),
                 static_cast<size_t>(length),
                 execution};
    if (p.lines.count() == 0) return true;
    for (size_t k = 0; k < count; ++k) {
        // Stopped halfway, a result in place would have eaten its operand.
        if (static_cast<const void*>(operands[k].data) == out.data) {
            p.execution.interrupted = nullptr;
        }
    }
    if (count == 1) return copy_lines(p);
    const auto width = static_cast<size_t>(kernels<T>().width);
    return p.n >= 2 * width * width ? convolve_rows(p) : convolve_lanes(p);
}

template bool circular_convolve(const ArrayView<const float>*, size_t, ArrayView<float>,
                                const Execution&);
template bool circular_convolve(const ArrayView<const double>*, size_t, ArrayView<double>,
                                const Execution&);

}  // namespace kernelmill
