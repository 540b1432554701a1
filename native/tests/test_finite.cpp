// What is not finite is reported, wherever it is.
#include <cmath>
#include <limits>

#include "arrays.hpp"
#include "check.hpp"
#include "kernelmill/dense.hpp"
#include "kernelmill/fastfood.hpp"
#include "kernelmill/tensor_sketch.hpp"
#include "kernelmill/write_features.hpp"
#include "kernelmill/zonal.hpp"

namespace kernelmill::tests {
namespace {

// Calls compute(&not_finite) and returns what was reported.
template <class Compute>
bool reports(Compute&& compute) {
    bool not_finite = false;
    CHECK(compute(&not_finite));
    return not_finite;
}

template <class T>
void finds_every_place() {
    for (const T wrong : {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity(),
                          -std::numeric_limits<T>::infinity()}) {
        for (const size_t n : {1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 130}) {
            const std::vector<T> phases(n);
            const Features<T> kinds[] = {{FeatureKind::projection, n, 0, T(1), nullptr},
                                         {FeatureKind::cos_sin, n, n, T(1), nullptr},
                                         {FeatureKind::cos_sin, n, n - 1, T(1), phases.data()},
                                         {FeatureKind::complex, n, n, T(1), nullptr},
                                         {FeatureKind::cos_phase, n, 0, T(1), phases.data()}};
            for (Features<T> features : kinds) {
                std::vector<T> z(n, std::numeric_limits<T>::max()), out(2 * n);
                const auto compute = [&](bool* not_finite) {
                    features.not_finite = not_finite;
                    return write_features<T>(z.data(), static_cast<ptrdiff_t>(n), 1, n, nullptr, 0,
                                             features, out.data(), static_cast<ptrdiff_t>(2 * n),
                                             {});
                };
                CHECK(!reports(compute));
                for (size_t i = 0; i < n; ++i) {
                    z[i] = wrong;
                    CHECK(reports(compute));
                    z[i] = 1;
                }
            }
        }
    }
}
TEST(finite_check_finds_every_place) {
    on_every_isa([] {
        finds_every_place<float>();
        finds_every_place<double>();
    });
}

// One row of several overflows.
template <class T>
void finds_every_row(size_t rows) {
    constexpr size_t dim = 5;
    const T large = std::numeric_limits<T>::max();
    auto x = numbers<T>(rows * dim, 1);
    const Rows<T> view = DenseRows<T>{x.data(), dim, rows};
    const auto judge = [&](auto&& compute) {
        CHECK(!reports(compute));
        for (size_t row = 0; row < rows; row += 3) {
            const T before = x[row * dim];
            x[row * dim] = large;
            CHECK(reports(compute));
            x[row * dim] = before;
        }
    };
    const size_t m = 70;
    std::vector<T> packed(packed_size<T>(m, dim));
    pack_frequencies(std::vector<T>(m * dim, T(2)).data(), m, dim, packed.data());
    Features<T> features{FeatureKind::cos_sin, m, m, T(1), nullptr};
    std::vector<T> out(rows * 8192);
    judge([&](bool* not_finite) {
        features.not_finite = not_finite;
        return dense_features<T>(view, {packed.data(), m, dim}, 0, features, out.data(), 2 * m,
                                 {.n_threads = 2});
    });
    for (const int log2_size : {3, 5, 13}) {
        const size_t size = size_t(1) << log2_size, blocks = 3;
        const std::vector<T> ones(blocks * size, T(1));
        const FastfoodFactors<T> factors{log2_size, dim,         blocks,  1,           size,
                                         1,         ones.data(), nullptr, ones.data(), ones.data()};
        const size_t used = std::min(3 * size, size_t(4096));
        Features<T> some{FeatureKind::cos_sin, used, used, T(1), nullptr};
        judge([&](bool* not_finite) {
            some.not_finite = not_finite;
            return fastfood<T>(view, factors, some, out.data(), 8192, nullptr, {.n_threads = 2});
        });
    }
    for (const size_t length : {7, 12, 16, 512}) {
        for (const size_t degree : {1, 2, 3}) {
            std::vector<int32_t> buckets(degree * dim, 3);
            const std::vector<T> weights(degree * dim, T(2));
            std::vector<T> roots(ring_roots_size(length));
            if (!roots.empty()) fill_ring_roots(length, roots.data());
            const CountSketches<T> sketches{degree,
                                            dim,
                                            length,
                                            buckets.data(),
                                            weights.data(),
                                            nullptr,
                                            degree == 3 && !roots.empty() ? roots.data() : nullptr};
            judge([&](bool* not_finite) {
                return tensor_sketch<T>(view, sketches, nullptr, out.data(),
                                        static_cast<ptrdiff_t>(length), {.n_threads = 2},
                                        not_finite);
            });
        }
    }
}
TEST(finite_check_finds_every_row) {
    on_every_isa([] {
        for (const size_t rows : {1, 2, 16, 37}) {
            finds_every_row<float>(rows);
            finds_every_row<double>(rows);
        }
    });
}

template <class T>
void finds_overflowing_polynomials() {
    const size_t rows = 9, columns = 17;
    const T ones[] = {T(1), T(1), T(1)};
    const int64_t starts[] = {0, 17}, degrees[] = {3};
    const double powers[] = {3}, weights[] = {1};
    const ZonalGroups<T> groups{1, starts, degrees, powers, weights, ones, ones};
    const std::vector<double> squares(rows, 1.0);
    for (const bool overflows : {false, true}) {
        auto z = numbers<T>(rows * columns, 2);
        if (overflows) z[7 * columns + 16] = std::sqrt(std::numeric_limits<T>::max());
        CHECK(overflows == reports([&](bool* not_finite) {
                  return zonal<T>(z.data(), columns, rows, squares.data(), groups, {}, not_finite);
              }));
    }
}
TEST(finite_check_of_polynomials) {
    on_every_isa([] {
        finds_overflowing_polynomials<float>();
        finds_overflowing_polynomials<double>();
    });
}

}  // namespace
}  // namespace kernelmill::tests
