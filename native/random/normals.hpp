// Words to normals: the inverse distribution function of one word each.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "normal_quantile.hpp"
#include "philox.hpp"

namespace kernelmill::random {

// A word as a sign and a point of (0, 1/2), given with its distance to 1/2: 63 bits of either, so
// that the neighbourhoods of both ends are resolved.
struct SignedHalf {
    explicit SignedHalf(uint64_t word)
        : sign(word & (uint64_t(1) << 63)),
          from_zero((static_cast<double>(static_cast<int64_t>(word & mask)) + 0.5) * 0x1p-64),
          to_half((static_cast<double>(static_cast<int64_t>(~word & mask)) + 0.5) * 0x1p-64) {}

    double with_sign(double magnitude) const {
        return std::bit_cast<double>(std::bit_cast<uint64_t>(magnitude) | sign);
    }

    uint64_t sign;
    double from_zero, to_half;

  private:
    static constexpr uint64_t mask = (uint64_t(1) << 63) - 1;
};

// One normal from one word: the sign, and the quantile at 1/2 + from_zero.
inline double normal_from_word(uint64_t word) {
    const SignedHalf u(word);
    return u.with_sign(u.from_zero <= central_bound ? central_quantile(u.from_zero)
                                                    : tail_quantile(u.to_half));
}

// normal_from_word for many words. The rational functions run in loops without branches, which
// compilers vectorize: that of the centre over all elements, that of the tail over the 15 % that
// lie there. The operations on an element, and so its bits, are those of normal_from_word.
// count <= words_per_chunk.
template <class T>
void normals_from_words(const uint64_t* words, T* out, size_t count) {
    double centre[words_per_chunk], root[words_per_chunk];
    uint32_t place[words_per_chunk];
    size_t tails = 0;
    for (size_t i = 0; i < count; ++i) {
        centre[i] = SignedHalf(words[i]).from_zero;
        place[tails] = static_cast<uint32_t>(i);
        tails += centre[i] > central_bound;
    }
    for (size_t i = 0; i < count; ++i) centre[i] = central_quantile(centre[i]);
    for (size_t i = 0; i < tails; ++i) root[i] = tail_root(SignedHalf(words[place[i]]).to_half);
    for (size_t i = 0; i < tails; ++i) {
        const double near = near_tail_quantile(root[i]);
        root[i] = root[i] <= near_tail_bound ? near : far_tail_quantile(root[i]);
    }
    for (size_t i = 0; i < tails; ++i) centre[place[i]] = root[i];
    for (size_t i = 0; i < count; ++i) {
        out[i] = static_cast<T>(SignedHalf(words[i]).with_sign(centre[i]));
    }
}

}  // namespace kernelmill::random
