"""Assignment of the degrees of a power series to random features."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from kernelmill.kernels import DotProductKernel
from kernelmill.kernels.dot_product import MOST_TERMS
from kernelmill.random import Stream

__all__ = ["DEGREE_LAWS", "degree_terms", "feature_weights", "spread_degrees"]

DEGREE_LAWS = ("proportional", "geometric")

# Higher degrees have a probability below 1e-19 of all, when they are drawn with powers of two.
_GEOMETRIC_DEPTH = 64


def degree_terms(
    kernel: DotProductKernel, law: str, scale: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Return the terms :math:`a_n s^n` of a series that may be drawn, and their probabilities.

    Parameters
    ----------
    kernel : DotProductKernel
    law : {"proportional", "geometric"}
        The probability of degree n is proportional to the term itself, or to :math:`2^{-n}` where
        it is positive.
    scale : float
        s.

    Returns
    -------
    terms, shares : ndarray of one size
        Shares are proportional to probabilities, and 0 where terms are.

    Examples
    --------
    >>> from kernelmill.kernels import Polynomial
    >>> from kernelmill.sketches.degrees import degree_terms
    >>> degree_terms(Polynomial(2, coef0=1.0), "geometric", 3.0)
    (array([1., 6., 9.]), array([1.  , 0.5 , 0.25]))
    """
    if law == "proportional":
        terms = kernel.terms(scale)
        shares = terms
    else:
        terms = _terms_from_the_first(kernel, scale)
        first = int(np.flatnonzero(terms)[0]) if terms.any() else 0
        powers = np.ldexp(1.0, np.minimum(0, first - np.arange(terms.size)))
        shares = np.where(terms > 0, powers, 0.0)
    if not terms.any():
        raise ValueError(
            f"The terms of {kernel!r} vanish at inner products of {scale:.3g}; scale the data, or "
            "use a larger radius."
        )
    return terms, shares


def _terms_from_the_first(kernel: DotProductKernel, scale: float) -> NDArray[np.float64]:
    """Terms up to the last, or to 64 degrees after the first that is positive."""
    if kernel.degree is not None:
        return kernel.coefficients(kernel.degree + 1, scale=scale)
    count = 2 * _GEOMETRIC_DEPTH
    while True:
        terms = kernel.coefficients(count, scale=scale)
        positive = np.flatnonzero(terms)
        if positive.size and positive[0] + _GEOMETRIC_DEPTH <= count:
            return terms[: positive[0] + _GEOMETRIC_DEPTH]
        if count >= MOST_TERMS:
            return terms
        count *= 2


def spread_degrees(stream: Stream, shares: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Degrees of `count` features, the highest first, by systematic sampling.

    One uniform variable U places (j + U) / count on the scale of probabilities, for all j. So each
    degree gets the expected number of features, rounded up or down. Probabilities are added from
    the highest degree down: rare high degrees keep their digits, down to 1e-16 of a feature.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.random import Stream
    >>> from kernelmill.sketches.degrees import spread_degrees
    >>> spread_degrees(Stream.from_seed(0), np.array([0.0, 2.0, 1.0, 1.0]), 8)
    array([3, 3, 2, 2, 1, 1, 1, 1])
    """
    above = np.cumsum(shares[::-1])  # above[i]: of the i + 1 highest degrees
    places = (np.arange(count) + stream.uniforms(1)[0]) / count * above[-1]
    found = np.minimum(np.searchsorted(above, places, side="right"), shares.size - 1)
    degrees = shares.size - 1 - found
    # Rounding may place a feature after the lowest degree with a positive share.
    return np.asarray(np.maximum(degrees, int(np.flatnonzero(shares)[0])), np.int64)


def feature_weights(
    terms: NDArray[np.float64], shares: NDArray[np.float64], degrees: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the root of term / (number of features * probability), for each feature."""
    total = math.fsum(shares)
    return np.asarray(np.sqrt(terms[degrees] / shares[degrees] * (total / degrees.size)))
