#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "kernelmill/isa.hpp"
#include "kernelmill/threads.hpp"

// threadpoolctl finds these by name in the loaded library.
extern "C" {
__attribute__((visibility("default"))) int kernelmill_get_num_threads() {
    return kernelmill::get_num_threads();
}
__attribute__((visibility("default"))) void kernelmill_set_num_threads(int count) {
    kernelmill::set_num_threads(count);
}
}

namespace kernelmill::bindings {

namespace nb = nanobind;

void register_runtime(nb::module_& m) {
    m.def("built_isas", &built_isas);
    m.def("available_isas", &available_isas);
    m.def("get_isa", &get_isa);
    m.def("set_isa", &set_isa, nb::arg("name"));
    m.def("get_num_threads", &get_num_threads);
    m.def("set_num_threads", &set_num_threads, nb::arg("count"));
}

}  // namespace kernelmill::bindings
