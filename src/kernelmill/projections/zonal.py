"""Polynomials of projections on random directions, as features of a sum of kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill import _native
from kernelmill.runtime.arrays import round_coefficients
from kernelmill.runtime.threads import resolve_threads

__all__ = ["ZonalColumns", "ZonalTerms", "allocate_columns", "legendre_terms", "power_terms"]


@dataclass(frozen=True, eq=False)
class ZonalTerms:
    r"""Terms :math:`c_j E_v[f_j(x) f_j(y)]`, v uniform on the unit sphere, of a kernel.

    Here :math:`f_j(x) = \|x\|^{q_j} p_{n_j}(\langle x, v \rangle / \|x\|)` with polynomials p of
    the recurrence :math:`p_{n+1}(u) = \alpha_n u p_n(u) - \beta_n p_{n-1}(u)`, :math:`p_0 = 1`.

    Attributes
    ----------
    coefficients, powers : ndarray of shape (n_terms,)
        c and q.
    degrees : ndarray of int64 of shape (n_terms,)
        n, in ascending order.
    at_one : ndarray of shape (n_terms,)
        What the terms contribute to k(x, x) for a unit vector x.
    alpha, beta : ndarray
        As many as the highest degree.
    """

    coefficients: NDArray[np.float64]
    powers: NDArray[np.float64]
    degrees: NDArray[np.int64]
    at_one: NDArray[np.float64]
    alpha: NDArray[np.float64]
    beta: NDArray[np.float64]


def legendre_terms(
    weights: NDArray[np.float64], powers: NDArray[np.float64], degrees: NDArray[np.int64], dim: int
) -> ZonalTerms:
    r"""The terms of an expansion in Legendre polynomials, :math:`L_n(1) = 1`, in `dim` dimensions.

    On the sphere :math:`E_v[L_n(\langle x, v \rangle) L_n(\langle y, v \rangle)] =
    L_n(\langle x, y \rangle) / N`, N being the number of spherical harmonics. The polynomials
    :math:`p_n = \sqrt N L_n` are orthonormal. Their recurrence is that of a Jacobi matrix with the
    off-diagonal :math:`b_n^2 = n (n + d - 3) / ((2 n + d - 2) (2 n + d - 4))`. Neither overflows
    nor underflows.
    """
    order = np.lexsort((powers, degrees))
    n = np.arange(1, int(degrees.max(initial=0)) + 1, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        off_diagonal = np.sqrt(n * (n + dim - 3) / ((2 * n + dim - 2) * (2 * n + dim - 4)))
    off_diagonal[:1] = 1 / math.sqrt(dim)  # in two dimensions the formula has 0 / 0
    return ZonalTerms(
        coefficients=weights[order],
        powers=powers[order],
        degrees=degrees[order],
        at_one=weights[order],
        alpha=1 / off_diagonal,
        beta=np.concatenate([np.zeros(min(1, n.size)), off_diagonal[:-1] / off_diagonal[1:]]),
    )


def power_terms(
    coefficients: NDArray[np.float64], at_one: NDArray[np.float64], dim: int
) -> ZonalTerms:
    r"""The terms :math:`c_p E_v[\langle x, v \rangle^p \langle y, v \rangle^p]`, p = 0, 1, ...

    A coordinate of v is of the size :math:`1 / \sqrt d`, which the recurrence takes out.
    """
    used = np.flatnonzero(coefficients > 0)
    highest = int(used.max(initial=0))
    return ZonalTerms(
        coefficients=coefficients[used] / float(dim) ** used,
        powers=used.astype(np.float64),
        degrees=used.astype(np.int64),
        at_one=at_one[used],
        alpha=np.full(highest, math.sqrt(dim)),
        beta=np.zeros(highest),
    )


def allocate_columns(
    shares: NDArray[np.float64], constant: NDArray[np.bool_], n_columns: int, uniform: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the number of columns of each term, and the divisor of its estimate.

    Parameters
    ----------
    shares : ndarray of shape (n_terms,)
        What the terms should get in proportion, positive.
    constant : ndarray of bool of shape (n_terms,)
        The terms whose columns are all the same: one is enough.
    n_columns : int
    uniform : float
        In (0, 1): the only randomness.

    Returns
    -------
    counts : ndarray of int64 of shape (n_terms,)
        Their sum is n_columns, unless one column of each term would be more than enough.
    divisors : ndarray of shape (n_terms,)
        The count itself where it is positive for all values of `uniform`, otherwise its mean over
        them: so means over columns, summed over terms, are unbiased.

    Notes
    -----
    Systematic sampling: the points i + uniform for i = 0, 1, ... fall into intervals as long as
    the terms' shares of the columns.
    """
    alone = np.zeros(shares.size, bool)
    while True:
        free = n_columns - int(np.count_nonzero(alone))
        rest = np.where(alone, 0.0, shares)
        total = rest.sum()
        means = free * (rest / total) if total > 0 else rest
        more = constant & ~alone & (means >= 1)
        if not more.any():
            break
        alone |= more
    ends = np.cumsum(means)
    if total > 0:
        ends[ends == ends[-1]] = free  # exactly to the last column, despite rounding
    counts = np.diff(np.ceil(np.concatenate([[0.0], ends]) - uniform)).astype(np.int64)
    counts[alone] = 1
    sure = alone | ((means >= 1) & (counts > 0))
    return counts, np.where(sure, counts, means)


@dataclass(eq=False)
class ZonalColumns:
    """The columns of some terms, grouped by term in their order.

    Parameters
    ----------
    terms : ZonalTerms
    counts : ndarray of int64 of shape (n_terms,)
        How many columns each has.
    divisors : ndarray of shape (n_terms,)
        What squares of its columns are divided by.
    n_columns : int
        Those beyond the terms' are 0.
    """

    terms: ZonalTerms
    counts: NDArray[np.int64]
    divisors: NDArray[np.float64]
    n_columns: int
    _recurrence: dict[str, tuple[NDArray[Any], NDArray[Any]]] = field(
        default_factory=dict, repr=False
    )

    def __post_init__(self) -> None:
        used = np.flatnonzero(self.counts)
        empty = self.n_columns - int(self.counts.sum())
        self._starts = np.cumsum([0, *self.counts[used], empty])
        self._degrees = np.append(self.terms.degrees[used], 0)
        self._powers = np.append(self.terms.powers[used], 0.0)
        self._weights = np.append(np.sqrt(self.terms.coefficients[used] / self.divisors[used]), 0.0)

    @property
    def degrees(self) -> NDArray[np.int64]:
        """The degree of each column."""
        return np.repeat(self._degrees, np.diff(self._starts))

    def apply(
        self, z: NDArray[Any], squares: NDArray[np.float64], n_threads: int | None = None
    ) -> None:
        """Replace projections z on unit vectors by features; `squares` are squared row lengths."""
        kind = z.dtype
        if kind.char not in self._recurrence:
            alpha, beta = (round_coefficients(a, kind) for a in (self.terms.alpha, self.terms.beta))
            self._recurrence[kind.char] = alpha, beta
        alpha, beta = self._recurrence[kind.char]
        _native.zonal(
            z,
            squares,
            self._starts,
            self._degrees,
            self._powers,
            self._weights,
            alpha,
            beta,
            resolve_threads(n_threads),
        )
