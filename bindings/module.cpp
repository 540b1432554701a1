// The table of contents of kernelmill._native.
#include <nanobind/nanobind.h>

namespace kernelmill::bindings {

void register_runtime(nanobind::module_& m);
void register_transforms(nanobind::module_& m);
void register_random(nanobind::module_& m);
void register_features(nanobind::module_& m);
void register_few_outputs(nanobind::module_& m);
void register_moments(nanobind::module_& m);
void register_sketches(nanobind::module_& m);
void register_svmlight(nanobind::module_& m);

}  // namespace kernelmill::bindings

NB_MODULE(_native, m) {
    using namespace kernelmill::bindings;
    register_runtime(m);
    register_transforms(m);
    register_random(m);
    register_features(m);
    register_few_outputs(m);
    register_moments(m);
    register_sketches(m);
    register_svmlight(m);
}
