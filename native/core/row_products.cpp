#include "kernelmill/row_products.hpp"

#include <algorithm>
#include <type_traits>

namespace kernelmill {
namespace {

constexpr size_t elements_per_piece = size_t(1) << 14;

// Column j goes to sum j mod 8: several sums keep a processor busy, and a zero, stored or not,
// changes none of them.
constexpr size_t n_sums = 8;

double total(const double* sums) {
    return ((sums[0] + sums[4]) + (sums[1] + sums[5])) +
           ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

template <class T>
double dense_product(const T* x, const double* vector, size_t dim) {
    double sums[n_sums] = {};
    size_t j = 0;
    for (; j + n_sums <= dim; j += n_sums) {
        for (size_t k = 0; k < n_sums; ++k) {
            const auto value = static_cast<double>(x[j + k]);
            sums[k] += value * (vector ? vector[j + k] : value);
        }
    }
    for (size_t k = 0; j < dim; ++j, ++k) {
        const auto value = static_cast<double>(x[j]);
        sums[k] += value * (vector ? vector[j] : value);
    }
    return total(sums);
}

template <class T>
double product_of_row(const DenseRows<T>& rows, size_t i, size_t dim, const double* vector) {
    return dense_product(rows.data + static_cast<ptrdiff_t>(i) * rows.stride, vector, dim);
}

template <class T, class Index>
double product_of_row(const SparseRows<T, Index>& rows, size_t i, size_t, const double* vector) {
    double sums[n_sums] = {};
    rows.for_entries(i, [&](size_t j, T element) {
        const auto value = static_cast<double>(element);
        sums[j % n_sums] += value * (vector ? vector[j] : value);
    });
    return total(sums);
}

}  // namespace

template <class T>
bool row_products(const Rows<T>& rows, size_t dim, const double* vector, double* out,
                  const Execution& execution) {
    const size_t grain = std::max<size_t>(1, elements_per_piece / std::max<size_t>(1, dim));
    return parallel_for(count_of(rows), grain, execution, [&](size_t begin, size_t end) {
        std::visit(
            [&](const auto& r) {
                for (size_t i = begin; i < end; ++i) out[i] = product_of_row(r, i, dim, vector);
            },
            rows);
    });
}

template bool row_products(const Rows<float>&, size_t, const double*, double*, const Execution&);
template bool row_products(const Rows<double>&, size_t, const double*, double*, const Execution&);

}  // namespace kernelmill
