#include "ring_plan.hpp"

#include <bit>
#include <utility>

#include "kernelmill/tensor_sketch.hpp"
#include "twiddles.hpp"

namespace kernelmill {
namespace {

constexpr size_t units_breadth_first = 256;

int next_radix(size_t size, bool real) {
    for (int r : odd_radices) {
        if (size % static_cast<size_t>(r) == 0) return r;
    }
    return size % 4 == 0 && !real ? 4 : 2;
}

// Walks through the rings in the order in which they are split. Angles are in turns.
class Planner {
  public:
    explicit Planner(size_t n) : length_(n) {
        for (int r : odd_radices) {
            for (int k = 1; k <= (r - 1) / 2; ++k) turns.push_back(1.0 * k / r);
        }
        split_real();
    }

    RingPlan plan;
    std::vector<double> turns;  // of all roots

  private:
    void split_real() {
        size_t size = length_;
        const double n = static_cast<double>(length_);
        while (size > 1) {
            const int r = next_radix(size, true);
            const auto radix = static_cast<size_t>(r);
            const size_t stride = size / radix;
            plan.steps.push_back({r, true, 0, 0, stride, 1, 0});
            if (r > 2) {
                for (size_t q = 1; q <= (radix - 1) / 2; ++q) {
                    const size_t re = (2 * q - 1) * stride;
                    plan.segments.push_back({false, re, re + stride, stride, 1 / n});
                    split_complex(re, re + stride, stride, 1.0 * static_cast<double>(q) / r);
                }
            } else if (stride == 1) {
                plan.segments.push_back({true, 1, 0, 1, 1 / n});
            } else {
                const size_t half = stride / 2;
                plan.segments.push_back({false, stride, stride + half, half, 2 / n});
                split_complex(stride, stride + half, half, 0.25);
            }
            size = stride;
        }
        plan.segments.push_back({true, 0, 0, 1, 1 / n});
    }

    // The ring z^size - e^(2 pi i angle).
    void split_complex(size_t re, size_t im, size_t size, double angle) {
        std::vector<double> angles{angle};
        while (size > 1) {
            const int r = next_radix(size, false);
            const size_t stride = size / static_cast<size_t>(r);
            plan.steps.push_back({r, false, re, im, stride, angles.size(), 2 * turns.size()});
            std::vector<double> factors;
            for (double a : angles) {
                for (int k = 1; k < r; ++k) turns.push_back(a * k / r);
                for (int q = 0; q < r; ++q) {
                    // Of four factors the second and third come in each other's place.
                    const int place = r == 4 && (q == 1 || q == 2) ? 3 - q : q;
                    factors.push_back((a + place) / r);
                }
            }
            if (angles.size() == 1 && size > units_breadth_first) {
                for (size_t q = 0; q < factors.size(); ++q) {
                    split_complex(re + q * stride, im + q * stride, stride, factors[q]);
                }
                return;
            }
            angles = std::move(factors);
            size = stride;
        }
    }

    size_t length_;
};

}  // namespace

size_t ring_roots_size(size_t length) {
    if (std::has_single_bit(length)) return 0;
    size_t rest = length;
    for (int r : odd_radices) {
        while (rest > 0 && rest % static_cast<size_t>(r) == 0) rest /= static_cast<size_t>(r);
    }
    return std::has_single_bit(rest) ? 2 * Planner(length).turns.size() : 0;
}

RingPlan ring_plan(size_t length) { return Planner(length).plan; }

template <class T>
void fill_ring_roots(size_t length, T* out) {
    for (double turns : Planner(length).turns) {
        put_root(turns, out, out + 1);
        out += 2;
    }
}

template void fill_ring_roots(size_t, float*);
template void fill_ring_roots(size_t, double*);

}  // namespace kernelmill
