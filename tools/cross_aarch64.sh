#!/bin/sh
# Compile the core and its tests for AArch64, and run them in an emulator if there is one.
#   sh tools/cross_aarch64.sh [cmake]
# Debian: apt install g++-aarch64-linux-gnu qemu-user
set -eu
cmake=${1:-cmake}
compiler=${AARCH64_CXX:-aarch64-linux-gnu-g++}
if ! command -v "$compiler" >/dev/null; then
    echo "cross: skipped, no AArch64 compiler ($compiler); on Debian: apt install g++-aarch64-linux-gnu"
    exit 0
fi
"$cmake" -S . -B build/aarch64 -G Ninja -DKERNELMILL_PYTHON=OFF -DKERNELMILL_TESTS=ON \
    -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CXX_COMPILER="$compiler"
"$cmake" --build build/aarch64
if command -v qemu-aarch64 >/dev/null; then
    # Forking under the emulator is its own adventure; everything else runs.
    for tests in fwht sincos convolution random fastfood features dense tensor_sketch exponentials zonal \
        row_products products_with_few_outputs steps_of_descent moments sums_of_columns; do
        qemu-aarch64 -L /usr/aarch64-linux-gnu build/aarch64/native/tests/native_tests $tests
    done
else
    echo "cross: compiled, not run: no qemu-aarch64; on Debian: apt install qemu-user"
fi
