#!/bin/sh
# Arrays of unusual layouts, damaged sparse matrices and svmlight files against an extension module that is compiled
# with AddressSanitizer: reads and writes outside of arrays end the process. Arguments: the Python
# of the virtual environment, the number of mutations, the seed.
set -e
python=$1 count=$2 seed=$3
build=build/asan-bindings
mkdir -p build
bin=$(dirname "$python")
packages=$("$python" -c "import sysconfig; print(sysconfig.get_paths()['purelib'])")
"$bin"/cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG="-O1 -g1" \
    -DCMAKE_CXX_FLAGS="-fsanitize=address -fno-omit-frame-pointer" \
    -DPython_EXECUTABLE="$PWD/$python" \
    -DSKBUILD_SABI_COMPONENT=Development.SABIModule -DSKBUILD_SABI_VERSION=3.11 \
    -Dnanobind_DIR="$("$python" -m nanobind --cmake_dir)" > $build.log
"$bin"/cmake --build $build --target _native >> $build.log
# The editable installation would find its own module, so that .pth files are not read (-S).
rm -rf $build/package
mkdir -p $build/package
cp -r src/kernelmill $build/package/
cp $build/_native*.so $build/package/kernelmill/
# Python is no C++ program: ASan finds the functions that throw only if their library is loaded.
preloaded="$("${CXX:-c++}" -print-file-name=libasan.so) $("${CXX:-c++}" -print-file-name=libstdc++.so)"
LD_PRELOAD=$preloaded ASAN_OPTIONS=detect_leaks=0 \
    PYTHONPATH=$build/package:.:$packages \
    "$python" -S -m fuzzing --count "$count" --seed "$seed" dense.arrays sparse.arrays rows.svm
