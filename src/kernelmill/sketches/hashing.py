"""Which bucket and which sign every coordinate gets in a count sketch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernelmill.random import Stream

__all__ = ["HASHINGS", "draw_hashes"]

HASHINGS = ("collision_free", "independent")


def draw_hashes(
    stream: Stream, hashing: str, degree: int, dim: int, length: int
) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
    """Buckets in [0, length) and signs of `dim` coordinates, for `degree` independent sketches.

    Parameters
    ----------
    stream : Stream
    hashing : {"collision_free", "independent"}
        "independent": buckets of any two coordinates are independent, and signs of any four, which
        is what the variance of a count sketch depends on. "collision_free": buckets are all
        different while ``dim <= length``; beyond, as evenly filled as possible, at most
        ``ceil(dim / length)`` coordinates in each. Signs are then independent altogether.
    degree, dim, length : int

    Returns
    -------
    buckets : ndarray of int32 of shape (degree, dim)
    signs : ndarray of int8 of shape (degree, dim)
    """
    if hashing == "collision_free":
        return _evenly(stream.substream("collision_free"), degree, dim, length)
    stream = stream.substream("independent")
    buckets = np.empty((degree, dim), np.int32)
    signs = np.empty((degree, dim), np.int8)
    columns = np.arange(dim)
    for k in range(degree):
        buckets[k] = stream.hash_function(length, independence=2, index=k)(columns)
        signs[k] = stream.sign_hash(independence=4, index=k)(columns)
    return buckets, signs


def _evenly(
    stream: Stream, degree: int, dim: int, length: int
) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
    places = -(-dim // length) * length  # every bucket as many times as the fullest is needed
    buckets = np.empty((degree, dim), np.int32)
    for k in range(degree):
        buckets[k] = stream.permutation(places, index=k)[:dim] % length
    return buckets, stream.signs((degree, dim), dtype=np.int8)
