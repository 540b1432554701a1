// Memory for pieces of work, aligned for every vector width and freed on every exit.
#pragma once

#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

#include "kernelmill/threads.hpp"

namespace kernelmill {

constexpr std::align_val_t scratch_alignment{64};

template <class T>
class Scratch {
  public:
    explicit Scratch(size_t count) {
        if (count > std::numeric_limits<size_t>::max() / sizeof(T)) throw std::bad_alloc();
        data_ = static_cast<T*>(::operator new(count * sizeof(T), scratch_alignment));
    }
    ~Scratch() { ::operator delete(data_, scratch_alignment); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    T* data() { return data_; }

  private:
    T* data_;
};

// Scratch of `count` elements for each thread of a job, allocated on first use and used for all its
// pieces. The execution must be that of the job and state its number of threads, since the default
// number may change in between.
template <class T>
class ScratchPerThread {
  public:
    ScratchPerThread(size_t count, const Execution& execution)
        : count_(count), slots_(static_cast<size_t>(most_participants(execution))) {
        if (execution.n_threads == 0) throw std::logic_error("scratch for how many threads?");
    }

    T* mine() {
        auto& slot = slots_[static_cast<size_t>(participant())];
        if (!slot) slot = std::make_unique<Scratch<T>>(count_);
        return slot->data();
    }

  private:
    size_t count_;
    std::vector<std::unique_ptr<Scratch<T>>> slots_;
};

// Between a strided line and contiguous memory. memcpy, since a stride may leave elements
// unaligned.
template <class T>
void gather(const char* src, ptrdiff_t stride, T* dst, size_t n) {
    if (stride == static_cast<ptrdiff_t>(sizeof(T))) {
        std::memcpy(dst, src, n * sizeof(T));
        return;
    }
    for (size_t i = 0; i < n; ++i, src += stride) std::memcpy(dst + i, src, sizeof(T));
}

template <class T>
void scatter(const T* src, char* dst, ptrdiff_t stride, size_t n) {
    if (stride == static_cast<ptrdiff_t>(sizeof(T))) {
        std::memcpy(dst, src, n * sizeof(T));
        return;
    }
    for (size_t i = 0; i < n; ++i, dst += stride) std::memcpy(dst, src + i, sizeof(T));
}

}  // namespace kernelmill
