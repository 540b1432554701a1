#include "kernelmill/sincos.hpp"

#include <cmath>
#include <limits>

#include "arrays.hpp"
#include "check.hpp"

namespace kernelmill::tests {
namespace {

// |got - exact| in units of the last place of T at the exact value.
template <class T>
double ulps(T got, long double exact) {
    int exponent;
    std::frexp(exact, &exponent);
    const int digits = std::numeric_limits<T>::digits;
    const int smallest = std::numeric_limits<T>::min_exponent - digits;
    return static_cast<double>(std::abs(static_cast<long double>(got) - exact) /
                               std::ldexp(1.0L, std::max(exponent - digits, smallest)));
}

template <class T>
void is_accurate_to_two_ulps(double limit) {
    Numbers next(11);
    for (int round = 0; round < 200; ++round) {
        std::vector<T> x(1000), s(x.size()), c(x.size());
        for (size_t i = 0; i < x.size(); ++i) {
            // Magnitudes spread evenly over the exponents; every fourth near a multiple of pi/2.
            const double magnitude = limit * std::exp2(-40 * std::abs(next()));
            const double quarter = 1.5707963267948966;
            x[i] = static_cast<T>(i % 4 ? std::copysign(magnitude, next())
                                        : std::round(magnitude / quarter) * quarter);
            if (std::abs(x[i]) > limit) x[i] = static_cast<T>(limit);
        }
        const auto n = static_cast<ptrdiff_t>(x.size());
        Shaped<const T> from(x.data(), {n}, {1});
        Shaped<T> sine(s.data(), {n}, {1}), cosine(c.data(), {n}, {1});
        CHECK(sincos<T>(from.view, sine.view, cosine.view, {}));
        for (size_t i = 0; i < x.size(); ++i) {
            CHECK(ulps<T>(s[i], std::sin(static_cast<long double>(x[i]))) < 2);
            CHECK(ulps<T>(c[i], std::cos(static_cast<long double>(x[i]))) < 2);
        }
    }
}

template <class T>
void treats_rare_arguments_right() {
    const T infinity = std::numeric_limits<T>::infinity(),
            nan = std::numeric_limits<T>::quiet_NaN();
    const T largest = std::numeric_limits<T>::max();
    const std::vector<T> special{nan,
                                 infinity,
                                 -infinity,
                                 T(0),
                                 T(-0.0),
                                 largest,
                                 -largest,
                                 T(1e7),
                                 T(-1e12),
                                 T(1e18),
                                 std::numeric_limits<T>::denorm_min()};
    for (size_t length = 1; length <= 40; ++length) {
        for (size_t at = 0; at < length; ++at) {
            const T x0 = special[(at + length) % special.size()];
            std::vector<T> x(length, T(1)), s(length), c(length);
            x[at] = x0;
            const auto n = static_cast<ptrdiff_t>(length);
            Shaped<const T> from(x.data(), {n}, {1});
            Shaped<T> sine(s.data(), {n}, {1}), cosine(c.data(), {n}, {1});
            CHECK(sincos<T>(from.view, sine.view, cosine.view, {}));
            if (std::isfinite(x0)) {
                CHECK(ulps<T>(s[at], std::sin(static_cast<long double>(x0))) < 2);
                CHECK(ulps<T>(c[at], std::cos(static_cast<long double>(x0))) < 2);
                if (x0 == 0) CHECK(std::signbit(s[at]) == std::signbit(x0));
            } else {
                CHECK(std::isnan(s[at]) && std::isnan(c[at]));
            }
            // A neighbour's result does not depend on it.
            if (length > 1) CHECK(s[(at + 1) % length] == s[(at + length - 1) % length]);
        }
    }
}

TEST(sincos_is_accurate_to_two_ulps) {
    on_every_isa([] {
        is_accurate_to_two_ulps<float>(1e5);
        is_accurate_to_two_ulps<double>(1e9);
    });
}

TEST(sincos_treats_rare_arguments_right) {
    on_every_isa([] {
        treats_rare_arguments_right<float>();
        treats_rare_arguments_right<double>();
    });
}

TEST(sincos_takes_strides_and_works_in_place) {
    on_every_isa([] {
        auto x = numbers<float>(3000, 1);
        const auto before = x;
        std::vector<float> c(1000);
        Shaped<const float> from(x.data() + 2997, {1000}, {-3});
        Shaped<float> sine(x.data() + 2997, {1000}, {-3}), cosine(c.data(), {1000}, {1});
        CHECK(sincos<float>(from.view, sine.view, cosine.view, {}));
        for (size_t i = 0; i < 1000; ++i) {
            CHECK(ulps<float>(x[2997 - 3 * i], std::sin(before[2997 - 3 * i])) < 3);
            CHECK(ulps<float>(c[i], std::cos(before[2997 - 3 * i])) < 3);
        }
        CHECK(x[1] == before[1]);
    });
}

}  // namespace
}  // namespace kernelmill::tests
