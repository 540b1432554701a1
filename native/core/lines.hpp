// The lines along one axis of several arrays of one shape: line i of each starts at a byte offset.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "kernelmill/arrays.hpp"

namespace kernelmill {

class Lines {
  public:
    // strides[k] are the byte strides of operand k, `ndim` of them.
    Lines(int ndim, const ptrdiff_t* shape, int axis, std::vector<const ptrdiff_t*> strides)
        : strides_(std::move(strides)), steps_(strides_.size()) {
        for (int d = 0; d < ndim; ++d) {
            if (d != axis && shape[d] != 1) add_dimension(shape[d], d);
        }
        for (ptrdiff_t extent : shape_) count_ *= static_cast<size_t>(extent);
    }

    size_t count() const { return count_; }

    ptrdiff_t offset(size_t operand, size_t line) const {
        ptrdiff_t at = 0;
        for (size_t d = shape_.size(); d-- > 0;) {
            const auto extent = static_cast<size_t>(shape_[d]);
            at += static_cast<ptrdiff_t>(line % extent) * steps_[operand][d];
            line /= extent;
        }
        return at;
    }

    // Reorders so that the fastest dimension is one along which every operand has this step.
    // Returns the extent of that dimension, or 0 if there is none.
    size_t bring_to_front(ptrdiff_t step) {
        for (size_t d = 0; d < shape_.size(); ++d) {
            if (!std::all_of(steps_.begin(), steps_.end(), [&](auto& s) { return s[d] == step; })) {
                continue;
            }
            const auto rotate = [d](auto& v) {
                std::rotate(v.begin() + static_cast<ptrdiff_t>(d),
                            v.begin() + static_cast<ptrdiff_t>(d) + 1, v.end());
            };
            rotate(shape_);
            for (auto& s : steps_) rotate(s);
            return static_cast<size_t>(shape_.back());
        }
        return 0;
    }

  private:
    void add_dimension(ptrdiff_t extent, int d) {
        const bool merges =
            !shape_.empty() && extent > 0 &&
            std::all_of(steps_.begin(), steps_.end(), [&, k = size_t(0)](auto& s) mutable {
                return s.back() == strides_[k++][d] * extent;
            });
        if (merges) {
            shape_.back() *= extent;
            for (size_t k = 0; k < steps_.size(); ++k) steps_[k].back() = strides_[k][d];
            return;
        }
        shape_.push_back(extent);
        for (size_t k = 0; k < steps_.size(); ++k) steps_[k].push_back(strides_[k][d]);
    }

    std::vector<const ptrdiff_t*> strides_;
    std::vector<ptrdiff_t> shape_;
    std::vector<std::vector<ptrdiff_t>> steps_;  // [operand][dimension]
    size_t count_ = 1;
};

}  // namespace kernelmill
