// One step of descent of a linear model with few outputs, from the derivatives of a batch.
//
// The weights of an output are those of D features, followed by that of a constant. A step moves
// along the gradient, damped along some directions, but not beyond the minimum of a parabola that
// bounds the objective of the batch from above. The weights are read once for the gradient, once
// for the damping and once for updating them and their average. Sums have the same order for any
// number of threads.
#pragma once

#include <cstddef>

#include "kernelmill/few_outputs.hpp"
#include "kernelmill/rows.hpp"
#include "kernelmill/threads.hpp"

namespace kernelmill {

template <class T>
struct Batch {
    DenseRows<T> rows;  // features, D of each
    const T* factors;   // derivatives of the mean loss by each score, one contiguous row per row
};

template <class T>
struct Preconditioner {
    DenseRows<T> directions;  // of D + 1 elements
    const T* damping;         // the share of the move that is removed along each direction
};

struct StepRule {
    double step;
    double alpha;      // the penalty is alpha / 2 |weights|^2 without the weight of the constant
    double constant;   // the last feature of every row
    double curvature;  // curvature of the loss; 0: take the whole step
    double averaging;  // share of the new weights in the average; 1 copies them
};

// Rows of D + 1 elements, one for each output. `move` is scratch.
template <class T>
struct DescentWeights {
    MutableRows<T> last, average, move;
};

// Takes the step, or a share of it. Returns false if it was interrupted: then `last` and `average`
// are as before.
template <class T>
bool descend(const Batch<T>& batch, size_t dim, const Preconditioner<T>& preconditioner,
             const StepRule& rule, const DescentWeights<T>& weights, double& share,
             const Execution& execution);

}  // namespace kernelmill
