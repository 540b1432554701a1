#include "kernelmill/exponentials.hpp"

#include <algorithm>
#include <limits>

#include "kernel_table.hpp"

namespace kernelmill {
namespace {

constexpr size_t elements_per_piece = size_t(1) << 13;

// A conversion of what T cannot hold would be undefined.
template <class T>
T as_finite(double x) {
    constexpr double most = std::numeric_limits<T>::max();
    return static_cast<T>(std::clamp(x, -most, most));
}

}  // namespace

template <class T>
bool exponentials(T* z, ptrdiff_t stride, size_t n_rows, size_t n_columns, const T* columns,
                  const double* rows, const Execution& execution) {
    const auto& kernel = kernels<T>();
    const size_t grain = std::max<size_t>(1, elements_per_piece / std::max<size_t>(1, n_columns));
    return parallel_for(n_rows, grain, execution, [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
            kernel.exponentials_row(z + static_cast<ptrdiff_t>(i) * stride, columns,
                                    as_finite<T>(rows[i]), n_columns);
        }
    });
}

template bool exponentials(float*, ptrdiff_t, size_t, size_t, const float*, const double*,
                           const Execution&);
template bool exponentials(double*, ptrdiff_t, size_t, size_t, const double*, const double*,
                           const Execution&);

}  // namespace kernelmill
