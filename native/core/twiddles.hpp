// Roots of unity in the order in which native/kernels/convolution.hpp uses them.
#pragma once

#include <cstddef>

namespace kernelmill {

// The tree of rings: node 1 is C[z]/(z^m - i), and C[z]/(z^m - e^(i t)) has as children the two
// factors with roots e^(i t/2) (node 2j) and -e^(i t/2) (node 2j + 1). A node's angle does not
// depend on the length m, so that one table serves all lengths up to its own.
template <class T>
struct Twiddles {
    size_t units;  // vectors per transform that the tables reach to

    // Six numbers a node j: real and imaginary parts of e^(i t/4), e^(i t/2), e^(3i t/4).
    const T* nodes;
    // For transforms along a row: the same per lane, in the order in which tiles are worked
    // through.
    const T* tiles;
};

// Tables for transforms of up to `units` vectors of `width` lanes; they live as long as the
// process.
template <class T>
Twiddles<T> twiddles_for(size_t units, size_t width);

// e^(2 pi i turns), 0 <= turns < 1, correct to about one unit in the last place.
template <class T>
void put_root(double turns, T* re, T* im);

}  // namespace kernelmill
