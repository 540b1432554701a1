// Uniform permutations by the inside-out Fisher-Yates shuffle.
#include <algorithm>
#include <utility>

#include "kernelmill/random.hpp"
#include "philox.hpp"
#include "uniform.hpp"

namespace kernelmill::random {
namespace {

// The shuffle is one chain of steps, so it runs on the calling thread and asks for itself whether
// to stop: every few milliseconds to tenths of a second, as the cache allows.
constexpr size_t steps_between_questions = size_t(1) << 20;

}  // namespace

template <class T>
bool fill_permutation(Key key, uint64_t index, T* out, size_t n, const Execution& execution) {
    const Words source(key, Tag::permutation, index);
    uint64_t words[words_per_chunk];
    for (size_t i = 0; i < n; i += words_per_chunk) {
        const bool ask = execution.interrupted && i > 0 && i % steps_between_questions == 0;
        if (ask && execution.interrupted(execution.context)) return false;
        const size_t count = std::min(words_per_chunk, n - i);
        source.read(i, words, count);
        for (size_t k = 0; k < count; ++k) {
            const size_t last = i + k, j = bounded(source, last, words[k], last + 1);
            out[last] = static_cast<T>(last);
            std::swap(out[last], out[j]);
        }
    }
    return true;
}

template bool fill_permutation(Key, uint64_t, int64_t*, size_t, const Execution&);
template bool fill_permutation(Key, uint64_t, int32_t*, size_t, const Execution&);

}  // namespace kernelmill::random
