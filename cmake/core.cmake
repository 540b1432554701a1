# native/ as one static library. Its kernels are compiled once per instruction set; everything else
# is compiled for the plain architecture.
find_package(Threads REQUIRED)

# No contraction of a * b + c into one rounding unless the source says so: results would otherwise
# depend on the compiler and the machine. Never -ffast-math, never -march=native.
set(kernelmill_flags -ffp-contract=off -Wall -Wextra -Wno-psabi)

add_library(
    kernelmill_core STATIC
    native/core/convolution.cpp
    native/core/dense.cpp
    native/core/descent.cpp
    native/core/exponentials.cpp
    native/core/fastfood.cpp
    native/core/few_outputs.cpp
    native/core/fwht.cpp
    native/core/isa.cpp
    native/core/moments.cpp
    native/core/ring_plan.cpp
    native/core/row_products.cpp
    native/core/sincos.cpp
    native/core/svmlight.cpp
    native/core/tensor_sketch.cpp
    native/core/threads.cpp
    native/core/twiddles.cpp
    native/core/write_features.cpp
    native/core/zonal.cpp
    native/random/directions.cpp
    native/random/gamma.cpp
    native/random/hashing.cpp
    native/random/orthogonal.cpp
    native/random/permutation.cpp
    native/random/words.cpp
)
target_include_directories(kernelmill_core PUBLIC native/include)
target_compile_options(kernelmill_core PRIVATE ${kernelmill_flags})
target_link_libraries(kernelmill_core PUBLIC Threads::Threads)

option(KERNELMILL_EMULATED_512 "Also build the kernels with vectors of 64 bytes that any CPU runs" OFF)

# The kernels take most of the time of a build, and the tests need those of the extension module again.
set(KERNELMILL_KERNELS_FROM "" CACHE PATH "Folder of a build of the same type, whose kernels are used")

function(kernelmill_add_target name vector_bytes has_fma)
    set(compiled ${KERNELMILL_KERNELS_FROM}/CMakeFiles/kernelmill_${name}.dir/native/kernels/target.cpp.o)
    if(KERNELMILL_KERNELS_FROM AND EXISTS ${compiled})
        target_sources(kernelmill_core PRIVATE ${compiled})
        return()
    endif()
    add_library(kernelmill_${name} OBJECT native/kernels/target.cpp)
    target_compile_definitions(
        kernelmill_${name} PRIVATE KM_TARGET=${name} KM_VECTOR_BYTES=${vector_bytes}
                                   KM_HAS_FMA=${has_fma}
    )
    target_include_directories(kernelmill_${name} PRIVATE native/include)
    target_compile_options(kernelmill_${name} PRIVATE ${kernelmill_flags} ${ARGN})
    target_link_libraries(kernelmill_core PRIVATE kernelmill_${name})
endfunction()

string(TOLOWER "${CMAKE_SYSTEM_PROCESSOR}" processor)
if(processor MATCHES "x86_64|amd64")
    kernelmill_add_target(baseline 16 0)
    kernelmill_add_target(avx2 32 1 -mavx2 -mfma -mtune=haswell)
    kernelmill_add_target(
        avx512 64 1 -mavx512f -mavx512dq -mavx512bw -mavx512vl -mfma -mprefer-vector-width=512
    )
elseif(processor MATCHES "aarch64|arm64")
    kernelmill_add_target(baseline 16 1)
else()
    kernelmill_add_target(baseline 16 0)
endif()

# What 16 lanes do, on a CPU without AVX-512: slow, and for the tests alone. Optimization would double
# the time of the build of the tests, and changes no bits.
if(KERNELMILL_EMULATED_512)
    kernelmill_add_target(emulated512 64 0 -O1)
    target_compile_definitions(kernelmill_core PRIVATE KERNELMILL_EMULATED_512)
endif()
