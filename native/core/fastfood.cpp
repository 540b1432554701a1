#include "kernelmill/fastfood.hpp"

#include <algorithm>
#include <cstring>
#include <variant>

#include "kernel_table.hpp"
#include "scratch.hpp"

namespace kernelmill {
namespace {

// Tiles of one row per lane serve blocks of these sizes. Smaller ones have too few levels for the
// tile's passes; of larger ones three tiles do not fit into the second cache.
constexpr int smallest_tile = 4, largest_tile = 12;
// A tile costs about as much as so many rows one by one, in tenths of its lanes.
constexpr size_t rows_worth_a_tile_tenths = 5;
// Elements of output per piece of work.
constexpr size_t elements_per_piece = size_t(1) << 14;

template <class T>
class Job {
  public:
    Job(const Rows<T>& x, const FastfoodFactors<T>& factors, const Features<T>& features, T* out,
        ptrdiff_t out_stride, const Execution& execution)
        : x_(x),
          factors_(factors),
          features_(features),
          out_(out),
          out_stride_(out_stride),
          kernel_(kernels<T>()),
          size_(size_t(1) << factors.log2_size),
          count_(count_of(x)),
          lanes_(static_cast<size_t>(kernel_.width)),
          tiled_(factors.log2_size >= smallest_tile && factors.log2_size <= largest_tile),
          execution_(execution) {
        execution_.n_threads = most_participants(execution);  // for the scratch and for the threads
    }

    bool run() {
        const size_t groups = used_groups();
        if (count_ == 0 || groups == 0) return true;
        const size_t row_sets = tiled_ ? (count_ - 1) / lanes_ + 1 : count_;
        const size_t rows_per_set = std::min(tiled_ ? lanes_ : 1, count_);
        const size_t per_group = rows_per_set * factors_.blocks_per_group * size_;
        // Pieces are sets of rows where there are enough of them for all threads; otherwise the
        // groups of a set are shared as well.
        const auto threads = static_cast<size_t>(execution_.n_threads);
        const size_t most_groups =
            row_sets >= 4 * threads ? groups : std::max<size_t>(1, elements_per_piece / per_group);
        const size_t groups_per_piece = std::min(groups, most_groups);
        const size_t parts = (groups - 1) / groups_per_piece + 1;
        const size_t grain =
            std::max<size_t>(1, elements_per_piece / (groups_per_piece * per_group));
        ScratchPerThread<T> scratch(3 * size_ * (tiled_ ? lanes_ : 1), execution_);
        return parallel_for(row_sets * parts, grain, execution_, [&](size_t begin, size_t end) {
            T* mine = scratch.mine();
            size_t loaded = row_sets;
            for (size_t piece = begin; piece < end; ++piece) {
                const size_t set = piece / parts, first = piece % parts * groups_per_piece;
                const size_t last = std::min(groups, first + groups_per_piece);
                if (tiled_) {
                    tile(set * lanes_, first, last, mine, set != loaded);
                } else {
                    row(set, first, last, mine);
                }
                loaded = set;
            }
        });
    }

  private:
    size_t used_groups() const {
        const size_t per_group = factors_.blocks_per_group * size_;
        return (features_.frequencies + per_group - 1) / per_group;
    }
    FastfoodGroup<T> group(size_t g) const {
        const size_t first_block = g * factors_.blocks_per_group, at = first_block * size_;
        const auto stages = static_cast<size_t>(factors_.sign_stages);
        return {factors_.log2_size,
                factors_.sign_stages,
                factors_.signs + g * stages * size_,
                factors_.permutation ? factors_.permutation + g * size_ : nullptr,
                std::min(factors_.blocks_per_group, factors_.blocks - first_block),
                factors_.inner + at,
                factors_.outer + at,
                at,
                g == 0 ? factors_.first_turn : size_};
    }

