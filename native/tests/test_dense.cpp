#include "kernelmill/dense.hpp"

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "arrays.hpp"
#include "check.hpp"

namespace kernelmill::tests {
namespace {

const std::vector<size_t> row_counts{1, 5, 6, 7, 13, 97}, dims{1, 3, 16, 511, 512, 513, 1025},
    frequency_counts{1, 15, 16, 17, 33, 100, 300};

template <class T>
struct Packed {
    Packed(const std::vector<T>& w, size_t count, size_t dim)
        : elements(packed_size<T>(count, dim), T(7)), view{elements.data(), count, dim} {
        pack_frequencies(w.data(), count, dim, elements.data());
    }
    Packed(const Packed&) = delete;
    Packed& operator=(const Packed&) = delete;

    std::vector<T> elements;
    Frequencies<T> view;
};

// The products themselves.
template <class T>
bool project(const Rows<T>& x, const Frequencies<T>& w, T* out, ptrdiff_t out_stride,
             const Execution& execution) {
    const Features<T> plain{FeatureKind::projection, w.count, 0, T(1), nullptr};
    return dense_features(x, w, 0, plain, out, out_stride, execution);
}

template <class T>
bool same_bits(const T* a, const T* b, size_t count) {
    return std::memcmp(a, b, count * sizeof(T)) == 0;
}

// Is each element within the bound for a sum of d terms, in any order? No bound is met by luck: a
// wrong index or a missing term is far outside.
template <class T>
bool is_product(const T* x, size_t x_stride, const std::vector<T>& w, size_t rows, size_t m,
                size_t d, const T* z) {
    const double unit = std::numeric_limits<T>::epsilon() / 2;
    for (size_t i = 0; i < rows; ++i) {
        for (size_t j = 0; j < m; ++j) {
            long double sum = 0, size = 0;
            for (size_t k = 0; k < d; ++k) {
                const long double term =
                    static_cast<long double>(x[i * x_stride + k]) * w[j * d + k];
                sum += term;
                size += std::abs(term);
            }
            const long double bound = 2 * static_cast<long double>(d) * unit * size;
            if (!(std::abs(z[i * m + j] - sum) <= bound)) return false;
        }
    }
    return true;
}

template <class T>
void agrees_with_plain_sums() {
    for (const size_t d : dims) {
        for (const size_t m : frequency_counts) {
            if (d > 16 && m > 100) continue;  // nothing new, and slow
            const auto w = numbers<T>(m * d, m + d);
            const Packed<T> packed(w, m, d);
            for (const size_t rows : row_counts) {
                if (d > 16 && rows > 13) continue;
                const size_t stride = d + 2;
                const auto x = numbers<T>(rows * stride, rows);
                std::vector<T> z(rows * m, T(9));
                const DenseRows<T> from{x.data(), static_cast<ptrdiff_t>(stride), rows};
                CHECK(project<T>(from, packed.view, z.data(), static_cast<ptrdiff_t>(m), {}));
                CHECK(is_product(x.data(), stride, w, rows, m, d, z.data()));
            }
        }
    }
}

TEST(dense_products_agree_with_plain_sums) {
    on_every_isa([] {
        agrees_with_plain_sums<float>();
        agrees_with_plain_sums<double>();
    });
}

// Alone, in batches of any size, on any number of threads, and as a sparse row that stores all.
template <class T>
void gives_a_row_the_same_bits_everywhere(size_t rows, size_t d, size_t m) {
    const auto x = numbers<T>(rows * d, rows + d), w = numbers<T>(m * d, m);
    const Packed<T> packed(w, m, d);
    const auto across = static_cast<ptrdiff_t>(d), out = static_cast<ptrdiff_t>(m);
    std::vector<T> one(rows * m), three(rows * m), other(rows * m);
    CHECK(project<T>(DenseRows<T>{x.data(), across, rows}, packed.view, one.data(), out,
                     {.n_threads = 1}));
    CHECK(project<T>(DenseRows<T>{x.data(), across, rows}, packed.view, three.data(), out,
                     {.n_threads = 3}));
    CHECK(same_bits(one.data(), three.data(), one.size()));
    for (const size_t batch : {1, 2, 7}) {
        for (size_t i = 0; i < rows; i += batch) {
            const size_t count = std::min(batch, rows - i);
            CHECK(project<T>(DenseRows<T>{x.data() + i * d, across, count}, packed.view,
                             other.data() + i * m, out, {}));
        }
        CHECK(same_bits(one.data(), other.data(), one.size()));
    }
    // The first frequencies alone: other widths of tiles.
    for (const size_t fewer : {m - 1, m / 2, size_t(1)}) {
        if (fewer == 0) continue;
        const Packed<T> first(w, fewer, d);
        CHECK(project<T>(DenseRows<T>{x.data(), across, rows}, first.view, other.data(),
                         static_cast<ptrdiff_t>(fewer), {}));
        for (size_t i = 0; i < rows; ++i) {
            CHECK(same_bits(&one[i * m], &other[i * fewer], fewer));
        }
    }
    std::vector<int32_t> indices(rows * d), starts(rows + 1);
    for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<int32_t>(i % d);
    for (size_t i = 0; i <= rows; ++i) starts[i] = static_cast<int32_t>(i * d);
    const std::vector<int64_t> long_indices(indices.begin(), indices.end()),
        long_starts(starts.begin(), starts.end());
    const SparseRows<T, int32_t> stored{x.data(), indices.data(), starts.data(), rows, d, rows * d};
    const SparseRows<T, int64_t> stored_long{
        x.data(), long_indices.data(), long_starts.data(), rows, d, rows * d};
    CHECK(project<T>(stored, packed.view, other.data(), out, {}));
    CHECK(same_bits(one.data(), other.data(), one.size()));
    std::fill(other.begin(), other.end(), T(9));
    CHECK(project<T>(stored_long, packed.view, other.data(), out, {.n_threads = 3}));
    CHECK(same_bits(one.data(), other.data(), one.size()));
}

TEST(dense_rows_have_the_same_bits_in_any_company) {
    on_every_isa([] {
        for (const size_t rows : {1, 13, 200}) {
            for (const size_t d : {1, 17, 513, 800}) {
                for (const size_t m : {1, 33, 300}) {
                    if (rows * d * m > 20000000) continue;
                    gives_a_row_the_same_bits_everywhere<float>(rows, d, m);
                    gives_a_row_the_same_bits_everywhere<double>(rows, d, m);
                }
            }
        }
    });
}

template <class T, class Index>
void takes_sparse_rows() {
    const size_t rows = 150, d = 1000, m = 333;
    const auto w = numbers<T>(m * d, 4);
    const Packed<T> packed(w, m, d);
    std::vector<T> values, dense(rows * d, T(0));
    std::vector<Index> indices, starts{0};
    for (size_t i = 0; i < rows; ++i) {  // row i has i mod 40 entries, from the right to the left
        for (size_t e = 0; e < i % 40; ++e) {
            const size_t k = d - 1 - (e * 23 + i);
            indices.push_back(static_cast<Index>(k));
            values.push_back(static_cast<T>(0.25 + static_cast<double>(e) / 7));
            dense[i * d + k] = values.back();
        }
        starts.push_back(static_cast<Index>(values.size()));
    }
    std::vector<T> z(rows * m, T(9));
    const SparseRows<T, Index> x{values.data(), indices.data(), starts.data(), rows, d,
                                 values.size()};
    CHECK(project<T>(x, packed.view, z.data(), static_cast<ptrdiff_t>(m), {.n_threads = 2}));
    CHECK(is_product(dense.data(), d, w, rows, m, d, z.data()));
}

TEST(sparse_rows_agree_with_plain_sums) {
    on_every_isa([] {
        takes_sparse_rows<float, int32_t>();
        takes_sparse_rows<float, int64_t>();
        takes_sparse_rows<double, int32_t>();
        takes_sparse_rows<double, int64_t>();
    });
}

// What is there, times the products: the same bits as multiplying them afterwards.
template <class T>
void multiplies_into_what_is_there() {
    const size_t rows = 13, d = 20;
    for (const size_t m : frequency_counts) {
        const size_t columns = m + 3, first = 2;
        const auto w = numbers<T>(m * d, m), x = numbers<T>(rows * d, 5);
        const Packed<T> packed(w, m, d);
        const DenseRows<T> from{x.data(), static_cast<ptrdiff_t>(d), rows};
        std::vector<T> z(rows * m);
        CHECK(project<T>(from, packed.view, z.data(), static_cast<ptrdiff_t>(m), {}));
        const auto before = numbers<T>(rows * columns, 9);
        auto out = before;
        const Features<T> times{FeatureKind::times, columns, 0, T(1), nullptr};
        CHECK(dense_features<T>(from, packed.view, first, times, out.data(),
                                static_cast<ptrdiff_t>(columns), {}));
        bool right = true;
        for (size_t i = 0; i < rows; ++i) {
            for (size_t j = 0; j < columns; ++j) {
                const bool inside = j >= first && j < first + m;
                const T factor = inside ? z[i * m + j - first] : T(1);
                right &= out[i * columns + j] == before[i * columns + j] * factor;
            }
        }
        CHECK(right);
    }
}

TEST(dense_products_multiply_into_what_is_there) {
    on_every_isa([] {
        multiplies_into_what_is_there<float>();
        multiplies_into_what_is_there<double>();
    });
}

TEST(dense_products_of_nothing) {
    on_every_isa([] {
        std::vector<float> z(12, 9.0f);
        const Frequencies<float> none{nullptr, 4, 0};
        CHECK(project<float>(DenseRows<float>{nullptr, 0, 3}, none, z.data(), 4, {}));
        CHECK(z == std::vector<float>(12, 0.0f));
        const Frequencies<float> no_frequencies{nullptr, 0, 5};
        CHECK(project<float>(DenseRows<float>{nullptr, 5, 3}, no_frequencies, z.data(), 0, {}));
        const std::vector<float> packed(80, 1.0f);
        const Frequencies<float> ones{packed.data(), 4, 5};
        CHECK(project<float>(DenseRows<float>{nullptr, 5, 0}, ones, z.data(), 4, {}));
        CHECK(z == std::vector<float>(12, 0.0f));
    });
}

// Others may change the number of threads for all callers while a product is computed.
TEST(dense_products_survive_a_change_of_the_number_of_threads) {
    const size_t rows = 50, d = 16, m = 2000;
    const auto x = numbers<float>(rows * d, 1), w = numbers<float>(m * d, 2);
    const Packed<float> packed(w, m, d);
    const DenseRows<float> from{x.data(), static_cast<ptrdiff_t>(d), rows};
    const auto across = static_cast<ptrdiff_t>(m);
    std::vector<float> z(rows * m), other(rows * m);
    CHECK(project<float>(from, packed.view, z.data(), across, {.n_threads = 1}));
    const int before = get_num_threads();
    std::atomic<bool> done{false};
    std::thread changer([&] {
        for (int count = 1; !done; count = count % 8 + 1) set_num_threads(count);
    });
    for (int i = 0; i < 300; ++i) {
        CHECK(project<float>(from, packed.view, other.data(), across, {}));
        CHECK(same_bits(z.data(), other.data(), z.size()));
    }
    done = true;
    changer.join();
    set_num_threads(before);
}

}  // namespace
}  // namespace kernelmill::tests
