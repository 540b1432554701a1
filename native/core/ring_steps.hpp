// Steps that split z^n - 1 into factors for a length n that is not a power of two; see rings.hpp.
// Plain data: the kernels read it.
#pragma once

#include <cstddef>

namespace kernelmill {

// Odd primes that a length may have as factors.
constexpr int odd_radices[] = {13, 11, 7, 5, 3};

// `blocks` rings, one behind the other, of radix * stride units each, are split into `radix`
// factors each. A real ring z^(radix * stride) - 1 becomes the real one z^stride - 1 in the first
// `stride` units and, for an odd radix, (radix - 1) / 2 complex ones, of which each has `stride`
// units of real parts and then as many of imaginary parts. For radix 2 the other factor z^stride +
// 1 stays real, or is read as a complex ring. A complex ring has its real parts from unit `re` on
// and its imaginary ones from `im`.
struct RingStep {
    int radix;
    bool real;
    size_t re, im;
    size_t stride, blocks;
    size_t roots;  // where the constants of the first block are; each takes 2 (radix - 1) numbers
};

// Units that are multiplied pointwise after the last step, `scale` times what they should be after
// the way back.
struct RingSegment {
    bool real;
    size_t re, im, units;
    double scale;
};

}  // namespace kernelmill
