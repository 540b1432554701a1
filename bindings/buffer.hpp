// A NumPy array seen through the buffer protocol: no copy, no conversion, any strides.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "kernelmill/arrays.hpp"

namespace kernelmill::bindings {

namespace nb = nanobind;

class Buffer {
  public:
    enum class Access { read, write };

    Buffer(nb::handle object, Access access) {
        const int flags = access == Access::write ? PyBUF_RECORDS : PyBUF_RECORDS_RO;
        if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) throw nb::python_error();
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
    int ndim() const { return view_.ndim; }
    ptrdiff_t extent(int d) const { return view_.shape[d]; }
    size_t size() const { return static_cast<size_t>(view_.len / view_.itemsize); }

    template <class T>
    ArrayView<T> as() const {
        return {static_cast<T*>(view_.buf), view_.ndim, view_.shape, view_.strides};
    }

  private:
    Py_buffer view_{};
};

inline void require(bool holds, const char* what) {
    if (!holds) throw nb::type_error(what);
}

inline bool same_shape(const Buffer& a, const Buffer& b) {
    if (a.ndim() != b.ndim()) return false;
    for (int d = 0; d < a.ndim(); ++d) {
        if (a.extent(d) != b.extent(d)) return false;
    }
    return true;
}

}  // namespace kernelmill::bindings
