// One step of descent of a linear model with few outputs, from the derivatives of a batch.
//
// The weights of an output are those of D features and, behind them, that of a constant. A step is
// a move along the gradient, damped along some directions, and shorter where a parabola above the
// objective of the batch has its minimum before it. Weights are passed once for the gradient, once
// for the damping and once for the update of them and of their average. Sums have one order,
// whatever the number of threads.
#pragma once

#include <cstddef>

#include "kernelmill/few_outputs.hpp"
#include "kernelmill/rows.hpp"
#include "kernelmill/threads.hpp"

namespace kernelmill {

template <class T>
struct Batch {
    DenseRows<T> rows;  // features, D of each
    const T* factors;   // contiguous: for each row, the derivative of the mean loss by each score
};

template <class T>
struct Preconditioner {
    DenseRows<T> directions;  // of D + 1 elements
    const T* damping;         // what it takes away along each of them
};

struct StepRule {
    double step;
    double alpha;      // of the penalty alpha / 2 |weights|^2, that of the constant left out
    double constant;   // the last feature of every row
    double curvature;  // of the loss; 0: the whole step is taken
    double averaging;  // the share of the new weights in the average; 1: it is a copy of them
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
