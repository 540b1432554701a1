"""The random diagonals and permutations of Fastfood, each a function of a stream and a position."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.random import Stream, normal_quantile

__all__ = ["STRATA", "block_lengths", "draw_normals", "draw_permutations"]

STRATA = 4


def draw_permutations(stream: Stream, n_rows: int, size: int) -> NDArray[np.int32]:
    """Rows of random permutations of 0, ..., size - 1."""
    out = np.empty((n_rows, size), np.int32)
    for row in range(n_rows):
        out[row] = stream.permutation(size, index=row, dtype=np.int32)
    return out


def draw_normals(stream: Stream, n_blocks: int, size: int, stratified: bool) -> NDArray[np.float64]:
    """Rows of standard normals, independent or stratified over every four rows."""
    if stratified:
        return _stratified_normals(stream.substream("stratified normals"), n_blocks, size)
    return stream.substream("normals").normals((n_blocks, size))


def _stratified_normals(stream: Stream, n_blocks: int, size: int) -> NDArray[np.float64]:
    r"""Rows of standard normals, with the sizes of every four rows spread over the distribution.

    Each row is a vector of independent standard normals. Among rows :math:`4g, ..., 4g + 3` the
    absolute values at one place fall into four different quarters of the distribution of
    :math:`|g|`: in a random order for which the first two also fall into different
    halves (a scrambled van der Corput sequence of four points).
    """
    n_groups = -(-n_blocks // STRATA)
    flips = stream.substream("strata").integers((n_groups, size), 8)
    uniforms = stream.substream("within").uniforms((n_blocks, size))
    for block in range(n_blocks):
        flip = flips[block // STRATA]
        first, second = block & 1, block >> 1 & 1
        top = first ^ (flip & 1)
        bottom = second ^ (flip >> (1 + first) & 1)
        uniforms[block] = (2 * top + bottom + uniforms[block]) / (2 * STRATA)  # in (0, 1/2)
    normals = normal_quantile(uniforms)
    normals *= stream.substream("signs").signs((n_blocks, size))
    return normals


def block_lengths(inner: NDArray[Any]) -> NDArray[np.float64]:
    """The Euclidean length of each row, rounded from the exact sum: the same on every machine."""
    return np.sqrt([math.fsum(row) for row in np.square(inner, dtype=np.float64)])
