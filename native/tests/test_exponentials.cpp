#include "kernelmill/exponentials.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "arrays.hpp"
#include "check.hpp"

namespace kernelmill::tests {
namespace {

// exp((z + column) + row), computed in place.
template <class T>
std::vector<T> exponentials_of(std::vector<T> z, const std::vector<T>& columns, double row) {
    const auto n = static_cast<ptrdiff_t>(z.size());
    CHECK(exponentials<T>(z.data(), n, 1, z.size(), columns.data(), &row, {}));
    return z;
}

template <class T>
void are_accurate(double lowest, double highest) {
    Numbers next(5);
    const size_t count = 20011;
    std::vector<T> z(count), columns(count);
    for (size_t j = 0; j < count; ++j) {
        const double middle = (highest + lowest) / 2, reach = (highest - lowest) / 2;
        columns[j] = static_cast<T>(10 * next());
        z[j] = static_cast<T>((middle + reach * next()) - columns[j]);
    }
    const T row = T(0.375);
    const auto out = exponentials_of(z, columns, static_cast<double>(row));
    for (size_t j = 0; j < count; ++j) {
        const T sum = (z[j] + columns[j]) + row;
        const auto exact = std::exp(static_cast<long double>(sum));
        const auto error = std::abs(static_cast<long double>(out[j]) - exact) / exact;
        CHECK(error < 1.5 * std::numeric_limits<T>::epsilon());
    }
}

// At the ends: 0, subnormal numbers, and the largest number instead of infinity.
template <class T>
void stay_finite() {
    const T inf = std::numeric_limits<T>::infinity(), largest = std::numeric_limits<T>::max();
    const double tiny = std::log(static_cast<double>(std::numeric_limits<T>::min())) - 3;
    const std::vector<T> z{
        T(0),     T(-1e6), -inf,    T(1e6), inf, std::numeric_limits<T>::quiet_NaN(),
        -largest, largest, T(tiny), T(1)};
    for (size_t length = z.size(); length < z.size() + 40; ++length) {  // in vectors and tails
        std::vector<T> padded(length, T(2));
        std::copy(z.begin(), z.end(), padded.end() - static_cast<ptrdiff_t>(z.size()));
        auto out = exponentials_of(padded, std::vector<T>(length), 0);
        out.erase(out.begin(), out.end() - static_cast<ptrdiff_t>(z.size()));
        CHECK(out[0] == 1);
        CHECK(out[1] == 0 && out[2] == 0 && out[5] == 0 && out[6] == 0);
        for (const size_t j : {3, 4, 7}) CHECK(out[j] <= largest && out[j] > T(0.99) * largest);
        const double exact = std::exp(static_cast<double>(z[8]));
        const double spacing = static_cast<double>(std::numeric_limits<T>::denorm_min());
        CHECK(out[8] > 0 &&
              std::abs(static_cast<double>(out[8]) - exact) <= 1e-5 * exact + spacing);
        CHECK(std::abs(out[9] - std::exp(T(1))) <= 4 * std::numeric_limits<T>::epsilon());
    }
    for (const double row : {-1e300, 1e300}) {  // more than a float holds
        const auto out = exponentials_of(std::vector<T>(3), std::vector<T>(3), row);
        CHECK(row < 0 ? out[1] == 0 : out[1] > T(0.99) * largest && out[1] <= largest);
    }
}

// An element has the same bits at any place of any row.
template <class T>
void do_not_depend_on_the_place() {
    const size_t count = 150;
    auto z = numbers<T>(count, 1);
    const auto columns = numbers<T>(count, 2);
    for (T& x : z) x *= 20;
    const auto out = exponentials_of(z, columns, -3);
    for (size_t j = 0; j < count; ++j)
        CHECK(exponentials_of<T>({z[j]}, {columns[j]}, -3)[0] == out[j]);
    std::vector<T> rows(z);
    rows.insert(rows.end(), z.begin(), z.end());
    const double of_rows[2] = {1, -3};
    CHECK(exponentials<T>(rows.data(), count, 2, count, columns.data(), of_rows, {}));
    for (size_t j = 0; j < count; ++j) CHECK(rows[count + j] == out[j]);
}

TEST(exponentials_are_accurate) {
    on_every_isa([] {
        are_accurate<float>(-86, 88);
        are_accurate<double>(-700, 708);
    });
}

TEST(exponentials_stay_finite) {
    on_every_isa([] {
        stay_finite<float>();
        stay_finite<double>();
    });
}

TEST(exponentials_do_not_depend_on_the_place) {
    on_every_isa([] {
        do_not_depend_on_the_place<float>();
        do_not_depend_on_the_place<double>();
    });
}

}  // namespace
}  // namespace kernelmill::tests
