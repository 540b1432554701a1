"""Dot-product kernels by spherical harmonics, with the directions of Fastfood."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill import _native
from kernelmill.arguments import check_integer, check_positive
from kernelmill.errors import ArgumentError, ArgumentTypeError, Remedy
from kernelmill.files.kinds import Choice, Float, Integer, Null
from kernelmill.kernels import (
    DotProductKernel,
    Maclaurin,
    Radial,
    SpherePower,
    Zonal,
    resolve_dot_product,
    spherical_expansion,
)
from kernelmill.kernels.angles import mean_power_coefficients
from kernelmill.kernels.base import MAX_DEGREES
from kernelmill.kernels.gegenbauer import power_in_legendre_polynomials
from kernelmill.kernels.names import DotProductArgument, KernelKind
from kernelmill.kernels.points import check_pair, cosines_and_norms
from kernelmill.maps.base import FeatureMap, fitted, parameter, with_parameters
from kernelmill.maps.fastfood import BLOCKS
from kernelmill.maps.scales import POSITIVE, RADIUS, resolve_radius
from kernelmill.projections import FeatureLayout, HadamardProjection
from kernelmill.projections.fastfood import padded_size
from kernelmill.random import Stream
from kernelmill.runtime.arrays import (
    Floats,
    PerDtype,
    Rows,
    blocks_of_rows,
    round_coefficients,
    row_products,
    rows_in_cache,
)

__all__ = [
    "DotProductFastfood",
    "ZonalColumns",
    "ZonalTerms",
    "allocate_columns",
    "legendre_terms",
    "power_terms",
]

_LARGEST_LOGARITHM = math.log(np.finfo(np.float64).max)

_DEGREE_OF_ZONAL = 128
_MIN_RADIUS = 1e-100
"""The smallest radius whose square has a finite inverse."""

_MAX_EXACT_DIMENSIONS = 1024
_COMPLETE_RADII = 2.0
"""Infinite series are complete for rows up to this multiple of the radius."""


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
    off_diagonal[:1] = 1 / math.sqrt(dim)  # the formula is 0 / 0 in two dimensions
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
    _recurrence: PerDtype[tuple[Floats, Floats]] = field(
        default_factory=PerDtype, init=False, repr=False
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

    def largest_square(self, dtype: np.dtype[np.floating]) -> float:
        """Return the largest squared length of a row whose powers a dtype can hold, with weights.

        The C++ core computes with the largest number instead of larger powers.
        """
        used = (self._powers > 0) & (self._weights > 0)
        room = math.log(float(np.finfo(dtype).max)) - np.log(self._weights[used])
        logarithms = 2 * room / self._powers[used]
        return math.exp(min([*logarithms, _LARGEST_LOGARITHM]))

    def apply(self, z: Floats, squares: NDArray[np.float64], n_threads: int = 0) -> bool:
        """Replace projections z on unit vectors by features; `squares` are squared row lengths.

        Return whether the features are finite.
        """
        alpha, beta = self._recurrence.of(z.dtype, self._round_recurrence)
        return _native.zonal(
            z,
            squares,
            self._starts,
            self._degrees,
            self._powers,
            self._weights,
            alpha,
            beta,
            n_threads,
        )

    def _round_recurrence(self, dtype: np.dtype[np.floating]) -> tuple[Floats, Floats]:
        alpha, beta = self.terms.alpha, self.terms.beta
        return round_coefficients(alpha, dtype), round_coefficients(beta, dtype)


@with_parameters
class DotProductFastfood(FeatureMap):
    r"""Dot-product kernels and kernels of angles: O(log d + n) operations per feature of degree n.

    A kernel of norms and the angle is a sum of terms
    :math:`w \, (\|x\| \|y\|)^k L_n(\cos \theta)` with the Legendre polynomials of d dimensions, and

    .. math:: L_n(\cos \theta) = N(d, n) \, E_v \bigl[ L_n(\langle x, v \rangle / \|x\|) \,
        L_n(\langle y, v \rangle / \|y\|) \bigr]

    for a uniform direction v, N(d, n) being the number of spherical harmonics of degree n. So a
    column is a polynomial of the projection on a random direction (Le, Sarlós & Smola, 2013,
    sections 3.3 and 4.5), and the directions are rows of Fastfood. Inner products of features
    estimate the kernel without bias for points of all norms, up to the truncation of infinite
    series.

    Parameters
    ----------
    kernel : str, DotProductKernel, Zonal, SpherePower or array_like, default="polynomial"
        "polynomial" (or "poly"), "exponential", an object of :mod:`kernelmill.kernels` such as
        ``Polynomial(3, coef0=1.0)`` or ``ArcCosine(1)``, or Maclaurin coefficients (an array, or a
        function of the degree; not the kernel function). For
        ``SpherePower`` columns are powers of the projections, without polynomials.
    n_components : int, default=100
        The number of output columns, exactly.
    radius : float or "scale", default="scale"
        The typical norm of rows, for which columns are allocated to the terms. The estimate is
        unbiased for any value. "scale" is the root mean square norm of the rows at `fit`.
    max_degree : int, default=None
        Omit higher powers of the inner product; for ``Zonal`` kernels, higher degrees of
        polynomials. By default, infinite series keep all terms that matter for rows up to twice the
        radius, and ``Zonal`` kernels keep degrees up to 128.
    blocks : {"stratified", "independent"}, default="stratified"
        How the blocks of directions depend on each other: see :class:`Fastfood`.
    random_state : int, RandomState, Generator or Stream, default=None
        The seed. An integer gives the same coefficients on every machine and in every release.
    n_threads : int, default=None
        By default :func:`kernelmill.get_num_threads`. Results do not depend on it.

    Attributes
    ----------
    kernel_ : DotProductKernel, Zonal or SpherePower
    radius_ : float
    remainder_ : float
        The part of k(x, x) that is omitted, for x of norm `radius_`: 0 for polynomials.
    degrees_ : ndarray of shape (n_components,)
        The degree of the polynomial of each column.
    projection_ : HadamardProjection
        Directions divided by the radius.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If X had column names at `fit`.

    See Also
    --------
    RandomMaclaurin : Products of random signs, with less error at higher degrees for rows
        without negative entries.
    TensorSketch : Polynomial kernels, with less error for large numbers of columns.

    Notes
    -----
    Columns are allocated by systematic sampling, in proportion to the contribution of the terms to
    k(x, x) at the radius. That is optimal for orthogonal rows, whose products have the same
    variance in all degrees. Terms of degree 0 are exact and take one column each. Columns of a term
    are consecutive rows of Fastfood. Where they fill groups of four stratified blocks, their
    variance was measured as 0.4 to 1.3 times that of independent directions; in a part of a group,
    and with independent blocks, up to 1.9 times for degree 1, 1.6 for degree 2 and less for higher
    ones.

    High degrees are estimated by rare, large values: in 64 dimensions half of the square of a
    polynomial of degree 10 comes from projections of more than four standard deviations, of
    probability 2e-5. With few columns, most estimates miss this part. So kernels whose high degrees
    matter, such as ``ArcCosine(0)``, are estimated too small near k(x, x).

    Where the number of input columns is not a power of two, `fit` computes the lengths of the
    directions (except for functions of the inner product of more than 1024 columns), and so does
    the first `transform` of an unpickled map. That took 0.3 s for 784 columns and 16384 components,
    6 s for 10000 columns.

    A single data column is treated as two of which the second is 0, and more than 1024 columns as
    the next power of two. A zero row has the value of the constant term in all products; for
    ``Zonal`` kernels it has no direction, and its features are 0. Rows
    whose squared norms or features overflow raise an error.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill import DotProductFastfood
    >>> from kernelmill.kernels import Polynomial
    >>> X = np.random.default_rng(0).uniform(size=(100, 20)) / 4
    >>> features = DotProductFastfood(Polynomial(2, coef0=1.0), n_components=2000, random_state=0)
    >>> Z = features.fit_transform(X)
    >>> Z.shape
    (100, 2000)
    >>> bool(np.abs(Z @ Z.T / features.exact_kernel(X) - 1).max() < 0.2)
    True
    """

    name = "dot_product_fastfood"
    _construction = "polynomials of Fastfood directions"

    kernel: DotProductArgument | Zonal | SpherePower = parameter(KernelKind(), default="polynomial")
    _: KW_ONLY
    radius: float | str = parameter(RADIUS, default="scale")
    max_degree: int | None = parameter(Integer(0, MAX_DEGREES) | Null(), default=None)
    blocks: str = parameter(Choice(*BLOCKS), default="stratified")

    radius_: float = fitted(POSITIVE)
    remainder_: float = fitted(Float(low=0))
    kernel_: DotProductKernel | Zonal | SpherePower = fitted()
    projection_: HadamardProjection = fitted()

    @property
    def degrees_(self) -> NDArray[np.int64]:
        """The degree of the polynomial of each column."""
        from sklearn.utils.validation import check_is_fitted  # noqa: PLC0415

        check_is_fitted(self)
        return self._zonal_columns().degrees

    def _check_parameters(self) -> None:
        super()._check_parameters()
        _resolve(self.kernel)
        if self.max_degree is not None:
            check_integer("max_degree", self.max_degree, 0, MAX_DEGREES)
        if not isinstance(self.radius, str):
            check_positive("radius", self.radius)

    def _learn(self, X: Rows) -> None:
        self.radius_ = resolve_radius(self.radius, X)

    def _build(self, dim: int, n_components: int) -> None:
        self.kernel_ = _resolve(self.kernel)
        if not _MIN_RADIUS < self.radius_ < 1 / _MIN_RADIUS:
            raise ArgumentError(
                f"the typical norm of the rows must be between {_MIN_RADIUS:g} and "
                f"{1 / _MIN_RADIUS:g}, got {self.radius_:g}",
                "scale the data",
                Remedy("set another radius", radius=...),
            )
        self._cut = self.max_degree
        self._n_features_out = n_components
        self.projection_ = HadamardProjection(
            kernel=Radial([1.0]),
            length_scale=self.radius_,
            dim=self._dimensions_of_sphere(dim),
            n_frequencies=n_components,
            stream=self._substream(),
            structure="hadamard",
            stratified=self.blocks == "stratified",
        )
        self._columns: ZonalColumns | None = None

    def _prepare(self, X: Rows) -> None:
        self._columns, self.remainder_ = self._make_columns()
        self.projection_.prepare(X.dtype)

    def _dimensions_of_sphere(self, dim: int) -> int:
        """The dimension to use: columns of zeros may be added, inner products stay the same."""
        if isinstance(self.kernel_, SpherePower):
            return dim
        if isinstance(self.kernel_, DotProductKernel) and dim > _MAX_EXACT_DIMENSIONS:
            return padded_size(dim)  # so that `fit` need not compute the lengths of directions
        return max(2, dim)  # on a line, spheres have too few harmonics

    def _substream(self) -> Stream:
        return self.stream_.substream("dot product fastfood")

    def _zonal_columns(self) -> ZonalColumns:
        columns = self._columns
        if columns is None:
            self._columns = columns = self._make_columns()[0]
        return columns

    def _make_columns(self) -> tuple[ZonalColumns, float]:
        """The columns, a function of the seed and of fitted attributes: they are not pickled."""
        terms, remainder = self._terms()
        if not terms.at_one.any():
            raise ArgumentError(
                f"{self.kernel_!r} has no terms for rows of norm {self.radius_:g} up to "
                f"max_degree={self._cut}",
                Remedy("set a larger degree", max_degree=...),
                Remedy("set another radius", radius=...),
                Remedy("use another kernel", kernel=...),
            )
        n, uniform = self._n_features_out, self._substream().substream("terms").uniforms(1)[0]
        counts, divisors = allocate_columns(terms.at_one, terms.degrees == 0, n, float(uniform))
        return ZonalColumns(terms, counts, divisors, n), remainder

    def _terms(self) -> tuple[ZonalTerms, float]:
        """The terms for rows divided by the radius, and how much is left out of k(x, x) = 1."""
        kernel, dim, radius = self.kernel_, self.projection_.dim, self.radius_
        if isinstance(kernel, Zonal):
            cut = _DEGREE_OF_ZONAL if self._cut is None else self._cut
            expansion = spherical_expansion(kernel, dim, max_degree=cut)
            factor = radius ** (2 * kernel.power)
            weights = factor * expansion.weights
            terms = legendre_terms(weights, expansion.radial_power, expansion.degree, dim)
            return terms, max(0.0, factor * expansion.remainder)
        if isinstance(kernel, SpherePower):
            series = kernel.coefficients * (radius * radius) ** np.arange(kernel.coefficients.size)
            means = [mean_power_coefficients(p, dim).sum() for p in range(series.size)]
            kept = series.size if self._cut is None else self._cut + 1
            at_one = series * means
            terms = power_terms(series[:kept], at_one[:kept], dim)
            return terms, float(at_one[kept:].sum())
        series, remainder = self._series(kernel)
        table = series[:, np.newaxis] * power_in_legendre_polynomials(dim, series.size - 1)
        powers, degrees = np.nonzero(table)
        weights = table[powers, degrees]
        return legendre_terms(weights, powers.astype(np.float64), degrees, dim), remainder

    def _series(self, kernel: DotProductKernel) -> tuple[NDArray[np.float64], float]:
        """Return the Maclaurin coefficients of the kernel of rows divided by the radius."""
        square = self.radius_**2
        if kernel.degree is not None:
            count = kernel.degree + 1
        elif self._cut is not None:
            count = self._cut + 1
        else:
            try:
                with np.errstate(over="ignore"):
                    count = kernel.terms(_COMPLETE_RADII**2 * square).size
            except ValueError:  # it diverges there; at the radius it must converge
                count = kernel.terms(square).size
        if self._cut is not None:
            count = min(count, self._cut + 1)
        series = kernel.coefficients(count, scale=square)
        whole = kernel.degree is not None and count > kernel.degree
        left_out = 0.0 if whole else float(kernel.value(square)) - math.fsum(series)
        return series, max(0.0, left_out)

    def _write_features(self, X: Rows, out: Floats) -> bool:
        n_threads = self._threads
        columns, is_finite = self._zonal_columns(), True
        largest = columns.largest_square(X.dtype)
        layout = FeatureLayout("projection", columns.n_columns)
        for rows, part in blocks_of_rows(X, out, max_rows=rows_in_cache(columns.n_columns)):
            self.projection_.features(rows, layout, None, part, n_threads)
            squares = row_products(rows, n_threads=n_threads) / self.radius_**2
            part[~(squares <= largest)] = np.nan  # even if their features seem to be finite
            is_finite &= columns.apply(part, squares, n_threads)
            if isinstance(self.kernel_, Zonal):
                part[squares == 0] = 0  # no direction
        return is_finite

    def _exact_kernel(self, X: Rows, Y: Rows | None) -> NDArray[np.float64]:
        kernel, cut = self.kernel_, self._cut
        if cut is None:
            return kernel(X, Y)
        if isinstance(kernel, Zonal):
            return _cut_zonal(kernel, cut, self.projection_.dim, X, Y)
        if isinstance(kernel, SpherePower):
            return SpherePower(kernel.coefficients[: cut + 1])(X, Y)
        return Maclaurin(kernel.coefficients(cut + 1))(X, Y)

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return {**state, "_columns": None} if "_columns" in state else state


def _resolve(
    kernel: DotProductArgument | Zonal | SpherePower,
) -> DotProductKernel | Zonal | SpherePower:
    if isinstance(kernel, (Zonal, SpherePower)):
        return kernel
    _reject_class(kernel)
    return resolve_dot_product(kernel, also="a Zonal (ArcCosine) or SpherePower kernel")


def _reject_class(kernel: object) -> None:
    if isinstance(kernel, type) and issubclass(kernel, (Zonal, SpherePower)):
        raise ArgumentTypeError(
            f"must be an instance, got the class {kernel.__name__}",
            f"write {kernel.__name__}(...)",
            parameter="kernel",
        )


def _cut_zonal(kernel: Zonal, cut: int, dim: int, X: Rows, Y: Rows | None) -> NDArray[np.float64]:
    """Return a kernel of angles without its higher degrees."""
    expansion = spherical_expansion(kernel, dim, max_degree=cut)
    cosines, own, others = cosines_and_norms(*check_pair(X, Y))
    product = np.multiply.outer(own, others)
    return np.where(product > 0, expansion.value(cosines, product), 0.0)
