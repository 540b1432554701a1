// Fastfood blocks that share their signs and their permutation, as the kernels take them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kernelmill {

// Row k of block b is frequency first + b turn + (k / turn) blocks turn + k % turn: the blocks take
// turns, of `turn` rows each. With turn = p they follow each other.
template <class T>
struct FastfoodGroup {
    int levels;  // log2 p
    int stages;
    const T* signs;              // [stage][p]
    const int32_t* permutation;  // [p], or null
    size_t blocks;
    const T* inner;  // [block][p]
    const T* outer;  // [block][p]
    size_t first;
    size_t turn;  // a power of two, at most p; at least 8 for tiles
};

}  // namespace kernelmill
