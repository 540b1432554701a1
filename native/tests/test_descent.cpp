#include "kernelmill/descent.hpp"

#include <cmath>
#include <limits>

#include "arrays.hpp"
#include "check.hpp"

namespace kernelmill::tests {
namespace {

struct Shape {
    size_t rows, dim, outputs, directions;
};
// Around the widths of vectors and of pieces of columns; without directions, rows or features; with
// more directions than are taken at a time.
constexpr Shape shapes[] = {{1, 1, 1, 0},    {9, 17, 5, 3},   {17, 130, 11, 8},
                            {3, 2047, 2, 1}, {5, 2048, 3, 2}, {4, 40, 64, 5},
                            {2, 4500, 1, 0}, {0, 5, 2, 1},    {3, 9000, 2, 37}};
constexpr size_t gap = 3;  // between rows, which is not to be touched

// The same step in long double, on weights of `outputs` rows.
struct Reference {
    std::vector<long double> last, average, move;
    long double step = 0;
};

template <class T>
Reference reference(const Shape& shape, const std::vector<T>& x, const std::vector<T>& factors,
                    const std::vector<T>& directions, const std::vector<T>& damping,
                    const std::vector<T>& last, const std::vector<T>& average,
                    const StepRule& rule) {
    const auto [rows, dim, outputs, count] = shape;
    const size_t size = dim + 1, stride = size + gap, x_stride = dim + gap;
    Reference to{{last.begin(), last.end()}, {average.begin(), average.end()}, {}, rule.step};
    to.move.assign(last.size(), 0);
    const auto value = [&](size_t i, size_t j) {
        return j == dim ? static_cast<long double>(rule.constant)
                        : static_cast<long double>(x[i * x_stride + j]);
    };
    long double gain = 0, bend = 0;
    for (size_t c = 0; c < outputs; ++c) {
        long double* move = to.move.data() + c * stride;
        for (size_t j = 0; j < size; ++j) {
            move[j] = j < dim ? rule.alpha * static_cast<long double>(last[c * stride + j]) : 0;
            for (size_t i = 0; i < rows; ++i) move[j] += factors[i * outputs + c] * value(i, j);
        }
        std::vector<long double> along(count);
        for (size_t k = 0; k < count; ++k) {
            for (size_t j = 0; j < size; ++j) along[k] += directions[k * stride + j] * move[j];
        }
        for (size_t k = 0; k < count; ++k) {
            for (size_t j = 0; j < size; ++j) {
                move[j] -= damping[k] * along[k] * directions[k * stride + j];
            }
        }
        for (size_t i = 0; i < rows; ++i) {
            long double change = 0;
            for (size_t j = 0; j < size; ++j) change += value(i, j) * move[j];
            gain += factors[i * outputs + c] * change;
            bend += rule.curvature * change * change / static_cast<long double>(rows);
        }
        for (size_t j = 0; j < dim; ++j) {
            gain += rule.alpha * last[c * stride + j] * move[j];
            bend += rule.alpha * move[j] * move[j];
        }
    }
    gain *= rule.step;
    bend *= rule.step * rule.step;
    if (rule.curvature > 0 && bend > gain && gain > 0) to.step *= gain / bend;
    for (size_t c = 0; c < outputs; ++c) {
        for (size_t j = 0; j < size; ++j) {
            const size_t at = c * stride + j;
            to.last[at] -= to.step * to.move[at];
            to.average[at] += rule.averaging * (to.last[at] - to.average[at]);
        }
    }
    return to;
}

template <class T>
void steps_are_those_of_long_sums() {
    constexpr long double eps = std::numeric_limits<T>::epsilon();
    // Long steps, which are shortened; short ones; and plain descent.
    const StepRule rules[] = {
        {0.5, 0.1, 0.7, 2.0, 0.3}, {1e-4, 0.0, 0.7, 1.0, 0.3}, {0.5, 0.1, 1.0, 0.0, 1.0}};
    for (const auto& shape : shapes) {
        const auto [rows, dim, outputs, count] = shape;
        const size_t size = dim + 1, stride = size + gap, x_stride = dim + gap;
        const auto room = [](size_t n, size_t step) { return n == 0 ? 0 : n * step - gap; };
        auto directions = numbers<T>(room(count, stride), 3);
        for (size_t k = 0; k < directions.size() && count > 8; ++k) {  // orthogonal
            if (k % stride % count != k / stride) directions[k] = 0;
        }
        const auto x = numbers<T>(room(rows, x_stride), 1), factors = numbers<T>(rows * outputs, 2),
                   damping = numbers<T>(count, 4), first = numbers<T>(room(outputs, stride), 5),
                   mean = numbers<T>(room(outputs, stride), 6);
        for (const StepRule& rule : rules) {
            const auto exact = reference(shape, x, factors, directions, damping, first, mean, rule);
            std::vector<T> before;
            for (int n_threads : {1, 3}) {
                Execution execution;
                execution.n_threads = n_threads;
                auto last = first, average = mean, move = mean;
                const auto step = static_cast<ptrdiff_t>(stride);
                double share = 0;
                CHECK(
                    descend<T>({{x.data(), static_cast<ptrdiff_t>(x_stride), rows}, factors.data()},
                               dim, {{directions.data(), step, count}, damping.data()}, rule,
                               {{last.data(), step, outputs},
                                {average.data(), step, outputs},
                                {move.data(), step, outputs}},
                               share, execution));
                // The ratio of two sums, neither of which cancels here.
                CHECK(std::abs(share - static_cast<double>(exact.step / rule.step)) <= 1e-3);
                CHECK(rule.curvature > 0 || share == 1);
                // The share of a step is a ratio of sums: compare moves of the size they have.
                long double largest = 0, change = 0;
                for (long double m : exact.move) largest = std::max(largest, std::abs(m));
                change = exact.step * largest + 1;
                const long double terms = static_cast<long double>(size + rows + count) + 16;
                for (size_t k = 0; k < last.size(); ++k) {
                    if (k % stride >= size) {
                        CHECK(last[k] == first[k] && average[k] == mean[k]);
                        continue;
                    }
                    CHECK(std::abs(last[k] - exact.last[k]) <= 4 * eps * terms * change);
                    CHECK(std::abs(average[k] - exact.average[k]) <= 4 * eps * terms * change);
                    if (rule.averaging == 1) CHECK(average[k] == last[k]);
                }
                if (n_threads > 1) CHECK(last == before);
                before = last;
            }
        }
    }
}

TEST(steps_of_descent) {
    on_every_isa([] {
        steps_are_those_of_long_sums<float>();
        steps_are_those_of_long_sums<double>();
    });
}

}  // namespace
}  // namespace kernelmill::tests
