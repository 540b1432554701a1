// Circular convolution along the last axis.
#pragma once

#include <cstddef>

#include "kernelmill/arrays.hpp"
#include "kernelmill/threads.hpp"

namespace kernelmill {

// out[..., k] = sum over j_1 + ... + j_p = k (mod n) of x_1[..., j_1] ... x_p[..., j_p]. The views
// have one shape; out may be one of the operands, and must not overlap any other. Throws
// std::invalid_argument unless n is a power of two. A row's result does not depend on the other
// rows. Scratch: two buffers of O(n) a thread. Returns false if it was interrupted.
template <class T>
bool circular_convolve(const ArrayView<const T>* operands, size_t count, ArrayView<T> out,
                       const Execution& execution);

}  // namespace kernelmill
