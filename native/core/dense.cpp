#include "kernelmill/dense.hpp"

#include <algorithm>
#include <cstdint>

#include "dense_loop.hpp"

namespace kernelmill {
namespace {

constexpr size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }
constexpr size_t ratio_up(size_t n, size_t by) { return (n - 1) / by + 1; }

// Multiply-adds that are worth another thread (some ten microseconds), and those after which an
// interrupt should be noticed (some ten milliseconds).
constexpr double least_work = 1 << 18;
constexpr double most_work = 1 << 28;
// Pieces a thread should have, so that a late one does not leave the others idle.
constexpr size_t pieces_per_thread = 4;
// Rows of a piece are a multiple of what every target takes together.
constexpr size_t rows_in_step = 24;

// What becomes of one product, in multiply-adds.
constexpr double work_of_store = 4;
constexpr double work_of_sincos = 32;

}  // namespace

TileGrid tile_grid(size_t rows, size_t panels, double work, const Execution& execution) {
    work = std::max(work, 1.0);
    TileGrid grid;
    // Rows in equal shares; frequencies are divided where rows are few, or a piece would be long.
    const size_t tiles_down = ratio_up(rows, rows_per_tile);
    grid.rows_per_piece =
        std::min(rows_per_tile, round_up(ratio_up(rows, tiles_down), rows_in_step));
    const size_t pieces_down = ratio_up(rows, grid.rows_per_piece);
    const auto threads = static_cast<size_t>(most_participants(execution));
    const size_t tiles_across = ratio_up(panels, panels_per_tile);
    const size_t rows_used = std::min(rows, grid.rows_per_piece);
    const double tile_work = work * static_cast<double>(rows_used * panels_per_tile);
    const double all_across = tile_work * static_cast<double>(tiles_across);
    double wanted = all_across / most_work;
    if (threads > 1 && pieces_down < pieces_per_thread * threads) {
        const auto to_share =
            static_cast<double>(ratio_up(pieces_per_thread * threads, pieces_down));
        wanted = std::max(wanted, std::min(to_share, all_across / least_work));
    }
    wanted = std::clamp(wanted, 1.0, static_cast<double>(tiles_across));
    const size_t tiles_per_piece = ratio_up(tiles_across, static_cast<size_t>(wanted));
    grid.panels_per_piece = tiles_per_piece * panels_per_tile;
    grid.pieces_across = ratio_up(tiles_across, tiles_per_piece);
    grid.pieces = pieces_down * grid.pieces_across;
    const double piece_work = tile_work * static_cast<double>(tiles_per_piece);
    grid.grain = static_cast<size_t>(std::max(1.0, least_work / piece_work));
    return grid;
}

template <class T>
void pack_frequencies(const T* w, size_t count, size_t dim, T* packed) {
    constexpr size_t width = panel_width<T>;
    for (size_t first = 0; first < count; first += width) {
        const size_t used = std::min(width, count - first);
        for (size_t k = 0; k < dim; ++k, packed += width) {
            for (size_t lane = 0; lane < used; ++lane) packed[lane] = w[(first + lane) * dim + k];
            std::fill(packed + used, packed + width, T(0));
        }
    }
}

template <class T>
bool dense_features(const Rows<T>& x, const Frequencies<T>& w, size_t first,
                    const Features<T>& features, T* out, ptrdiff_t out_stride,
                    const Execution& execution) {
    const auto& kernel = kernels<T>();
    const bool plain =
        features.kind == FeatureKind::projection || features.kind == FeatureKind::times;
    const auto finish = [&](size_t row, size_t at, size_t count, const T* z) {
        kernel.features_row(z, nullptr, count, first + at, features,
                            out + static_cast<ptrdiff_t>(row) * out_stride);
    };
    return std::visit(
        [&](const auto& rows) {
            return project_tiles<T>(rows, w, plain ? work_of_store : work_of_sincos, execution,
                                    finish);
        },
        x);
}

template void pack_frequencies(const float*, size_t, size_t, float*);
template void pack_frequencies(const double*, size_t, size_t, double*);
template bool dense_features(const Rows<float>&, const Frequencies<float>&, size_t,
                             const Features<float>&, float*, ptrdiff_t, const Execution&);
template bool dense_features(const Rows<double>&, const Frequencies<double>&, size_t,
                             const Features<double>&, double*, ptrdiff_t, const Execution&);

}  // namespace kernelmill