    void tile(size_t first_row, size_t first_group, size_t last_group, T* scratch, bool load) {
        const size_t rows = std::min(lanes_, count_ - first_row);
        if (rows * 10 <= lanes_ * rows_worth_a_tile_tenths) {
            for (size_t i = 0; i < rows; ++i) row(first_row + i, first_group, last_group, scratch);
            return;
        }
        T *x = scratch, *a = x + size_ * lanes_, *b = a + size_ * lanes_;
        if (load) load_tile(first_row, rows, x);
        for (size_t g = first_group; g < last_group; ++g) {
            kernel_.fastfood_tile(group(g), x, a, b, features_, out_row(first_row), out_stride_,
                                  static_cast<int>(rows));
        }
    }

    void row(size_t i, size_t first_group, size_t last_group, T* scratch) {
        T *x = scratch, *a = x + size_, *b = a + size_;
        load_row(i, x);
        for (size_t g = first_group; g < last_group; ++g) {
            kernel_.fastfood_row(group(g), x, a, b, features_, out_row(i));
        }
    }

    void load_row(size_t i, T* to) const {
        std::visit([&](const auto& rows) { load_row(rows, i, to); }, x_);
    }
    void load_row(const DenseRows<T>& x, size_t i, T* to) const {
        std::memcpy(to, row_of(x, i), factors_.dim * sizeof(T));
        std::fill(to + factors_.dim, to + size_, T(0));
    }
    template <class Index>
    void load_row(const SparseRows<T, Index>& x, size_t i, T* to) const {
        std::fill(to, to + size_, T(0));
        add_entries(x, i, to, 1);
    }

    void load_tile(size_t first_row, size_t rows, T* to) const {
        std::visit([&](const auto& x) { load_tile(x, first_row, rows, to); }, x_);
    }
    void load_tile(const DenseRows<T>& x, size_t first_row, size_t rows, T* to) const {
        const T* from[64 / sizeof(T)];
        for (size_t i = 0; i < lanes_; ++i) from[i] = row_of(x, first_row + std::min(i, rows - 1));
        kernel_.interleave_rows(from, to, factors_.dim);
        std::fill(to + factors_.dim * lanes_, to + size_ * lanes_, T(0));
    }
    template <class Index>
    void load_tile(const SparseRows<T, Index>& x, size_t first_row, size_t rows, T* to) const {
        std::fill(to, to + size_ * lanes_, T(0));
        for (size_t i = 0; i < rows; ++i) add_entries(x, first_row + i, to + i, lanes_);
    }

    // Entries of one place add up, as they do in the matrix that they stand for.
    template <class Index>
    static void add_entries(const SparseRows<T, Index>& x, size_t row, T* to, size_t step) {
        for (Index e = x.starts[row]; e < x.starts[row + 1]; ++e) {
            to[static_cast<size_t>(x.indices[e]) * step] += x.values[e];
        }
    }

    static const T* row_of(const DenseRows<T>& x, size_t i) {
        return x.data + static_cast<ptrdiff_t>(i) * x.stride;
    }
    T* out_row(size_t i) const { return out_ + static_cast<ptrdiff_t>(i) * out_stride_; }

    const Rows<T>& x_;
    const FastfoodFactors<T>& factors_;
    const Features<T>& features_;
    T* out_;
    ptrdiff_t out_stride_;
    const KernelTable<T>& kernel_;
    size_t size_, count_, lanes_;
    bool tiled_;
    Execution execution_;
};

}  // namespace

template <class T>
bool fastfood(const Rows<T>& x, const FastfoodFactors<T>& factors, const Features<T>& features,
              T* out, ptrdiff_t out_stride, const Execution& execution) {
    return Job<T>(x, factors, features, out, out_stride, execution).run();
}

template bool fastfood(const Rows<float>&, const FastfoodFactors<float>&, const Features<float>&,
                       float*, ptrdiff_t, const Execution&);
template bool fastfood(const Rows<double>&, const FastfoodFactors<double>&, const Features<double>&,
                       double*, ptrdiff_t, const Execution&);

}  // namespace kernelmill
