// Sine and cosine of every element of an array.
#pragma once

#include "kernelmill/arrays.hpp"
#include "kernelmill/threads.hpp"

namespace kernelmill {

// The error is below 2 units in the last place for |x| <= 1e5 (float) and 1e9 (double); larger
// arguments are correct, too. Infinity and NaN give NaN. The views have one shape, and an output
// may be the view x. An element's result does not depend on its place in the array. Returns false
// if it was interrupted.
template <class T>
bool sincos(ArrayView<const T> x, ArrayView<T> sine, ArrayView<T> cosine,
            const Execution& execution);

}  // namespace kernelmill
