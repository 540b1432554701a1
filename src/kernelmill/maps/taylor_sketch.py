"""The Gaussian kernel by sketches of the terms of its Taylor series."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from kernelmill import _native
from kernelmill.arguments import check_choice, check_integer, check_positive
from kernelmill.errors import ArgumentError, Remedy
from kernelmill.files.kinds import Choice, Flag, Integer, ListOf, Null
from kernelmill.kernels.base import MAX_DEGREES
from kernelmill.maps.base import COMPONENTS, MapCost, fitted, parameter, with_parameters
from kernelmill.maps.hashing import HASHINGS
from kernelmill.maps.scales import POSITIVE, RADIUS, CenteredMap, distances_from, minus_center
from kernelmill.maps.tensor_sketch import PolynomialSketch
from kernelmill.runtime.arrays import (
    Floats,
    Rows,
    blocks_of_rows,
    row_products,
    split_length_scale,
)

__all__ = ["TaylorSketch", "columns_of_degrees"]

_BLOCK_ELEMENTS = 1 << 20
_MAX_TERMS = 64

_REACH = 1.25
"""Up to this multiple of the typical norm, rows should not suffer from the truncation."""


@with_parameters
class TaylorSketch(CenteredMap):
    r"""Features of the Gaussian kernel by its Taylor series, for data close to their mean.

    With u = (x - mean) / :math:`\ell`,

    .. math:: e^{-\|u - v\|^2 / 2} = e^{-\|u\|^2 / 2} e^{-\|v\|^2 / 2}
        \sum_n \frac{\langle u, v \rangle^n}{n!},

    and every term is a polynomial kernel, of which a Tensor Sketch gives features. The constant
    term is exact with one column and, where the columns suffice, the linear one with d.

    Parameters
    ----------
    n_components : int, default=100
        The number of output columns, exactly.
    length_scale : float, array_like of shape (n_features,) or {"scale", "median"}, default=None
        :math:`\ell`, as in :class:`Fastfood`. None is "scale", unless gamma is given.
    gamma : float or "scale", default=None
        An alternative to `length_scale`: :math:`\ell = 1 / \sqrt{2 \gamma}`.
    degree : int, default=None
        The last term of the series, at least 1. By default, the one with the least expected error.
    center : {"mean"} or None, default="mean"
        What is subtracted from the rows: the mean of the columns at `fit`, or nothing. The kernel
        does not depend on it, but the error does. Sparse data stay sparse.
    radius : float or "scale", default="scale"
        The typical length of centered rows, for which columns are allocated to the terms;
        "scale" is their root mean square at `fit`. With a length scale for each column, lengths are
        measured in units of the least of them.
    normalize : bool, default=True
        Whether features are scaled to length 1, so that k(x, x) = 1 is exact. Errors become much
        smaller for close points, and up to twice as large for others. Without it, estimates are
        unbiased up to the truncation of the series.
    hashing : {"collision_free", "independent"}, default="collision_free"
        As in :class:`TensorSketch`.
    random_state : int, RandomState, Generator or Stream, default=None
        The seed. An integer gives the same coefficients on every machine and in every release.
    n_threads : int, default=None
        By default :func:`kernelmill.get_num_threads`. Results do not depend on it.

    Attributes
    ----------
    kernel_ : Gaussian
    length_scale_ : float or ndarray of shape (n_features_in_,)
    radius_ : float
    center_ : ndarray of shape (n_features_in_,), or None
    degree_ : int
        The last term.
    columns_of_degrees_ : list of int
        The numbers of columns for degrees 0, 1, ..., in the order of the columns.
    sketches_ : list of PolynomialSketch
        Of degrees 1, 2, ...
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If X had column names at `fit`.

    See Also
    --------
    Fastfood : For any length scale and any radial kernel.

    Notes
    -----
    Let R be the typical distance of rows from the mean, in length scales. The sketch of the term of
    degree n has a standard deviation of about :math:`(\sqrt 2 R^2)^n / n!`, so the error explodes
    for large R, and for small R nearly everything is in the exact terms. Against
    :class:`Fastfood` with as many columns, errors averaged over pairs of rows are smaller for R < 1
    and larger for R > 2; for nearest neighbours that holds only where no rows are much farther from
    the mean than others. Measurements, also on real data, are in ``docs/taylor-or-fastfood.md``.
    With ``length_scale="median"`` R is 0.7 to 1, with "scale" up to 1.4.

    It takes about four times as long as :class:`Fastfood`: a term of degree n costs n sketches.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill import Fastfood, TaylorSketch
    >>> X = np.random.default_rng(0).uniform(size=(200, 10))
    >>> for Map in (TaylorSketch, Fastfood):
    ...     features = Map(n_components=500, length_scale="median", random_state=0)
    ...     Z = features.fit_transform(X)
    ...     print(np.abs(Z @ Z.T - features.exact_kernel(X)).mean().round(4))
    0.0007
    0.0142
    """

    name = "taylor_sketch"
    _construction = "tensor sketches of a Taylor series"

    n_components: int = parameter(COMPONENTS, default=100)
    _: KW_ONLY
    degree: int | None = parameter(Integer(1, MAX_DEGREES) | Null(), default=None)
    radius: float | str = parameter(RADIUS, default="scale")
    normalize: bool = parameter(Flag(), default=True)
    hashing: str = parameter(Choice(*HASHINGS), default="collision_free")

    radius_: float = fitted(POSITIVE)
    columns_of_degrees_: list[int] = fitted(ListOf(COMPONENTS, 1, MAX_DEGREES + 1))
    degree_: int = fitted()
    sketches_: list[PolynomialSketch] = fitted()

    @classmethod
    def _estimate_cost(cls, n_columns: int, n_features: int, degree: int) -> MapCost:
        return MapCost.of_transforms(n_columns, n_features, degree * degree)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.degree is not None:
            degree = check_integer("degree", self.degree, 1)
            if self.n_components <= degree:
                raise ArgumentError(
                    f"must be greater than the degree, {degree}, since every term needs a "
                    f"column, got {self.n_components}",
                    Remedy("use more components", n_components=...),
                    Remedy("use a lower degree", degree=...),
                    parameter="n_components",
                )
        if isinstance(self.radius, str):
            check_choice("radius", self.radius, ("scale",))
        else:
            check_positive("radius", self.radius)

    def _learn(self, X: Rows) -> None:
        super()._learn(X)
        self.radius_ = self._resolve_radius(X)
        self.columns_of_degrees_ = self.allocate(int(self.n_components), X.shape[1])

    def allocate(self, n_components: int, dim: int) -> list[int]:
        """The columns of degrees 0, 1, ... of a map with so many, as it is fitted otherwise."""
        # Beyond these bounds the result is constant: the first terms have it all, or features
        # are 0.
        scale, _ = split_length_scale(self.length_scale_)
        ratio = min(max(self.radius_ / scale, 1e-6), 30.0)
        return columns_of_degrees(ratio**2, dim, n_components, self.degree)

    def _check_attributes(self) -> None:
        counts = self.columns_of_degrees_
        if counts[0] != 1 or sum(counts) != self.n_components:
            raise ArgumentError(
                f"must begin with 1 and add up to {self.n_components}, got {counts}",
                parameter="columns_of_degrees_",
            )
        super()._check_attributes()

    def _build(self, dim: int, n_components: int) -> None:
        super()._build(dim, n_components)
        self.degree_ = len(self.columns_of_degrees_) - 1
        self.sketches_ = [
            PolynomialSketch(
                degree=n,
                dim=dim,
                length=count,
                stream=self.stream_.substream("taylor sketch", n),
                hashing=self.hashing,
                scale=1 / self._scale,
                shift=self._shift,
            )
            for n, count in enumerate(self.columns_of_degrees_)
            if n > 0
        ]
        self._normalized = bool(self.normalize)

    def _prepare(self, X: Rows) -> None:
        for sketch in self.sketches_:
            sketch.tables(X.dtype)

    def _resolve_radius(self, X: Rows) -> float:
        if not isinstance(self.radius, str):
            return check_positive("radius", self.radius)
        scale, _ = split_length_scale(self.length_scale_)
        squares = self._squared_distances(X)
        radius = math.sqrt(math.fsum(squares / squares.size)) if np.isfinite(squares).all() else 0.0
        return radius if radius > 0 else scale

    def _write_features(self, X: Rows, out: Floats) -> bool:
        is_finite = True
        # A block stays in the cache while its terms are written and its lengths computed.
        most_rows = max(1, _BLOCK_ELEMENTS // max(X.shape[1], out.shape[1]))
        for rows, part in blocks_of_rows(X, out, max_rows=most_rows):
            is_finite &= self._write(minus_center(rows, self.center_, self._weights), part)
        return is_finite

    def _write(self, X: Rows, out: Floats) -> bool:
        n_threads = self._threads
        dense = isinstance(X, np.ndarray)  # then relative to the center
        squares = distances_from(X, None if dense else self._shift, n_threads)
        with np.errstate(over="ignore", under="ignore"):
            factors = np.exp(squares / self._scale / self._scale / -2)
        # Where powers may overflow: 0 times infinity is not 0.
        far = factors.astype(out.dtype) == 0
        out[:, 0] = factors
        begin, is_finite = 1, True
        for sketch in self.sketches_:
            part = out[:, begin : begin + sketch.length]
            scales = (factors / _root_of_factorial(sketch.degree)).astype(out.dtype)
            is_finite &= sketch.write(
                X, part, row_scales=scales, shifted=dense, n_threads=n_threads
            )
            # Powers may overflow where the factor of a high degree is below the smallest number.
            if not scales.all():
                part[scales == 0] = 0
            begin += sketch.length
        if far.any():
            out[far] = 0
        if self._normalized:
            lengths = np.sqrt(row_products(out, n_threads=n_threads))
            lengths[lengths == 0] = 1
            with np.errstate(over="ignore"):
                shares = np.reciprocal(lengths).astype(out.dtype)
            is_finite &= bool(np.isfinite(shares).all())
            out *= shares[:, np.newaxis]
        return is_finite

    def _exact_kernel(self, X: Rows, Y: Rows | None) -> NDArray[np.float64]:
        return self.kernel_(X, Y, length_scale=self.length_scale_)


def _root_of_factorial(n: int) -> float:
    """Return the square root of n!, rounded to float64; infinite from 301 on."""
    if n <= 170:
        return math.sqrt(math.factorial(n))
    return float(math.isqrt(math.factorial(n))) if n <= 300 else math.inf


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


@lru_cache(maxsize=256)  # the same for maps that differ only in their seed
def _find_columns(square: float, dim: int, n_columns: int, degree: int | None) -> tuple[int, ...]:
    if degree is not None:
        best = _allocate(square, dim, n_columns, min(degree, n_columns - 1))
    else:
        candidates = range(1 if n_columns > 1 else 0, min(_MAX_TERMS, n_columns - 1) + 1)
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
        if total == 0:  # all sizes underflow: no term matters
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
        counts[degrees[-1]] += left  # all terms are exact; the rest are columns of zeros
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
