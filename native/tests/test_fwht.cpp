#include "kernelmill/fwht.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "arrays.hpp"
#include "check.hpp"

namespace kernelmill::tests {
namespace {

// The definition: entry (i, j) of H is (-1)^(number of common bits of i and j).
template <class T>
std::vector<double> by_definition(const std::vector<T>& x) {
    std::vector<double> y(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
        for (size_t j = 0; j < x.size(); ++j) {
            y[i] +=
                std::popcount(i & j) % 2 ? -static_cast<double>(x[j]) : static_cast<double>(x[j]);
        }
    }
    return y;
}

// The same butterflies in the same order, one at a time: must agree to the last bit.
template <class T>
void slow_butterflies(T* x, size_t n) {
    for (size_t half = n / 2; half >= 1; half /= 2) {
        for (size_t j = 0; j < n; ++j) {
            if (j & half) continue;
            const T a = x[j], b = x[j + half];
            x[j] = a + b;
            x[j + half] = a - b;
        }
    }
}

template <class T>
void agrees_with_the_definition() {
    for (size_t n = 1; n <= 512; n *= 2) {
        const auto x = numbers<T>(n, n);
        const auto expected = by_definition(x);
        std::vector<T> y(n);
        const auto length = static_cast<ptrdiff_t>(n);
        Shaped<const T> from(x.data(), {length}, {1});
        Shaped<T> to(y.data(), {length}, {1});
        CHECK(fwht<T>(from.view, to.view, 0, false, {}));
        for (size_t i = 0; i < n; ++i) {
            const double tolerance = 4 * std::log2(2. * static_cast<double>(n)) *
                                     std::sqrt(static_cast<double>(n)) *
                                     (sizeof(T) == 4 ? 0x1p-24 : 0x1p-53);
            CHECK(std::abs(static_cast<double>(y[i]) - expected[i]) <= tolerance);
        }
    }
}

template <class T>
void is_bit_equal_to_slow_butterflies() {
    for (int log2_n = 0; log2_n <= 18; ++log2_n) {
        const size_t n = size_t(1) << log2_n;
        for (size_t rows : {1, 3, 7, 8, 9, 17}) {
            if (rows * n > size_t(1) << 19) continue;
            const auto x = numbers<T>(rows * n, 7);
            auto expected = x;
            for (size_t i = 0; i < rows; ++i) slow_butterflies(expected.data() + i * n, n);
            for (int threads : {1, 2, 5}) {
                std::vector<T> y(rows * n);
                const std::vector<ptrdiff_t> shape{static_cast<ptrdiff_t>(rows),
                                                   static_cast<ptrdiff_t>(n)};
                Shaped<const T> from(x.data(), shape, {static_cast<ptrdiff_t>(n), 1});
                Shaped<T> to(y.data(), shape, {static_cast<ptrdiff_t>(n), 1});
                CHECK(fwht<T>(from.view, to.view, 1, false, {.n_threads = threads}));
                CHECK(std::memcmp(y.data(), expected.data(), rows * n * sizeof(T)) == 0);
            }
        }
    }
}

// Axis 0 of an array with the lines side by side, every second column, and a reversed one.
template <class T>
void takes_any_strides() {
    for (ptrdiff_t n : {1, 2, 8, 64, 256}) {
        for (ptrdiff_t lines : {1, 2, 5, 8, 33}) {
            const auto count = static_cast<size_t>(2 * n * lines);
            const auto x = numbers<T>(count, 3);
            for (ptrdiff_t step : {1, 2}) {
                std::vector<T> y(count, T(99));
                Shaped<const T> from(x.data() + (n - 1) * 2 * lines, {n, lines},
                                     {-2 * lines, step});
                Shaped<T> to(y.data(), {n, lines}, {2 * lines, step});
                CHECK(fwht<T>(from.view, to.view, 0, true, {}));
                for (ptrdiff_t c = 0; c < lines; ++c) {
                    std::vector<T> line;
                    const T scale = static_cast<T>(1 / std::sqrt(static_cast<double>(n)));
                    for (ptrdiff_t k = n - 1; k >= 0; --k) {
                        line.push_back(x[static_cast<size_t>(k * 2 * lines + c * step)] * scale);
                    }
                    slow_butterflies(line.data(), line.size());
                    for (ptrdiff_t k = 0; k < n; ++k) {
                        CHECK(y[static_cast<size_t>(k * 2 * lines + c * step)] ==
                              line[static_cast<size_t>(k)]);
                    }
                }
                if (step == 2) {  // columns in between are not touched
                    for (ptrdiff_t k = 0; k < n; ++k) {
                        CHECK(y[static_cast<size_t>(k * 2 * lines + 1)] == T(99));
                    }
                }
            }
        }
    }
}

TEST(fwht_agrees_with_the_definition) {
    on_every_isa([] {
        agrees_with_the_definition<float>();
        agrees_with_the_definition<double>();
    });
}

TEST(fwht_is_bit_equal_to_slow_butterflies) {
    on_every_isa([] {
        is_bit_equal_to_slow_butterflies<float>();
        is_bit_equal_to_slow_butterflies<double>();
    });
}

TEST(fwht_takes_any_strides) {
    on_every_isa([] {
        takes_any_strides<float>();
        takes_any_strides<double>();
    });
}

TEST(fwht_takes_unaligned_elements) {
    std::vector<char> bytes(8 * sizeof(double) + 1);
    const auto x = numbers<double>(8, 5);
    std::memcpy(bytes.data() + 1, x.data(), 8 * sizeof(double));
    auto expected = x;
    slow_butterflies(expected.data(), 8);
    ptrdiff_t shape = 8, stride = sizeof(double);
    auto* at = reinterpret_cast<double*>(bytes.data() + 1);
    on_every_isa([&] {
        std::vector<double> y(8);
        ArrayView<const double> from{at, 1, &shape, &stride};
        ArrayView<double> to{y.data(), 1, &shape, &stride};
        CHECK(fwht<double>(from, to, 0, false, {}));
        CHECK(y == expected);
    });
}

TEST(fwht_refuses_other_lengths) {
    std::vector<float> x(12);
    for (ptrdiff_t n : {0, 3, 12}) {
        Shaped<const float> from(x.data(), {n}, {1});
        Shaped<float> to(x.data(), {n}, {1});
        bool rejected = false;
        try {
            fwht<float>(from.view, to.view, 0, false, {});
        } catch (const std::invalid_argument&) {
            rejected = true;
        }
        CHECK(rejected);
    }
}

}  // namespace
}  // namespace kernelmill::tests
