// Gamma variables and what is made of them: chi and Student's t, at O(1) a draw for any parameter.
#include <algorithm>
#include <cmath>

#include "kernelmill/random.hpp"
#include "normals.hpp"
#include "philox.hpp"
#include "uniform.hpp"

namespace kernelmill::random {
namespace {

constexpr size_t elements_per_piece = size_t(1) << 10;  // some ten microseconds

// G. Marsaglia & W. W. Tsang, "A simple method for generating gamma variables", ACM TOMS 26 (2000).
//
// The draw at a position reads block number `position`: word 0 is the normal and word 1 the uniform
// of the rejection test, repeated with the next attempt number until one is accepted. A shape a < 1
// is drawn as a + 1 and multiplied by U^(1/a); U is word 2 of attempt 0. That factor underflows
// long before functions of the product do, so the caller gets log U and applies it at the end.
class GammaSampler {
  public:
    struct Draw {
        // A gamma variable of shape a; if boosted, of shape a + 1, and body * exp(log_boost / a) is
        // the one of shape a.
        double body, log_boost;
        uint64_t unused_word;  // word 3, left to the caller
    };

    explicit GammaSampler(double shape)
        : boosted_(shape < 1),
          d_((boosted_ ? shape + 1 : shape) - 1.0 / 3),
          c_(1 / (3 * std::sqrt(d_))) {}

    bool boosted() const { return boosted_; }

    // The draws at `first`, first + 1, ...; count <= words_per_chunk. The normals of the first
    // attempt, which nearly always is accepted, are made together.
    void draw(const Words& words, uint64_t first, Draw* draws, size_t count) const {
        uint64_t block[words_per_block], normal_words[words_per_chunk] = {};
        double uniforms[words_per_chunk], normals[words_per_chunk];
        for (size_t i = 0; i < count; ++i) {
            words.block(first + i, 0, block);
            normal_words[i] = block[0];
            uniforms[i] = uniform_from_word(block[1]);
            draws[i] = {0, boosted_ ? elementary::log(uniform_from_word(block[2])) : 0, block[3]};
        }
        normals_from_words(normal_words, normals, count);
        for (size_t i = 0; i < count; ++i) {
            double x = normals[i], u = uniforms[i];
            for (uint64_t attempt = 1; !accept(x, u, &draws[i].body); ++attempt) {
                words.block(first + i, attempt, block);
                x = normal_from_word(block[0]);
                u = uniform_from_word(block[1]);
            }
        }
    }

  private:
    bool accept(double x, double u, double* value) const {
        const double t = c_ * x, square = x * x;
        if (t <= -1) return false;
        *value = d_ * ((1 + t) * (1 + t) * (1 + t));
        return u < 1 - 0.0331 * (square * square) || elementary::log(u) < log_ratio(x, t);
    }

    // x^2 / 2 + d (1 - v + log v) for v = (1 + t)^3. As 9 d c^2 = 1, the terms up to t^3 cancel,
    // which for large shapes would leave rounding errors only; the series starts behind them.
    double log_ratio(double x, double t) const {
        if (t < -0.0625 || t > 0.0625) {
            const double v = (1 + t) * (1 + t) * (1 + t);
            return 0.5 * x * x + d_ * (1 - v + 3 * elementary::log(1 + t));
        }
        constexpr double series[] = {3.0 / 4,  -3.0 / 5,  3.0 / 6,  -3.0 / 7,  3.0 / 8,  -3.0 / 9,
                                     3.0 / 10, -3.0 / 11, 3.0 / 12, -3.0 / 13, 3.0 / 14, -3.0 / 15};
        const double square = x * x;  // d t^4 = x^2 t^2 / 9
        return -(square * (t * t) / 9) * elementary::horner(series, t);
    }

    bool boosted_;
    double d_, c_;
};

// out[i] = value(draw) for the gamma draws of the given shape.
template <class T, class Value>
bool fill_from_gammas(const Words& words, double shape, uint64_t start, T* out, size_t n,
                      const Execution& execution, Value value) {
    const GammaSampler sampler(shape);
    const bool boosted = sampler.boosted();
    return parallel_for(n, elements_per_piece, execution, [&](size_t begin, size_t end) {
        GammaSampler::Draw draws[words_per_chunk];
        for (size_t i = begin; i < end; i += words_per_chunk) {
            const size_t count = std::min(words_per_chunk, end - i);
            sampler.draw(words, start + i, draws, count);
            for (size_t k = 0; k < count; ++k) {
                out[i + k] = static_cast<T>(value(draws[k], boosted));
            }
        }
    });
}

}  // namespace

template <class T>
bool fill_gammas(Key key, uint64_t start, double shape, T* out, size_t n,
                 const Execution& execution) {
    return fill_from_gammas(Words(key, Tag::gammas), shape, start, out, n, execution,
                            [shape](const GammaSampler::Draw& g, bool boosted) {
                                return boosted ? g.body * elementary::exp(g.log_boost / shape)
                                               : g.body;
                            });
}

template <class T>
bool fill_chis(Key key, uint64_t start, double degrees_of_freedom, T* out, size_t n,
               const Execution& execution) {
    const double df = degrees_of_freedom;
    return fill_from_gammas(Words(key, Tag::chis), df / 2, start, out, n, execution,
                            [df](const GammaSampler::Draw& g, bool boosted) {
                                const double body = elementary::sqrt2 * std::sqrt(g.body);
                                return boosted ? body * elementary::exp(g.log_boost / df) : body;
                            });
}

// A normal over the root of an independent chi-square / df; word 3 of attempt 0 gives the normal.
template <class T>
bool fill_students(Key key, uint64_t start, double degrees_of_freedom, T* out, size_t n,
                   const Execution& execution) {
    const double df = degrees_of_freedom;
    return fill_from_gammas(
        Words(key, Tag::students), df / 2, start, out, n, execution,
        [df](const GammaSampler::Draw& g, bool boosted) {
            const double z = normal_from_word(g.unused_word);
            const double ratio = df / 2 / g.body;
            if (!boosted) return z * std::sqrt(ratio);
            return z * elementary::exp(0.5 * elementary::log(ratio) - g.log_boost / df);
        });
}

template bool fill_gammas(Key, uint64_t, double, double*, size_t, const Execution&);
template bool fill_gammas(Key, uint64_t, double, float*, size_t, const Execution&);
template bool fill_chis(Key, uint64_t, double, double*, size_t, const Execution&);
template bool fill_chis(Key, uint64_t, double, float*, size_t, const Execution&);
template bool fill_students(Key, uint64_t, double, double*, size_t, const Execution&);
template bool fill_students(Key, uint64_t, double, float*, size_t, const Execution&);

}  // namespace kernelmill::random
