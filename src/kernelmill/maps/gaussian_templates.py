"""Positive, local features: Gaussian templates around random centres."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelmill import _native
from kernelmill.arguments import check_choice, check_positive
from kernelmill.errors import ArgumentError, Remedy
from kernelmill.files.kinds import Choice, Either, Flag, Number
from kernelmill.kernels import Gaussian, Radial
from kernelmill.maps.base import fitted, parameter, with_parameters
from kernelmill.maps.scales import POSITIVE, CenteredMap, distances_from, minus_center
from kernelmill.projections import FeatureLayout, HadamardProjection
from kernelmill.random import Stream
from kernelmill.runtime.arrays import (
    Floats,
    PerDtype,
    Rows,
    blocks_of_rows,
    round_coefficients,
    rows_in_cache,
    split_length_scale,
)

__all__ = ["GaussianTemplates"]

LengthsOfCentres: TypeAlias = Callable[[Stream, int, int], ArrayLike]

_WEIGHTINGS = ("gaussian", "student")
_SHORTEST = 1e-100
"""The shortest length scale whose square has a finite inverse."""

_ZERO_BELOW = -750.0
"""The exponential function of smaller numbers is 0 in float64."""

_LARGEST_Q = 1 - 1e-6
"""The parameter of the narrowest templates that float64 distinguishes from the limit."""


def gaussian_lengths(stream: Stream, n: int, dim: int) -> NDArray[np.float64]:
    """Return lengths of standard normal vectors."""
    return np.asarray(stream.chis(n, dim))


def student_lengths(stream: Stream, n: int, dim: int, *, df: float) -> NDArray[np.float64]:
    """Return lengths of vectors of the multivariate t distribution."""
    mixing = stream.substream("mixing").chis(n, df) / math.sqrt(df)
    with np.errstate(divide="ignore"):
        return np.minimum(stream.substream("normal").chis(n, dim) / mixing, 1e12)


@with_parameters
class GaussianTemplates(CenteredMap):
    r"""Gaussian bumps around random centres: positive, local features.

    A feature is :math:`\phi_z(x) \propto \exp(-\frac a2 \|x - z\|^2)`, z a random centre (Le,
    Sarlós & Smola, 2013, section 3.4). With centres drawn from :math:`N(0, \tau^2 I)` and the
    factor that depends only on :math:`\|x\|` divided out, inner products estimate the Gaussian
    kernel :math:`\exp(-\|x - y\|^2 / (2 \ell^2))` without bias. The centres come in the blocks of
    Fastfood: O(log d) operations for each.

    Parameters
    ----------
    n_components : int, default=100
        The number of output columns, exactly: the number of centres.
    length_scale : float, array_like of shape (n_features,) or {"scale", "median"}, default=None
        :math:`\ell`, as in :class:`Fastfood`. None is "scale", unless gamma is given. With one for
        each column, what is said of x and :math:`\ell` here holds for columns that are weighted by
        :math:`\ell / \ell_j`, where :math:`\ell` is the least of them.
    gamma : float or "scale", default=None
        An alternative to `length_scale`: :math:`\ell = 1 / \sqrt{2 \gamma}`.
    spread : float or "scale", default="scale"
        :math:`\tau`, the standard deviation of the coordinates of the centres. "scale" is the one
        of least variance where it matters, for close pairs at the root mean square distance R of
        the rows from the center: :math:`\sqrt{1 - q} \, R / \sqrt d` with the q of the notes. For
        other weightings it is :math:`R / \sqrt d`.
    weighting : {"gaussian", "student"} or callable, default="gaussian"
        The distribution of the centres. "student" is the multivariate t distribution with `df`
        degrees of freedom, for data with heavy tails. A callable ``weighting(stream, n, dim)``
        returns n lengths, shape (n,), drawn from the `Stream`, in units of `spread`; the first ones
        must not depend on n. Directions are uniform. Only "gaussian" has a kernel in closed form.
    df : float, default=3.0
        The degrees of freedom of "student".
    proper : bool, default=True
        Whether to divide out what makes the kernel depend on :math:`\|x\|`. If not, features are
        the templates themselves, and the kernel is, for the Gaussian weighting,

        .. math:: \exp\Bigl(-\frac{a b}{2 (2 a + b)} \bigl(\|x\|^2 + \|y\|^2\bigr)
            - \frac{\|x - y\|^2}{2 \ell^2}\Bigr), \quad b = 1 / \tau^2,

        which falls off away from the center. Other weightings need ``proper=False``.
    center : {"mean"} or None, default="mean"
        What is subtracted from the rows: the mean of the columns at `fit`, or nothing. Sparse data
        stay sparse.
    random_state : int, RandomState, Generator or Stream, default=None
        The seed. An integer gives the same coefficients on every machine and in every release.
    n_threads : int, default=None
        By default :func:`kernelmill.get_num_threads`. Results do not depend on it.

    Attributes
    ----------
    kernel_ : Gaussian
        The kernel of the proper features.
    length_scale_ : float or ndarray of shape (n_features_in_,)
    spread_ : float
    template_scale_ : float
        The length scale :math:`1 / \sqrt a` of a template.
    center_ : ndarray of shape (n_features_in_,), or None
    projection_ : HadamardProjection
        Its frequencies are the centres times a.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If X had column names at `fit`.

    See Also
    --------
    Fastfood : Cosine features of the same kernel, with much less variance, but neither positive nor
    local.

    Notes
    -----
    Given :math:`\ell` and :math:`b = 1 / \tau^2`, the templates have
    :math:`a = (1 + \sqrt{1 + b \ell^2}) / \ell^2`, and the product of one feature of x with that of
    y has the second moment

    .. math:: k(x, y)^2 \Bigl(\frac{(1 + q)^2}{4 q}\Bigr)^{d/2} e^{q S}, \quad
        S = \|x + y\|^2 / \ell^2, \quad q = \frac{a \ell^2 - 2}{a \ell^2 + 2} \in (0, 1).

    Wide spreads (q near 0) give templates of scale :math:`\ell / \sqrt 2`, most of which are far
    from any data: the first factor explodes with d. Narrow ones (q near 1) tend to features
    :math:`\exp(\langle w, x \rangle - \|x\|^2 / \ell^2)` with normal w, the positive random
    features of Choromanski et al. (2021), which are not local: the second factor explodes with the
    norms.
    The least value at S is that of :math:`2 S q^2 + (2 S + d) q - d = 0`. With spread and length
    scale both "scale", on data of independent columns and d = 5, 20, 100, 1000, estimates between
    different rows have 1.0 to 1.2 times the variance of random Fourier features. But those of
    k(x, x), which Fourier features have exactly, have with D columns a variance of 21 / D, 170 / D,
    1100 / D and 2700 / D; at 0.7 times that length scale 66 / D, 3500 / D, 3e5 / D and 5e6 / D.
    Beyond a variance of 1 most estimates are far too small, and a few are huge. Use this map where
    positive features are needed, in few dimensions or at large length scales.

    Rows far from all centres have features of 0. Near a centre far out proper features are large,
    up to :math:`\exp((a/2 - 1/\ell^2) \|x\|^2)`; what would overflow is the largest number of its
    dtype instead.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill import GaussianTemplates
    >>> X = np.random.default_rng(0).uniform(size=(100, 3))
    >>> features = GaussianTemplates(n_components=5000, random_state=0)
    >>> Z = features.fit_transform(X)
    >>> bool((Z >= 0).all())
    True
    >>> bool(np.abs(Z @ Z.T - features.exact_kernel(X)).max() < 0.2)
    True
    """

    name = "gaussian_templates"
    _is_dense = True
    _construction = "Gaussian bumps around random centres"

    _: KW_ONLY
    spread: float | str = parameter(Number() | Choice("scale"), default="scale")
    weighting: str | LengthsOfCentres = parameter(Either(Choice(*_WEIGHTINGS)), default="gaussian")
    df: float = parameter(Number(), default=3.0)
    proper: bool = parameter(Flag(), default=True)

    spread_: float = fitted(POSITIVE)
    template_scale_: float = fitted()
    projection_: HadamardProjection = fitted()

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not callable(self.weighting):
            check_choice("weighting", self.weighting, _WEIGHTINGS)
        if not (isinstance(self.spread, str) and self.spread == "scale"):
            if isinstance(self.spread, str):
                raise ArgumentError(
                    f"must be a positive number or 'scale', got {self.spread!r}",
                    parameter="spread",
                )
            check_positive("spread", self.spread)
        check_positive("df", self.df)
        if self.proper and not self._is_gaussian():
            raise ArgumentError(
                f"proper=True needs weighting='gaussian', got {self.weighting!r}: the factor that "
                "depends on the norm of x is not known for other weightings",
                Remedy("leave the factor out", proper=False),
            )

    def _is_gaussian(self) -> bool:
        return isinstance(self.weighting, str) and self.weighting == "gaussian"

    def _learn(self, X: Rows) -> None:
        super()._learn(X)
        self.spread_ = self._resolve_spread(X)

    def _build(self, dim: int, n_components: int) -> None:
        super()._build(dim, n_components)
        for name, number in (("length_scale", self._scale), ("spread", self.spread_)):
            if not _SHORTEST < number < 1 / _SHORTEST:
                raise ArgumentError(
                    f"must be between {_SHORTEST:g} and {1 / _SHORTEST:g}, got {number:g}",
                    "scale the data",
                    parameter=name,
                )
        self._precision = precision = self._resolve_precision()
        self.template_scale_ = 1 / math.sqrt(precision)
        gaussian = self._is_gaussian()
        self._row_factor = 1 / self._scale**2 if self.proper else precision / 2
        growth = 2 * precision * self.spread_**2  # (2 a + b) / b = 1 + this
        self._constant = dim / 4 * math.log1p(growth) if gaussian else 0.0
        self._constant -= math.log(n_components) / 2
        # The part of exponents that depends on the column, for centered and other rows.
        self._centered: PerDtype[Floats] = PerDtype()
        self._uncentered: PerDtype[Floats] = PerDtype()
        self.projection_ = HadamardProjection(
            kernel=Radial(self._distribution()),
            length_scale=1 / (precision * self.spread_),
            dim=dim,
            n_frequencies=n_components,
            stream=self.stream_.substream("gaussian templates"),
            structure="hadamard",
            stratified=True,
        )

    def _prepare(self, X: Rows) -> None:
        self._columns_for(X)

    def _distribution(self) -> LengthsOfCentres:
        """Return the function that draws the lengths of the centres."""
        if callable(self.weighting):
            return self.weighting
        return gaussian_lengths if self._is_gaussian() else partial(student_lengths, df=self.df)

    def _resolve_spread(self, X: Rows) -> float:
        if not isinstance(self.spread, str):
            return check_positive("spread", self.spread)
        dim, (scale, _) = X.shape[1], split_length_scale(self.length_scale_)
        mean_square = float(self._squared_distances(X).mean()) / scale**2
        if not math.isfinite(mean_square):
            raise ArgumentError(
                "the norms of the rows of X are too large for spread='scale'",
                "scale the data",
                Remedy("set the spread to a number", spread=...),
            )
        if not self._is_gaussian():
            return float(scale * (math.sqrt(mean_square / dim) or 1.0))
        # The root of 2 S q^2 + (2 S + d) q - d = 0 for S = 4 R^2, in a form without cancellation.
        twice = 8 * mean_square + dim
        q = 2 * dim / (twice + math.sqrt(twice**2 + 32 * mean_square * dim))
        q = min(q, _LARGEST_Q)
        return float(scale * (1 - q) / math.sqrt(8 * q * (1 + q)))

    def _resolve_precision(self) -> float:
        """Return the factor a of the templates for which the kernel has the length scale."""
        scale = self._scale
        if not self._is_gaussian():
            return 2 / scale**2  # the limit of wide spreads
        return float((1 + math.hypot(1, scale / self.spread_)) / scale**2)

    def _columns_for(self, X: Rows) -> Floats:
        """Return the part of exponents that depends on the column; draw the centres."""
        self.projection_.prepare(X.dtype)
        if isinstance(X, np.ndarray) or self._shift is None:
            return self._centered.of(X.dtype, partial(self._exponents, None))
        return self._uncentered.of(X.dtype, partial(self._exponents, self._shift))

    def _exponents(self, shift: NDArray[np.float64] | None, dtype: np.dtype[np.floating]) -> Floats:
        lengths = self.projection_.lengths()  # of the centres times a
        columns = self._constant - lengths**2 / (2 * self._precision)
        self._longest = float(lengths.max())
        if shift is not None:
            of_center = np.empty((1, lengths.size))
            layout = FeatureLayout("projection", lengths.size)
            self.projection_.features(shift[np.newaxis], layout, None, of_center)
            columns -= of_center[0]
        return round_coefficients(columns, dtype)

    def _write_features(self, X: Rows, out: Floats) -> bool:
        dense = isinstance(X, np.ndarray)
        columns, n_threads = self._columns_for(X), self._threads
        layout = FeatureLayout("projection", columns.size)
        most_rows = rows_in_cache(max(columns.size, X.shape[1]))
        for given, part in blocks_of_rows(X, out, max_rows=most_rows):
            rows = minus_center(given, self.center_, self._weights)
            squares = distances_from(rows, None if dense else self._shift, n_threads)
            self.projection_.features(rows, layout, None, part, n_threads)
            with np.errstate(over="ignore", invalid="ignore"):
                exponents = -self._row_factor * squares
                highest = exponents + np.sqrt(squares) * self._longest + self._constant
            _native.exponentials(part, columns, exponents, n_threads)
            far = ~(highest > _ZERO_BELOW)  # so far that projections cannot compensate
            if far.any():
                part[far] = 0
        return True  # exponentials are always finite

    def _exact_kernel(self, X: Rows, Y: Rows | None) -> NDArray[np.float64]:
        if not self._is_gaussian():
            raise ArgumentError(
                "exact_kernel needs weighting='gaussian', for which the kernel has a closed "
                f"form, got {self.weighting!r}",
                "estimate it with many components instead",
            )
        k = Gaussian()(X, Y, length_scale=self.length_scale_)
        if not self.proper:
            # a b / (2 (2 a + b)) in terms of a and the spread
            fall = self._precision / (2 + 4 * self._precision * self.spread_**2)
            exact = (each.astype(np.float64) for each in (X, X if Y is None else Y))
            of_rows, of_columns = (
                np.exp(-fall * distances_from(each, self.center_, self._threads, self._weights))
                for each in exact
            )
            k *= of_rows[:, np.newaxis]
            k *= of_columns
        return k
