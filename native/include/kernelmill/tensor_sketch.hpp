// Count sketches of rows, and their circular convolution: the sketch of a tensor product.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernelmill/rows.hpp"
#include "kernelmill/threads.hpp"

namespace kernelmill {

// `degree` count sketches of vectors of `dim` coordinates. Sketch k adds weights[k * dim + i] x[i]
// to element buckets[k * dim + i] of `length`, and starts from offsets[k * length ...] where those
// are given, else from 0. Every bucket must be below `length`; this is not checked.
template <class T>
struct CountSketches {
    size_t degree, dim, length;
    const int32_t* buckets;
    const T* weights;
    const T* offsets;     // or null
    const T* ring_roots;  // by fill_ring_roots where ring_roots_size(length) > 0, or null
};

// Each row of `out`, of `length` elements and out_stride apart, becomes the circular convolution of
// the sketches of that row of x, times its row_scales where those are given. Elements are added in
// the order of the columns; a row's result does not depend on the other rows. Scratch: O(length) a
// thread. Sets *not_finite, if it is given, if an element is NaN or infinite. Returns false if it
// was interrupted.
//
// Transforms have the length of the sketch if that is a power of two, or if its odd prime factors
// are at most 13 and ring_roots are given. Otherwise they have the next power of two that holds a
// product of two sketches, and are folded after each factor.
template <class T>
bool tensor_sketch(const Rows<T>& x, const CountSketches<T>& sketches, const T* row_scales, T* out,
                   ptrdiff_t out_stride, const Execution& execution, bool* not_finite = nullptr);

// The number of constants of type T that transforms of this length take from their caller; 0 for
// powers of two and for lengths that are folded.
size_t ring_roots_size(size_t length);
template <class T>
void fill_ring_roots(size_t length, T* out);

}  // namespace kernelmill
