// Hash functions by random polynomials over the prime field of 2^61 - 1: J. L. Carter & M. N.
// Wegman, "Universal classes of hash functions" (1979) and "New hash functions and their use in
// authentication and set equality" (1981). A polynomial with k uniform coefficients is k-wise
// independent: its values at any k distinct points are independent and uniform in the field.
#include <atomic>

#include "kernelmill/random.hpp"
#include "philox.hpp"
#include "uniform.hpp"

namespace kernelmill::random {
namespace {

constexpr size_t elements_per_piece = size_t(1) << 12;  // some ten microseconds

using Wide = unsigned __int128;

// a x + b mod the prime for a, x, b below it. 2^61 = 1 mod the prime, so the upper bits are added
// to the lower ones.
uint64_t multiply_add(uint64_t a, uint64_t x, uint64_t b) {
    const Wide product = Wide(a) * x + b;
    uint64_t sum =
        (static_cast<uint64_t>(product) & hash_prime) + static_cast<uint64_t>(product >> 61);
    return sum >= hash_prime ? sum - hash_prime : sum;
}

uint64_t evaluate(HashPolynomial h, uint64_t x) {
    uint64_t value = h.coefficients[h.count - 1];
    for (size_t i = h.count - 1; i-- > 0;) value = multiply_add(value, x, h.coefficients[i]);
    return value;
}

template <class T, class Map>
bool hash_all(HashPolynomial h, const uint64_t* x, T* out, size_t n, size_t* bad,
              const Execution& execution, Map map) {
    std::atomic<size_t> found{n};
    const bool done = parallel_for(n, elements_per_piece, execution, [&](size_t begin, size_t end) {
        bool outside = false;
        for (size_t i = begin; i < end; ++i) {
            // What is outside is reported afterwards; masked, it cannot overflow on the way.
            outside |= x[i] >= hash_prime;
            out[i] = map(evaluate(h, x[i] & hash_prime));
        }
        for (size_t i = begin; outside && i < end; ++i) {
            if (x[i] >= hash_prime) found = i;
        }
    });
    if (found < n) *bad = found;
    return done;
}

}  // namespace

void draw_hash_coefficients(Key key, uint64_t use, uint64_t index, uint64_t* out, size_t count) {
    const Words words(key, use == 0 ? Tag::bucket_hash : Tag::sign_hash, index);
    for (size_t i = 0; i < count; ++i) out[i] = bounded(words, i, words.at(i, 0), hash_prime);
}

bool hash_to_buckets(HashPolynomial h, uint64_t n_buckets, const uint64_t* x, int64_t* out,
                     size_t n, size_t* bad, const Execution& execution) {
    return hash_all(h, x, out, n, bad, execution, [n_buckets](uint64_t value) {
        return static_cast<int64_t>((Wide(value) * n_buckets) >> 61);
    });
}

template <class T>
bool hash_to_signs(HashPolynomial h, const uint64_t* x, T* out, size_t n, size_t* bad,
                   const Execution& execution) {
    return hash_all(h, x, out, n, bad, execution,
                    [](uint64_t value) { return value >> 60 ? T(-1) : T(1); });
}

template bool hash_to_signs(HashPolynomial, const uint64_t*, int8_t*, size_t, size_t*,
                            const Execution&);
template bool hash_to_signs(HashPolynomial, const uint64_t*, int64_t*, size_t, size_t*,
                            const Execution&);
template bool hash_to_signs(HashPolynomial, const uint64_t*, float*, size_t, size_t*,
                            const Execution&);
template bool hash_to_signs(HashPolynomial, const uint64_t*, double*, size_t, size_t*,
                            const Execution&);

}  // namespace kernelmill::random
