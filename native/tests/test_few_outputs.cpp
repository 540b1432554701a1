#include "kernelmill/few_outputs.hpp"

#include <cmath>
#include <limits>

#include "arrays.hpp"
#include "check.hpp"

namespace kernelmill::tests {
namespace {

struct Shape {
    size_t rows, dim, outputs;
};
// Around the widths of vectors and of blocks in registers, and beyond a block of features.
constexpr Shape shapes[] = {{1, 1, 1},     {2, 7, 2},   {8, 16, 4},   {9, 17, 5},
                            {17, 33, 11},  {5, 130, 3}, {70, 65, 16}, {3, 8200, 6},
                            {13, 640, 65}, {0, 3, 2},   {4, 0, 2}};
constexpr size_t gap = 3;  // between rows, which is not to be touched

// Exact arrays: allocated to size, so that sanitizers see what is read beyond them.
template <class T>
void products_are_those_of_long_sums() {
    constexpr long double eps = std::numeric_limits<T>::epsilon();
    for (const auto& [rows, dim, outputs] : shapes) {
        const size_t stride = dim + gap;
        const auto room = [&](size_t count) { return count == 0 ? 0 : count * stride - gap; };
        const auto x = numbers<T>(room(rows), 1), weights = numbers<T>(room(outputs), 2);
        const auto factors = numbers<T>(rows * outputs, 3), before = numbers<T>(room(outputs), 4);
        const auto step = static_cast<ptrdiff_t>(stride);
        const DenseRows<T> from{x.data(), step, rows}, by{weights.data(), step, outputs};
        for (int n_threads : {1, 3}) {
            Execution execution;
            execution.n_threads = n_threads;
            std::vector<T> scores(rows * outputs), sums = before;
            CHECK(score_rows<T>(from, by, dim,
                                {scores.data(), static_cast<ptrdiff_t>(outputs), rows}, execution));
            CHECK(add_weighted_rows<T>(from, factors.data(), dim, {sums.data(), step, outputs},
                                       execution));
            for (size_t i = 0; i < rows; ++i) {
                for (size_t c = 0; c < outputs; ++c) {
                    long double exact = 0, magnitude = 0;
                    for (size_t j = 0; j < dim; ++j) {
                        const long double term =
                            static_cast<long double>(x[i * stride + j]) * weights[c * stride + j];
                        exact += term;
                        magnitude += std::abs(term);
                    }
                    const long double error = std::abs(scores[i * outputs + c] - exact);
                    CHECK(error <= eps * static_cast<long double>(dim + 1) * magnitude);
                }
            }
            for (size_t k = 0; k < sums.size(); ++k) {
                const size_t c = k / stride, j = k % stride;
                if (j >= dim) {
                    CHECK(sums[k] == before[k]);
                    continue;
                }
                long double exact = before[k], magnitude = std::abs(exact);
                for (size_t i = 0; i < rows; ++i) {
                    const long double term =
                        static_cast<long double>(factors[i * outputs + c]) * x[i * stride + j];
                    exact += term;
                    magnitude += std::abs(term);
                }
                CHECK(std::abs(sums[k] - exact) <=
                      eps * static_cast<long double>(rows + 2) * magnitude);
            }
        }
    }
}

TEST(products_with_few_outputs) {
    on_every_isa([] {
        products_are_those_of_long_sums<float>();
        products_are_those_of_long_sums<double>();
    });
}

}  // namespace
}  // namespace kernelmill::tests
