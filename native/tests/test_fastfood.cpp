#include "kernelmill/fastfood.hpp"

#include <cmath>
#include <cstring>
#include <numeric>

#include "arrays.hpp"
#include "check.hpp"

namespace kernelmill::tests {
namespace {

// Coefficients of some blocks, and the projection by its definition, in double precision.
template <class T>
struct Coefficients {
    Coefficients(int log2_size, size_t dim, size_t blocks, size_t per_group, size_t turn,
                 int stages, bool permuted, uint64_t seed)
        : size(size_t(1) << log2_size) {
        const size_t groups = (blocks + per_group - 1) / per_group;
        for (const T u : numbers<T>(groups * static_cast<size_t>(stages) * size, seed)) {
            signs.push_back(u < 0 ? T(-1) : T(1));
        }
        inner = numbers<T>(blocks * size, seed + 1);
        outer = numbers<T>(blocks * size, seed + 2);
        Numbers next(seed + 3);
        for (size_t g = 0; g < groups && permuted; ++g) {
            std::vector<int32_t> order(size);
            std::iota(order.begin(), order.end(), 0);
            for (size_t i = size; i > 1; --i) {
                const double u = (next() + 1) / 2;
                std::swap(order[i - 1], order[static_cast<size_t>(u * static_cast<double>(i))]);
            }
            permutation.insert(permutation.end(), order.begin(), order.end());
        }
        view = {log2_size,    dim,         blocks,       per_group,
                turn,         stages,      signs.data(), permuted ? permutation.data() : nullptr,
                inner.data(), outer.data()};
    }

    std::vector<double> project(const T* x) const {
        std::vector<double> z = block_by_block(x), ordered;
        // Turns of the first group.
        const size_t first = view.first_turn < size ? view.blocks_per_group * size : 0;
        for (size_t k = 0; first > 0 && k < size; k += view.first_turn) {
            for (size_t block = 0; block < view.blocks_per_group; ++block) {
                const auto at = z.begin() + static_cast<ptrdiff_t>(block * size + k);
                ordered.insert(ordered.end(), at, at + static_cast<ptrdiff_t>(view.first_turn));
            }
        }
        ordered.insert(ordered.end(), z.begin() + static_cast<ptrdiff_t>(first), z.end());
        return ordered;
    }

    std::vector<double> block_by_block(const T* x) const {
        std::vector<double> z;
        for (size_t block = 0; block < view.blocks; ++block) {
            const size_t group = block / view.blocks_per_group;
            std::vector<double> v(x, x + view.dim);
            v.resize(size);
            for (size_t stage = 0; stage < static_cast<size_t>(view.sign_stages); ++stage) {
                const size_t at = (group * static_cast<size_t>(view.sign_stages) + stage) * size;
                for (size_t k = 0; k < size; ++k) v[k] *= static_cast<double>(signs[at + k]);
                v = hadamard(v);
            }
            std::vector<double> mixed(size);
            for (size_t k = 0; k < size; ++k) {
                const auto from =
                    view.permutation ? static_cast<size_t>(permutation[group * size + k]) : k;
                mixed[k] = v[from] * static_cast<double>(inner[block * size + k]);
            }
            mixed = hadamard(mixed);
            for (size_t k = 0; k < size; ++k) {
                z.push_back(mixed[k] * static_cast<double>(outer[block * size + k]));
            }
        }
        return z;
    }

    static std::vector<double> hadamard(std::vector<double> v) {
        for (size_t half = v.size() / 2; half >= 1; half /= 2) {
            for (size_t j = 0; j < v.size(); ++j) {
                if (j & half) continue;
                const double a = v[j], b = v[j + half];
                v[j] = a + b;
                v[j + half] = a - b;
            }
        }
        return v;
    }

