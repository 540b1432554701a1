"""Buckets and signs of the coordinates in a count sketch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernelmill.random import Stream
from kernelmill.sketches.lattice import lattice_multipliers

__all__ = ["HASHINGS", "draw_hashes"]

HASHINGS = ("collision_free", "independent")


def draw_hashes(
    stream: Stream, hashing: str, degree: int, dim: int, length: int
) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
    """Buckets in [0, length) and signs of `dim` coordinates, for a product of `degree` sketches.

    Parameters
    ----------
    stream : Stream
    hashing : {"collision_free", "independent"}
        "independent": buckets of any two coordinates are independent, and signs of any four. The
        variance of a count sketch depends on nothing else. "collision_free": the coordinates of a
        sketch have different buckets if ``dim <= length``; otherwise buckets are filled as evenly
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
