// From projections to features: sines, cosines, and where they go.
#pragma once

#include "feature_sincos.hpp"
#include "finite.hpp"
#include "kernelmill/features.hpp"

namespace kernelmill::KM_TARGET {

// Vectors whose sines and cosines are computed together.
constexpr int sincos_together = 4;

struct InterleaveLow {  // a0 b0 a1 b1 ...
    int width;
    constexpr int operator()(int lane) const { return lane % 2 ? width + lane / 2 : lane / 2; }
};
template <class T, int high>
struct InterleaveHalf {
    constexpr int operator()(int lane) const {
        return InterleaveLow{width<T>}(lane) + high * (width<T> / 2);
    }
};

// One vector of features of one row: the first `count` lanes are frequencies j, j + 1, ...
template <class T>
KM_INLINE void store_pair(const Features<T>& features, T* row, size_t j, Vec<T> c, Vec<T> s,
                          int count) {
    if (features.kind == FeatureKind::complex) {
        const Vec<T> low = shuffle<T>(c, s, InterleaveHalf<T, 0>{});
        const Vec<T> high = shuffle<T>(c, s, InterleaveHalf<T, 1>{});
        T* to = row + 2 * j;
        if (count == width<T>) {
            store(to, low);
            store(to + width<T>, high);
        } else {
            const int first = 2 * count < width<T> ? 2 * count : width<T>;
            store_first(to, low, first);
            store_first(to + first, high, 2 * count - first);
        }
    } else if (count == width<T>) {
        store(row + j, c);
        store(row + features.pairs + j, s);
    } else {
        store_first(row + j, c, count);
        store_first(row + features.pairs + j, s, count);
    }
}

// Lanes of z, times those of outer where that is given.
template <class T>
KM_INLINE Vec<T> scaled_lanes(const T* z, const T* outer, size_t at, int count) {
    if (count == width<T>) return outer ? load(z + at) * load(outer + at) : load(z + at);
    const Vec<T> v = load_first(z + at, count);
    return outer ? v * load_first(outer + at, count) : v;
}

// Along one row: z[0 .. n) are the projections of frequencies first, first + 1, ..., times outer[0
// .. n) where that is given. `row` is the start of the row's features.
template <class T>
void features_row(const T* z, const T* outer, size_t n, size_t first, const Features<T>& features,
                  T* row) {
    constexpr int w = width<T>;
    const Vec<T> scale = broadcast<T>(features.scale);
    const size_t end = first + n < features.frequencies ? first + n : features.frequencies;
    Vec<T> mark{};
    if (features.kind == FeatureKind::times) {
        for (size_t j = first; j < end; j += w) {
            const int count = static_cast<int>(end - j < w ? end - j : w);
            Vec<T> v = scaled_lanes(z, outer, j - first, count);
            if (count == w) {
                v *= load(row + j);
                store(row + j, v);
            } else {
                v *= load_first(row + j, count);
                store_first(row + j, v, count);
            }
            mark = see<T>(mark, v);
        }
        if (!has_seen_finite<T>(mark)) report_not_finite(features.not_finite);
        return;
    }
    if (features.kind == FeatureKind::projection || features.kind == FeatureKind::cos_phase) {
        for (size_t j = first; j < end; j += w) {
            const int count = static_cast<int>(end - j < w ? end - j : w);
            Vec<T> v = scaled_lanes(z, outer, j - first, count), s;
            if (features.kind == FeatureKind::cos_phase) {
                v +=
                    count == w ? load(features.phases + j) : load_first(features.phases + j, count);
                const Vec<T> x = v;
                feature_sincos<T, 1>(&x, &s, &v, scale, features.not_finite);
            }
            if (count == w) {
                store(row + j, v);
            } else {
                store_first(row + j, v, count);
            }
            mark = see<T>(mark, v);
        }
        if (!has_seen_finite<T>(mark)) report_not_finite(features.not_finite);
        return;
    }
    const size_t pairs_end = end < features.pairs ? end : features.pairs;
    size_t j = first;
    for (; j + sincos_together * w <= pairs_end; j += sincos_together * w) {
        Vec<T> x[sincos_together], s[sincos_together], c[sincos_together];
        KM_UNROLL
        for (int i = 0; i < sincos_together; ++i)
            x[i] = scaled_lanes(z, outer, j - first + i * w, w);
        feature_sincos<T, sincos_together>(x, s, c, scale, features.not_finite);
        KM_UNROLL
        for (int i = 0; i < sincos_together; ++i) {
            store_pair(features, row, j + i * w, c[i], s[i], w);
        }
    }
    for (; j < pairs_end; j += w) {
        const int count = static_cast<int>(pairs_end - j < w ? pairs_end - j : w);
        Vec<T> x = scaled_lanes(z, outer, j - first, count), s, c;
        feature_sincos<T, 1>(&x, &s, &c, scale, features.not_finite);
        store_pair(features, row, j, c, s, count);
    }
    if (end > features.pairs && first <= features.pairs) {  // the odd one
        Vec<T> x = scaled_lanes(z, outer, features.pairs - first, 1) +
                   features.phases[features.pairs],
               s, c;
        feature_sincos<T, 1>(&x, &s, &c, scale, features.not_finite);
        store_first(row + 2 * features.pairs, c, 1);
    }
}

}  // namespace kernelmill::KM_TARGET
