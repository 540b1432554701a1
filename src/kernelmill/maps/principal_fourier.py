"""Random Fourier features of the leading principal components of the columns."""

from __future__ import annotations

from dataclasses import KW_ONLY
from types import NoneType
from typing import Any

import numpy as np
import scipy  # its modules are loaded on first use
from numpy.typing import ArrayLike, NDArray

from kernelmill import _native
from kernelmill.arguments import check_integer
from kernelmill.errors import ArgumentError, Remedy
from kernelmill.files.kinds import Array, Choice, Integer, Null, Number, PlainOrArray
from kernelmill.formatting import plain
from kernelmill.kernels import RadialKernel
from kernelmill.maps.base import fitted, parameter, with_parameters
from kernelmill.maps.random_fourier import ShiftInvariantMap
from kernelmill.maps.scales import POSITIVE
from kernelmill.projections import FeatureLayout, HadamardProjection, Projection
from kernelmill.projections.base import Scoring
from kernelmill.random import Stream
from kernelmill.runtime.arrays import (
    Floats,
    PerDtype,
    Rows,
    blocks_of_rows,
    native_rows,
    round_coefficients,
)
from kernelmill.runtime.threads import one_blas_thread

__all__ = ["PrincipalFourier", "principal_directions"]

_MAX_DIRECTIONS = 1 << 14
_MAX_ROWS = 8192
"""Rows from which directions are computed."""

_MAX_SQUARE = 2048
"""Columns whose covariance matrix is decomposed; for more columns, the number of rows instead."""

_BLOCK_ROWS = 4096
"""Rows whose components are computed at a time."""

_NEGLIGIBLE = 1e-12
"""Smaller multiples of the largest variance are rounding errors."""


_DIRECTIONS = PlainOrArray(
    Integer(1, _MAX_DIRECTIONS),
    Array(("float64",), ("directions", "n_features_in"), tensor="directions"),
)


