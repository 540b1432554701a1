// Philox4x64-10: Salmon, Moraes, Dror & Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011).
//
// The counter is (block, attempt, row, tag). Each distribution has its own tag, so that draws of
// different distributions from one key at one position are independent. Nothing here can ever
// change: saved models regenerate their coefficients from it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernelmill/random.hpp"

namespace kernelmill::random {

enum class Tag : uint64_t {
    signs = 1,
    uniforms = 2,
    normals = 3,
    cauchys = 4,
    gammas = 5,
    chis = 6,
    students = 7,
    sphere = 8,
    ball = 9,
    integers = 10,
    permutation = 11,
    bucket_hash = 12,
    sign_hash = 13,
    orthogonal = 14,
};

constexpr size_t words_per_block = 4;
// Words that a distribution reads at a time: 2 KiB, which stays in the first-level cache.
constexpr size_t words_per_chunk = 256;

class Philox {
  public:
    explicit Philox(Key key) {
        for (int round = 0; round < rounds; ++round) {
            round_keys_[round] = key;
            key.low += 0x9E3779B97F4A7C15;
            key.high += 0xBB67AE8584CAA73B;
        }
    }

    void block(uint64_t c0, uint64_t c1, uint64_t c2, uint64_t c3, uint64_t* out) const {
        for (const Key& key : round_keys_) {
            const Wide a = Wide(0xD2E7470EE14C6C93) * c0, b = Wide(0xCA5A826395121157) * c2;
            c0 = high_half(b) ^ c1 ^ key.low;
            c1 = static_cast<uint64_t>(b);
            c2 = high_half(a) ^ c3 ^ key.high;
            c3 = static_cast<uint64_t>(a);
        }
        out[0] = c0;
        out[1] = c1;
        out[2] = c2;
        out[3] = c3;
    }

  private:
    using Wide = unsigned __int128;
    static uint64_t high_half(Wide x) { return static_cast<uint64_t>(x >> 64); }

    static constexpr int rounds = 10;
    Key round_keys_[rounds];
};

// The infinite sequence of 64-bit words of one key, tag and row: word i is word i mod 4 of block
// i div 4. A rejected word is replaced by the word at the same place with the next attempt number.
class Words {
  public:
    Words(Key key, Tag tag, uint64_t row = 0)
        : philox_(key), row_(row), tag_(static_cast<uint64_t>(tag)) {}

    void block(uint64_t number, uint64_t attempt, uint64_t* out) const {
        philox_.block(number, attempt, row_, tag_, out);
    }

    uint64_t at(uint64_t position, uint64_t attempt) const {
        uint64_t words[words_per_block];
        block(position / words_per_block, attempt, words);
        return words[position % words_per_block];
    }

    // out[i] = word first + i at attempt 0.
    void read(uint64_t first, uint64_t* out, size_t count) const {
        uint64_t number = first / words_per_block, words[words_per_block];
        size_t done = 0;
        if (const size_t skip = first % words_per_block; skip != 0) {
            block(number++, 0, words);
            for (size_t i = skip; i < words_per_block && done < count; ++i) out[done++] = words[i];
        }
        for (; count - done >= words_per_block; done += words_per_block) {
            block(number++, 0, out + done);
        }
        if (done < count) {
            block(number, 0, words);
            for (size_t i = 0; done < count; ++i) out[done++] = words[i];
        }
    }

  private:
    Philox philox_;
    uint64_t row_, tag_;
};

}  // namespace kernelmill::random
