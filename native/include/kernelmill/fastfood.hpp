// Structured random projections and their features, without ever storing a matrix.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernelmill/features.hpp"
#include "kernelmill/threads.hpp"

namespace kernelmill {

// z = S H G P H B x for every block of p = 2^log2_size frequencies, where x is padded with zeros to
// length p. Blocks come in groups that share their signs B and their permutation P, and with them the
// first transform.
template <class T>
struct FastfoodFactors {
    int log2_size;
    size_t blocks, blocks_per_group;
    int sign_stages;             // H B is applied so often, with signs of its own each time
    const T* signs;              // [group][stage][p]
    const int32_t* permutation;  // [group][p], or null for none; entries below p
    const T* inner;              // G: [block][p]
    const T* outer;              // S with all normalization: [block][p]
};

// Rows of length `dim` <= p, dense with a distance of `stride` elements, or in compressed form.
template <class T>
struct Rows {
    size_t count, dim;
    const T* values;
    ptrdiff_t stride;
    const int32_t* indices32 = nullptr;  // sparse rows: one pair of index arrays is given
    const int64_t* indices64 = nullptr;
    const int32_t* starts32 = nullptr;
    const int64_t* starts64 = nullptr;

    bool sparse() const { return starts32 || starts64; }
    size_t start(size_t row) const {
        return static_cast<size_t>(starts32 ? starts32[row] : starts64[row]);
    }
    size_t index(size_t entry) const {
        return static_cast<size_t>(indices32 ? indices32[entry] : indices64[entry]);
    }
};

// Features of every row, to rows `out_stride` elements apart. A row's result does not depend on the
// others, nor on the number of threads. Returns false if it was interrupted.
template <class T>
bool fastfood(const Rows<T>& x, const FastfoodFactors<T>& factors, const Features<T>& features,
              T* out, ptrdiff_t out_stride, const Execution& execution);

}  // namespace kernelmill
