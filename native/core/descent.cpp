#include "kernelmill/descent.hpp"

#include <algorithm>
#include <vector>

#include "kernel_table.hpp"

namespace kernelmill {
namespace {

// Columns that are updated at a time, of one output; part of the order of sums.
constexpr size_t columns_per_piece = 2048;
// Directions that damp the move at a time, at least, and the bytes of them that stay in the caches
// between two products. Not fewer: threads exchange the move after each group, which is slow where
// they share no cache.
constexpr size_t fewest_directions = 16, bytes_of_directions = size_t(1) << 21;

template <class T>
DenseRows<T> read(const MutableRows<T>& rows) {
    return {rows.data, rows.stride, rows.count};
}

// The sum of a[i] * b[i], in 16 lanes that are then added in order.
template <class T>
double product(const T* a, const T* b, size_t n) {
    constexpr size_t lanes = 16;
    T sum[lanes]{};
    size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        for (size_t k = 0; k < lanes; ++k) sum[k] += a[i + k] * b[i + k];
    }
    for (size_t k = 0; i + k < n; ++k) sum[k] += a[i + k] * b[i + k];
    double total = 0;
    for (T part : sum) total += static_cast<double>(part);
    return total;
}

template <class T>
class Step {
  public:
    Step(const Batch<T>& batch, size_t dim, const Preconditioner<T>& preconditioner,
         const StepRule& rule, const DescentWeights<T>& weights, const Execution& execution)
        : batch_(batch),
          dim_(dim),
          preconditioner_(preconditioner),
          rule_(rule),
          last_(weights.last),
          average_(weights.average),
          move_(weights.move),
          outputs_(weights.last.count),
          pieces_((dim + 1 + columns_per_piece - 1) / columns_per_piece),
          execution_(execution) {}

    bool take(double& share) {
        share = 1;
        if (!gradient() || !precondition()) return false;
        if (rule_.curvature > 0 && !shorten(share)) return false;
        update(static_cast<T>(share * rule_.step));
        return true;
    }

  private:
    // Calls visit(output, first column, columns) for all pieces.
    template <class Visit>
    bool for_pieces(const Execution& execution, Visit&& visit) const {
        return parallel_for(outputs_ * pieces_, 2, execution, [&](size_t begin, size_t end) {
            for (size_t piece = begin; piece < end; ++piece) {
                const size_t j = piece % pieces_ * columns_per_piece;
                visit(piece / pieces_, j, std::min(columns_per_piece, dim_ + 1 - j));
            }
        });
    }
    static T* at(const MutableRows<T>& rows, size_t output, size_t column) {
        return rows.data + static_cast<ptrdiff_t>(output) * rows.stride + column;
    }

    bool gradient() {
        const auto alpha = static_cast<T>(rule_.alpha);
        const bool done = for_pieces(execution_, [&](size_t c, size_t j, size_t n) {
            kernels<T>().scale_row(at(last_, c, j), alpha, n, at(move_, c, j));
        });
        for (size_t c = 0; c < outputs_; ++c) {
            T sum = 0;
            for (size_t i = 0; i < batch_.rows.count; ++i) sum += batch_.factors[i * outputs_ + c];
            *at(move_, c, dim_) = static_cast<T>(rule_.constant) * sum;
        }
        return done && add_weighted_rows<T>(batch_.rows, batch_.factors, dim_, move_, execution_);
    }

    // Some directions after the others, each group by two products while it is in the cache. Being
    // orthogonal, they damp what the others leave as they would damp the gradient itself.
    bool precondition() {
        const DenseRows<T>& all = preconditioner_.directions;
        const size_t fitting = bytes_of_directions / sizeof(T) / (dim_ + 1) / 8 * 8;
        const size_t most = std::min(std::max(fitting, fewest_directions), all.count);
        std::vector<T> along(most * outputs_);
        for (size_t first = 0; first < all.count; first += most) {
            const DenseRows<T> some{all.data + static_cast<ptrdiff_t>(first) * all.stride,
                                    all.stride, std::min(most, all.count - first)};
            const MutableRows<T> scores{along.data(), static_cast<ptrdiff_t>(outputs_), some.count};
            if (!score_rows<T>(some, read(move_), dim_ + 1, scores, execution_)) return false;
            for (size_t i = 0; i < some.count * outputs_; ++i) {
                along[i] *= -preconditioner_.damping[first + i / outputs_];
            }
            if (!add_weighted_rows<T>(some, along.data(), dim_ + 1, move_, execution_)) {
                return false;
            }
        }
        return true;
    }

    // Finds the share of the step that leads to the minimum of a parabola above the objective of
    // the batch, if that is less than the whole of it.
    bool shorten(double& share) {
        const size_t n = batch_.rows.count;
        std::vector<T> change(n * outputs_);
        const MutableRows<T> scores{change.data(), static_cast<ptrdiff_t>(outputs_), n};
        if (!score_rows<T>(batch_.rows, read(move_), dim_, scores, execution_)) return false;
        for (size_t c = 0; c < outputs_; ++c) {
            const T shift = static_cast<T>(rule_.constant) * *at(move_, c, dim_);
            for (size_t i = 0; i < n; ++i) change[i * outputs_ + c] += shift;
        }
        double gain = product(batch_.factors, change.data(), change.size());
        double bend = rule_.curvature * product(change.data(), change.data(), change.size()) /
                      static_cast<double>(n);
        if (rule_.alpha > 0) {
            std::vector<double> gains(outputs_ * pieces_), bends(outputs_ * pieces_);
            const bool done = for_pieces(execution_, [&](size_t c, size_t j, size_t columns) {
                const size_t piece = c * pieces_ + j / columns_per_piece;
                const size_t penalized = std::min(columns, dim_ - j);  // not the constant
                const T* move = at(move_, c, j);
                gains[piece] = product(at(last_, c, j), move, penalized);
                bends[piece] = product(move, move, penalized);
            });
            if (!done) return false;
            for (size_t i = 0; i < gains.size(); ++i) {
                gain += rule_.alpha * gains[i];
                bend += rule_.alpha * bends[i];
            }
        }
        gain *= rule_.step;
        bend *= rule_.step * rule_.step;
        if (bend > gain && gain > 0) share = gain / bend;
        return true;
    }

    void update(T step) {
        Execution whole = execution_;  // half-updated weights would be of no use
        whole.interrupted = nullptr;
        const auto share = static_cast<T>(rule_.averaging);
        for_pieces(whole, [&](size_t c, size_t j, size_t n) {
            kernels<T>().step_row(at(last_, c, j), at(average_, c, j), at(move_, c, j), step, share,
                                  n);
        });
    }

    const Batch<T>& batch_;
    size_t dim_;
    const Preconditioner<T>& preconditioner_;
    const StepRule& rule_;
    const MutableRows<T>&last_, &average_, &move_;
    size_t outputs_, pieces_;
    const Execution& execution_;
};

}  // namespace

template <class T>
bool descend(const Batch<T>& batch, size_t dim, const Preconditioner<T>& preconditioner,
             const StepRule& rule, const DescentWeights<T>& weights, double& share,
             const Execution& execution) {
    return Step<T>(batch, dim, preconditioner, rule, weights, execution).take(share);
}

template bool descend(const Batch<float>&, size_t, const Preconditioner<float>&, const StepRule&,
                      const DescentWeights<float>&, double&, const Execution&);
template bool descend(const Batch<double>&, size_t, const Preconditioner<double>&, const StepRule&,
                      const DescentWeights<double>&, double&, const Execution&);

}  // namespace kernelmill
