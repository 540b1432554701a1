#include "kernelmill/tensor_sketch.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "arrays.hpp"
#include "check.hpp"

namespace kernelmill::tests {
namespace {

// What a sketch is made of, for `rows` rows.
template <class T>
struct Case {
    size_t degree, dim, length, rows;
    std::vector<T> x, weights, offsets, scales, roots;
    std::vector<int32_t> buckets;

    Case(size_t degree_, size_t dim_, size_t length_, size_t rows_)
        : degree(degree_),
          dim(dim_),
          length(length_),
          rows(rows_),
          x(numbers<T>(rows * dim, 1)),
          weights(numbers<T>(degree * dim, 2)),
          offsets(numbers<T>(degree * length, 3)),
          scales(numbers<T>(rows, 4)),
          roots(ring_roots_size(length)) {
        for (size_t i = 0; i < degree * dim; ++i) {
            buckets.push_back(static_cast<int32_t>(i * 7919 % 104729 % length));
        }
        if (!roots.empty()) fill_ring_roots(length, roots.data());
    }

    CountSketches<T> sketches(bool with_offsets, bool with_roots) const {
        return {degree,
                dim,
                length,
                buckets.data(),
                weights.data(),
                with_offsets ? offsets.data() : nullptr,
                with_roots && !roots.empty() ? roots.data() : nullptr};
    }

