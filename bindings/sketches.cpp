// Sketches of rows: rows in, sketches out, in one core call.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "buffer.hpp"
#include "kernelmill/tensor_sketch.hpp"
#include "rows.hpp"
#include "run.hpp"

namespace kernelmill::bindings {
namespace {

bool all_below(const int32_t* values, size_t count, size_t bound) {
    // Negative numbers are large ones here.
    uint32_t largest = 0;
    for (size_t i = 0; i < count; ++i)
        largest = std::max(largest, static_cast<uint32_t>(values[i]));
    return count == 0 || largest < bound;
}

// buckets, weights: (degree, columns of x); offsets: (degree, columns of out) or None; row_scales:
// as many as x has rows, or None. Returns whether all elements are finite.
bool tensor_sketch_into(nb::handle x, nb::handle buckets, nb::handle weights, nb::handle offsets,
                        nb::handle row_scales, nb::handle ring_roots, nb::handle out,
                        int n_threads) {
    const Buffer to(out, Buffer::Access::write), h(buckets, Buffer::Access::read),
        s(weights, Buffer::Access::read);
    std::optional<Buffer> start, scale, roots;
    if (!ring_roots.is_none()) roots.emplace(ring_roots, Buffer::Access::read);
    if (!offsets.is_none()) start.emplace(offsets, Buffer::Access::read);
    if (!row_scales.is_none()) scale.emplace(row_scales, Buffer::Access::read);
    require(to.ndim() == 2 && (to.size() == 0 || !to.overlaps_itself()),
            "out must be a matrix that does not overlap itself");
    require(h.ndim() == 2 && same_shape(h, s) && h.extent(0) >= 1,
            "buckets and weights must be matrices of one shape");
    bool not_finite = false;
    with_real_type(to, [&](auto zero) {
        using T = decltype(zero);
        const Input<T> input(x);
        const auto view = to.as<T>();
        const auto degree = static_cast<size_t>(h.extent(0)),
                   length = static_cast<size_t>(view.shape[1]);
        const int32_t* places = contiguous<int32_t>(h, 'i', "buckets must be int32");
        require(input.count == static_cast<size_t>(view.shape[0]),
                "out must have as many rows as x");
        require(input.dim == static_cast<size_t>(h.extent(1)),
                "buckets must have as many columns as x");
        require(all_below(places, h.size(), length), "buckets must be columns of out");
        require(!start || (start->ndim() == 2 && start->size() == degree * length &&
                           start->extent(0) == h.extent(0)),
                "offsets must have the columns of out");
        require(!scale || scale->size() == input.count, "row_scales must have one for each row");
        require(!roots || roots->size() == ring_roots_size(length),
                "ring_roots must be those of the columns of out");
        const CountSketches<T> sketches{
            degree,
            input.dim,
            length,
            places,
            contiguous<T>(s, kind_of<T>, "weights must have the dtype of out"),
            start ? contiguous<T>(*start, kind_of<T>, "offsets must have the dtype of out")
                  : nullptr,
            roots ? contiguous<T>(*roots, kind_of<T>, "ring_roots must have the dtype of out")
                  : nullptr};
        const T* scales =
            scale ? contiguous<T>(*scale, kind_of<T>, "row_scales must have the dtype of out")
                  : nullptr;
        const size_t work = input.count * degree * (input.dim / 4 + 4 * length);
        run(n_threads, work, [&](const Execution& execution) {
            return tensor_sketch<T>(input.rows, sketches, scales, view.data, row_stride(view),
                                    execution, &not_finite);
        });
    });
    return !not_finite;
}

size_t roots_of(size_t length) {
    require(length <= 0x7fffffff, "length must be below 2^31");
    return ring_roots_size(length);
}

void ring_roots_into(nb::handle out, size_t length) {
    const Buffer to(out, Buffer::Access::write);
    with_real_type(to, [&](auto zero) {
        using T = decltype(zero);
        require(to.ndim() == 1 && to.as<T>().contiguous() && to.size() == roots_of(length),
                "out must be one-dimensional and hold ring_roots_size elements");
        if (to.size() > 0) fill_ring_roots(length, to.as<T>().data);
    });
}

}  // namespace

void register_sketches(nb::module_& m) {
    using nb::arg;
    m.def("tensor_sketch", &tensor_sketch_into, arg("x"), arg("buckets"), arg("weights"),
          arg("offsets").none(), arg("row_scales").none(), arg("ring_roots").none(), arg("out"),
          arg("n_threads"));
    m.def("ring_roots_size", &roots_of, arg("length"));
    m.def("ring_roots", &ring_roots_into, arg("out"), arg("length"));
}

}  // namespace kernelmill::bindings
