"""Scrambled Sobol points that are the same on every machine and in every release of scipy."""

from __future__ import annotations

import numpy as np
import scipy  # scipy.stats is loaded when it is first used
from numpy.typing import NDArray

from kernelmill.random import Stream

__all__ = ["MOST_DIMENSIONS", "sobol_points"]

MOST_DIMENSIONS = 21201  # scipy's table of direction numbers (Joe & Kuo) ends here
_BITS = 32


def sobol_points(stream: Stream, n: int, dim: int, *, start: int = 0) -> NDArray[np.float64]:
    """Points number start, ..., start + n - 1 of a randomly scrambled Sobol sequence in (0, 1)^dim.

    Every point is uniform. The sequence comes from scipy; the scrambling, by random lower
    triangular matrices of bits and a random digital shift (Matoušek, 1998), from the stream.
    """
    sequence = scipy.stats.qmc.Sobol(dim, scramble=False, bits=_BITS)
    if start > 0:
        sequence.fast_forward(start)
    # Drawing 2^k points keeps scipy from warning; points do not depend on how many are drawn.
    raw = sequence.random(1 << max(0, n - 1).bit_length())[:n] if n else np.empty((0, dim))
    digits = (raw * 2.0**_BITS).astype(np.uint32)
    words = stream.integers((dim, _BITS + 1), 2**_BITS).astype(np.uint32)
    scrambled = np.zeros_like(digits)
    for bit in range(_BITS):  # from the most significant one
        place = np.uint32(_BITS - 1 - bit)
        above = np.uint32((0xFFFFFFFF << (_BITS - bit)) & 0xFFFFFFFF)
        row = (words[:, bit] & above) | np.uint32(1 << int(place))
        parity = np.bitwise_count(digits & row) & np.uint8(1)
        scrambled |= parity.astype(np.uint32) << place
    scrambled ^= words[:, _BITS]
    return np.asarray((scrambled.astype(np.float64) + 0.5) / 2.0**_BITS)
