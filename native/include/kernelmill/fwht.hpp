// Fast Walsh-Hadamard transform in Hadamard (natural) order, along one axis of an array.
#pragma once

#include "kernelmill/arrays.hpp"
#include "kernelmill/threads.hpp"

namespace kernelmill {

// out = H_n x along `axis` (times n^-1/2 if normalize). The views have one shape and do not
// overlap, unless they are the same view: then the transform is in place and is not interrupted
// halfway. Throws std::invalid_argument unless the length n of the axis is a power of two. Returns
// false if it was interrupted. Results are bit-identical on every instruction set, for every number
// of threads.
template <class T>
bool fwht(ArrayView<const T> x, ArrayView<T> out, int axis, bool normalize,
          const Execution& execution);

}  // namespace kernelmill
