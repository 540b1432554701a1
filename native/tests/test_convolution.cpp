#include "kernelmill/convolution.hpp"

#include <cmath>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "arrays.hpp"
#include "check.hpp"

namespace kernelmill::tests {
namespace {

std::vector<double> by_definition(const std::vector<double>& a, const std::vector<double>& b) {
    const size_t n = a.size();
    std::vector<double> c(n);
    for (size_t i = 0; i < n; ++i) {
        for (size_t j = 0; j < n; ++j) c[(i + j) % n] += a[i] * b[j];
    }
    return c;
}

template <class T>
std::vector<double> widened(const std::vector<T>& x, size_t from, size_t n) {
    return {x.begin() + static_cast<ptrdiff_t>(from), x.begin() + static_cast<ptrdiff_t>(from + n)};
}

double norm(const std::vector<double>& x) {
    double sum = 0;
    for (double v : x) sum += v * v;
    return std::sqrt(sum);
}

template <class T>
void agrees_with_the_definition() {
    for (size_t n = 1; n <= 2048; n *= 2) {
        for (size_t rows : {1, 3, 17}) {
            if (rows * n > 4096) continue;
            for (size_t count : {1, 2, 3}) {
                std::vector<std::vector<T>> operands;
                for (size_t k = 0; k < count; ++k) operands.push_back(numbers<T>(rows * n, k + n));
                const std::vector<ptrdiff_t> shape{static_cast<ptrdiff_t>(rows),
                                                   static_cast<ptrdiff_t>(n)};
                const std::vector<ptrdiff_t> strides{static_cast<ptrdiff_t>(n), 1};
                std::vector<std::unique_ptr<Shaped<const T>>> shaped;
                std::vector<ArrayView<const T>> views;
                for (const auto& x : operands) {
                    shaped.push_back(std::make_unique<Shaped<const T>>(x.data(), shape, strides));
                    views.push_back(shaped.back()->view);
                }
                std::vector<T> z(rows * n);
                Shaped<T> out(z.data(), shape, strides);
                CHECK(circular_convolve<T>(views.data(), count, out.view, {.n_threads = 2}));
                for (size_t i = 0; i < rows; ++i) {
                    auto expected = widened(operands[0], i * n, n);
                    double size = norm(expected);
                    for (size_t k = 1; k < count; ++k) {
                        const auto factor = widened(operands[k], i * n, n);
                        size *= norm(factor);
                        expected = by_definition(expected, factor);
                    }
                    const double unit = sizeof(T) == 4 ? 0x1p-24 : 0x1p-53;
                    const double tolerance = 4 * static_cast<double>(count) *
                                             std::log2(2. * static_cast<double>(n) + 2) * unit *
                                             size;
                    for (size_t j = 0; j < n; ++j) {
                        CHECK(std::abs(static_cast<double>(z[i * n + j]) - expected[j]) <=
                              tolerance);
                    }
                }
            }
        }
    }
}

// A row alone gives the same bits as among others, on one thread or several, in place or not.
template <class T>
void rows_are_independent() {
    for (size_t n : {4, 64, 512, 16384}) {
        const size_t rows = 19;
        const auto a = numbers<T>(rows * n, 1), b = numbers<T>(rows * n, 2);
        const std::vector<ptrdiff_t> shape{static_cast<ptrdiff_t>(rows), static_cast<ptrdiff_t>(n)};
        const std::vector<ptrdiff_t> strides{static_cast<ptrdiff_t>(n), 1};
        auto together = a;
        Shaped<T> in_place(together.data(), shape, strides);
        Shaped<const T> first(together.data(), shape, strides), second(b.data(), shape, strides);
        const ArrayView<const T> views[]{first.view, second.view};
        CHECK(circular_convolve<T>(views, 2, in_place.view, {.n_threads = 3}));
        for (size_t i = 0; i < rows; i += 6) {
            std::vector<T> alone(n);
            const auto length = static_cast<ptrdiff_t>(n);
            Shaped<const T> x(a.data() + i * n, {length}, {1}), y(b.data() + i * n, {length}, {1});
            Shaped<T> z(alone.data(), {length}, {1});
            const ArrayView<const T> one[]{x.view, y.view};
            CHECK(circular_convolve<T>(one, 2, z.view, {.n_threads = 1}));
            CHECK(std::memcmp(alone.data(), together.data() + i * n, n * sizeof(T)) == 0);
        }
    }
}

TEST(convolution_agrees_with_the_definition) {
    on_every_isa([] {
        agrees_with_the_definition<float>();
        agrees_with_the_definition<double>();
    });
}

TEST(convolution_rows_are_independent) {
    on_every_isa([] {
        rows_are_independent<float>();
        rows_are_independent<double>();
    });
}

TEST(convolution_refuses_other_lengths) {
    std::vector<double> x(6);
    Shaped<const double> from(x.data(), {6}, {1});
    Shaped<double> to(x.data(), {6}, {1});
    const ArrayView<const double> views[]{from.view, from.view};
    bool rejected = false;
    try {
        circular_convolve<double>(views, 2, to.view, {});
    } catch (const std::invalid_argument&) {
        rejected = true;
    }
    CHECK(rejected);
}

}  // namespace
}  // namespace kernelmill::tests
