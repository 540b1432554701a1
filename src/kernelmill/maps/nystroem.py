"""Nyström features: kernel values at landmarks, whitened so that inner products are the kernel."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY

import numpy as np
import scipy  # its modules are loaded on first use
from numpy.typing import NDArray

from kernelmill.arguments import check_up_to
from kernelmill.errors import ArgumentError, Remedy
from kernelmill.files.kinds import Array, Float
from kernelmill.kernels import RadialKernel
from kernelmill.maps.base import REAL, fitted, parameter, with_parameters
from kernelmill.maps.scales import KernelMap
from kernelmill.random import Stream
from kernelmill.runtime.arrays import Floats, PerDtype, Rows, split_length_scale, weigh_columns
from kernelmill.runtime.threads import get_num_threads, one_blas_thread

__all__ = ["MAX_LANDMARKS", "Nystroem"]

MAX_LANDMARKS = 1 << 15
"""The triangular matrix of as many landmarks takes 4 GiB in float32."""

_MAX_ENTRIES = 1 << 28
"""Entries of the landmarks, which are dense."""

_JITTER = 1e-6
"""Added to k(x, x) = 1: float32 kernel values have rounding errors of about 1e-7."""

_MAX_JITTER = 0.1
_BLOCK_ENTRIES = 1 << 21
"""Kernel values in float64 that are computed at a time."""

_MAX_LINEAR = 1e6
_LARGEST_SQUARE = 1e30
"""Larger squared distances are cut: kernels do not distinguish them. Finite in float32."""

_LARGEST_DIFFERENCE = 1e8
"""Differences of larger squares lose too many digits to be squared distances."""


@with_parameters
class Nystroem(KernelMap):
    r"""Features that reproduce a kernel exactly at landmarks, which are rows of the data.

    With landmarks :math:`u_1, \dots, u_D`, drawn from the rows that the map is fitted on, and the
    Cholesky factor L of their kernel matrix,

    .. math:: z(x) = L^{-1} (k(u_1, x), \dots, k(u_D, x))^\top,

    so that :math:`\langle z(x), z(y) \rangle` is the projection of the kernel onto the landmarks
    (Williams & Seeger, 2001). If every row is a landmark, a linear model on these features is the
    exact kernel machine. Random features need far more columns than that for rough kernels and
    a few thousand rows; for more rows, they are cheaper.

    Unlike random features, these depend on the data: the landmarks are part of a model file. A row
    takes O(D d + D²) operations instead of O(D log d). Learners need the D² only in training:
    scores are sums of kernel values. Results agree to rounding, not to the last bit, between
    machines and between blocks of other sizes.

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        Any shift-invariant kernel, by name ("matern", "matern:nu=2.5", ...) or as an object.
    n_components : int, default=100
        The number of landmarks D, at most 32768. The number of features is the same, or the number
        of rows if that is smaller. ``fit_blocks`` and ``partial_fit`` of the estimators fit the map
        to their first block, so it must have enough rows.
    length_scale : float, array_like of shape (n_features,), "scale" or "median", optional
        The length scale of the kernel, or one for each column.
    gamma : float or "scale", optional
        An alternative to `length_scale`, as in scikit-learn.
    linear : float, default=0.0
        The weight of a linear kernel that is added: :math:`\langle x - m, y - m \rangle` of columns
        divided by their length scales, with the mean m of the landmarks, divided by its mean value
        at a landmark. With 1, half of the variance is that of linear functions.
    random_state : int, RandomState, Generator or None, default=None
        The seed of the choice of landmarks.
    n_threads : int, optional
        The number of threads for the blocks of `transform`. The kernel matrix is factored with the
        BLAS threads.

    Attributes
    ----------
    landmarks_ : ndarray of shape (D, n_features)
    length_scale_ : float or ndarray of shape (n_features,)
    kernel_ : Kernel

    Notes
    -----
    1e-6 is added to the diagonal of the kernel matrix, so that equal rows can be landmarks. Where
    rounding needs more, it is 1e-5 or ten times that: distances have an error of about 1e-8 times
    the distance from the mean of the landmarks, which matters for rough kernels if there are rows
    that nearly agree and are hundreds of length scales away from others. If landmarks are more than
    10,000 length scales away from their mean, distances are computed from differences, which is
    slower.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill import Nystroem
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> Z = Nystroem("exponential", n_components=50, length_scale=2.0).fit_transform(X)
    >>> exact = np.exp(-np.linalg.norm(X[0] - X[1]) / 2)
    >>> bool(np.isclose(Z[0] @ Z[1], exact, atol=1e-5))
    True
    """

    name = "nystroem"
    _is_costly = True
    _is_dense = True

    _: KW_ONLY
    linear: float = parameter(Float(low=0), default=0.0, added=True)

    landmarks_: Floats = fitted(Array(("float32", "float64"), ("landmarks", "n_features_in")))

    def _describe(self) -> str:
        return "kernel values at landmarks (Nyström)" + (
            ", with a linear kernel" if self.linear else ""
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_up_to("linear", self.linear, _MAX_LINEAR)
        if self.n_components > MAX_LANDMARKS:
            raise ArgumentError(
                f"must be at most {MAX_LANDMARKS}, since it needs a square matrix of that size, "
                f"got {self.n_components}",
                "use Fastfood, which does not need such a matrix",
                parameter="n_components",
            )

    def _learn(self, X: Rows) -> None:
        super()._learn(X)
        n_rows = X.shape[0]
        n_landmarks = min(int(self.n_components), n_rows)
        if n_landmarks * X.shape[1] > _MAX_ENTRIES:
            raise ArgumentError(
                f"{n_landmarks} landmarks of {X.shape[1]} columns take more than "
                f"{_MAX_ENTRIES} numbers",
                Remedy("use fewer landmarks", n_components=...),
                "use Fastfood, which has no landmarks",
            )
        stream = Stream.from_random_state(self.random_state).substream("landmarks")
        chosen = np.sort(np.argsort(stream.uniforms(n_rows), kind="stable")[:n_landmarks])
        rows = X[chosen]
        self.landmarks_ = rows if isinstance(rows, np.ndarray) else rows.toarray()

    def _check_attributes(self) -> None:
        super()._check_attributes()
        if len(self.landmarks_) != self.n_components:
            raise ArgumentError(
                f"must have {self.n_components} rows, got {len(self.landmarks_)}",
                parameter="landmarks_",
            )

    def _build(self, dim: int, n_components: int) -> None:
        self.kernel_ = self._kernel()
        self._n_features_out = len(self.landmarks_)
        self._factors: PerDtype[Floats] = PerDtype()
        scale, self._weights = split_length_scale(self.length_scale_)
        self._scale = float(scale)
        self._center = self.landmarks_.mean(axis=0, dtype=np.float64)
        self._points = np.ascontiguousarray(self._in_length_scales(self.landmarks_))
        self._squares = _squared_norms(self._points)
        self._is_spread = bool(self._squares.max(initial=0.0) > _LARGEST_DIFFERENCE)
        if not np.isfinite(self._squares).all():
            raise ArgumentError(
                "is too small for the landmarks: squared distances are too large for float64",
                Remedy("use a larger one", length_scale=...),
                parameter="length_scale",
            )
        mean_square = float(self._squares.mean())
        self._slope = float(self.linear) / mean_square if mean_square > 0 else 0.0

    def _in_length_scales(self, rows: Rows) -> NDArray[np.float64]:
        """Return rows minus the mean of the landmarks, for accurate differences of squares."""
        dense = rows if isinstance(rows, np.ndarray) else rows.toarray()
        with np.errstate(over="ignore"):
            return np.asarray(weigh_columns(dense - self._center, self._weights) / self._scale)

    def _prepare(self, X: Rows) -> None:
        self._factors.of(X.dtype, self._factor)

    def _remember_parameters(self) -> None:
        super()._remember_parameters()
        self._fitted_parameters["n_components"] = len(self.landmarks_)  # at most as many as rows

    def _factor(self, dtype: np.dtype[np.floating]) -> Floats:
        """Return L in Fortran order, for features of a dtype."""
        values = self._kernel_rows(self.landmarks_, np.dtype(np.float64))
        values = (values + values.T) / 2
        diagonal = 1 + self._slope * self._squares
        return np.asfortranarray(_whitening(values, diagonal), dtype=dtype)

    def _kernel_rows(self, X: Rows, dtype: np.dtype[np.floating] | None = None) -> Floats:
        """Return the kernel between checked rows and the landmarks."""
        kind = dtype or (X.dtype if X.dtype in REAL else np.dtype(np.float64))
        out = np.empty((X.shape[0], len(self.landmarks_)), kind)

        def compute(rows: slice) -> None:
            out[rows] = self._values(X[rows], out.dtype)

        self._in_blocks(compute, X.shape[0])
        return out

    def _in_blocks(self, compute: Callable[[slice], None], n_rows: int) -> None:
        """Call a function for blocks of rows, in threads, each with one thread of BLAS."""
        step = max(1, _BLOCK_ENTRIES // len(self.landmarks_))
        blocks = [slice(begin, begin + step) for begin in range(0, n_rows, step)]
        if len(blocks) == 1:
            compute(blocks[0])
            return
        workers = min(len(blocks), self.n_threads or get_num_threads())
        with one_blas_thread():
            if workers == 1:
                for rows in blocks:
                    compute(rows)
                return
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(compute, blocks))

    def _values(self, rows: Rows, dtype: np.dtype[np.floating]) -> Floats:
        """Return the kernel between some rows and the landmarks.

        Squared distances are in float64: float32 would leave 1e-3 between nearly equal rows.
        """
        points = self._in_length_scales(rows)
        if not isinstance(self.kernel_, RadialKernel) and not self._slope:
            return self.kernel_._values(points, self._points, 1.0)
        norms = _squared_norms(points)
        if not norms.max(initial=0.0) < _LARGEST_SQUARE:
            points[norms >= _LARGEST_SQUARE] = 0  # products would overflow
            np.minimum(norms, _LARGEST_SQUARE, out=norms)
        products = points @ self._points.T
        linear = (self._slope * products).astype(dtype) if self._slope else None
        if isinstance(self.kernel_, RadialKernel):
            if self._is_spread:
                far = norms >= _LARGEST_SQUARE
                products = scipy.spatial.distance.cdist(points, self._points, "sqeuclidean")
                products[far] = _LARGEST_SQUARE
            else:
                products *= -2
                products += norms[:, np.newaxis]
                products += self._squares
            squares = np.clip(products, 0, _LARGEST_SQUARE, out=products)
            distances = squares.astype(dtype, copy=False)
            values = self.kernel_.value(np.sqrt(distances, out=distances), points.shape[1])
        else:
            values = self.kernel_._values(points, self._points, 1.0)
        return values if linear is None else values + linear

    def _write_features(self, X: Rows, out: Floats) -> bool:
        factor = self._factors.of(X.dtype, self._factor)
        solve = scipy.linalg.get_blas_funcs("trsm", (factor,))

        def compute(rows: slice) -> None:
            values = np.ascontiguousarray(self._values(X[rows], out.dtype), out.dtype)
            out[rows] = solve(1.0, factor, values.T, lower=1, overwrite_b=1).T

        self._in_blocks(compute, X.shape[0])
        return False  # not known: BLAS does not tell

    def _dual_weights(self, coef: Floats) -> NDArray[np.float64]:
        """Return weights of kernel values with the same scores: L⁻ᵀ times those of features."""
        # The dtype of the training rows, if the map was fitted here.
        known = next(iter(self._factors), coef.dtype)
        factor = self._factors.of(known, self._factor)
        dual = scipy.linalg.solve_triangular(
            factor.astype(np.float64, copy=False),
            coef.T.astype(np.float64),
            lower=True,
            trans="T",
        )
        return np.ascontiguousarray(dual.T)

    def _exact_kernel(self, X: Rows, Y: Rows | None) -> NDArray[np.float64]:
        values: NDArray[np.float64] = self.kernel_(X, Y, length_scale=self.length_scale_)
        if self._slope:
            points = self._in_length_scales(X)
            others = points if Y is None else self._in_length_scales(Y)
            values = values + self._slope * (points @ others.T)
        return values

    def _variances(self, X: Rows) -> NDArray[np.float64]:
        """Return k(x, x) of checked rows."""
        if not self._slope:
            return np.ones(X.shape[0])
        return np.asarray(1 + self._slope * _squared_norms(self._in_length_scales(X)))


def _whitening(values: NDArray[np.float64], diagonal: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the Cholesky factor of a kernel matrix with as little jitter as possible."""
    jitter = _JITTER
    while jitter <= _MAX_JITTER:
        values[np.diag_indices(len(values))] = diagonal * (1 + jitter)
        try:
            return np.asarray(scipy.linalg.cholesky(values, lower=True, check_finite=False))
        except scipy.linalg.LinAlgError:
            jitter *= 10
    raise ArgumentError(
        "the kernel matrix of the landmarks is far from positive definite",
        Remedy("use a larger length scale", length_scale=...),
        "check the kernel if it is custom",
    )


def _squared_norms(points: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):
        return np.asarray(np.einsum("ij,ij->i", points, points))
