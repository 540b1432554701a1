// Fastfood: z = S H G P H B x and its features, for as many rows at once as a vector has lanes.
//
// A tile holds one row in each lane: every butterfly is vertical, the permutation moves whole
// vectors, the diagonals are broadcasts. Signs, permutation and normals are applied by the first
// pass of the transform that follows them, lengths by its last pass. Values go through the same
// operations as in fastfood_row below, so a row's features do not depend on which of the two
// computed them.
#pragma once

#include "../core/fastfood_group.hpp"
#include "features.hpp"
#include "fwht.hpp"

namespace kernelmill::KM_TARGET {

// Levels done by the first pass of a transform of `levels` levels whose last pass has radix 8. Four
// levels above that are 2 + 2: a pass of radix 2 moves as much memory as one of radix 8.
constexpr int fastfood_first_pass(int levels) {
    const int above = levels - 3;
    if (above % 3 == 0) return 3;
    return above == 1 ? 1 : 2;
}

// The parts that the first pass makes lie `gap` tile rows further apart than they are long: some
// KiB apart, a power of two, eight of them would compete for one set of the nearest cache.
struct FastfoodTileLayout {
    int log2_part;
    size_t gap;
    size_t at(size_t k) const { return k + (k >> log2_part) * gap; }
};
KM_INLINE FastfoodTileLayout tile_layout_of(int levels) {
    return {levels - fastfood_first_pass(levels), levels >= 11 ? size_t(8) : size_t(0)};
}
// For those who fill the tile x.
static void fastfood_tile_layout(int levels, int* log2_part, size_t* gap) {
    const FastfoodTileLayout layout = tile_layout_of(levels);
    *log2_part = layout.log2_part;
    *gap = layout.gap;
}

// One pass in place; `stride` in elements.
template <class T>
KM_INLINE void fastfood_pass(T* tile, size_t stride, int log2_radix) {
    if (log2_radix == 3) fwht_columns<T, 8, false>(tile, tile, stride, 0, stride, T(1));
    if (log2_radix == 2) fwht_columns<T, 4, false>(tile, tile, stride, 0, stride, T(1));
    if (log2_radix == 1) fwht_columns<T, 2, false>(tile, tile, stride, 0, stride, T(1));
}

// All levels of one part but the last three, smaller parts one after another so that each stays in
// the nearest cache. Calls last(at, k) for every run of eight tile rows, at `at`, once the levels
// above it are done; the first of them is row k of the whole. Units of 64 rows are done as a whole
// where there are any: the loop over them is not recursive, since it is to be inlined, but an
// odometer of the passes above.
template <class T, class Last>
KM_INLINE void fastfood_levels(T* part, size_t first_row, int levels, const Last& last) {
    constexpr size_t w = width<T>;
    const int log2_unit = levels >= 6 ? 6 : 3;
    int radix[16], depth = 0;
    for (int left = levels; left > log2_unit; left -= radix[depth++]) {
        radix[depth] = fastfood_first_pass(left - log2_unit + 3);
    }
    const size_t unit = size_t(1) << log2_unit, rows = size_t(1) << levels;
    for (size_t k = 0; k < rows; k += unit) {
        T* at = part + k * w;
        for (int pass = 0, left = levels; pass < depth; ++pass) {
            const size_t covered = size_t(1) << left;
            left -= radix[pass];
            if (k % covered == 0) fastfood_pass(at, w << left, radix[pass]);
        }
        if (unit == 64) {
            fwht_columns<T, 8, false>(at, at, 8 * w, 0, 8 * w, T(1));
            for (size_t i = 0; i < 64; i += 8) last(at + i * w, first_row + k + i);
        } else {
            last(at, first_row + k);
        }
    }
}

// One pass from `src` to `dst`: row k of the source, at place[k] if there are places, times
// factor[k].
template <class T, int radix, bool permuted>
KM_INLINE void fastfood_scaled_pass(const T* src, const int32_t* place, const T* factor, T* dst,
                                    FastfoodTileLayout layout) {
    constexpr size_t w = width<T>;
    const Vec<T> one = opaque_one<T>();
    const size_t part = size_t(1) << layout.log2_part, stride = part + layout.gap;
    for (size_t k = 0; k < part; ++k) {
        Vec<T> r[radix];
        KM_UNROLL
        for (int i = 0; i < radix; ++i) {
            const size_t row = k + i * part;
            const size_t from =
                permuted ? layout.at(static_cast<size_t>(place[row])) : k + i * stride;
            r[i] = load(src + from * w) * broadcast(factor[row]);
        }
        butterflies<T, radix>(r, one);
        KM_UNROLL
        for (int i = 0; i < radix; ++i) store(dst + (k + i * stride) * w, r[i]);
    }
}

template <class T, bool permuted>
KM_INLINE void fastfood_scaled_pass(const T* src, const int32_t* place, const T* factor, T* dst,
                                    int log2_radix, FastfoodTileLayout layout) {
    if (log2_radix == 3) fastfood_scaled_pass<T, 8, permuted>(src, place, factor, dst, layout);
    if (log2_radix == 2) fastfood_scaled_pass<T, 4, permuted>(src, place, factor, dst, layout);
    if (log2_radix == 1) fastfood_scaled_pass<T, 2, permuted>(src, place, factor, dst, layout);
}

template <class T>
KM_INLINE void fastfood_last_butterflies(T* at, Vec<T>* r) {
    KM_UNROLL
    for (int i = 0; i < 8; ++i) r[i] = load(at + i * width<T>);
    butterflies<T, 8>(r, opaque_one<T>());
}

// dst = H diag(factor) src[place], all levels.
template <class T, bool permuted, class Last>
KM_INLINE void fastfood_transform(const T* src, const int32_t* place, const T* factor, T* dst,
                                  int levels, const Last& last) {
    const FastfoodTileLayout layout = tile_layout_of(levels);
    const int left = layout.log2_part;
    fastfood_scaled_pass<T, permuted>(src, place, factor, dst, levels - left, layout);
    for (size_t k = 0; k < size_t(1) << levels; k += size_t(1) << left) {
        fastfood_levels<T>(dst + layout.at(k) * width<T>, k, left, last);
    }
}

// Writes `count` frequencies from number `first` on to the rows of the output: tile row i holds one
// column of it, a row in each lane. A cache line of each row is written at a time, because rows of
// the output often lie a power of two apart and then compete for one set of the nearest cache.
template <class T>
KM_INLINE void fastfood_store(const T* tile, T* out, ptrdiff_t out_stride, size_t count, int rows) {
    constexpr int w = width<T>, line = 64 / static_cast<int>(sizeof(T));
    size_t k = 0;
    if (rows == w) {
        for (; k + line <= count; k += line) {
            Vec<T> r[line];
            KM_UNROLL
            for (int i = 0; i < line; ++i) r[i] = load(tile + (k + i) * w);
            KM_UNROLL
            for (int i = 0; i < line; i += w) transpose<T>(r + i);
            T* to = out + k;
            KM_UNROLL
            for (int row = 0; row < w; ++row, to += out_stride) {
                KM_UNROLL
                for (int i = 0; i < line; i += w) store(to + i, r[i + row]);
            }
        }
    }
    for (; k < count; ++k) {
        for (int row = 0; row < rows; ++row) out[row * out_stride + k] = tile[k * w + row];
    }
}

// The same for pairs, of which one row gets c0 s0 c1 s1 ...
template <class T>
KM_INLINE void fastfood_store_pairs(const T* c, const T* s, T* out, ptrdiff_t out_stride,
                                    size_t count, int rows) {
    constexpr int w = width<T>;
    size_t k = 0;
    if (rows == w) {
        constexpr int half = w / 2;
        for (; k + half <= count; k += half) {
            Vec<T> r[w];
            KM_UNROLL
            for (int i = 0; i < half; ++i) {
                r[2 * i] = load(c + (k + i) * w);
                r[2 * i + 1] = load(s + (k + i) * w);
            }
            transpose<T>(r);
            KM_UNROLL
            for (int row = 0; row < w; ++row) store(out + row * out_stride + 2 * k, r[row]);
        }
    }
    for (; k < count; ++k) {
        for (int row = 0; row < rows; ++row) {
            out[row * out_stride + 2 * k] = c[k * w + row];
            out[row * out_stride + 2 * k + 1] = s[k * w + row];
        }
    }
}

// Sines and cosines of n tile rows, times scale. x may be c.
template <class T>
KM_INLINE void fastfood_sincos(const T* x, T* c, T* s, size_t n, T scale, bool* not_finite) {
    constexpr size_t w = width<T>, together = 2;
    for (size_t k = 0; k < n; k += together) {  // n is a multiple of 8
        Vec<T> in[together], sine[together], cosine[together];
        KM_UNROLL
        for (size_t i = 0; i < together; ++i) in[i] = load(x + (k + i) * w);
        feature_sincos<T, together>(in, sine, cosine, broadcast(scale), not_finite);
        KM_UNROLL
        for (size_t i = 0; i < together; ++i) {
            store(c + (k + i) * w, cosine[i]);
            store(s + (k + i) * w, sine[i]);
        }
    }
}

// Features of frequencies first, first + 1, ... from the projections in `n` rows of a tile, at most
// fastfood_chunk and a multiple of 8, to the rows of the output. Spoils the tile.
constexpr size_t fastfood_chunk = 64;
template <class T>
KM_INLINE void fastfood_features(T* z, size_t n, size_t first, const Features<T>& features, T* out,
                                 ptrdiff_t out_stride, int rows) {
    constexpr size_t w = width<T>;
    alignas(64) T s[fastfood_chunk * w];
    const FeatureKind kind = features.kind;
    const bool paired = kind == FeatureKind::cos_sin || kind == FeatureKind::complex;
    const size_t left = features.frequencies - first, count = left < n ? left : n;
    if (kind == FeatureKind::cos_phase) {
        for (size_t i = 0; i < count; ++i) {
            store(z + i * w, load(z + i * w) + broadcast(features.phases[first + i]));
        }
    }
    size_t pairs = count;
    if (paired && first + count > features.pairs) {  // one more, for an odd number of columns
        pairs = features.pairs - first;
        Vec<T> x = load(z + pairs * w) + broadcast(features.phases[features.pairs]), sine, cosine;
        feature_sincos<T, 1>(&x, &sine, &cosine, broadcast(features.scale), features.not_finite);
        for (int r = 0; r < rows; ++r) out[r * out_stride + 2 * features.pairs] = cosine[r];
    }
    // While the sines are computed, the memory that they go to can come near.
    constexpr size_t line = 64 / sizeof(T);
    for (int r = 0; r < rows && kind == FeatureKind::cos_sin; ++r) {
        T* row = out + r * out_stride + first;
        for (size_t i = 0; i < pairs; i += line) {
            __builtin_prefetch(row + i, 1);
            __builtin_prefetch(row + features.pairs + i, 1);
        }
    }
    if (kind == FeatureKind::projection) {
        if (!all_finite(z, count * w)) report_not_finite(features.not_finite);
    } else {
        fastfood_sincos<T>(z, z, s, n, features.scale, features.not_finite);
    }
    if (kind == FeatureKind::complex) {
        fastfood_store_pairs<T>(z, s, out + 2 * first, out_stride, pairs, rows);
        return;
    }
    fastfood_store<T>(z, out + first, out_stride, pairs, rows);
    if (paired) fastfood_store<T>(s, out + features.pairs + first, out_stride, pairs, rows);
}

// The frequency of row k of a block.
template <class T>
KM_INLINE size_t frequency_of(const FastfoodGroup<T>& group, size_t block, size_t k) {
    const size_t turn = group.turn;
    return group.first + block * turn + k / turn * group.blocks * turn + k % turn;
}

// All blocks of a group, for the `rows` <= width rows in the tile x; a and b are scratch tiles. All
// tiles have p rows, p >= 16, in the layout of fastfood_tile_layout.
template <class T>
void fastfood_tile(const FastfoodGroup<T>& group, const T* x, T* a, T* b,
                   const Features<T>& features, T* out, ptrdiff_t out_stride, int rows) {
    constexpr int w = width<T>;
    const int levels = group.levels;
    const size_t p = size_t(1) << levels;
    const FastfoodTileLayout layout = tile_layout_of(levels);
    const auto in_place = [](T* at, size_t) __attribute__((always_inline)) {
        Vec<T> r[8];
        fastfood_last_butterflies<T>(at, r);
        KM_UNROLL
        for (int i = 0; i < 8; ++i) store(at + i * w, r[i]);
    };
    fastfood_transform<T, false>(x, nullptr, group.signs, a, levels, in_place);
    if (group.stages == 2) {
        fastfood_transform<T, false>(a, nullptr, group.signs + p, b, levels, in_place);
        T* swap = a;
        a = b;
        b = swap;
    }
    // A chunk is part of one turn and, where parts have gaps, of one part.
    const size_t chunk = group.turn < fastfood_chunk ? group.turn : fastfood_chunk;
    for (size_t block = 0; block < group.blocks; ++block) {
        if (frequency_of(group, block, 0) >= features.frequencies) return;
        const T *inner = group.inner + block * p, *outer = group.outer + block * p;
        const auto scaled = [&](T* at, size_t k) __attribute__((always_inline)) {
            Vec<T> r[8];
            fastfood_last_butterflies<T>(at, r);
            KM_UNROLL
            for (int i = 0; i < 8; ++i) store(at + i * w, r[i] * broadcast(outer[k + i]));
        };
        if (group.permutation) {
            fastfood_transform<T, true>(a, group.permutation, inner, b, levels, scaled);
        } else {
            fastfood_transform<T, false>(a, nullptr, inner, b, levels, scaled);
        }
        for (size_t k = 0; k < p; k += chunk) {
            const size_t first = frequency_of(group, block, k);
            if (first >= features.frequencies) break;
            fastfood_features<T>(b + layout.at(k) * w, chunk, first, features, out, out_stride,
                                 rows);
        }
    }
}

// The same for one row, along the row: x has length p, a and b are scratch of that length.
template <class T>
void fastfood_row(const FastfoodGroup<T>& group, const T* x, T* a, T* b,
                  const Features<T>& features, T* out) {
    const int levels = group.levels;
    const size_t p = size_t(1) << levels;
    for (size_t k = 0; k < p; ++k) a[k] = x[k] * group.signs[k];
    fwht_rows<T>(a, a, 1, levels, T(1));
    if (group.stages == 2) {
        for (size_t k = 0; k < p; ++k) a[k] = a[k] * group.signs[p + k];
        fwht_rows<T>(a, a, 1, levels, T(1));
    }
    for (size_t block = 0; block < group.blocks; ++block) {
        if (frequency_of(group, block, 0) >= features.frequencies) return;
        const T *inner = group.inner + block * p, *outer = group.outer + block * p;
        if (group.permutation) {
            for (size_t k = 0; k < p; ++k) b[k] = a[group.permutation[k]] * inner[k];
        } else {
            for (size_t k = 0; k < p; ++k) b[k] = a[k] * inner[k];
        }
        fwht_rows<T>(b, b, 1, levels, T(1));
        for (size_t k = 0; k < p; k += group.turn) {
            const size_t first = frequency_of(group, block, k);
            if (first >= features.frequencies) break;
            features_row<T>(b + k, outer + k, group.turn, first, features, out);
        }
    }
}

}  // namespace kernelmill::KM_TARGET
