// Arrays for the tests: values that any arithmetic treats exactly, or arbitrary ones, and views.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernelmill/arrays.hpp"

namespace kernelmill::tests {

// A small generator of its own, so that the tests depend on nothing they test.
class Numbers {
  public:
    explicit Numbers(uint64_t seed) : state_(seed * 2654435769u + 1) {}
    double operator()() {  // in [-1, 1)
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        return static_cast<double>(static_cast<int64_t>(state_) >> 11) * 0x1p-52;
    }

  private:
    uint64_t state_;
};

template <class T>
std::vector<T> numbers(size_t count, uint64_t seed) {
    Numbers next(seed);
    std::vector<T> out(count);
    for (T& x : out) x = static_cast<T>(next());
    return out;
}

// A view with its own storage of shape and strides. Strides in elements.
template <class T>
struct Shaped {
    std::vector<ptrdiff_t> shape, strides;
    ArrayView<T> view;

    Shaped(T* data, std::vector<ptrdiff_t> extents, std::vector<ptrdiff_t> steps)
        : shape(std::move(extents)), strides(std::move(steps)) {
        for (auto& s : strides) s *= static_cast<ptrdiff_t>(sizeof(T));
        view = {data, static_cast<int>(shape.size()), shape.data(), strides.data()};
    }
    Shaped(const Shaped&) = delete;
    Shaped& operator=(const Shaped&) = delete;
};

}  // namespace kernelmill::tests
