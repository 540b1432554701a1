// What becomes of a projection z = V x, and where it goes in a row of the output.
#pragma once

#include <cstddef>

#include "kernelmill/threads.hpp"

namespace kernelmill {

enum class FeatureKind : int {
    projection,  // z itself: column j is z_j
    cos_sin,     // column j is cos z_j, column pairs + j is sin z_j
    complex,     // columns 2j and 2j + 1 are the real and the imaginary part of exp(i z_j)
    cos_phase,   // column j is cos(z_j + phase_j)
};

// Plain data: the kernels are compiled several times and may share no inline function.
//
// `pairs` frequencies fill two columns each with cos_sin and complex. With cos_sin one more
// frequency may follow, for an odd number of columns: column 2 pairs is then cos(z + phase).
template <class T>
struct Features {
    FeatureKind kind;
    size_t frequencies;
    size_t pairs;
    T scale;          // of all columns but those of a projection
    const T* phases;  // one for each frequency; null where the kind has none
};

// Features of n projections of each row, of frequencies first, first + 1, ..., times outer[0 .. n)
// where that is given. Rows of z and of the output are so many elements apart. Returns false if it
// was interrupted.
template <class T>
bool write_features(const T* z, ptrdiff_t z_stride, size_t rows, size_t n, const T* outer,
                    size_t first, const Features<T>& features, T* out, ptrdiff_t out_stride,
                    const Execution& execution);

}  // namespace kernelmill
