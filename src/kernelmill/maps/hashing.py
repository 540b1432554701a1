"""Buckets and signs of the coordinates in a count sketch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from kernelmill.random import Stream

__all__ = ["HASHINGS", "draw_hashes", "lattice_multipliers"]

HASHINGS = ("collision_free", "independent")

_GOLDEN = 0x9E3779B97F4A7C15
"""2**64 over the golden ratio: its multiples fill any interval evenly."""

_MAX_WORK = 1 << 21
"""Numbers that a search for multipliers examines."""


def draw_hashes(
    stream: Stream, hashing: str, degree: int, dim: int, length: int
) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
    """Draw buckets in [0, length) and signs of `dim` coordinates, for `degree` count sketches.

    Parameters
    ----------
    stream : Stream
    hashing : {"collision_free", "independent"}
        "independent": the buckets of any two coordinates are independent, and the signs of any
        four, which determines the variance of a count sketch. "collision_free": the coordinates of
        a sketch have different buckets if ``dim <= length``; otherwise buckets are filled as evenly
        as possible. The entries of the tensor product, whose buckets are sums of these, are spread
        nearly as evenly. Coordinates are permuted at random; all signs are independent.
    degree, dim, length : int

    Returns
    -------
    buckets : ndarray of int32 of shape (degree, dim)
    signs : ndarray of int8 of shape (degree, dim)
    """
    buckets = np.empty((degree, dim), np.int32)
    if hashing == "collision_free":
        stream = stream.substream("collision_free")
        places = dim if dim <= length else -(-dim // length) * length
        multipliers = lattice_multipliers(dim, length, degree)
        for k, multiplier in enumerate(multipliers):
            order = stream.permutation(places, index=k)[:dim] % length
            buckets[k] = multiplier * order % length
        return buckets, stream.signs((degree, dim), dtype=np.int8)
    stream = stream.substream("independent")
    signs = np.empty((degree, dim), np.int8)
    columns = np.arange(dim)
    for k in range(degree):
        buckets[k] = stream.hash_function(length, independence=2, index=k)(columns)
        signs[k] = stream.sign_hash(independence=4, index=k)(columns)
    return buckets, signs


@lru_cache(64)  # for few columns, the search takes as long as the rest of `fit`
def lattice_multipliers(dim: int, length: int, degree: int) -> tuple[int, ...]:
    r"""Return multipliers g_k for which sums of g_k u_k modulo `length` rarely collide.

    Here 0 <= u_k < dim. If ``dim**degree <= length``, sums with g_k = dim**k never collide.
    Otherwise multipliers are powers of one generator g that is prime to the length (a Korobov
    lattice, so that no two values of one u_k collide). Among some candidates, it is the one with
    the fewest pairs :math:`(u_k, u_l) \ne (v_k, v_l)` of equal :math:`g_k u_k + g_l u_l`, over all
    k and l. All arithmetic is in integers, so the choice is the same on every machine.
    """
    if degree * math.log2(dim) < 63 and dim**degree <= length:
        return tuple(dim**k for k in range(degree))
    candidates = _candidates(dim, length)
    first = next(candidates, 1)
    if dim >= length or degree == 1:  # all residues occur: generators are equally good
        return tuple(pow(first, k, length) for k in range(degree))
    fewest, best = _collisions(first, dim, length, degree), first
    for _ in range(min(63, _MAX_WORK // (dim * degree))):
        generator = next(candidates, None)
        if generator is None or fewest == 0:
            break
        collisions = _collisions(generator, dim, length, degree)
        if collisions < fewest:
            fewest, best = collisions, generator
    return tuple(pow(best, k, length) for k in range(degree))


def _candidates(dim: int, length: int) -> Iterator[int]:
    """Yield numbers prime to the length, first those near dim, then others spread evenly."""
    seen = {0, 1}
    near = [g for step in range(16) for g in (dim + step, dim - step)]
    spread = ((k * _GOLDEN % 2**64) * length >> 64 for k in range(1, 256))
    for g in (*near, *spread):
        if g not in seen and 1 < g < length and math.gcd(g, length) == 1:
            seen.add(g)
            yield g


def _collisions(generator: int, dim: int, length: int, degree: int) -> int:
    """Count pairs of different u_k and different u_l with equal sums, over all k < l."""
    differences = np.arange(1, dim, dtype=np.int64)  # of u_l, up to their sign
    total, multiplier = 0, 1
    for gap in range(1, degree):
        multiplier = multiplier * generator % length
        residues = multiplier * differences % length
        # Differences of u_k that cancel it: the residue, and the residue minus the length.
        ways = np.maximum(dim - residues, 0) + np.maximum(dim - (length - residues), 0)
        total += (degree - gap) * 2 * int(np.dot(dim - differences, ways))
    return total
