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

struct Steps {
    ptrdiff_t x, sine, cosine;  // byte distances of consecutive elements
};

template <class T>
void sincos_line(const char* x, char* sine, char* cosine, Steps steps, size_t n) {
    T from[block], s[block], c[block];
    while (n > 0) {
        const size_t count = std::min(block, n);
        const auto taken = static_cast<ptrdiff_t>(count);
        gather(x, steps.x, from, count);
        kernels<T>().sincos(from, s, c, count);
        scatter(s, sine, steps.sine, count);
        scatter(c, cosine, steps.cosine, count);
        x += taken * steps.x;
        sine += taken * steps.sine;
        cosine += taken * steps.cosine;
        n -= count;
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
    const int axis = x.ndim - 1;  // -1: a single element, which is not aligned
    const size_t n = axis < 0 ? 1 : static_cast<size_t>(x.shape[axis]);
    if (n == 0) return true;
    const Steps steps =
        axis < 0 ? Steps{} : Steps{x.strides[axis], sine.strides[axis], cosine.strides[axis]};
    const Lines lines(x.ndim, x.shape, axis, {x.strides, sine.strides, cosine.strides});
    // A long line is several pieces, so that threads can share it and an interrupt can stop it.
    const size_t pieces_per_line = (n - 1) / elements_per_piece + 1;
    return parallel_for(
        lines.count() * pieces_per_line, std::max<size_t>(1, elements_per_piece / n), execution,
        [&](size_t begin, size_t end) {
            for (size_t piece = begin; piece < end; ++piece) {
                const size_t line = piece / pieces_per_line;
                const size_t first = piece % pieces_per_line * elements_per_piece;
                const auto skip = static_cast<ptrdiff_t>(first);
                sincos_line<T>(
                    reinterpret_cast<const char*>(x.data) + lines.offset(0, line) + skip * steps.x,
                    reinterpret_cast<char*>(sine.data) + lines.offset(1, line) + skip * steps.sine,
                    reinterpret_cast<char*>(cosine.data) + lines.offset(2, line) +
                        skip * steps.cosine,
                    steps, std::min(elements_per_piece, n - first));
            }
        });
}

template bool sincos(ArrayView<const float>, ArrayView<float>, ArrayView<float>, const Execution&);
template bool sincos(ArrayView<const double>, ArrayView<double>, ArrayView<double>,
                     const Execution&);

}  // namespace kernelmill
