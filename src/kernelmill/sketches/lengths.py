"""Lengths of sketches whose transforms are fast."""

from __future__ import annotations

from kernelmill import _native

__all__ = ["shift_to_fast_lengths"]


def _fast_at_most(length: int) -> int:
    """The largest length up to this one with its own transform: no prime factor above 13."""
    while length & (length - 1) and _native.ring_roots_size(length) == 0:
        length -= 1
    return length


def shift_to_fast_lengths(lengths: list[int]) -> list[int]:
    """Return lengths close to these, with the same sum.

    All of them have fast transforms, except perhaps the shortest, which takes the rest.
    """
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    result = list(lengths)
    carry = 0
    for i in order[:-1]:
        result[i] = _fast_at_most(lengths[i] + carry)
        carry += lengths[i] - result[i]
    if order:
        result[order[-1]] += carry
    return result
