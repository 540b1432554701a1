#include "kernelmill/zonal.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "arrays.hpp"
#include "check.hpp"

namespace kernelmill::tests {
namespace {

// Legendre polynomials in three dimensions, by their usual recurrence.
template <class T>
struct Groups {
    std::vector<int64_t> starts, degrees;
    std::vector<double> powers, weights;
    std::vector<T> alpha, beta;

    explicit Groups(size_t columns, size_t most_degree = 9) : starts{0} {
        for (size_t j = 0; j < most_degree; ++j) {
            alpha.push_back(static_cast<T>(2.0 * static_cast<double>(j) + 1) /
                            static_cast<T>(j + 1));
            beta.push_back(static_cast<T>(j) / static_cast<T>(j + 1));
        }
        // Widths from 0 up, so that vectors end and begin anywhere.
        for (size_t g = 0; static_cast<size_t>(starts.back()) < columns; ++g) {
            const auto end = static_cast<size_t>(starts.back()) + (7 * g) % 90;
            starts.push_back(static_cast<int64_t>(std::min(end, columns)));
            degrees.push_back(static_cast<int64_t>(g % (most_degree + 1)));
            powers.push_back(static_cast<double>(g % 5) / 2);
            weights.push_back(1 + 0.25 * static_cast<double>(g));
        }
    }

    ZonalGroups<T> view() const {
        return {degrees.size(), starts.data(), degrees.data(), powers.data(),
                weights.data(), alpha.data(),  beta.data()};
    }
};

double legendre(int64_t degree, double u) {
    double before = 0, now = 1;
    for (int64_t j = 0; j < degree; ++j) {
        const double a = static_cast<double>(2 * j + 1), b = static_cast<double>(j);
        const double next = (a * u * now - b * before) / static_cast<double>(j + 1);
        before = now;
        now = next;
    }
    return now;
}

template <class T>
void agrees_with_the_definition() {
    const size_t columns = 1201, rows = 5;
    const Groups<T> groups(columns);
    const double squares[rows] = {1.0, 6.25, 0.0, 1e-4, 100.0};
    auto z = numbers<T>(rows * columns, 4);
    for (size_t i = 0; i < rows; ++i) {
        for (size_t j = 0; j < columns; ++j)
            z[i * columns + j] *= static_cast<T>(std::sqrt(squares[i]));
    }
    const auto before = z;
    CHECK(zonal<T>(z.data(), columns, rows, squares, groups.view(), {}));
    for (size_t i = 0; i < rows; ++i) {
        const double r = std::sqrt(squares[i]);
        for (size_t g = 0; g < groups.degrees.size(); ++g) {
            for (auto j = static_cast<size_t>(groups.starts[g]);
                 j < static_cast<size_t>(groups.starts[g + 1]); ++j) {
                const size_t at = i * columns + j;
                const double factor = groups.weights[g] * std::pow(r, groups.powers[g]);
                const double u = r > 0 ? static_cast<double>(before[at]) / r : 0;
                const double exact =
                    r == 0 && groups.degrees[g] > 0 ? 0 : factor * legendre(groups.degrees[g], u);
                const double error = std::abs(static_cast<double>(z[at]) - exact);
                CHECK(error <= 200 * std::numeric_limits<T>::epsilon() * factor);
            }
        }
    }
}

// The same row alone, and with other rows: the same bits.
template <class T>
void rows_do_not_depend_on_each_other() {
    const size_t columns = 777, rows = 9;
    const Groups<T> groups(columns);
    auto z = numbers<T>(rows * columns, 8);
    const auto before = z;
    double squares[rows];
    for (size_t i = 0; i < rows; ++i) squares[i] = 1.0 + static_cast<double>(i);
    Execution two;
    two.n_threads = 2;
    CHECK(zonal<T>(z.data(), columns, rows, squares, groups.view(), two));
    for (size_t i = 0; i < rows; ++i) {
        std::vector<T> row(before.begin() + static_cast<ptrdiff_t>(i * columns),
                           before.begin() + static_cast<ptrdiff_t>((i + 1) * columns));
        CHECK(zonal<T>(row.data(), columns, 1, squares + i, groups.view(), {}));
        for (size_t j = 0; j < columns; ++j) CHECK(row[j] == z[i * columns + j]);
    }
}

template <class T>
void never_gives_nan() {
    const size_t columns = 300;
    const Groups<T> groups(columns);
    for (const double square : {0.0, 1e-320, 1e-300, 1e300, 1.7e308}) {
        std::vector<T> z(columns, T(0));
        CHECK(zonal<T>(z.data(), columns, 1, &square, groups.view(), {}));
        for (const T x : z) CHECK(!std::isnan(x));
    }
}

TEST(zonal_agrees_with_the_definition) {
    on_every_isa([] {
        agrees_with_the_definition<float>();
        agrees_with_the_definition<double>();
    });
}

TEST(zonal_rows_do_not_depend_on_each_other) {
    on_every_isa([] {
        rows_do_not_depend_on_each_other<float>();
        rows_do_not_depend_on_each_other<double>();
    });
}

TEST(zonal_never_gives_nan) {
    on_every_isa([] {
        never_gives_nan<float>();
        never_gives_nan<double>();
    });
}

}  // namespace
}  // namespace kernelmill::tests
