// Damaged compressed rows, and rows that another thread changes: nothing outside is touched.
#include <atomic>
#include <cstring>
#include <limits>
#include <thread>

#include "arrays.hpp"
#include "check.hpp"
#include "kernelmill/dense.hpp"
#include "kernelmill/fastfood.hpp"
#include "kernelmill/row_products.hpp"
#include "kernelmill/tensor_sketch.hpp"

namespace kernelmill::tests {
namespace {

constexpr size_t dim = 13, entries_per_row = 5;

template <class T, class Index>
struct Compressed {
    std::vector<T> values;
    std::vector<Index> indices, starts{0};

    explicit Compressed(size_t rows) : values(numbers<T>(rows * entries_per_row, 1)) {
        for (size_t e = 0; e < values.size(); ++e) {
            indices.push_back(static_cast<Index>((3 * e + e / entries_per_row) % dim));
        }
        for (size_t i = 1; i <= rows; ++i) {
            starts.push_back(static_cast<Index>(i * entries_per_row));
        }
    }
    Rows<T> view() const {
        return SparseRows<T, Index>{values.data(), indices.data(), starts.data(), starts.size() - 1,
                                    dim,           values.size()};
    }
};

// What all functions that take compressed rows compute of them, one after the other.
template <class T>
class Everything {
  public:
    std::vector<T> operator()(const Rows<T>& x) const {
        const size_t rows = count_of(x);
        std::vector<T> found;
        const auto add = [&](size_t columns, auto&& compute) {
            std::vector<T> out(rows * columns);
            CHECK(compute(out.data(), static_cast<ptrdiff_t>(columns)));
            found.insert(found.end(), out.begin(), out.end());
        };
        add(m, [&](T* out, ptrdiff_t stride) {
            return dense_features<T>(x, {packed_.data(), m, dim}, 0, plain(m), out, stride, {});
        });
        for (const int log2_size : {4, 13}) {  // in tiles and row by row
            const size_t size = size_t(1) << log2_size;
            const FastfoodFactors<T> factors{
                log2_size,      dim, 1, 1, size, 1, signs_.data(), nullptr, factors_.data(),
                factors_.data()};
            add(16, [&](T* out, ptrdiff_t stride) {
                return fastfood<T>(x, factors, plain(16), out, stride, nullptr, {});
            });
        }
        for (const size_t length : {7, 12, 16, 512}) {
            for (const size_t degree : {1, 2}) {
                const CountSketches<T> sketches{degree,          dim,     length, buckets_.data(),
                                                factors_.data(), nullptr, nullptr};
                add(length, [&](T* out, ptrdiff_t stride) {
                    return tensor_sketch<T>(x, sketches, nullptr, out, stride, {});
                });
            }
        }
        for (const double* vector : {vector_.data(), static_cast<const double*>(nullptr)}) {
            std::vector<double> out(rows);
            CHECK(row_products<T>(x, dim, vector, out.data(), {}));
            found.insert(found.end(), out.begin(), out.end());
        }
        return found;
    }

  private:
    static constexpr size_t m = 40, longest = 8192;
    static Features<T> plain(size_t n) { return {FeatureKind::projection, n, 0, T(1), nullptr}; }
    static std::vector<T> pack() {
        std::vector<T> packed(packed_size<T>(m, dim));
        pack_frequencies(numbers<T>(m * dim, 2).data(), m, dim, packed.data());
        return packed;
    }

    std::vector<T> packed_ = pack(), signs_ = std::vector<T>(longest, T(1)),
                   factors_ = numbers<T>(longest, 3);
    std::vector<int32_t> buckets_ = std::vector<int32_t>(2 * dim, 6);
    std::vector<double> vector_ = numbers<double>(dim, 4);
};

template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

// Entries with a column that does not exist do not count, nor do places beyond the entries.
template <class T, class Index>
void skips_what_is_out_of_range(size_t rows) {
    const Everything<T> everything;
    Compressed<T, Index> whole(rows), less(rows);
    less.values[7] = 0;
    const auto expected = everything(less.view());
    constexpr Index largest = std::numeric_limits<Index>::max(),
                    lowest = std::numeric_limits<Index>::min();
    for (const Index wrong : {static_cast<Index>(dim), Index(-1), largest, lowest}) {
        Compressed<T, Index> damaged(rows);
        damaged.indices[7] = wrong;
        CHECK(same(everything(damaged.view()), expected));
    }
    const auto undamaged = everything(whole.view());
    for (const Index wrong : {static_cast<Index>(rows * entries_per_row + 1), largest, Index(-1)}) {
        Compressed<T, Index> damaged(rows);
        damaged.starts[rows] = wrong;
        CHECK(same(everything(damaged.view()), undamaged));
    }
    for (const Index wrong : {largest, lowest}) {  // rows end before they start, or are long
        Compressed<T, Index> damaged(rows);
        damaged.starts[rows / 2] = wrong;
        CHECK(everything(damaged.view()).size() == undamaged.size());
    }
}
TEST(sparse_rows_out_of_range_do_not_count) {
    on_every_isa([] {
        for (const size_t rows : {2, 3, 40}) {
            skips_what_is_out_of_range<float, int32_t>(rows);
            skips_what_is_out_of_range<double, int32_t>(rows);
            skips_what_is_out_of_range<double, int64_t>(rows);
        }
    });
}

TEST(sparse_rows_may_change_in_other_threads) {
    const Everything<float> everything;
    Compressed<float, int32_t> changing(40);
    std::atomic<bool> done{false};
    std::thread writer([&] {
        const auto set = [](int32_t& at, int32_t value) {
            __atomic_store_n(&at, value, __ATOMIC_RELAXED);
        };
        for (int32_t k = 0; !done.load(); ++k) {
            const bool odd = k % 2;
            for (int32_t& index : changing.indices) set(index, odd ? 0x7fffffff - k % 1000 : 3);
            for (size_t i = 1; i < changing.starts.size(); ++i) {
                set(changing.starts[i], odd ? 0x7fffffff : static_cast<int32_t>(5 * i));
            }
        }
    });
    for (int i = 0; i < 100; ++i) CHECK(!everything(changing.view()).empty());
    done = true;
    writer.join();
}

}  // namespace
}  // namespace kernelmill::tests