    size_t size;
    std::vector<T> signs, inner, outer;
    std::vector<int32_t> permutation;
    FastfoodFactors<T> view;
};

// Columns of one row, by their definition.
template <class T>
std::vector<double> columns(const std::vector<double>& z, const Features<T>& f) {
    std::vector<double> c;
    const double scale = static_cast<double>(f.scale);
    switch (f.kind) {
        case FeatureKind::projection:
            for (size_t j = 0; j < f.frequencies; ++j) c.push_back(z[j]);
            break;
        case FeatureKind::cos_sin:
            for (size_t j = 0; j < f.pairs; ++j) c.push_back(scale * std::cos(z[j]));
            for (size_t j = 0; j < f.pairs; ++j) c.push_back(scale * std::sin(z[j]));
            if (f.pairs < f.frequencies) {
                c.push_back(scale * std::cos(z[f.pairs] + static_cast<double>(f.phases[f.pairs])));
            }
            break;
        case FeatureKind::complex:
            for (size_t j = 0; j < f.pairs; ++j) {
                c.push_back(scale * std::cos(z[j]));
                c.push_back(scale * std::sin(z[j]));
            }
            break;
        case FeatureKind::cos_phase:
            for (size_t j = 0; j < f.frequencies; ++j) {
                c.push_back(scale * std::cos(z[j] + static_cast<double>(f.phases[j])));
            }
        case FeatureKind::times: break;  // Fastfood has no such features
    }
    return c;
}

template <class T>
std::vector<Features<T>> all_kinds(size_t frequencies, const std::vector<T>& phases) {
    return {{FeatureKind::projection, frequencies, 0, T(1), nullptr},
            {FeatureKind::cos_sin, frequencies, frequencies, T(0.5), nullptr},
            {FeatureKind::cos_sin, frequencies, frequencies - 1, T(0.5), phases.data()},
            {FeatureKind::complex, frequencies, frequencies, T(0.5), nullptr},
            {FeatureKind::cos_phase, frequencies, 0, T(0.5), phases.data()}};
}

constexpr double unit(float) { return 0x1p-24; }
constexpr double unit(double) { return 0x1p-53; }

// Every element against the definition; untouched bytes around the rows; one row alone, one thread
// and three, and compressed rows, all to the last bit.
template <class T>
void check_case(int log2_size, size_t dim, size_t blocks, size_t per_group, size_t turn, int stages,
                bool permuted, size_t frequencies, size_t rows) {
    const Coefficients<T> c(log2_size, dim, blocks, per_group, turn, stages, permuted, rows + dim);
    const auto phases = numbers<T>(frequencies, 5);
    const size_t x_stride = dim + 3;
    const auto x = numbers<T>(rows * x_stride, 9);
    const Rows<T> from = DenseRows<T>{x.data(), static_cast<ptrdiff_t>(x_stride), rows};
    std::vector<T> values;
    std::vector<int32_t> indices, starts{0};
    for (size_t i = 0; i < rows; ++i) {
        for (size_t k = dim; k-- > 0;) {
            values.push_back(x[i * x_stride + k]);
            indices.push_back(static_cast<int32_t>(k));
        }
        starts.push_back(static_cast<int32_t>(values.size()));
    }
    const Rows<T> compressed = SparseRows<T, int32_t>{
        values.data(), indices.data(), starts.data(), rows, dim, values.size()};
    for (const Features<T>& f : all_kinds<T>(frequencies, phases)) {
        const size_t n = columns(c.project(x.data()), f).size(), stride = n + 5;
        std::vector<T> out(rows * stride, T(77)), other(rows * stride, T(77));
        const auto step = static_cast<ptrdiff_t>(stride);
        CHECK(fastfood<T>(from, c.view, f, out.data(), step, nullptr, {.n_threads = 1}));
        bool right = true, clean = true;
        for (size_t i = 0; i < rows; ++i) {
            const auto z = c.project(x.data() + i * x_stride);
            const auto expected = columns(z, f);
            double largest = 1;
            for (const double v : z) largest = std::max(largest, std::abs(v));
            // Sums of p terms twice over, in log2 p roundings each, some units for the rest.
            const double tolerance =
                unit(T()) * largest * static_cast<double>(c.size) * (8 + 4 * log2_size);
            for (size_t j = 0; j < n; ++j) {
                const double error =
                    std::abs(static_cast<double>(out[i * stride + j]) - expected[j]);
                right = right && error <= tolerance;
            }
            for (size_t j = n; j < stride; ++j) clean = clean && out[i * stride + j] == T(77);
        }
        CHECK(right);
        CHECK(clean);
        // On several threads, with the scores that the features themselves have.
        constexpr size_t outputs = 3;
        const auto weights = numbers<T>(outputs * n, 6);
        std::vector<T> expected(rows * outputs), scores(rows * outputs + 1, T(77));
        const DenseRows<T> by{weights.data(), static_cast<ptrdiff_t>(n), outputs};
        CHECK(score_rows<T>({out.data(), step, rows}, by, n, {expected.data(), outputs, rows}, {}));
        for (int n_threads : {1, 3}) {
            std::fill(other.begin(), other.end(), T(77));
            const Scoring<T> scoring{by, n, {scores.data(), outputs, rows}};
            CHECK(fastfood<T>(from, c.view, f, other.data(), step, &scoring,
                              {.n_threads = n_threads}));
            CHECK(std::memcmp(out.data(), other.data(), out.size() * sizeof(T)) == 0);
            CHECK(std::memcmp(expected.data(), scores.data(), expected.size() * sizeof(T)) == 0);
            CHECK(scores.back() == T(77));
        }
        std::fill(other.begin(), other.end(), T(77));
        std::fill(other.begin(), other.end(), T(77));
        CHECK(fastfood<T>(compressed, c.view, f, other.data(), step, nullptr, {.n_threads = 2}));
        CHECK(std::memcmp(out.data(), other.data(), out.size() * sizeof(T)) == 0);
        std::fill(other.begin(), other.end(), T(77));
        for (size_t i = 0; i < rows; ++i) {
            const Rows<T> one = DenseRows<T>{x.data() + i * x_stride, 0, 1};
            CHECK(fastfood<T>(one, c.view, f, other.data() + i * stride, step, nullptr,
                              {.n_threads = 1}));
        }
        CHECK(std::memcmp(out.data(), other.data(), out.size() * sizeof(T)) == 0);
    }
}

TEST(fastfood_agrees_with_its_definition) {
    on_every_isa([] {
        for (const size_t rows : {1, 3, 8, 17, 33}) {
            check_case<float>(0, 1, 5, 1, 1, 1, true, 4, rows);
            check_case<float>(2, 3, 3, 2, 4, 1, true, 9, rows);
            check_case<double>(3, 8, 2, 1, 8, 1, true, 15, rows);
            check_case<float>(4, 10, 5, 4, 8, 1, true, 71, rows);
            check_case<double>(4, 16, 5, 4, 8, 1, true, 80, rows);
            check_case<float>(5, 17, 3, 1, 32, 1, true, 96, rows);
            check_case<float>(6, 50, 4, 4, 16, 1, true, 201, rows);
            check_case<float>(6, 50, 8, 4, 16, 1, true, 300, rows);
            check_case<double>(6, 50, 4, 4, 16, 1, true, 21, rows);
            check_case<double>(6, 64, 2, 1, 64, 2, false, 65, rows);
            check_case<float>(7, 1, 3, 1, 128, 2, false, 300, rows);
            check_case<double>(8, 200, 5, 4, 64, 1, true, 1100, rows);
        }
        check_case<float>(10, 784, 5, 4, 16, 1, true, 4500, 9);
        check_case<double>(11, 1025, 1, 1, 2048, 2, false, 100, 5);
        check_case<float>(12, 4000, 1, 1, 4096, 1, true, 4096, 9);
        check_case<float>(13, 5000, 2, 2, 8192, 1, true, 9000, 3);
    });
}

TEST(fastfood_of_no_rows_does_nothing) {
    const Coefficients<float> c(4, 10, 1, 1, 16, 1, true, 1);
    const Features<float> f{FeatureKind::cos_sin, 16, 16, 1.f, nullptr};
    CHECK(fastfood<float>(DenseRows<float>{nullptr, 10, 0}, c.view, f, nullptr, 32, nullptr, {}));
}

// A column of something that is not finite spoils its own row and no other.
TEST(fastfood_keeps_what_is_not_finite_in_its_row) {
    on_every_isa([] {
        const Coefficients<float> c(5, 20, 2, 2, 32, 1, true, 3);
        const Features<float> f{FeatureKind::cos_sin, 64, 64, 1.f, nullptr};
        auto x = numbers<float>(20 * 20, 4);
        x[7 * 20 + 3] = std::nanf("");
        x[11 * 20] = HUGE_VALF;
        std::vector<float> out(20 * 128);
        CHECK(fastfood<float>(DenseRows<float>{x.data(), 20, 20}, c.view, f, out.data(), 128,
                              nullptr, {}));
        for (size_t i = 0; i < 20; ++i) {
            bool finite = true;
            for (size_t j = 0; j < 128; ++j) finite = finite && std::isfinite(out[i * 128 + j]);
            CHECK(finite == (i != 7 && i != 11));
        }
    });
}

}  // namespace
}  // namespace kernelmill::tests
