// Words to uniform numbers: real ones in (0, 1) and integers without bias.
#pragma once

#include <cstdint>

#include "philox.hpp"

namespace kernelmill::random {

// (k + 1/2) 2^-52 for the upper 52 bits k: exact, symmetric about 1/2, never 0 or 1. With 53 bits
// the largest value would round to 1.
inline double uniform_from_word(uint64_t word) {
    return (static_cast<double>(static_cast<int64_t>(word >> 12)) + 0.5) * 0x1p-52;
}

// Uniform in [0, bound): D. Lemire, "Fast random integer generation in an interval", ACM TOMACS 29
// (2019). `word` is the word of `words` at `position`, attempt 0.
inline uint64_t bounded(const Words& words, uint64_t position, uint64_t word, uint64_t bound) {
    using Wide = unsigned __int128;
    Wide product = Wide(word) * bound;
    if (static_cast<uint64_t>(product) < bound) [[unlikely]] {
        const uint64_t excess = (0 - bound) % bound;  // 2^64 mod bound
        for (uint64_t attempt = 1; static_cast<uint64_t>(product) < excess; ++attempt) {
            product = Wide(words.at(position, attempt)) * bound;
        }
    }
    return static_cast<uint64_t>(product >> 64);
}

}  // namespace kernelmill::random
