#include <nanobind/nanobind.h>

namespace kernelmill::bindings {

void register_random(nanobind::module_&) {}

}  // namespace kernelmill::bindings
