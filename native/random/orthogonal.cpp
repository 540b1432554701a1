// Random orthogonal matrices: G. W. Stewart, "The efficient generation of random orthogonal
// matrices with an application to condition estimators", SIAM J. Numer. Anal. 17 (1980).
//
// Let x be a normal vector of R^n and H the reflection that takes e1 to -s x / |x|, s the sign of
// x[0]. If Q' is uniform in n - 1 dimensions, Q = H diag(-s, Q') is uniform in n: its first column
// is x / |x|, and H Q' is uniform in what is orthogonal to it. So Q is a product of reflections of
// dimensions n, n - 1, ..., 2 and signs. Columns are computed independently of each other, each by
// the same additions and multiplications in the same order on every machine.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernelmill/random.hpp"
#include "normals.hpp"
#include "philox.hpp"

namespace kernelmill::random {
namespace {

// Columns of a tile: what the vector registers of the plainest machine hold of the two sums below.
constexpr size_t width = 8;
constexpr size_t elements_per_piece = size_t(1) << 13;

// I - factor u u^T on the last coordinates, and the sign of the column that it completes.
struct Reflections {
    explicit Reflections(size_t dim)
        : dim(dim), vectors(dim * (dim + 1) / 2), factor(dim), sign(dim) {}

    // The vector of the reflection of coordinates p to dim - 1.
    double* vector(size_t p) { return &vectors[p * dim - p * (p - 1) / 2]; }
    const double* vector(size_t p) const { return &vectors[p * dim - p * (p - 1) / 2]; }

    size_t dim;
    std::vector<double> vectors, factor, sign;
};

// The normals of n dimensions are words n (n - 1) / 2 and following.
void draw_reflection(const Words& words, Reflections& r, size_t p) {
    const size_t n = r.dim - p;
    const uint64_t first = static_cast<uint64_t>(n) * (n - 1) / 2;
    double *x = r.vector(p), sum = 0;  // in the order of the coordinates: part of the bits
    uint64_t chunk[words_per_chunk];
    for (size_t i = 0; i < n; i += words_per_chunk) {
        const size_t count = std::min(words_per_chunk, n - i);
        words.read(first + i, chunk, count);
        normals_from_words(chunk, x + i, count);
        for (size_t k = i; k < i + count; ++k) sum += x[k] * x[k];
    }
    const double length = std::sqrt(sum), s = x[0] < 0 ? -1.0 : 1.0;
    r.sign[p] = n == 1 ? s : -s;
    r.factor[p] = 1 / (length * (length + std::abs(x[0])));
    x[0] += s * length;  // no cancellation
}

// Subtracts u t from the rows of a tile and sums their products with the next vector, in one pass.
void reflect(double* tile, size_t rows, const double* u, const double* t, const double* next,
             double* sums) {
    double a[width], step[width], sum[width];
    std::copy(t, t + width, step);
    std::copy(sums, sums + width, sum);
    for (size_t i = 0; i < rows; ++i, tile += width) {
        for (size_t c = 0; c < width; ++c) a[c] = tile[c] - u[i] * step[c];
        for (size_t c = 0; c < width; ++c) tile[c] = a[c];
        for (size_t c = 0; c < width; ++c) sum[c] += next[i] * a[c];
    }
    std::copy(sum, sum + width, sums);
}

// Columns first to first + count of the product, in the leading columns of a tile of dim rows.
void multiply_columns(const Reflections& r, size_t first, size_t count, double* tile) {
    const size_t dim = r.dim;
    std::fill(tile, tile + dim * width, 0.0);
    for (size_t c = 0; c < count; ++c) tile[(first + c) * width + c] = r.sign[first + c];
    // The last coordinate alone has a sign and no reflection.
    if (dim < 2) return;
    // Reflections of later coordinates than a column's own leave it as it is.
    size_t p = std::min(first + count - 1, dim - 2);
    double sums[width] = {}, t[width];
    const double* u = r.vector(p);
    for (size_t i = p; i < dim; ++i) {
        for (size_t c = 0; c < width; ++c) sums[c] += u[i - p] * tile[i * width + c];
    }
    for (;; --p) {
        for (size_t c = 0; c < width; ++c) t[c] = r.factor[p] * sums[c];
        u = r.vector(p);
        double* rows = tile + p * width;
        if (p == 0) {
            reflect(rows, dim, u, t, u, sums);
            return;
        }
        const double* next = r.vector(p - 1);
        for (size_t c = 0; c < width; ++c) sums[c] = next[0] * rows[c - width];
        reflect(rows, dim - p, u, t, next + 1, sums);
    }
}

}  // namespace

bool fill_orthogonal(Key key, uint64_t index, double* out, size_t dim, const Execution& execution) {
    const Words words(key, Tag::orthogonal, index);
    Reflections reflections(dim);
    const size_t grain = std::max<size_t>(1, elements_per_piece / dim);
    const bool drawn = parallel_for(dim, grain, execution, [&](size_t begin, size_t end) {
        for (size_t p = begin; p < end; ++p) draw_reflection(words, reflections, p);
    });
    if (!drawn) return false;
    const size_t tiles = (dim - 1) / width + 1;
    // The work grows with the square of dim: below some 64 dimensions nothing is shared.
    const size_t together = std::max<size_t>(1, (size_t(1) << 12) / (dim * dim));
    return parallel_for(tiles, together, execution, [&](size_t begin, size_t end) {
        std::vector<double> tile(dim * width);
        for (size_t number = begin; number < end; ++number) {
            // The long ones, which meet most reflections, first.
            const size_t first = (tiles - 1 - number) * width, count = std::min(width, dim - first);
            multiply_columns(reflections, first, count, tile.data());
            for (size_t i = 0; i < dim; ++i) {
                std::copy_n(&tile[i * width], count, out + i * dim + first);
            }
        }
    });
}

}  // namespace kernelmill::random
