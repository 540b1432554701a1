#include "kernelmill/write_features.hpp"

#include <algorithm>

#include "kernel_table.hpp"

namespace kernelmill {
namespace {

constexpr size_t elements_per_piece = size_t(1) << 13;

}  // namespace

template <class T>
bool write_features(const T* z, ptrdiff_t z_stride, size_t rows, size_t n, const T* outer,
                    size_t first, const Features<T>& features, T* out, ptrdiff_t out_stride,
                    const Execution& execution) {
    const auto& kernel = kernels<T>();
    const size_t grain = std::max<size_t>(1, elements_per_piece / std::max<size_t>(1, n));
    return parallel_for(rows, grain, execution, [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
            const auto row = static_cast<ptrdiff_t>(i);
            kernel.features_row(z + row * z_stride, outer, n, first, features,
                                out + row * out_stride);
        }
    });
}

template bool write_features(const float*, ptrdiff_t, size_t, size_t, const float*, size_t,
                             const Features<float>&, float*, ptrdiff_t, const Execution&);
template bool write_features(const double*, ptrdiff_t, size_t, size_t, const double*, size_t,
                             const Features<double>&, double*, ptrdiff_t, const Execution&);

}  // namespace kernelmill
