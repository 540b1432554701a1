// Features of the product z = W x of many rows x with a matrix of frequencies W.
//
// z[j] is the sum of x[k] W[j][k] over ascending k (over the stored entries in their order), one
// multiply-add after the other from 0. A row's result therefore does not depend on other rows, on
// the number of threads, or on its place in a tile, which BLAS does not guarantee. Results of
// instruction sets with and without a fused multiply-add differ by rounding.
#pragma once

#include <cstddef>

#include "kernelmill/features.hpp"
#include "kernelmill/panels.hpp"
#include "kernelmill/rows.hpp"
#include "kernelmill/threads.hpp"

namespace kernelmill {

template <class T>
struct Frequencies {
    const T* packed;  // by pack_frequencies
    size_t count;     // m
    size_t dim;       // d
};

template <class T>
size_t panels_of(size_t count) {
    return count / panel_width<T> + (count % panel_width<T> != 0);
}

template <class T>
size_t packed_size(size_t count, size_t dim) {
    return panels_of<T>(count) * dim * panel_width<T>;
}

// w: `count` contiguous rows of `dim`; packed: packed_size elements, best aligned to 64 bytes.
template <class T>
void pack_frequencies(const T* w, size_t count, size_t dim, T* packed);

// Features of all rows; frequency number j of W is frequency first + j of the features. Rows of
// `out` are out_stride elements apart. Returns false if it was interrupted.
template <class T>
bool dense_features(const Rows<T>& x, const Frequencies<T>& w, size_t first,
                    const Features<T>& features, T* out, ptrdiff_t out_stride,
                    const Execution& execution);

}  // namespace kernelmill