@with_parameters
class PrincipalFourier(ShiftInvariantMap):
    r"""Random features of the leading principal components of the columns.

    The kernel is :math:`k(P x, P y)` of a radial kernel k, where the rows of P are the directions
    in which the rows of the data vary most. This suits data with many dependent columns, such as
    the pixels of images: the other directions contain mostly noise, which affects all distances,
    and a kernel in fewer dimensions needs fewer features. The features are those of a pipeline of
    PCA and :class:`Fastfood`, in a single map that estimators evaluate in blocks.

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        A radial kernel, as in :class:`Fastfood`.
    n_components : int, default=100
        The number of output columns, exactly.
    directions : int or array_like of shape (n_directions, n_features), default=64
        The number of principal components, computed from at most 8192 of the rows that the map is
        fitted on (2048 rows for more than 2048 columns). Powers of two are fastest. An array is
        used as P itself; it can be any linear map.
    length_scale : float or {"scale", "median"}, default=None
        As in :class:`Fastfood`, for distances between the components.
    gamma : float or "scale", default=None
        An alternative to `length_scale`, as in scikit-learn.
    features : {"cos_sin", "complex", "cos_phase", "projection"}, default="cos_sin"
        As in :class:`Fastfood`.
    random_state : int, RandomState, Generator or Stream, default=None
        The seed of the random features.
    n_threads : int, default=None
        By default :func:`kernelmill.get_num_threads`. Results do not depend on it.

    Attributes
    ----------
    kernel_ : Kernel
    length_scale_ : float
    directions_ : ndarray of shape (n_directions, n_features_in_)
        The matrix P. Unless it was passed as an array, its rows are orthonormal. There are fewer
        rows than `directions` if X has fewer columns or rows.
    n_frequencies_ : int
    projection_ : HadamardProjection
        The projection of the components.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If X had column names at `fit`.

    See Also
    --------
    Fastfood : The same kernel of all columns.

    Notes
    -----
    Means are not subtracted, since kernels depend only on differences. The directions are stored in
    model files. They are computed by LAPACK, so they may differ between machines by rounding
    errors. With the same directions, features are bit-identical.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill import PrincipalFourier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 4)) @ rng.normal(size=(4, 200))
    >>> X += 0.1 * rng.normal(size=X.shape)
    >>> features = PrincipalFourier(n_components=2000, directions=4, random_state=0)
    >>> Z = features.fit_transform(X)
    >>> Z.shape, features.directions_.shape
    ((500, 2000), (4, 200))
    >>> bool(np.abs(Z @ Z.T - features.exact_kernel(X)).max() < 0.15)
    True
    """

    name = "principal_fourier"
    _construction = "random features of principal components"

    _: KW_ONLY
    directions: int | ArrayLike = parameter(_DIRECTIONS, default=64)
    length_scale: float | str | None = parameter(
        Number() | Choice("scale", "median") | Null(), default=None
    )

    length_scale_: float = fitted(POSITIVE)
    directions_: NDArray[np.float64] = fitted(_DIRECTIONS)

    def _describe(self) -> str:
        directions = getattr(self, "directions_", None)
        if directions is None:
            return self._construction
        return f"random features of {plain.count(len(directions), 'principal component')}"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not self._kernel().radial:
            raise ArgumentError(
                "must be radial (a function of the Euclidean distance) for PrincipalFourier, got "
                f"{type(self._kernel()).__name__}",
                parameter="kernel",
            )
        if np.ndim(self.directions) == 0:
            check_integer("directions", self.directions, 1, _MAX_DIRECTIONS)
        if not isinstance(self.length_scale, (str, NoneType)) and np.ndim(self.length_scale) > 0:
            raise ArgumentError(
                f"must be one number, 'scale' or 'median', got {np.size(self.length_scale)} values",
                Remedy("divide the directions by their length scales instead", directions=...),
                parameter="length_scale",
            )

    def _learn(self, X: Rows) -> None:
        if np.ndim(self.directions) == 0:
            self.directions_ = principal_directions(X, int(self.directions))  # type: ignore[arg-type]
        else:
            self.directions_ = _check_directions(self.directions, X.shape[1])
        self._packed: PerDtype[Floats] = PerDtype()
        components = self._components(_some_rows(X, _MAX_ROWS))
        if not np.isfinite(components).all():
            raise ArgumentError(
                "the principal components of X are too large for its dtype", "scale the data"
            )
        self.length_scale_ = float(self._resolve_length_scale(components))

    def _check_attributes(self) -> None:
        if np.ndim(self.directions) > 0 and not np.array_equal(self.directions, self.directions_):
            raise ArgumentError("must be equal to directions", parameter="directions_")

    def _build(self, dim: int, n_components: int) -> None:
        _check_directions(self.directions_, dim)
        self._packed = PerDtype()
        super()._build(len(self.directions_), n_components)

    def _substream(self) -> Stream:
        return self.stream_.substream("fastfood", self._structure)

    @property
    def _structure(self) -> str:
        return "sorf" if getattr(self.kernel_, "gaussian_mixture", False) else "hadamard"

    def _make_projection(self, dim: int) -> Projection:
        assert isinstance(self.kernel_, RadialKernel)
        return HadamardProjection(
            kernel=self.kernel_,
            length_scale=self.length_scale_,
            dim=dim,
            n_frequencies=self.n_frequencies_,
            stream=self._substream(),
            structure=self._structure,
            stratified=True,
        )

    def _prepare(self, X: Rows) -> None:
        super()._prepare(X)
        self._packed.of(X.dtype, self._pack)

    def _pack(self, dtype: np.dtype[np.floating]) -> Floats:
        """Return the directions in the memory layout of the native code."""
        n_directions, dim = self.directions_.shape
        packed = np.empty(_native.dense_packed_size(n_directions, dim, dtype.itemsize), dtype)
        _native.dense_pack(round_coefficients(self.directions_, dtype), packed)
        return packed

    def _components(self, X: Rows) -> Floats:
        """Return P x of checked rows; a row depends only on the same row of X."""
        n_directions = len(self.directions_)
        out = np.empty((X.shape[0], n_directions), X.dtype)
        kind = FeatureLayout("projection", n_directions).native_kind
        for rows, part in blocks_of_rows(X, out):
            _native.dense(
                *(native_rows(rows), self._packed.of(X.dtype, self._pack), n_directions, 0, part),
                *(kind, 1.0, None, self._threads),
            )
        return out

    def _write_features(self, X: Rows, out: Floats, scoring: Scoring | None = None) -> bool:
        is_finite = True
        for begin in range(0, X.shape[0], _BLOCK_ROWS):
            rows = slice(begin, begin + _BLOCK_ROWS)
            part = None if scoring is None else (scoring[0], scoring[1][rows])
            is_finite &= super()._write_features(self._components(X[rows]), out[rows], part)
        return is_finite

    def _exact_kernel(self, X: Rows, Y: Rows | None) -> NDArray[np.float64]:
        others = None if Y is None else self._components(Y)
        return super()._exact_kernel(self._components(X), others)


