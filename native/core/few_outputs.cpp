#include "kernelmill/few_outputs.hpp"

#include <algorithm>

#include "kernel_table.hpp"

namespace kernelmill {
namespace {

// Features whose weights stay in the second-level cache while rows pass; part of the order of sums.
constexpr size_t features_per_block = 8192;
// Columns of sums, of all outputs together, that stay in the first-level cache while rows pass.
constexpr size_t bytes_of_sums = 20 << 10;
constexpr size_t fewest_columns = 128, most_columns = 1024;
// Multiply-adds of a piece of work.
constexpr size_t work_per_piece = size_t(1) << 18;

}  // namespace

template <class T>
bool score_rows(const DenseRows<T>& rows, const DenseRows<T>& weights, size_t dim,
                const MutableRows<T>& out, const Execution& execution) {
    const size_t work = std::max<size_t>(1, dim * weights.count);
    // Whole groups of eight rows, which are in registers together.
    const size_t grain = (std::max<size_t>(1, work_per_piece / work) + 7) / 8 * 8;
    return parallel_for(rows.count, grain, execution, [&](size_t begin, size_t end) {
        score_some_rows(rows, weights, dim, out, begin, end);
    });
}

template <class T>
void score_some_rows(const DenseRows<T>& rows, const DenseRows<T>& weights, size_t dim,
                     const MutableRows<T>& out, size_t begin, size_t end) {
    const KernelTable<T>& kernel = kernels<T>();
    const auto at = static_cast<ptrdiff_t>(begin);
    size_t j = 0;
    do {  // once for dim = 0 too: sums of nothing are 0
        const size_t n = std::min(features_per_block, dim - j);
        kernel.score_rows(rows.data + at * rows.stride + j, rows.stride, end - begin,
                          weights.data + j, weights.stride, weights.count, n,
                          out.data + at * out.stride, out.stride, j == 0);
        j += n;
    } while (j < dim);
}

template <class T>
bool add_weighted_rows(const DenseRows<T>& rows, const T* factors, size_t dim,
                       const MutableRows<T>& sums, const Execution& execution) {
    const size_t outputs = std::max<size_t>(1, sums.count);
    const size_t fitting = bytes_of_sums / sizeof(T) / outputs / 64 * 64;
    const size_t columns = std::clamp(fitting, fewest_columns, most_columns);
    const size_t pieces = (dim + columns - 1) / columns;
    const size_t work = std::max<size_t>(1, rows.count * columns * outputs);
    const size_t grain = std::max<size_t>(1, work_per_piece / work);
    const KernelTable<T>& kernel = kernels<T>();
    return parallel_for(pieces, grain, execution, [&](size_t begin, size_t end) {
        for (size_t piece = begin; piece < end; ++piece) {
            const size_t j = piece * columns, n = std::min(columns, dim - j);
            kernel.add_weighted_rows(rows.data + j, rows.stride, rows.count, factors, sums.count, n,
                                     sums.data + j, sums.stride);
        }
    });
}

template bool score_rows(const DenseRows<float>&, const DenseRows<float>&, size_t,
                         const MutableRows<float>&, const Execution&);
template bool score_rows(const DenseRows<double>&, const DenseRows<double>&, size_t,
                         const MutableRows<double>&, const Execution&);
template void score_some_rows(const DenseRows<float>&, const DenseRows<float>&, size_t,
                              const MutableRows<float>&, size_t, size_t);
template void score_some_rows(const DenseRows<double>&, const DenseRows<double>&, size_t,
                              const MutableRows<double>&, size_t, size_t);
template bool add_weighted_rows(const DenseRows<float>&, const float*, size_t,
                                const MutableRows<float>&, const Execution&);
template bool add_weighted_rows(const DenseRows<double>&, const double*, size_t,
                                const MutableRows<double>&, const Execution&);

}  // namespace kernelmill
