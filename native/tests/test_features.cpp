#include <algorithm>
#include <cmath>
#include <limits>

#include "arrays.hpp"
#include "check.hpp"
#include "kernelmill/write_features.hpp"

namespace kernelmill::tests {
namespace {

// exp(i z) of one row, times scale.
template <class T>
std::vector<T> exponentials(const std::vector<T>& z, T scale) {
    const Features<T> complex{FeatureKind::complex, z.size(), z.size(), scale, nullptr};
    std::vector<T> out(2 * z.size());
    CHECK(write_features<T>(z.data(), 0, 1, z.size(), nullptr, 0, complex, out.data(), 0, {}));
    return out;
}

// The largest absolute error over arguments up to `reach`, with quarter and half turns among them.
template <class T>
double largest_error(double reach, size_t count) {
    Numbers next(3);
    std::vector<T> z;
    const double half_turn = std::acos(-1.0);
    for (size_t i = 0; i < count; ++i) {
        z.push_back(static_cast<T>(reach * next()));
        const double turns = std::round(reach / half_turn * next());
        z.push_back(static_cast<T>(half_turn * turns));
        z.push_back(static_cast<T>(half_turn * (turns + 0.5)));
    }
    const auto out = exponentials(z, T(1));
    double worst = 0;
    for (size_t i = 0; i < z.size(); ++i) {
        const double x = static_cast<double>(z[i]);
        worst = std::max(worst, std::abs(static_cast<double>(out[2 * i]) - std::cos(x)));
        worst = std::max(worst, std::abs(static_cast<double>(out[2 * i + 1]) - std::sin(x)));
    }
    return worst;
}

TEST(features_have_a_small_absolute_error) {
    on_every_isa([] {
        for (const double reach : {0.1, 3.0, 100.0, 1e4, 1.9e5, 1e7, 1e30}) {
            CHECK(largest_error<float>(reach, 40000) < 2.5e-7);
            CHECK(largest_error<double>(reach, 4000) < 2.5e-16);
        }
    });
}

template <class T>
void treats_rare_arguments_right() {
    const T inf = std::numeric_limits<T>::infinity();
    const std::vector<T> z{T(0),  inf,   T(1), -inf, std::numeric_limits<T>::quiet_NaN(),
                           T(-2), T(1e6)};
    const auto out = exponentials(z, T(0.5));
    for (const size_t i : {0, 2, 5, 6}) {
        const double x = static_cast<double>(z[i]);
        CHECK(std::abs(static_cast<double>(out[2 * i]) - std::cos(x) / 2) < 2e-7);
        CHECK(std::abs(static_cast<double>(out[2 * i + 1]) - std::sin(x) / 2) < 2e-7);
    }
    for (const size_t i : {1, 3, 4}) CHECK(std::isnan(out[2 * i]) && std::isnan(out[2 * i + 1]));
}

TEST(features_treat_rare_arguments_right) {
    on_every_isa([] {
        treats_rare_arguments_right<float>();
        treats_rare_arguments_right<double>();
    });
}

}  // namespace
}  // namespace kernelmill::tests
