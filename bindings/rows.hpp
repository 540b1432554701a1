// Matrices of rows that the C++ core reads and writes.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "buffer.hpp"
#include "kernelmill/rows.hpp"

namespace kernelmill::bindings {

template <class T>
constexpr char kind_of = 'd';
template <>
constexpr char kind_of<float> = 'f';

// The elements of a contiguous array of T.
template <class T>
const T* contiguous(const Buffer& buffer, char kind, const char* what) {
    const auto view = buffer.as<const T>();
    require(buffer.kind() == kind && view.contiguous(), what);
    return view.data;
}

// The distance of consecutive rows in elements; rows themselves must be contiguous.
template <class T>
ptrdiff_t row_stride(const ArrayView<T>& view) {
    constexpr auto item = static_cast<ptrdiff_t>(sizeof(T));
    require((view.shape[1] <= 1 || view.strides[1] == item) && view.strides[0] % item == 0 &&
                reinterpret_cast<uintptr_t>(view.data) % alignof(T) == 0,
            "the rows of a matrix must be contiguous");
    return view.strides[0] / item;
}

// The rows of a matrix, dense or as the tuple (data, indices, indptr, columns) of a CSR matrix.
template <class T>
class Input {
  public:
    explicit Input(nb::handle x) {
        if (nb::isinstance<nb::tuple>(x)) {
            take_sparse(nb::cast<nb::tuple>(x));
        } else {
            take_dense(x);
        }
    }

    Rows<T> rows;
    size_t count, dim;

  private:
    void take_dense(nb::handle x) {
        values_.emplace(x, Buffer::Access::read);
        require(values_->kind() == kind_of<T> && values_->ndim() == 2,
                "expected a matrix of the dtype of out");
        const auto view = values_->as<const T>();
        const auto stride = row_stride(view);
        count = static_cast<size_t>(view.shape[0]);
        dim = static_cast<size_t>(view.shape[1]);
        rows = DenseRows<T>{view.data, stride, count};
    }

    void take_sparse(const nb::tuple& parts) {
        require(parts.size() == 4, "expected (data, indices, indptr, columns)");
        values_.emplace(parts[0], Buffer::Access::read);
        indices_.emplace(parts[1], Buffer::Access::read);
        starts_.emplace(parts[2], Buffer::Access::read);
        require(nb::try_cast<size_t>(parts[3], dim), "columns must be a number of columns");
        require(starts_->ndim() == 1 && starts_->size() >= 1, "indptr must have an element");
        count = starts_->size() - 1;
        require(indices_->kind() == starts_->kind(), "indices and indptr must have one dtype");
        switch (starts_->kind()) {
            case 'i': return take_sparse_of<int32_t>();
            case 'l':
            case 'q': return take_sparse_of<int64_t>();
            default: throw nb::type_error("indices must be int32 or int64");
        }
    }

    // Starts and indices are not checked: entries out of range are ignored (see SparseRows).
    template <class Index>
    void take_sparse_of() {
        rows = SparseRows<T, Index>{
            contiguous<T>(*values_, kind_of<T>, "data must have the dtype of out"),
            contiguous<Index>(*indices_, indices_->kind(), "indices must be contiguous"),
            contiguous<Index>(*starts_, starts_->kind(), "indptr must be contiguous"),
            count,
            dim,
            std::min(values_->size(), indices_->size())};
    }

    std::optional<Buffer> values_, indices_, starts_;
};

}  // namespace kernelmill::bindings
