// The packing of frequencies for products: panels of 64 bytes of neighbouring frequencies.
//
// packed[panel][k][lane] is coordinate k of frequency panel * panel_width + lane, zero beyond the
// last frequency. The width is the same for all instruction sets, so that the set can be changed
// between packing and use.
#pragma once

#include <cstddef>

namespace kernelmill {

constexpr size_t panel_bytes = 64;

template <class T>
constexpr size_t panel_width = panel_bytes / sizeof(T);

// A tile of the product has 48 KiB of sums. It is tall, since each tile reads its frequencies from
// memory, and a multiple of the rows that any target processes together.
constexpr size_t rows_per_tile = 96;
constexpr size_t panels_per_tile = 8;

// The number of coordinates processed at a time: this part of a panel (24 or 16 KiB) and of its
// rows stays in the first-level cache.
template <class T>
constexpr size_t coordinates_per_block = sizeof(T) == 4 ? 384 : 256;

// The distance of rows in such a block: an odd number of cache lines, so that rows do not compete
// for the same cache sets, whatever their distance in the caller's array.
template <class T>
constexpr size_t block_stride = coordinates_per_block<T> + panel_width<T>;

// The number of rows whose products are summed in registers, in the precision of the products,
// before these sums are added to results in double precision. It is small in single precision,
// since the error of a sum grows with it.
template <class P>
constexpr size_t rows_per_slab = sizeof(P) == 4 ? 128 : 256;

}  // namespace kernelmill
