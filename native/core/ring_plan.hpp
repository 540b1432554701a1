// The steps that split z^n - 1, and their constants.
#pragma once

#include <cstddef>
#include <vector>

#include "ring_steps.hpp"

namespace kernelmill {

struct RingPlan {
    std::vector<RingStep> steps;
    std::vector<RingSegment> segments;
};

// For a length whose ring_roots_size is not 0.
//
// The roots that fill_ring_roots writes are first, for each odd radix r in the order above, cos and
// sin of 2 pi k / r, k = 1, ..., (r - 1) / 2. Then e^(i t k / r), k = 1, ..., r - 1, for each ring
// z^m - e^(i t) that a step splits.
RingPlan ring_plan(size_t length);

}  // namespace kernelmill
