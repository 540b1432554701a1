# kernelmill._native: a thin nanobind module over the core.
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter ${SKBUILD_SABI_COMPONENT} Development.Module)
find_package(nanobind CONFIG REQUIRED)

nanobind_add_module(
    _native
    BACKEND_MODULE nanobind_backend
    bindings/features.cpp
    bindings/few_outputs.cpp
    bindings/module.cpp
    bindings/moments.cpp
    bindings/random.cpp
    bindings/runtime.cpp
    bindings/sketches.cpp
    bindings/svmlight.cpp
    bindings/transforms.cpp
)
target_compile_options(_native PRIVATE ${kernelmill_flags})
target_link_libraries(_native PRIVATE kernelmill_core)
install(TARGETS _native LIBRARY DESTINATION kernelmill)