def _check_directions(directions: Any, dim: int) -> NDArray[np.float64]:
    try:
        if np.iscomplexobj(directions):
            raise TypeError("directions of real columns must be real")
        array = np.array(directions, np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            "must be an integer or an array of real numbers", parameter="directions"
        ) from error
    if not np.isfinite(array).all():
        raise ArgumentError("must be finite, got NaN or infinity", parameter="directions")
    is_matrix = array.ndim == 2 and array.shape[1] == dim
    if not (is_matrix and 1 <= len(array) <= _MAX_DIRECTIONS):
        raise ArgumentError(
            f"must have shape (n_directions, {dim}), with one column for each column of X and 1 "
            f"to {_MAX_DIRECTIONS} rows, got shape {array.shape}",
            parameter="directions",
        )
    return array


def _some_rows(X: Rows, most: int) -> Rows:
    """Return all rows, or `most` of them; the choice depends only on the number of rows."""
    if X.shape[0] <= most:
        return X
    stream = Stream.from_seed(0).substream("rows for principal components")
    return X[np.sort(stream.permutation(X.shape[0])[:most])]


def principal_directions(X: Any, most: int) -> NDArray[np.float64]:
    """Return the directions of the leading principal components of dense or CSR rows, orthonormal.

    There are at most `most`, and none in which rows do not vary, except that there is at least one.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.maps.principal_fourier import principal_directions
    >>> principal_directions(np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.5]]), 1).round(2)
    array([[0.97, 0.25]])
    """
    dim = X.shape[1]
    is_wide = dim > _MAX_SQUARE
    rows: Any = _some_rows(X, _MAX_SQUARE if is_wide else _MAX_ROWS).astype(np.float64)
    k = min(most, dim, max(1, rows.shape[0] - 1))
    # With one thread, directions do not depend on the number of threads.
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        mean = np.asarray(rows.mean(axis=0)).ravel()
        if isinstance(rows, np.ndarray):  # differences of products would lose digits
            rows -= mean
            mean = np.zeros(dim)
        products: Any = rows @ rows.T if is_wide else rows.T @ rows
        products = products if isinstance(products, np.ndarray) else products.toarray()
        if is_wide:
            shift = np.asarray(rows @ mean).ravel()
            products -= shift[:, np.newaxis] + shift - mean @ mean
        else:
            products -= rows.shape[0] * np.outer(mean, mean)
        if not np.isfinite(products).all():
            raise ArgumentError("the variance of X is too large for float64", "scale the data")
        n = len(products)
        variances, vectors = scipy.linalg.eigh(products, subset_by_index=[n - min(k, n), n - 1])
        variances, vectors = variances[::-1], vectors[:, ::-1]
        n_kept = max(1, int((variances > _NEGLIGIBLE * max(variances[0], 0.0)).sum()))
        found = vectors[:, :n_kept]
        if is_wide:  # from coordinates in the sample to directions in the space of columns
            found = np.asarray(rows.T @ found) - np.outer(mean, found.sum(axis=0))
            lengths = np.linalg.norm(found, axis=0)
            found[0, lengths == 0] = 1.0
            found = np.linalg.qr(found)[0]
    largest = np.abs(found).argmax(axis=0)
    signs = np.where(found[largest, np.arange(n_kept)] < 0, -1.0, 1.0)
    return np.ascontiguousarray((found * signs).T)
