// Counter-based random streams: a draw is a pure function of (key, distribution, position).
//
// Each fill writes elements start, start + 1, ... of the infinite sequence of its key and its
// distribution, so results are bit-identical for any chunks and any number of threads. Only basic
// IEEE operations and the square root are used, so they are bit-identical on every machine. All
// fills return false if they were interrupted.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernelmill/threads.hpp"

namespace kernelmill::random {

struct Key {
    uint64_t low, high;
};

// Philox4x64-10 itself, for tests: out = the block of `counter`.
void philox_block(Key key, const uint64_t counter[4], uint64_t out[4]);

// +1 or -1. T: double, float, int8_t.
template <class T>
bool fill_signs(Key key, uint64_t start, T* out, size_t n, const Execution& execution);

// In the following functions, T is double or float, and a float is the rounded double.

// (k + 1/2) 2^-52, k uniform in [0, 2^52): never 0, and never 1, also as float.
template <class T>
bool fill_uniforms(Key key, uint64_t start, T* out, size_t n, const Execution& execution);

template <class T>
bool fill_normals(Key key, uint64_t start, T* out, size_t n, const Execution& execution);

template <class T>
bool fill_cauchys(Key key, uint64_t start, T* out, size_t n, const Execution& execution);

// The parameter of a family is positive and finite.
template <class T>
bool fill_gammas(Key key, uint64_t start, double shape, T* out, size_t n,
                 const Execution& execution);

template <class T>
bool fill_chis(Key key, uint64_t start, double degrees_of_freedom, T* out, size_t n,
               const Execution& execution);

template <class T>
bool fill_students(Key key, uint64_t start, double degrees_of_freedom, T* out, size_t n,
                   const Execution& execution);

// `rows` contiguous rows of length dim, uniform on the unit sphere or in the unit ball of R^dim.
template <class T>
bool fill_sphere(Key key, uint64_t first_row, T* out, size_t rows, size_t dim,
                 const Execution& execution);

template <class T>
bool fill_ball(Key key, uint64_t first_row, T* out, size_t rows, size_t dim,
               const Execution& execution);

// T: int64_t or int32_t, able to hold high - 1 or n - 1.

// Uniform in [0, high), without bias; 1 <= high <= 2^63.
template <class T>
bool fill_integers(Key key, uint64_t start, uint64_t high, T* out, size_t n,
                   const Execution& execution);

// out = permutation number `index` of 0, ..., n - 1.
template <class T>
bool fill_permutation(Key key, uint64_t index, T* out, size_t n, const Execution& execution);

// out = orthogonal matrix number `index` of R^dim, contiguous rows, uniform in the sense of Haar.
// dim >= 1. Takes extra memory for half as many elements.
bool fill_orthogonal(Key key, uint64_t index, double* out, size_t dim, const Execution& execution);

constexpr uint64_t hash_prime = (uint64_t(1) << 61) - 1;

// A polynomial c[0] + c[1] x + ... over the integers mod hash_prime; coefficients lie in
// [0, hash_prime).
struct HashPolynomial {
    const uint64_t* coefficients;
    size_t count;
};

// Draws coefficients; `use` separates hash functions for buckets (0) from those for signs (1).
void draw_hash_coefficients(Key key, uint64_t use, uint64_t index, uint64_t* out, size_t count);

// out[i] = floor(h(x[i]) n_buckets / 2^61). If some x[i] is not below hash_prime, *bad is set to
// one such i; otherwise *bad stays as it is.
bool hash_to_buckets(HashPolynomial h, uint64_t n_buckets, const uint64_t* x, int64_t* out,
                     size_t n, size_t* bad, const Execution& execution);

// out[i] = +1 if h(x[i]) < 2^60, else -1. T: int8_t, int64_t, float, double.
template <class T>
bool hash_to_signs(HashPolynomial h, const uint64_t* x, T* out, size_t n, size_t* bad,
                   const Execution& execution);

// The x with P(Z <= x) = p for a standard normal Z; -inf and inf at 0 and 1, NaN outside [0, 1].
double normal_quantile(double p);

// The elementary functions that the distributions use, for tests and for callers that need
// bit-identical results on all machines.
double portable_log(double x);     // 0 < x < inf
double portable_exp(double x);     // not NaN
double portable_tan_pi(double x);  // tan(pi x), 0 < x < 1/2

}  // namespace kernelmill::random
