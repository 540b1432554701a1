"""Count sketches and their products: Tensor Sketch, features of polynomial kernels."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kernelmill import _native
from kernelmill.files.kinds import Choice, Integer, Number
from kernelmill.kernels import Polynomial
from kernelmill.kernels.base import MAX_DEGREES
from kernelmill.maps.base import COMPONENTS, FeatureMap, fitted, parameter, with_parameters
from kernelmill.maps.hashing import HASHINGS, draw_hashes
from kernelmill.maps.scales import POSITIVE, check_gamma, resolve_gamma
from kernelmill.random import Stream
from kernelmill.runtime.arrays import (
    Floats,
    PerDtype,
    Rows,
    blocks_of_rows,
    native_rows,
    round_coefficients,
)

__all__ = ["CountSketch", "PolynomialSketch", "TensorSketch"]


class _Tables(NamedTuple):
    """The parameters of the native kernels, in one dtype."""

    buckets: NDArray[np.int32]  # (degree, dim)
    weights: Floats  # (degree, dim): signs times the scale
    offsets: Floats | None  # (degree, length): the sketches of a row of zeros
    constants: Floats | None  # (degree, length): the same for rows that are shifted already
    ring_roots: Floats | None  # constants of transforms whose length has odd factors


@dataclass(eq=False)
class PolynomialSketch:
    r"""Sketches of :math:`u \otimes \dots \otimes u`, where u is scale (x - shift) and a constant.

    Their inner products estimate :math:`(scale^2 \langle x - shift, y - shift \rangle +
    constant^2)^{degree}` without bias.

    Parameters
    ----------
    degree, dim, length : int
        The number of factors, of columns of x, and of columns of the sketch.
    stream : Stream
        Buckets and signs are functions of it.
    hashing : {"collision_free", "independent"}
    scale, constant : float
    shift : ndarray of shape (dim,), optional
        Subtracted from every row: from its sketches, so that sparse rows stay sparse.
    """

    degree: int
    dim: int
    length: int
    stream: Stream
    hashing: str
    scale: float = 1.0
    constant: float = 0.0
    shift: NDArray[np.float64] | None = None
    _tables: PerDtype[_Tables] = field(default_factory=PerDtype, init=False, repr=False)

    def tables(self, dtype: DTypeLike) -> _Tables:
        """Return the parameters of sketches for rows of this dtype."""
        return self._tables.of(dtype, self._draw)

    def _draw(self, dtype: np.dtype[np.floating]) -> _Tables:
        has_constant = self.constant > 0  # one more coordinate, equal in all rows
        buckets, signs = draw_hashes(
            self.stream, self.hashing, self.degree, self.dim + has_constant, self.length
        )
        columns = np.ascontiguousarray(buckets[:, : self.dim])
        columns.flags.writeable = False
        weights = round_coefficients(signs[:, : self.dim] * self.scale, dtype)
        constants = None
        if has_constant:
            constants = np.zeros((self.degree, self.length))
            constants[np.arange(self.degree), buckets[:, -1]] = signs[:, -1] * self.constant
        offsets = constants
        if self.shift is not None:
            offsets = np.zeros((self.degree, self.length))
            if constants is not None:
                offsets += constants
            for k in range(self.degree):
                np.subtract.at(offsets[k], columns[k], weights[k] * self.shift)
        return _Tables(
            columns,
            weights,
            None if offsets is None else round_coefficients(offsets, dtype),
            None if constants is None else round_coefficients(constants, dtype),
            self._ring_roots(dtype),
        )

    def _ring_roots(self, dtype: np.dtype[np.floating]) -> Floats | None:
        size = _native.ring_roots_size(self.length) if self.degree > 1 else 0
        if size == 0:
            return None
        roots = np.empty(size, dtype)
        _native.ring_roots(roots, self.length)
        return roots

    def write(
        self,
        X: Rows,
        out: Floats,
        *,
        row_scales: Floats | None = None,
        shifted: bool = False,
        n_threads: int = 0,
    ) -> bool:
        """Write the sketches of the rows of X, times `row_scales`; all have the dtype of `out`.

        `shifted` states that the shift is subtracted from the rows already. 0 stands for the
        default number of threads. Return whether the sketches are finite.
        """
        tables = self.tables(out.dtype)
        begin, is_finite = 0, True
        for rows, part in blocks_of_rows(X, out):
            end = begin + part.shape[0]
            scales = None if row_scales is None else row_scales[begin:end]
            is_finite &= _native.tensor_sketch(
                native_rows(rows),
                tables.buckets,
                tables.weights,
                tables.constants if shifted else tables.offsets,
                scales,
                tables.ring_roots,
                part,
                n_threads,
            )
            begin = end
        return is_finite


@with_parameters
class _SketchMap(FeatureMap):
    """A map whose features are the sketch `sketch_`."""

    kernel_: Polynomial = fitted()
    sketch_: PolynomialSketch = fitted()

    def _prepare(self, X: Rows) -> None:
        self.sketch_.tables(X.dtype)

    def _write_features(self, X: Rows, out: Floats) -> bool:
        return self.sketch_.write(X, out, n_threads=self._threads)

    def _exact_kernel(self, X: Rows, Y: Rows | None) -> NDArray[np.float64]:
        return self.kernel_(X, Y)


@with_parameters
class TensorSketch(_SketchMap):
    r"""Features of the polynomial kernel :math:`(\gamma \langle x, y \rangle + c)^p`.

    The kernel is an inner product of tensor powers of the inputs, with d\ :sup:`p` entries. Their
    count sketch is the circular convolution of p count sketches of the input itself (Pham & Pagh,
    2013), which takes :math:`O(p (d + D \log D))` operations per row; for sparse rows, d is the
    number of nonzero entries. Inner products of the features estimate the kernel without
    bias. A drop-in replacement for :class:`sklearn.kernel_approximation.PolynomialCountSketch`.

    Parameters
    ----------
    degree : int, default=2
        p, at least 1.
    gamma : float or "scale", default=1.0
        "scale" is 1 / (n_features * variance of the entries of X), as in scikit-learn's `SVC`.
    coef0 : float, default=0.0
        c, not negative.
    n_components : int, default=100
        D, the number of output columns, exactly. Powers of two and products of primes up to 13
        cost about the same per column; other numbers cost 3 to 6 times as much.
    hashing : {"collision_free", "independent"}, default="collision_free"
        How count sketches assign input columns to buckets. "collision_free": no two columns share a
        bucket while there are enough of them, and few entries of the tensor power collide. This has
        less error, and is exact if D is at least d\ :sup:`p` (with coef0, (d + 1)\ :sup:`p`).
        "independent": 2-wise independent, as in Pham & Pagh.
    random_state : int, RandomState, Generator or Stream, default=None
        The seed. An integer gives the same coefficients on every machine and in every release.
    n_threads : int, default=None
        By default :func:`kernelmill.get_num_threads`. Results do not depend on it.

    Attributes
    ----------
    kernel_ : Polynomial
    gamma_ : float
    sketch_ : PolynomialSketch
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If X had column names at `fit`.

    See Also
    --------
    RandomMaclaurin, DotProductFastfood : Other dot-product kernels.
    CountSketch : The linear kernel.

    Notes
    -----
    With :math:`a = \langle x, y \rangle^2`, :math:`s = \sum_i x_i^2 y_i^2`, :math:`b = \|x\|^2
    \|y\|^2 - s` and g = a - s (of the inputs scaled by :math:`\sqrt\gamma` and with :math:`\sqrt c`
    appended), the variance of an estimate is, up to :math:`O(D^{-2})`,

    .. math:: \sum_{m=1}^{p} \binom{p}{m} q_m a^{p-m} (b^m + g^m)

    where q\ :sub:`m` is the probability that entries of the tensor power collide whose indices
    differ in m places: 1/D for independent hashing. For collision-free hashing q\ :sub:`1`, of the
    largest term, is 0 up to d = D; q\ :sub:`2` is at most about (1 - D / d\ :sup:`2`) / D and the
    others about 1/D. (Lemma 6 of Pham & Pagh states a smaller bound for p > 1; see
    ``docs/decisions/011-tensor-sketch.md``.) From about p = 5 on estimates have heavy tails.

    Features have the size of :math:`\sqrt{k(x, x)}`, but are computed from larger products of p
    transforms. If these overflow, `transform` raises an error. Scale the data, or set `gamma`, so
    that k(x, x) is of moderate size.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill import TensorSketch
    >>> X = np.random.default_rng(0).uniform(size=(3, 20))
    >>> features = TensorSketch(degree=2, coef0=1.0, n_components=2048, random_state=0)
    >>> Z = features.fit_transform(X)
    >>> Z.shape
    (3, 2048)
    >>> bool(np.allclose(Z @ Z.T, features.exact_kernel(X), rtol=0.1))
    True
    """

    name = "tensor_sketch"
    _construction = "products of count sketches (FFT)"

    degree: int = parameter(Integer(1, MAX_DEGREES), default=2)
    _: KW_ONLY
    gamma: float | str = parameter(Number() | Choice("scale"), default=1.0)
    coef0: float = parameter(Number(), default=0.0)
    hashing: str = parameter(Choice(*HASHINGS), default="collision_free")

    gamma_: float = fitted(POSITIVE)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not isinstance(self.gamma, str):
            check_gamma(self.gamma)
        Polynomial(self.degree, coef0=self.coef0)

    def _learn(self, X: Rows) -> None:
        self.gamma_ = resolve_gamma(self.gamma, X)

    def _build(self, dim: int, n_components: int) -> None:
        self.kernel_ = Polynomial(self.degree, gamma=self.gamma_, coef0=self.coef0)
        self.sketch_ = PolynomialSketch(
            degree=self.kernel_.degree,
            dim=dim,
            length=n_components,
            stream=self.stream_.substream("tensor sketch"),
            hashing=self.hashing,
            scale=math.sqrt(self.gamma_),
            constant=math.sqrt(self.kernel_.coef0),
        )
        self._n_features_out = n_components


@with_parameters
class CountSketch(_SketchMap):
    r"""Random projection that adds every column, with a random sign, to one random output column.

    .. math:: z(x)_j = \sum_{i : h(i) = j} s(i) \, x_i

    Inner products are estimated without bias: :math:`E \langle z(x), z(y) \rangle = \langle x, y
    \rangle`. The cost of a row is proportional to its nonzero entries. Also known as feature
    hashing.

    Parameters
    ----------
    n_components : int, default=100
        The number of output columns.
    hashing : {"collision_free", "independent"}, default="collision_free"
        "collision_free": no two input columns share an output column while there are enough of
        them, so that inner products are exact if ``n_components >= n_features``; otherwise output
        columns are filled as evenly as possible. "independent": the choice of Charikar, Chen &
        Farach-Colton (2002), 2-wise independent buckets and (4-wise) independent signs.
    random_state : int, RandomState, Generator or Stream, default=None
        The seed. An integer gives the same coefficients on every machine and in every release.
    n_threads : int, default=None
        By default :func:`kernelmill.get_num_threads`. Results do not depend on it.

    Attributes
    ----------
    kernel_ : Polynomial
        Of degree 1.
    sketch_ : PolynomialSketch
        Of degree 1.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If X had column names at `fit`.

    See Also
    --------
    TensorSketch : Count sketches of polynomials of the input.

    Notes
    -----
    The variance of an estimate is q times :math:`\sum_{i \ne j} x_i^2 y_j^2 + x_i y_i x_j y_j`
    (Pham & Pagh, 2013, lemma 2), where q is the probability that two columns collide: 1 /
    n_components for "independent"; for "collision_free" 0 up to n_features = n_components = D, and
    (c - 1) / (c D - 1) with :math:`c = \lceil n\_features / D \rceil` beyond.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill import CountSketch
    >>> X = np.random.default_rng(0).uniform(size=(3, 1000))
    >>> Z = CountSketch(n_components=200, random_state=0).fit_transform(X)
    >>> Z.shape
    (3, 200)
    >>> bool(np.allclose(Z @ Z.T, X @ X.T, rtol=0.2))
    True
    """

    name = "count_sketch"
    _construction = "count sketch"

    n_components: int = parameter(COMPONENTS, default=100)
    _: KW_ONLY
    hashing: str = parameter(Choice(*HASHINGS), default="collision_free")

    def _build(self, dim: int, n_components: int) -> None:
        self.kernel_ = Polynomial(degree=1)
        self.sketch_ = PolynomialSketch(
            degree=1,
            dim=dim,
            length=n_components,
            stream=self.stream_.substream("count sketch"),
            hashing=self.hashing,
        )
        self._n_features_out = n_components
