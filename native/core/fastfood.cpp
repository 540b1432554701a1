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
// A tile costs about as much as this number of single rows, in tenths of its lanes.
constexpr size_t rows_worth_a_tile_tenths = 5;
// Elements of output per piece of work.
constexpr size_t elements_per_piece = size_t(1) << 14;

template <class T>
class Job {
  public:
    Job(const Rows<T>& x, const FastfoodFactors<T>& factors, const Features<T>& features, T* out,
        ptrdiff_t out_stride, const Scoring<T>* scoring, const Execution& execution)
        : x_(x),
          factors_(factors),
          features_(features),
          out_(out),
          out_stride_(out_stride),
          scoring_(scoring),
          kernel_(kernels<T>()),
          size_(size_t(1) << factors.log2_size),
          count_(count_of(x)),
          lanes_(static_cast<size_t>(kernel_.width)),
          tiled_(factors.log2_size >= smallest_tile && factors.log2_size <= largest_tile),
          execution_(execution) {
        execution_.n_threads = most_participants(execution);  // for the scratch and for the threads
        if (tiled_) kernel_.fastfood_tile_layout(factors.log2_size, &log2_part_, &gap_);
        part_ = size_t(1) << log2_part_;
        tile_size_ = (place(size_ - 1) + 1) * lanes_;
    }

    bool run() {
        const size_t groups = used_groups();
        if (count_ == 0 || groups == 0) return score_all();
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
        ScratchPerThread<T> scratch(3 * (tiled_ ? tile_size_ : size_), execution_);
        const bool score_at_once = scoring_ && parts == 1;
        const bool done =
            parallel_for(row_sets * parts, grain, execution_, [&](size_t begin, size_t end) {
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
                    if (score_at_once) {
                        const size_t from = set * rows_per_set;
                        score_some_rows(features_rows(), scoring_->weights, scoring_->dim,
                                        scoring_->scores, from,
                                        std::min(count_, from + rows_per_set));
                    }
                }
            });
        return done && (score_at_once || score_all());
    }

  private:
    DenseRows<T> features_rows() const { return {out_, out_stride_, count_}; }
    bool score_all() const {
        return !scoring_ || score_rows<T>(features_rows(), scoring_->weights, scoring_->dim,
                                          scoring_->scores, execution_);
    }
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
        T *x = scratch, *a = x + tile_size_, *b = a + tile_size_;
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
        x.for_entries(i, [&](size_t k, T value) { to[k] += value; });
    }

    void load_tile(size_t first_row, size_t rows, T* to) const {
        std::visit([&](const auto& x) { load_tile(x, first_row, rows, to); }, x_);
    }
    void load_tile(const DenseRows<T>& x, size_t first_row, size_t rows, T* to) const {
        const T* from[64 / sizeof(T)];
        for (size_t k = 0; k < size_; k += part_) {
            T* part = to + place(k) * lanes_;
            const size_t here = std::min(part_, factors_.dim - std::min(k, factors_.dim));
            for (size_t i = 0; i < lanes_ && here > 0; ++i) {
                from[i] = row_of(x, first_row + std::min(i, rows - 1)) + k;
            }
            kernel_.interleave_rows(from, part, here);
            std::fill(part + here * lanes_, part + part_ * lanes_, T(0));
        }
    }
    template <class Index>
    void load_tile(const SparseRows<T, Index>& x, size_t first_row, size_t rows, T* to) const {
        std::fill(to, to + tile_size_, T(0));
        for (size_t i = 0; i < rows; ++i) {
            x.for_entries(first_row + i,
                          [&](size_t k, T value) { to[place(k) * lanes_ + i] += value; });
        }
    }

    // The tile row of coordinate k.
    size_t place(size_t k) const { return k + (k >> log2_part_) * gap_; }

    static const T* row_of(const DenseRows<T>& x, size_t i) {
        return x.data + static_cast<ptrdiff_t>(i) * x.stride;
    }
    T* out_row(size_t i) const { return out_ + static_cast<ptrdiff_t>(i) * out_stride_; }

    const Rows<T>& x_;
    const FastfoodFactors<T>& factors_;
    const Features<T>& features_;
    T* out_;
    ptrdiff_t out_stride_;
    const Scoring<T>* scoring_;
    const KernelTable<T>& kernel_;
    size_t size_, count_, lanes_;
    bool tiled_;
    int log2_part_ = 0;
    size_t gap_ = 0, part_, tile_size_;
    Execution execution_;
};

}  // namespace

template <class T>
bool fastfood(const Rows<T>& x, const FastfoodFactors<T>& factors, const Features<T>& features,
              T* out, ptrdiff_t out_stride, const Scoring<T>* scoring, const Execution& execution) {
    return Job<T>(x, factors, features, out, out_stride, scoring, execution).run();
}

template bool fastfood(const Rows<float>&, const FastfoodFactors<float>&, const Features<float>&,
                       float*, ptrdiff_t, const Scoring<float>*, const Execution&);
template bool fastfood(const Rows<double>&, const FastfoodFactors<double>&, const Features<double>&,
                       double*, ptrdiff_t, const Scoring<double>*, const Execution&);

}  // namespace kernelmill
