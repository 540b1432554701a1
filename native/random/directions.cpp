// Rows uniform on the unit sphere and in the unit ball: a normal vector over its length.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernelmill/random.hpp"
#include "normals.hpp"
#include "philox.hpp"
#include "uniform.hpp"

namespace kernelmill::random {
namespace {

constexpr size_t elements_per_piece = size_t(1) << 12;  // some ten microseconds

// The row's number is part of the counter and its columns are positions, so a row's bits do not
// depend on the other rows. The radius reads block 0 of attempt 1, which no column uses.
template <class T, class Radius>
bool fill_rows(Key key, Tag tag, uint64_t first_row, T* out, size_t rows, size_t dim,
               const Execution& execution, Radius radius) {
    const size_t rows_per_piece = std::max<size_t>(1, elements_per_piece / dim);
    return parallel_for(rows, rows_per_piece, execution, [&](size_t begin, size_t end) {
        std::vector<double> normals(dim);
        uint64_t chunk[words_per_chunk];
        for (size_t row = begin; row < end; ++row) {
            const Words words(key, tag, first_row + row);
            double sum = 0;  // in the order of the columns, which is part of the result's bits
            for (size_t j = 0; j < dim; j += words_per_chunk) {
                const size_t count = std::min(words_per_chunk, dim - j);
                words.read(j, chunk, count);
                normals_from_words(chunk, &normals[j], count);
                for (size_t i = j; i < j + count; ++i) sum += normals[i] * normals[i];
            }
            const double length = std::sqrt(sum), r = radius(words);
            T* to = out + row * dim;
            for (size_t j = 0; j < dim; ++j) to[j] = static_cast<T>(normals[j] / length * r);
        }
    });
}

}  // namespace

template <class T>
bool fill_sphere(Key key, uint64_t first_row, T* out, size_t rows, size_t dim,
                 const Execution& execution) {
    return fill_rows(key, Tag::sphere, first_row, out, rows, dim, execution,
                     [](const Words&) { return 1.0; });
}

template <class T>
bool fill_ball(Key key, uint64_t first_row, T* out, size_t rows, size_t dim,
               const Execution& execution) {
    return fill_rows(key, Tag::ball, first_row, out, rows, dim, execution, [dim](const Words& w) {
        return elementary::exp(elementary::log(uniform_from_word(w.at(0, 1))) /
                               static_cast<double>(dim));
    });
}

template bool fill_sphere(Key, uint64_t, double*, size_t, size_t, const Execution&);
template bool fill_sphere(Key, uint64_t, float*, size_t, size_t, const Execution&);
template bool fill_ball(Key, uint64_t, double*, size_t, size_t, const Execution&);
template bool fill_ball(Key, uint64_t, float*, size_t, size_t, const Execution&);

}  // namespace kernelmill::random
