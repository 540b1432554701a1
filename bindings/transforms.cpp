#include <memory>
#include <vector>

#include "buffer.hpp"
#include "kernelmill/convolution.hpp"
#include "kernelmill/fwht.hpp"
#include "kernelmill/sincos.hpp"
#include "run.hpp"

namespace kernelmill::bindings {
namespace {

// Can a result computed from `from`, elementwise or line by line, be written to `to`?
void require_fit(const Buffer& from, const Buffer& to) {
    require(same_shape(from, to), "arrays must have one shape");
    require(from.kind() == to.kind(), "arrays must have one dtype");
    if (to.ndim() > 1 && to.overlaps_itself()) {
        throw nb::value_error("out overlaps itself: several of its elements lie in one place");
    }
}

// Each function returns false, with nothing written, if an output overlaps an input in a way that
// would spoil it; the caller then passes a copy.
bool fwht_into(nb::handle x, nb::handle out, int axis, bool normalize, int n_threads) {
    const Buffer from(x, Buffer::Access::read), to(out, Buffer::Access::write);
    require_fit(from, to);
    if (clash(from, to)) return false;
    if (axis < -from.ndim() || axis >= from.ndim()) throw nb::index_error("axis is out of range");
    if (axis < 0) axis += from.ndim();
    with_real_type(from, [&](auto zero) {
        using T = decltype(zero);
        run(n_threads, from.size(), [&](const Execution& execution) {
            return fwht<T>(from.as<const T>(), to.as<T>(), axis, normalize, execution);
        });
    });
    return true;
}

// Outputs whose bounds overlap may still have no element in common; `separate` says that they have
// none.
bool sincos_into(nb::handle x, nb::handle sine, nb::handle cosine, bool separate, int n_threads) {
    const Buffer from(x, Buffer::Access::read), s(sine, Buffer::Access::write),
        c(cosine, Buffer::Access::write);
    require_fit(from, s);
    require_fit(from, c);
    if (clash(from, s) || clash(from, c) || (!separate && s.overlaps(c))) return false;
    with_real_type(from, [&](auto zero) {
        using T = decltype(zero);
        run(n_threads, from.size(), [&](const Execution& execution) {
            return sincos<T>(from.as<const T>(), s.as<T>(), c.as<T>(), execution);
        });
    });
    return true;
}

bool convolve_into(nb::tuple operands, nb::handle out, int n_threads) {
    const Buffer to(out, Buffer::Access::write);
    std::vector<std::unique_ptr<Buffer>> from;
    for (nb::handle operand : operands) {
        from.push_back(std::make_unique<Buffer>(operand, Buffer::Access::read));
        require_fit(*from.back(), to);
        if (clash(*from.back(), to)) return false;
    }
    require(!from.empty() && to.ndim() >= 1, "expected at least one array of one dimension");
    with_real_type(to, [&](auto zero) {
        using T = decltype(zero);
        std::vector<ArrayView<const T>> views;
        for (const auto& buffer : from) views.push_back(buffer->template as<const T>());
        run(n_threads, to.size(), [&](const Execution& execution) {
            return circular_convolve<T>(views.data(), views.size(), to.as<T>(), execution);
        });
    });
    return true;
}

}  // namespace

void register_transforms(nb::module_& m) {
    m.def("fwht", &fwht_into, nb::arg("x"), nb::arg("out"), nb::arg("axis"), nb::arg("normalize"),
          nb::arg("n_threads"));
    m.def("sincos", &sincos_into, nb::arg("x"), nb::arg("sine"), nb::arg("cosine"),
          nb::arg("separate"), nb::arg("n_threads"));
    m.def("circular_convolve", &convolve_into, nb::arg("operands"), nb::arg("out"),
          nb::arg("n_threads"));
}

}  // namespace kernelmill::bindings
