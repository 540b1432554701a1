// The loop over tiles of a product z = W x. Each tile's rows go to a finisher while they are in the
// cache. It is a template, so that operations on z (such as cosines) are fused with it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernel_table.hpp"
#include "kernelmill/dense.hpp"
#include "kernelmill/threads.hpp"
#include "scratch.hpp"

namespace kernelmill {

template <class T>
constexpr size_t tile_stride = panels_per_tile * panel_width<T>;

// Pieces of work: blocks of rows, at most a tile high, by blocks of panels.
struct TileGrid {
    size_t rows_per_piece, panels_per_piece;
    size_t pieces_across;  // blocks of panels
    size_t pieces;
    size_t grain;  // number of pieces taken at a time; more than one if they are small
};

// `work`: multiply-adds for one row and one panel.
TileGrid tile_grid(size_t rows, size_t panels, double work, const Execution& execution);

// A tile of dense rows. A block of the rows is first copied to fixed distances. A block with all
// coordinates is used for all tiles of these rows: `again` means that it is available.
template <class T>
void compute_tile(const KernelTable<T>& kernel, const DenseRows<T>& x, const Frequencies<T>& w,
                  size_t row, size_t rows, size_t panel, size_t panels, T* block, T* tile,
                  bool again) {
    const size_t panel_stride = w.dim * panel_width<T>;
    const T* packed = w.packed + panel * panel_stride;
    size_t k = 0;
    do {  // also once for dim = 0, where sums are 0
        const size_t count = std::min(coordinates_per_block<T>, w.dim - k);
        if (!again || w.dim > coordinates_per_block<T>) {
            for (size_t r = 0; r < rows && count > 0; ++r) {
                const T* from = x.data + static_cast<ptrdiff_t>(row + r) * x.stride + k;
                std::memcpy(block + r * block_stride<T>, from, count * sizeof(T));
            }
        }
        kernel.dense_tile(block, rows, packed + k * panel_width<T>, panel_stride, panels, count,
                          tile, tile_stride<T>, k == 0);
        k += count;
    } while (k < w.dim);
}

// A tile of sparse rows.
template <class T, class Index>
void compute_tile(const KernelTable<T>& kernel, const SparseRows<T, Index>& x,
                  const Frequencies<T>& w, size_t row, size_t rows, size_t panel, size_t panels, T*,
                  T* tile, bool) {
    const T* packed = w.packed + panel * w.dim * panel_width<T>;
    if constexpr (std::is_same_v<Index, int32_t>) {
        kernel.sparse_tile_32(x.values, x.indices, x.stored, x.starts + row, rows, packed, w.dim,
                              panels, tile, tile_stride<T>);
    } else {
        kernel.sparse_tile_64(x.values, x.indices, x.stored, x.starts + row, rows, packed, w.dim,
                              panels, tile, tile_stride<T>);
    }
}

// Multiply-adds for one row and one frequency, on average.
template <class T>
double work_per_sum(const DenseRows<T>&, const Frequencies<T>& w) {
    return static_cast<double>(w.dim);
}
template <class T, class Index>
double work_per_sum(const SparseRows<T, Index>& x, const Frequencies<T>&) {
    return static_cast<double>(x.entries()) / static_cast<double>(x.count);
}

// Calls finish(row, first, count, z) for parts of all rows, in any order and on any thread: z[i] is
// the product of the row with frequency first + i, for i < count <= tile_stride. `first` is a
// multiple of tile_stride; z is aligned to 64 bytes, has room for tile_stride elements and may be
// overwritten. `work_of_finish`: the cost of finish for one z, in multiply-adds. Rows is DenseRows
// or SparseRows.
template <class T, class Rows, class Finish>
bool project_tiles(const Rows& x, const Frequencies<T>& w, double work_of_finish,
                   const Execution& execution, Finish&& finish) {
    if (x.count == 0 || w.count == 0) return true;
    const size_t all_panels = panels_of<T>(w.count);
    const double work = work_per_sum(x, w) + work_of_finish;
    Execution pinned = execution;  // one number for the grid, the scratch and the threads
    pinned.n_threads = most_participants(execution);
    const TileGrid grid = tile_grid(x.count, all_panels, work * panel_width<T>, pinned);
    const KernelTable<T>& kernel = kernels<T>();
    constexpr size_t tile_size = rows_per_tile * tile_stride<T>;
    ScratchPerThread<T> scratch(tile_size + rows_per_tile * block_stride<T>, pinned);
    return parallel_for(grid.pieces, grid.grain, pinned, [&](size_t begin, size_t end) {
        T *tile = scratch.mine(), *block = tile + tile_size;
        for (size_t piece = begin; piece < end; ++piece) {
            const size_t row = piece / grid.pieces_across * grid.rows_per_piece;
            const size_t rows = std::min(grid.rows_per_piece, x.count - row);
            const size_t first_panel = piece % grid.pieces_across * grid.panels_per_piece;
            const size_t end_panel = std::min(all_panels, first_panel + grid.panels_per_piece);
            for (size_t panel = first_panel; panel < end_panel; panel += panels_per_tile) {
                const size_t panels = std::min(panels_per_tile, end_panel - panel);
                compute_tile(kernel, x, w, row, rows, panel, panels, block, tile,
                             panel > first_panel);
                const size_t first = panel * panel_width<T>;
                const size_t count = std::min(panels * panel_width<T>, w.count - first);
                for (size_t r = 0; r < rows; ++r) {
                    finish(row + r, first, count, tile + r * tile_stride<T>);
                }
            }
        }
    });
}

}  // namespace kernelmill
