// Distributions that take one word (or one bit) per element.
#include <algorithm>
#include <array>
#include <cstring>

#include "kernelmill/random.hpp"
#include "normals.hpp"
#include "philox.hpp"
#include "uniform.hpp"

namespace kernelmill::random {
namespace {

// Elements per piece of work: some ten microseconds.
constexpr size_t elements_per_piece = size_t(1) << 13;
constexpr size_t signs_per_piece = size_t(1) << 17;

// Calls transform(words, position, out, count) for chunks that together cover out[0 ... n).
template <class T, class Transform>
bool fill_from_words(const Words& source, uint64_t start, T* out, size_t n,
                     const Execution& execution, Transform transform) {
    return parallel_for(n, elements_per_piece, execution, [&](size_t begin, size_t end) {
        uint64_t words[words_per_chunk];
        for (size_t i = begin; i < end; i += words_per_chunk) {
            const size_t count = std::min(words_per_chunk, end - i);
            source.read(start + i, words, count);
            transform(words, start + i, out + i, count);
        }
    });
}

float below_one(float x) { return std::min(x, 0x1.fffffep-1f); }
double below_one(double x) { return x; }

// tan(pi u) for u uniform in (-1/2, 1/2), in loops without branches like normals_from_words.
template <class T>
void cauchys_from_words(const uint64_t* words, T* out, size_t count) {
    double from_zero[words_per_chunk], to_half[words_per_chunk];
    for (size_t i = 0; i < count; ++i) {
        const SignedHalf u(words[i]);
        from_zero[i] = u.from_zero;
        to_half[i] = u.to_half;
    }
    for (size_t i = 0; i < count; ++i) {
        from_zero[i] = elementary::tan_pi(from_zero[i], to_half[i]);
    }
    for (size_t i = 0; i < count; ++i) {
        out[i] = static_cast<T>(SignedHalf(words[i]).with_sign(from_zero[i]));
    }
}

// The signs of four bits, as they lie in memory.
template <class T>
constexpr auto sign_table = [] {
    std::array<std::array<T, 4>, 16> table{};
    for (size_t bits = 0; bits < 16; ++bits) {
        for (size_t i = 0; i < 4; ++i) table[bits][i] = bits >> i & 1 ? T(-1) : T(1);
    }
    return table;
}();

template <class T>
void signs_from_word(uint64_t word, T* out) {
    for (size_t i = 0; i < 16; ++i) {
        std::memcpy(out + 4 * i, sign_table<T>[word >> 4 * i & 15].data(), 4 * sizeof(T));
    }
}

// Signs `first` to `first + count`: sign i is bit i mod 64 of word i div 64.
template <class T>
void signs_from_words(const Words& source, uint64_t first, T* out, size_t count) {
    uint64_t words[words_per_chunk];
    while (count > 0) {
        const size_t skip = first % 64;
        const size_t taken = std::min(count, 64 * words_per_chunk - skip);
        source.read(first / 64, words, (skip + taken + 63) / 64);
        size_t done = 0;
        for (size_t bit = skip; done < taken;) {
            if (bit % 64 == 0 && taken - done >= 64) {
                signs_from_word(words[bit / 64], out + done);
                bit += 64;
                done += 64;
            } else {
                out[done++] = words[bit / 64] >> bit % 64 & 1 ? T(-1) : T(1);
                ++bit;
            }
        }
        first += taken;
        out += taken;
        count -= taken;
    }
}

}  // namespace

void philox_block(Key key, const uint64_t counter[4], uint64_t out[4]) {
    Philox(key).block(counter[0], counter[1], counter[2], counter[3], out);
}

template <class T>
bool fill_signs(Key key, uint64_t start, T* out, size_t n, const Execution& execution) {
    const Words source(key, Tag::signs);
    return parallel_for(n, signs_per_piece, execution, [&](size_t begin, size_t end) {
        signs_from_words(source, start + begin, out + begin, end - begin);
    });
}

template <class T>
bool fill_uniforms(Key key, uint64_t start, T* out, size_t n, const Execution& execution) {
    return fill_from_words(Words(key, Tag::uniforms), start, out, n, execution,
                           [](const uint64_t* words, uint64_t, T* to, size_t count) {
                               for (size_t i = 0; i < count; ++i) {
                                   to[i] = below_one(static_cast<T>(uniform_from_word(words[i])));
                               }
                           });
}

template <class T>
bool fill_normals(Key key, uint64_t start, T* out, size_t n, const Execution& execution) {
    return fill_from_words(Words(key, Tag::normals), start, out, n, execution,
                           [](const uint64_t* words, uint64_t, T* to, size_t count) {
                               normals_from_words(words, to, count);
                           });
}

template <class T>
bool fill_cauchys(Key key, uint64_t start, T* out, size_t n, const Execution& execution) {
    return fill_from_words(Words(key, Tag::cauchys), start, out, n, execution,
                           [](const uint64_t* words, uint64_t, T* to, size_t count) {
                               cauchys_from_words(words, to, count);
                           });
}

template <class T>
bool fill_integers(Key key, uint64_t start, uint64_t high, T* out, size_t n,
                   const Execution& execution) {
    const Words source(key, Tag::integers);
    return fill_from_words(
        source, start, out, n, execution,
        [&](const uint64_t* words, uint64_t position, T* to, size_t count) {
            for (size_t i = 0; i < count; ++i) {
                to[i] = static_cast<T>(bounded(source, position + i, words[i], high));
            }
        });
}

double normal_quantile(double p) {
    if (!(p >= 0 && p <= 1)) return std::numeric_limits<double>::quiet_NaN();
    if (p == 0) return -std::numeric_limits<double>::infinity();
    if (p == 1) return std::numeric_limits<double>::infinity();
    const double q = p - 0.5;
    if (q >= -central_bound && q <= central_bound) return central_quantile(q);
    return q < 0 ? -tail_quantile(p) : tail_quantile(1 - p);
}

double portable_log(double x) { return elementary::log(x); }
double portable_exp(double x) { return elementary::exp(x); }
double portable_tan_pi(double x) { return elementary::tan_pi(x, 0.5 - x); }

template bool fill_signs(Key, uint64_t, double*, size_t, const Execution&);
template bool fill_signs(Key, uint64_t, float*, size_t, const Execution&);
template bool fill_signs(Key, uint64_t, int8_t*, size_t, const Execution&);
template bool fill_uniforms(Key, uint64_t, double*, size_t, const Execution&);
template bool fill_uniforms(Key, uint64_t, float*, size_t, const Execution&);
template bool fill_normals(Key, uint64_t, double*, size_t, const Execution&);
template bool fill_normals(Key, uint64_t, float*, size_t, const Execution&);
template bool fill_cauchys(Key, uint64_t, double*, size_t, const Execution&);
template bool fill_cauchys(Key, uint64_t, float*, size_t, const Execution&);
template bool fill_integers(Key, uint64_t, uint64_t, int64_t*, size_t, const Execution&);
template bool fill_integers(Key, uint64_t, uint64_t, int32_t*, size_t, const Execution&);

}  // namespace kernelmill::random
