#include "kernelmill/moments.hpp"

#include <cmath>
#include <limits>

#include "arrays.hpp"
#include "check.hpp"

namespace kernelmill::tests {
namespace {

struct Shape {
    size_t rows, dim, targets;
};
// Around the lanes of panels, the rows of slabs and the columns of tiles.
constexpr Shape shapes[] = {{1, 1, 1},    {0, 3, 2},    {5, 4, 0},    {7, 8, 3},  {127, 23, 1},
                            {130, 49, 9}, {256, 25, 2}, {300, 97, 1}, {9, 200, 5}};
constexpr size_t gap = 3;  // between rows, which is not to be touched

template <class T>
struct Operands {
    size_t stride;
    std::vector<T> x;
    std::vector<double> center, last, factors, targets, moments, cross;

    explicit Operands(const Shape& shape) : stride(shape.dim + gap) {
        const auto room = [&](size_t count) { return count == 0 ? 0 : count * stride - gap; };
        x = numbers<T>(room(shape.rows), 1);
        center = numbers<double>(shape.dim, 2), last = numbers<double>(shape.dim, 3);
        factors = numbers<double>(shape.rows, 4);
        targets = numbers<double>((shape.rows + 1) * shape.targets, 5);
        moments = numbers<double>(room(shape.dim), 6);
        cross = numbers<double>(room(shape.targets), 7);
    }
};

// Adds to the operands by products in P.
template <class P, class T>
Operands<T> sums_of(const Shape& shape, bool weighted, int n_threads) {
    Operands<T> all(shape);
    std::vector<P> scratch(moments_scratch(shape.rows, shape.dim, shape.targets));
    Execution execution;
    execution.n_threads = n_threads;
    const auto step = static_cast<ptrdiff_t>(all.stride);
    const MomentRows<T> given{{all.x.data(), step, shape.rows},
                              shape.dim,
                              all.center.data(),
                              weighted ? all.factors.data() : nullptr,
                              all.last.data()};
    add_moments<P, T>(given, {all.targets.data(), shape.targets}, scratch.data(),
                      {all.moments.data(), step, shape.dim},
                      {all.cross.data(), step, shape.targets}, execution);
    return all;
}

template <class P, class T>
void moments_are_those_of_long_sums(bool weighted) {
    for (const Shape& shape : shapes) {
        const auto& [rows, dim, targets] = shape;
        const Operands<T> given(shape);
        const auto& [stride, x, center, last, factors, aims, moments, cross] = given;
        const auto feature = [&](size_t i, size_t j) -> long double {
            if (i == rows) return last[j];
            const long double centered = static_cast<long double>(x[i * stride + j]) - center[j];
            return weighted ? centered * factors[i] : centered;
        };
        // Each factor is rounded to P, and a sum of m terms at most m + 2 times.
        const long double eps = std::numeric_limits<P>::epsilon();
        const auto bound = [&](long double magnitude) {
            return eps * static_cast<long double>(rows + 6) * magnitude;
        };
        const auto agrees = [&](double before, double got, auto&& first, auto&& second) {
            long double exact = before, magnitude = std::abs(before);
            for (size_t i = 0; i <= rows; ++i) {
                const long double term = first(i) * second(i);
                exact += term;
                magnitude += std::abs(term);
            }
            CHECK(std::abs(got - exact) <= bound(magnitude));
        };
        const Operands<T> got = sums_of<P, T>(shape, weighted, 1);
        const Operands<T> shared = sums_of<P, T>(shape, weighted, 3);
        CHECK(got.moments == shared.moments && got.cross == shared.cross);
        for (size_t k = 0; k < moments.size(); ++k) {
            const size_t r = k / stride, c = k % stride;
            if (c > r) {  // above the diagonal, or between rows
                CHECK(got.moments[k] == moments[k]);
            } else {
                agrees(
                    moments[k], got.moments[k], [&](size_t i) { return feature(i, r); },
                    [&](size_t i) { return feature(i, c); });
            }
        }
        for (size_t k = 0; k < cross.size(); ++k) {
            const size_t t = k / stride, c = k % stride;
            if (c >= dim) {
                CHECK(got.cross[k] == cross[k]);
            } else {
                const auto target = [&](size_t i) -> long double { return aims[i * targets + t]; };
                agrees(cross[k], got.cross[k], target, [&](size_t i) { return feature(i, c); });
            }
        }
    }
}

TEST(moments) {
    on_every_isa([] {
        for (bool weighted : {false, true}) {
            moments_are_those_of_long_sums<float, float>(weighted);
            moments_are_those_of_long_sums<double, float>(weighted);
            moments_are_those_of_long_sums<double, double>(weighted);
        }
    });
}

template <class T>
void column_sums_are_those_of_long_sums() {
    for (const auto& [rows, dim, targets] :
         {Shape{0, 3, 0}, {1, 1, 0}, {9, 17, 0}, {40, 1030, 0}}) {
        const size_t stride = dim + gap;
        const auto x = numbers<T>(rows == 0 ? 0 : rows * stride - gap, 1);
        const auto factors = numbers<double>(rows, 2);
        for (const double* each : {static_cast<const double*>(nullptr), factors.data()}) {
            std::vector<double> sums(dim, 7.0);
            sum_columns<T>({x.data(), static_cast<ptrdiff_t>(stride), rows}, rows ? each : nullptr,
                           dim, sums.data(), Execution{});
            for (size_t j = 0; j < dim; ++j) {
                long double exact = 0, magnitude = 0;
                for (size_t i = 0; i < rows; ++i) {
                    const long double term =
                        (each ? static_cast<long double>(factors[i]) : 1.0L) * x[i * stride + j];
                    exact += term;
                    magnitude += std::abs(term);
                }
                CHECK(std::abs(sums[j] - exact) <= std::numeric_limits<double>::epsilon() *
                                                       static_cast<long double>(rows + 1) *
                                                       magnitude);
            }
        }
    }
}

TEST(sums_of_columns) {
    on_every_isa([] {
        column_sums_are_those_of_long_sums<float>();
        column_sums_are_those_of_long_sums<double>();
    });
}

}  // namespace
}  // namespace kernelmill::tests
