// Products of rows with packed frequencies.
#include "kernelmill/dense.hpp"

#include <algorithm>

#include "buffer.hpp"
#include "run.hpp"

namespace kernelmill::bindings {
namespace {

// The elements of a contiguous array of T, one that the kernels can read and write directly.
template <class T>
T* elements(const Buffer& buffer) {
    const auto view = buffer.as<T>();
    require(view.contiguous(), "expected C-contiguous, aligned arrays");
    return view.data;
}

void require_value(bool holds, const char* what) {
    if (!holds) throw nb::value_error(what);
}

template <class Work>
void with_real_type(const Buffer& buffer, Work&& work) {
    switch (buffer.kind()) {
        case 'f': return work(float{});
        case 'd': return work(double{});
        default: throw nb::type_error("expected arrays of float32 or float64");
    }
}

size_t extent(const Buffer& buffer, int axis) { return static_cast<size_t>(buffer.extent(axis)); }

// w: (m, d); out: one-dimensional.
void pack(nb::handle w, nb::handle out) {
    const Buffer from(w, Buffer::Access::read), to(out, Buffer::Access::write);
    require(from.kind() == to.kind(), "w and out must have one dtype");
    require_value(from.ndim() == 2, "w must have two dimensions");
    with_real_type(from, [&](auto zero) {
        using T = decltype(zero);
        const size_t m = extent(from, 0), d = extent(from, 1);
        require_value(to.ndim() == 1 && to.size() == packed_size<T>(m, d),
                      "out must have one dimension and the size of the packed frequencies: m "
                      "rounded up to whole panels of 64 bytes, times d");
        require_value(!from.overlaps(to), "out must not overlap w");
        const T* rows = elements<const T>(from);
        T* packed = elements<T>(to);
        run(1, from.size(), [&](const Execution&) {
            pack_frequencies(rows, m, d, packed);
            return true;
        });
    });
}

// x: (n, d); packed: what pack made of (m, d); out: (n, m).
void project_dense(nb::handle x, nb::handle packed, size_t m, nb::handle out, int n_threads) {
    const Buffer from(x, Buffer::Access::read), frequencies(packed, Buffer::Access::read),
        to(out, Buffer::Access::write);
    require(from.kind() == to.kind() && from.kind() == frequencies.kind(),
            "x, packed and out must have one dtype");
    require_value(from.ndim() == 2 && to.ndim() == 2, "x and out must have two dimensions");
    with_real_type(from, [&](auto zero) {
        using T = decltype(zero);
        const size_t n = extent(from, 0), d = extent(from, 1);
        require_value(extent(to, 0) == n && extent(to, 1) == m, "out must have the shape (n, m)");
        require_value(frequencies.ndim() == 1 && frequencies.size() == packed_size<T>(m, d),
                      "packed must hold m frequencies of as many coordinates as x has columns");
        require_value(!from.overlaps(to) && !frequencies.overlaps(to),
                      "out must not overlap x or packed");
        const DenseRows<T> rows{elements<const T>(from), from.extent(1), n};
        const Frequencies<T> w{elements<const T>(frequencies), m, d};
        T* result = elements<T>(to);
        run(n_threads, n * m * std::max<size_t>(1, d / 16), [&](const Execution& execution) {
            return project(rows, w, result, static_cast<ptrdiff_t>(m), execution);
        });
    });
}

}  // namespace

void register_dense(nb::module_& m) {
    m.def("dense_pack", &pack, nb::arg("w"), nb::arg("out"));
    m.def("dense_project", &project_dense, nb::arg("x"), nb::arg("packed"), nb::arg("m"),
          nb::arg("out"), nb::arg("n_threads"));
}

}  // namespace kernelmill::bindings
