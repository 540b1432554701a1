"""Allocation of columns to the terms of a Taylor series."""

from __future__ import annotations

import math
from functools import lru_cache

from kernelmill import _native

__all__ = ["columns_of_degrees"]

_MOST_DEGREES = 64
_REACH = 1.25  # norms up to this multiple of the typical one should not suffer from the truncation


def columns_of_degrees(
    square: float, dim: int, n_columns: int, degree: int | None = None
) -> list[int]:
    r"""Columns for the terms :math:`\langle u, v \rangle^n / n!` of degree 0, 1, 2, ...

    Parameters
    ----------
    square : float
        The typical square of the norm of u.
    dim : int
        The number of coordinates of u.
    n_columns : int
        The sum of the result.
    degree : int, optional
        The highest degree, at least 1; by default the one with the least expected square of the
        error. Lower if there are not enough columns.

    Returns
    -------
    list of int
        One column for degree 0, which is exact with it, and at least one for each other degree.
    """
    return list(_find_columns(square, dim, n_columns, degree))


@lru_cache(maxsize=256)  # maps that differ in their seed only have the same columns
def _find_columns(square: float, dim: int, n_columns: int, degree: int | None) -> tuple[int, ...]:
    if degree is not None:
        best = _allocate(square, dim, n_columns, min(degree, n_columns - 1))
    else:
        candidates = range(1 if n_columns > 1 else 0, min(_MOST_DEGREES, n_columns - 1) + 1)
        shares = (_allocate(square, dim, n_columns, last) for last in candidates)
        best = min(shares, key=lambda columns: _squared_error(square, dim, columns))
    estimated = [n for n in range(2, len(best)) if best[n] < _columns_needed(dim, n)]
    for n, count in zip(
        estimated, _shift_to_fast_lengths([best[n] for n in estimated]), strict=True
    ):
        best[n] = count
    return tuple(best)


def _allocate(square: float, dim: int, n_columns: int, degree: int) -> list[int]:
    """Columns in proportion to the standard deviations of the terms, up to where they are exact."""
    left = n_columns - 1
    if degree == 0:
        return [1]
    by_size = _in_proportion(square, dim, left, range(1, degree + 1))
    options = [[1, *by_size]]
    if by_size[0] < dim <= left - (degree - 1):  # a column for each coordinate: exact
        options.append([1, dim, *_in_proportion(square, dim, left - dim, range(2, degree + 1))])
    return min(options, key=lambda columns: _squared_error(square, dim, columns))


def _in_proportion(square: float, dim: int, n_columns: int, degrees: range) -> list[int]:
    counts = dict.fromkeys(degrees, 1)
    left = n_columns - len(counts)
    open_degrees = [n for n in degrees if _columns_needed(dim, n) > 1]
    # Rounded, so that the result does not depend on the last bits of the exponential function.
    sizes = {n: float(f"{math.sqrt(_variance(square, n)):.6g}") for n in degrees}
    while left > 0 and open_degrees:
        total = sum(sizes[n] for n in open_degrees)
        if total == 0:  # below the smallest number: none of them matters
            grants = {open_degrees[0]: left}
        else:
            grants = {n: int(left * (sizes[n] / total)) for n in open_degrees}
        if not any(grants.values()):
            grants = {max(open_degrees, key=lambda n: sizes[n] / counts[n]): 1}
        for n, grant in grants.items():
            counts[n] += min(grant, _columns_needed(dim, n) - counts[n])
        left = n_columns - sum(counts.values())
        open_degrees = [n for n in open_degrees if counts[n] < _columns_needed(dim, n)]
    if degrees:
        counts[degrees[-1]] += left  # all are exact: columns of zeros
    return list(counts.values())


@lru_cache(maxsize=1024)
def _columns_needed(dim: int, degree: int) -> int:
    """Columns with which a term is exact."""
    return 2**62 if degree * math.log2(dim) > 62 else int(dim**degree)


@lru_cache(maxsize=1024)
def _variance(square: float, degree: int) -> float:
    """D times the variance of a term for close points, up to a factor of all terms."""
    ways = 2.0 if degree == 1 else 2.0 * (2.0**degree - 1 - degree)
    return ways * math.exp(2 * _log_term(square, degree))


def _log_term(square: float, degree: int) -> float:
    """The logarithm of the term for equal points, times the exponential that goes with it."""
    return degree * math.log(square) - math.lgamma(degree + 1) - square


def _squared_error(square: float, dim: int, columns: list[int]) -> float:
    """Return the expected square of the error for close points: variances, and what is cut off."""
    variance = 0.0
    for degree, count in enumerate(columns[1:], start=1):
        if degree == 1:
            copies = -(-dim // count)
            share = (copies - 1) / max(1, copies * count - 1)
        else:
            share = max(0.0, 1 / count - 1 / _columns_needed(dim, degree))
        variance += share * _variance(square, degree)
    far = _REACH**2 * square
    kept = math.fsum(math.exp(_log_term(far, n)) for n in range(len(columns)))
    return variance + max(0.0, 1 - kept) ** 2


def _shift_to_fast_lengths(lengths: list[int]) -> list[int]:
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


def _fast_at_most(length: int) -> int:
    """Return the largest length up to this one with its own transform: no prime factor above 13."""
    while length & (length - 1) and _native.ring_roots_size(length) == 0:
        length -= 1
    return length
