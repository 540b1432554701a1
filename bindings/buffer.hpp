// A view of a NumPy array through the buffer protocol: no copy, no conversion, any strides.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "kernelmill/arrays.hpp"

namespace kernelmill::bindings {

namespace nb = nanobind;

class Buffer {
  public:
    enum class Access { read, write };

    Buffer(nb::handle object, Access access) {
        const int flags = access == Access::write ? PyBUF_RECORDS : PyBUF_RECORDS_RO;
        if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) throw nb::python_error();
        if (view_.ndim > 0 &&
            (!view_.shape || !view_.strides)) {  // some exporters violate the protocol
            PyBuffer_Release(&view_);
            throw nb::type_error("expected a numpy array");
        }
    }
    ~Buffer() { PyBuffer_Release(&view_); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    // 'f' float32, 'd' float64, 'Q' uint64, ...: the element's code in native byte order.
    char kind() const {
        const char* format = view_.format ? view_.format : "B";
        if (*format == '@' || *format == '=' || *format == '<') ++format;
        return format[0] != '\0' && format[1] == '\0' ? format[0] : '?';
    }
    // The bytes from the lowest to one past the highest element of one array and another.
    bool overlaps(const Buffer& other) const {
        const auto [low, high] = bounds();
        const auto [other_low, other_high] = other.bounds();
        return low < other_high && other_low < high;
    }
    // Whether two elements may share memory; false for slices and transposes.
    bool overlaps_itself() const {
        std::vector<std::pair<ptrdiff_t, ptrdiff_t>> steps;  // (distance, extent), nearest first
        for (int d = 0; d < view_.ndim; ++d) {
            if (view_.shape[d] > 1) steps.emplace_back(std::abs(view_.strides[d]), view_.shape[d]);
        }
        std::sort(steps.begin(), steps.end());
        ptrdiff_t reach = view_.itemsize;
        for (const auto& [distance, extent] : steps) {
            if (distance < reach) return true;
            reach += distance * (extent - 1);
        }
        return false;
    }
    bool same_elements(const Buffer& other) const {
        return view_.buf == other.view_.buf &&
               std::equal(view_.strides, view_.strides + view_.ndim, other.view_.strides);
    }
    int ndim() const { return view_.ndim; }
    ptrdiff_t extent(int d) const { return view_.shape[d]; }
    size_t size() const { return as<char>().size(); }

    template <class T>
    ArrayView<T> as() const {
        return {static_cast<T*>(view_.buf), view_.ndim, view_.shape, view_.strides};
    }

  private:
    std::pair<const char*, const char*> bounds() const {
        const char *low = static_cast<const char*>(view_.buf), *high = low;
        if (view_.len == 0) return {low, low};
        for (int d = 0; d < view_.ndim; ++d) {
            const ptrdiff_t reach = (view_.shape[d] - 1) * view_.strides[d];
            (reach < 0 ? low : high) += reach;
        }
        return {low, high + view_.itemsize};
    }

    Py_buffer view_{};
};

// Whether writing `to` would change elements of `from` before they are read. Identical views are
// safe, since every kernel reads a line before it writes it.
inline bool clash(const Buffer& from, const Buffer& to) {
    return from.overlaps(to) && !from.same_elements(to);
}

inline void require(bool holds, const char* what) {
    if (!holds) throw nb::type_error(what);
}

// Calls work(T{}) with the element type of a buffer.
template <class Work>
auto with_real_type(const Buffer& buffer, Work&& work) {
    switch (buffer.kind()) {
        case 'f': return work(float{});
        case 'd': return work(double{});
        default: throw nb::type_error("expected an array of float32 or float64");
    }
}

inline bool same_shape(const Buffer& a, const Buffer& b) {
    if (a.ndim() != b.ndim()) return false;
    for (int d = 0; d < a.ndim(); ++d) {
        if (a.extent(d) != b.extent(d)) return false;
    }
    return true;
}

}  // namespace kernelmill::bindings
