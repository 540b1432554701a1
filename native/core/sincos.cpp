#include "kernelmill/sincos.hpp"

#include <algorithm>
#include <cmath>

#include "kernel_table.hpp"
#include "lines.hpp"
#include "scratch.hpp"

namespace kernelmill {

// Arguments that no kernel reduces: the C library does, with as many digits of pi as it takes.
void sincos_of_any(double x, double* sine, double* cosine) {
    *sine = std::sin(x);
    *cosine = std::cos(x);
}

namespace {

constexpr size_t elements_per_piece = size_t(1) << 13;
constexpr size_t block = 512;  // elements gathered at a time from a strided line

template <class T>
void sincos_line(const char* x, ptrdiff_t x_step, char* sine, ptrdiff_t sine_step, char* cosine,
                 ptrdiff_t cosine_step, size_t n) {
    T from[block], s[block], c[block];
    for (size_t k = 0; k < n; k += block) {
        const size_t count = std::min(block, n - k);
        const auto at = static_cast<ptrdiff_t>(k);
        gather(x + at * x_step, x_step, from, count);
        kernels<T>().sincos(from, s, c, count);
        scatter(s, sine + at * sine_step, sine_step, count);
        scatter(c, cosine + at * cosine_step, cosine_step, count);
    }
}

}  // namespace

template <class T>
bool sincos(ArrayView<const T> x, ArrayView<T> sine, ArrayView<T> cosine,
            const Execution& execution) {
    if (x.contiguous() && sine.contiguous() && cosine.contiguous()) {
        return parallel_for(x.size(), elements_per_piece, execution, [&](size_t begin, size_t end) {
            kernels<T>().sincos(x.data + begin, sine.data + begin, cosine.data + begin,
                                end - begin);
        });
    }
    const int axis = x.ndim - 1;
    const auto n = static_cast<size_t>(x.shape[axis]);
    if (n == 0) return true;
    const Lines lines(x.ndim, x.shape, axis, {x.strides, sine.strides, cosine.strides});
    return parallel_for(
        lines.count(), std::max<size_t>(1, elements_per_piece / n), execution,
        [&](size_t begin, size_t end) {
            for (size_t i = begin; i < end; ++i) {
                sincos_line<T>(
                    reinterpret_cast<const char*>(x.data) + lines.offset(0, i), x.strides[axis],
                    reinterpret_cast<char*>(sine.data) + lines.offset(1, i), sine.strides[axis],
                    reinterpret_cast<char*>(cosine.data) + lines.offset(2, i), cosine.strides[axis],
                    n);
            }
        });
}

template bool sincos(ArrayView<const float>, ArrayView<float>, ArrayView<float>, const Execution&);
template bool sincos(ArrayView<const double>, ArrayView<double>, ArrayView<double>,
                     const Execution&);

}  // namespace kernelmill