    std::vector<double> by_definition(size_t row, bool with_offsets, bool with_scales) const {
        std::vector<double> product;
        for (size_t k = 0; k < degree; ++k) {
            std::vector<double> sketch(length);
            for (size_t j = 0; with_offsets && j < length; ++j) sketch[j] = offsets[k * length + j];
            for (size_t i = 0; i < dim; ++i) {
                sketch[static_cast<size_t>(buckets[k * dim + i])] +=
                    static_cast<double>(weights[k * dim + i]) * x[row * dim + i];
            }
            if (k == 0) {
                product = sketch;
                continue;
            }
            std::vector<double> next(length);
            for (size_t i = 0; i < length; ++i) {
                for (size_t j = 0; j < length; ++j)
                    next[(i + j) % length] += product[i] * sketch[j];
            }
            product = next;
        }
        for (double& v : product) v *= with_scales ? static_cast<double>(scales[row]) : 1.0;
        return product;
    }
};

template <class T>
double largest_error(const Case<T>& c, const std::vector<T>& out, bool offsets, bool scales) {
    double worst = 0;
    for (size_t row = 0; row < c.rows; ++row) {
        const auto expected = c.by_definition(row, offsets, scales);
        double size = 0, error = 0;
        for (size_t j = 0; j < c.length; ++j) {
            // std::fmax would crash GCC 12 for AArch64.
            size = std::max(size, std::fabs(expected[j]));
            error = std::max(error, std::fabs(out[row * c.length + j] - expected[j]));
        }
        worst = std::max(worst, error / std::max(size, 1.0));
    }
    return worst;
}

template <class T>
void agrees_with_the_definition(double tolerance) {
    for (size_t length :
         {1, 2, 3, 4, 5, 8, 9, 14, 16, 17, 22, 26, 60, 64, 97, 128, 130, 256, 300}) {
        for (size_t degree : {1, 2, 3, 4}) {
            const Case<T> c(degree, 6, length, 11);
            for (int mode = 0; mode < 8; ++mode) {
                const bool offsets = mode & 1, scales = mode & 2, roots = mode & 4;
                std::vector<T> out(c.rows * length, T(77));
                CHECK(tensor_sketch<T>(DenseRows<T>{c.x.data(), 6, c.rows},
                                       c.sketches(offsets, roots),
                                       scales ? c.scales.data() : nullptr, out.data(),
                                       static_cast<ptrdiff_t>(length), {.n_threads = 2}));
                CHECK(largest_error(c, out, offsets, scales) < tolerance);
            }
        }
    }
}
TEST(tensor_sketch_agrees_with_the_definition) {
    on_every_isa([] {
        agrees_with_the_definition<float>(3e-5);
        agrees_with_the_definition<double>(3e-14);
    });
}

// Sparse rows, with entries in any order, and columns that never come.
template <class T, class Index>
void takes_sparse_rows(double tolerance) {
    for (size_t length : {12, 13, 16, 256, 200}) {
        Case<T> c(3, 40, length, 9);
        std::vector<T> values;
        std::vector<Index> indices, starts{0};
        for (size_t row = 0; row < c.rows; ++row) {
            for (size_t i = 40; i-- > 0;) {
                if ((row + i) % 4 == 0) {
                    values.push_back(c.x[row * 40 + i]);
                    indices.push_back(static_cast<Index>(i));
                } else {
                    c.x[row * 40 + i] = 0;
                }
            }
            starts.push_back(static_cast<Index>(values.size()));
        }
        std::vector<T> out(c.rows * length);
        CHECK(tensor_sketch<T>(SparseRows<T, Index>{values.data(), indices.data(), starts.data(),
                                                    c.rows, 40, values.size()},
                               c.sketches(true, true), nullptr, out.data(),
                               static_cast<ptrdiff_t>(length), {}));
        CHECK(largest_error(c, out, true, false) < tolerance);
    }
}
TEST(tensor_sketch_takes_sparse_rows) {
    on_every_isa([] {
        takes_sparse_rows<float, int32_t>(3e-5);
        takes_sparse_rows<float, int64_t>(3e-5);
        takes_sparse_rows<double, int32_t>(3e-14);
    });
}

// A row's bits do not depend on the rows around it, the threads, or the distances between rows.
template <class T>
void rows_are_alone() {
    for (size_t length : {7, 12, 64, 97, 128, 1000, 1024}) {
        const Case<T> c(3, 20, length, 37);
        const auto sketches = c.sketches(true, true);
        const auto stride = static_cast<ptrdiff_t>(length);
        std::vector<T> all(c.rows * length), one(length), wide(c.rows * (length + 3), T(5));
        tensor_sketch<T>(DenseRows<T>{c.x.data(), 20, c.rows}, sketches, c.scales.data(),
                         all.data(), stride, {.n_threads = 3});
        tensor_sketch<T>(DenseRows<T>{c.x.data(), 20, c.rows}, sketches, c.scales.data(),
                         wide.data(), stride + 3, {.n_threads = 1});
        for (size_t row = 0; row < c.rows; ++row) {
            tensor_sketch<T>(DenseRows<T>{c.x.data() + row * 20, 20, 1}, sketches,
                             c.scales.data() + row, one.data(), stride, {.n_threads = 1});
            const size_t bytes = length * sizeof(T);
            CHECK(std::memcmp(one.data(), all.data() + row * length, bytes) == 0);
            CHECK(std::memcmp(one.data(), wide.data() + row * (length + 3), bytes) == 0);
            for (size_t gap = 0; gap < 3; ++gap) {
                CHECK(wide[row * (length + 3) + length + gap] == T(5));
            }
        }
    }
}
TEST(tensor_sketch_rows_are_alone) {
    on_every_isa([] {
        rows_are_alone<float>();
        rows_are_alone<double>();
    });
}

TEST(tensor_sketch_roots_are_for_small_odd_factors) {
    for (size_t length : {3, 5, 6, 7, 11, 13, 100, 5000, 1001}) CHECK(ring_roots_size(length) > 0);
    for (size_t length : {0, 1, 2, 1024, 17, 34, 2003, 289}) CHECK(ring_roots_size(length) == 0);
}

TEST(tensor_sketch_of_nothing) {
    float out = 3;
    CHECK(tensor_sketch<float>(DenseRows<float>{nullptr, 0, 0},
                               {2, 0, 1, nullptr, nullptr, nullptr, nullptr}, nullptr, &out, 1,
                               {}));
    CHECK(out == 3);
    CHECK(tensor_sketch<float>(DenseRows<float>{nullptr, 0, 1},
                               {2, 0, 1, nullptr, nullptr, nullptr, nullptr}, nullptr, &out, 1,
                               {}));
    CHECK(out == 0);
}

}  // namespace
}  // namespace kernelmill::tests
