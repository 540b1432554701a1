#include "kernelmill/zonal.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernel_table.hpp"

namespace kernelmill {
namespace {

constexpr size_t elements_per_piece = size_t(1) << 12;

// Finite, so that no product with 0 is NaN.
template <class T>
T as_finite(double x) {
    return static_cast<T>(std::min(x, static_cast<double>(std::numeric_limits<T>::max())));
}

}  // namespace

template <class T>
bool zonal(T* z, ptrdiff_t stride, size_t n_rows, const double* squares,
           const ZonalGroups<T>& groups, const Execution& execution, bool* not_finite) {
    if (groups.count == 0) return true;
    const auto& kernel = kernels<T>();
    const auto n_columns = static_cast<size_t>(groups.starts[groups.count]);
    const size_t grain = std::max<size_t>(1, elements_per_piece / std::max<size_t>(1, n_columns));
    return parallel_for(n_rows, grain, execution, [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
            const double r = std::sqrt(squares[i]);
            const T inverse = r > 0 ? as_finite<T>(1 / r) : T(0);
            T* row = z + static_cast<ptrdiff_t>(i) * stride;
            bool finite = true;
            for (size_t g = 0; g < groups.count; ++g) {
                const auto degree = static_cast<int>(groups.degrees[g]);
                const double radial =
                    degree > 0 && r == 0 ? 0 : groups.weights[g] * std::pow(r, groups.powers[g]);
                finite &= kernel.zonal_row(
                    row + groups.starts[g],
                    static_cast<size_t>(groups.starts[g + 1] - groups.starts[g]), inverse,
                    as_finite<T>(radial), groups.alpha, groups.beta, degree);
            }
            if (!finite && not_finite) __atomic_store_n(not_finite, true, __ATOMIC_RELAXED);
        }
    });
}

template bool zonal(float*, ptrdiff_t, size_t, const double*, const ZonalGroups<float>&,
                    const Execution&, bool*);
template bool zonal(double*, ptrdiff_t, size_t, const double*, const ZonalGroups<double>&,
                    const Execution&, bool*);

}  // namespace kernelmill
