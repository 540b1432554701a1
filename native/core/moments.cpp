#include "kernelmill/moments.hpp"

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "kernel_table.hpp"
#include "kernelmill/panels.hpp"

namespace kernelmill {
namespace {

// Columns of a tile of products, on both sides: with one slab of rows they stay in the second-level
// cache. A multiple of all panels; fewer where tiles would be too few for the threads.
constexpr size_t wide_tile = 192, narrow_tile = 96;
constexpr size_t enough_tiles_per_thread = 8;
// Columns that are summed at a time: their sums stay in the first-level cache.
constexpr size_t columns_summed = 512;

struct Tile {
    size_t row, column;
};

// Those of the lower triangle.
std::vector<Tile> tiles_of_triangle(size_t dim, size_t edge) {
    std::vector<Tile> tiles;
    for (size_t row = 0; row < dim; row += edge) {
        for (size_t column = 0; column <= row; column += edge) tiles.push_back({row, column});
    }
    return tiles;
}

// An execution that nothing interrupts.
Execution whole(Execution execution) {
    execution.interrupted = nullptr;
    return execution;
}

// The first element on a cache line.
template <class P>
P* aligned(P* scratch) {
    const auto excess = reinterpret_cast<uintptr_t>(scratch) % panel_bytes;
    return excess == 0 ? scratch : scratch + (panel_bytes - excess) / sizeof(P);
}

template <class P, class T>
void pack(const T* x, ptrdiff_t stride, size_t rows, const double* center, const double* factors,
          size_t columns, P* packed) {
    if constexpr (std::is_same_v<T, float>) {
        kernels<P>().pack_floats(x, stride, rows, center, factors, columns, packed);
    } else {
        kernels<P>().pack_doubles(x, stride, rows, center, factors, columns, packed);
    }
}

}  // namespace

template <class P, class T>
void add_moments(const MomentRows<T>& given, const MomentTargets& targets, P* memory,
                 const MutableRows<double>& moments, const MutableRows<double>& cross,
                 const Execution& interruptible) {
    const Execution execution = whole(interruptible);
    const KernelTable<P>& kernel = kernels<P>();
    const auto panel = static_cast<size_t>(kernel.moments_panel);
    const size_t n = given.rows.count, rows = n + 1, dim = given.dim;
    const size_t panels = (dim + panel - 1) / panel;
    P* const scratch = aligned(memory);
    P* const packed_targets = scratch + panels * panel * rows;
    parallel_for(panels, 1, execution, [&](size_t begin, size_t end) {
        for (size_t p = begin; p < end; ++p) {
            const size_t j = p * panel, columns = std::min(panel, dim - j);
            P* const packed = scratch + j * rows;
            pack(given.rows.data + j, given.rows.stride, n, given.center + j, given.factors,
                 columns, packed);
            P* const last = packed + n * panel;
            std::fill(last, last + panel, P(0));
            for (size_t i = 0; i < columns; ++i) last[i] = static_cast<P>(given.last[j + i]);
        }
    });
    const std::vector<double> zeros(panel);
    for (size_t j = 0; j < targets.count; j += panel) {
        kernel.pack_doubles(targets.data + j, static_cast<ptrdiff_t>(targets.count), rows,
                            zeros.data(), nullptr, std::min(panel, targets.count - j),
                            packed_targets + j * rows);
    }
    const auto enough = enough_tiles_per_thread * static_cast<size_t>(most_participants(execution));
    std::vector<Tile> tiles = tiles_of_triangle(dim, wide_tile);
    size_t edge = wide_tile;
    if (tiles.size() < enough) tiles = tiles_of_triangle(dim, edge = narrow_tile);
    const size_t pieces = (dim + edge - 1) / edge;  // of the products with targets
    parallel_for(tiles.size() + pieces, 1, execution, [&](size_t begin, size_t end) {
        for (size_t k = begin; k < end; ++k) {
            if (k < tiles.size()) {
                const auto [row, column] = tiles[k];
                kernel.moments_tile(scratch, scratch, rows, row, std::min(row + edge, dim), column,
                                    std::min(column + edge, dim), moments.data, moments.stride,
                                    true);
            } else {
                const size_t column = (k - tiles.size()) * edge;
                kernel.moments_tile(packed_targets, scratch, rows, 0, targets.count, column,
                                    std::min(column + edge, dim), cross.data, cross.stride, false);
            }
        }
    });
}

template <class T>
void sum_columns(const DenseRows<T>& rows, const double* factors, size_t dim, double* sums,
                 const Execution& execution) {
    const size_t pieces = (dim + columns_summed - 1) / columns_summed;
    parallel_for(pieces, 1, whole(execution), [&](size_t begin, size_t end) {
        for (size_t piece = begin; piece < end; ++piece) {
            const size_t j = piece * columns_summed, columns = std::min(columns_summed, dim - j);
            std::fill(sums + j, sums + j + columns, 0.0);
            kernels<T>().sum_columns(rows.data + j, rows.stride, rows.count, factors, columns,
                                     sums + j);
        }
    });
}

template void add_moments(const MomentRows<float>&, const MomentTargets&, float*,
                          const MutableRows<double>&, const MutableRows<double>&, const Execution&);
template void add_moments(const MomentRows<float>&, const MomentTargets&, double*,
                          const MutableRows<double>&, const MutableRows<double>&, const Execution&);
template void add_moments(const MomentRows<double>&, const MomentTargets&, double*,
                          const MutableRows<double>&, const MutableRows<double>&, const Execution&);
template void sum_columns(const DenseRows<float>&, const double*, size_t, double*,
                          const Execution&);
template void sum_columns(const DenseRows<double>&, const double*, size_t, double*,
                          const Execution&);

}  // namespace kernelmill
