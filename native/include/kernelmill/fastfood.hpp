// Structured random projections and their features, without storing a matrix.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernelmill/features.hpp"
#include "kernelmill/few_outputs.hpp"
#include "kernelmill/rows.hpp"
#include "kernelmill/threads.hpp"

namespace kernelmill {

// z = S H G P H B x for every block of p = 2^log2_size frequencies, where x is padded with zeros to
// length p. Groups of blocks share their signs B and their permutation P, and therefore the first
// transform. In the first group, blocks contribute `first_turn` rows each in turn, so that few
// frequencies come from all blocks; in other groups, blocks are consecutive.
template <class T>
struct FastfoodFactors {
    int log2_size;
    size_t dim;  // columns of x, at most p
    size_t blocks, blocks_per_group;
    size_t first_turn;           // a power of two from 8 to p, or p
    int sign_stages;             // number of times that H B is applied, each with its own signs
    const T* signs;              // [group][stage][p]
    const int32_t* permutation;  // [group][p], or null for none; entries below p
    const T* inner;              // G: [block][p]
    const T* outer;              // S, including all normalization: [block][p]
};

// Scores of rows by few outputs: score_rows of their features, `dim` numbers each.
template <class T>
struct Scoring {
    DenseRows<T> weights;
    size_t dim;
    MutableRows<T> scores;
};

// Features of every row, to rows `out_stride` elements apart, and their scores while they are in
// the cache, if `scoring` is not null. A row's result does not depend on the others, nor on the
// number of threads. Returns false if it was interrupted.
template <class T>
bool fastfood(const Rows<T>& x, const FastfoodFactors<T>& factors, const Features<T>& features,
              T* out, ptrdiff_t out_stride, const Scoring<T>* scoring, const Execution& execution);

}  // namespace kernelmill
