// Rows of a matrix, dense or compressed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

namespace kernelmill {

// Rows of contiguous elements, `stride` elements apart.
template <class T>
struct DenseRows {
    const T* data;
    ptrdiff_t stride;
    size_t count;
};

// Rows in compressed form: row i has the entries starts[i] to starts[i + 1]. Every index must be
// below the number of columns; this is not checked. Index: int32_t or int64_t.
template <class T, class Index>
struct SparseRows {
    const T* values;
    const Index* indices;
    const Index* starts;
    size_t count;
};

template <class T>
using Rows = std::variant<DenseRows<T>, SparseRows<T, int32_t>, SparseRows<T, int64_t>>;

template <class T>
size_t count_of(const Rows<T>& rows) {
    return std::visit([](const auto& r) { return r.count; }, rows);
}

}  // namespace kernelmill
