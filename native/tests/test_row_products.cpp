#include "kernelmill/row_products.hpp"

#include <cmath>

#include "arrays.hpp"
#include "check.hpp"

namespace kernelmill::tests {
namespace {

template <class T>
void dense_and_sparse_rows_have_the_same_bits() {
    for (size_t dim = 1; dim < 40; ++dim) {
        const size_t rows = 6;
        auto x = numbers<T>(rows * dim, dim);
        const auto vector = numbers<double>(dim, 77);
        std::vector<T> values;
        std::vector<int32_t> indices, starts{0};
        for (size_t i = 0; i < rows; ++i) {
            for (size_t j = 0; j < dim; ++j) {
                T& element = x[i * dim + j];
                if ((i + j) % 3 == 0 || i == 2) element = 0;
                if (element == 0) continue;
                values.push_back(element);
                indices.push_back(static_cast<int32_t>(j));
            }
            starts.push_back(static_cast<int32_t>(values.size()));
        }
        const Rows<T> dense = DenseRows<T>{x.data(), static_cast<ptrdiff_t>(dim), rows};
        const Rows<T> sparse = SparseRows<T, int32_t>{
            values.data(), indices.data(), starts.data(), rows, dim, values.size()};
        for (const double* v : {vector.data(), static_cast<const double*>(nullptr)}) {
            double first[rows], second[rows];
            CHECK(row_products<T>(dense, dim, v, first, {}));
            CHECK(row_products<T>(sparse, dim, v, second, {}));
            for (size_t i = 0; i < rows; ++i) {
                long double exact = 0;
                for (size_t j = 0; j < dim; ++j) {
                    const auto element = static_cast<long double>(x[i * dim + j]);
                    exact += element * (v ? static_cast<long double>(v[j]) : element);
                }
                CHECK(first[i] == second[i]);
                CHECK(std::abs(static_cast<long double>(first[i]) - exact) < 1e-14L);
            }
            CHECK(first[2] == 0);
        }
    }
}

TEST(row_products_are_the_same_for_dense_and_sparse_rows) {
    dense_and_sparse_rows_have_the_same_bits<float>();
    dense_and_sparse_rows_have_the_same_bits<double>();
}

}  // namespace
}  // namespace kernelmill::tests
