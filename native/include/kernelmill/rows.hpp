// Rows of a matrix, dense or compressed.
#pragma once

#include <algorithm>
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

// Rows in compressed form: row i has the entries starts[i] to starts[i + 1]. Index: int32_t or
// int64_t.
//
// The arrays belong to the caller, and another of its threads may change them during a call. So
// every start and every index is read once, and compared with its bound where it is used: what
// lies outside does not count. Features of a damaged matrix are arbitrary, but no other memory is
// read or written.
template <class T, class Index>
struct SparseRows {
    const T* values;
    const Index* indices;
    const Index* starts;
    size_t count;    // number of rows
    size_t columns;  // upper bound of the indices, exclusive
    size_t stored;   // number of values and of indices

    // Calls visit(column, value) for each entry of a row, in order.
    template <class Visit>
    void for_entries(size_t row, Visit&& visit) const {
        const size_t end = place(row + 1);
        for (size_t e = place(row); e < end; ++e) {
            const size_t column = read_once(indices + e);
            if (column < columns) visit(column, values[e]);
        }
    }
    // The number of entries of all rows.
    size_t entries() const {
        const size_t first = place(0), end = place(count);
        return first < end ? end - first : 0;
    }

  private:
    // Where the entries of a row start.
    size_t place(size_t row) const { return std::min(read_once(starts + row), stored); }
    // Negative numbers become large unsigned ones.
    static size_t read_once(const Index* from) {
        return static_cast<size_t>(__atomic_load_n(from, __ATOMIC_RELAXED));
    }
};

template <class T>
using Rows = std::variant<DenseRows<T>, SparseRows<T, int32_t>, SparseRows<T, int64_t>>;

template <class T>
size_t count_of(const Rows<T>& rows) {
    return std::visit([](const auto& r) { return r.count; }, rows);
}

}  // namespace kernelmill
