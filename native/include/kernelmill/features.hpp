// The features of a projection z = V x, and their places in a row of the output.
#pragma once

#include <cstddef>

namespace kernelmill {

enum class FeatureKind : int {
    projection,  // z itself: column j is z_j
    cos_sin,     // column j is cos z_j, column pairs + j is sin z_j
    complex,     // columns 2j and 2j + 1 are the real and the imaginary part of exp(i z_j)
    cos_phase,   // column j is cos(z_j + phase_j)
    times,       // column j is multiplied by z_j; of dense products only
};

// Plain data, since kernels are compiled several times and must not share inline functions.
//
// `pairs` frequencies fill two columns each with cos_sin and complex. With cos_sin one more
// frequency may follow, for an odd number of columns: column 2 pairs is then cos(z + phase).
template <class T>
struct Features {
    FeatureKind kind;
    size_t frequencies;
    size_t pairs;
    T scale;          // factor of all columns except for projection and times
    const T* phases;  // one for each frequency; null for kinds without phases
    // Set to true, if it is given, where a feature is NaN or infinite; perhaps also for frequencies
    // beyond the last one. Threads store it atomically.
    bool* not_finite = nullptr;
};

}  // namespace kernelmill
