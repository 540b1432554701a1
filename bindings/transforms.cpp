#include "buffer.hpp"
#include "kernelmill/fwht.hpp"
#include "run.hpp"

namespace kernelmill::bindings {
namespace {

void fwht_into(nb::handle x, nb::handle out, int axis, bool normalize, int n_threads) {
    const Buffer from(x, Buffer::Access::read), to(out, Buffer::Access::write);
    require(same_shape(from, to), "out must have the shape of x");
    require(from.kind() == to.kind(), "out must have the dtype of x");
    if (axis < -from.ndim() || axis >= from.ndim()) throw nb::index_error("axis is out of range");
    if (axis < 0) axis += from.ndim();
    run(n_threads, [&](const Execution& execution) {
        switch (from.kind()) {
            case 'f':
                return fwht<float>(from.as<const float>(), to.as<float>(), axis, normalize,
                                   execution);
            case 'd':
                return fwht<double>(from.as<const double>(), to.as<double>(), axis, normalize,
                                    execution);
            default: throw nb::type_error("expected float32 or float64");
        }
    });
}

}  // namespace

void register_transforms(nb::module_& m) {
    m.def("fwht", &fwht_into, nb::arg("x"), nb::arg("out"), nb::arg("axis"), nb::arg("normalize"),
          nb::arg("n_threads"));
}

}  // namespace kernelmill::bindings
