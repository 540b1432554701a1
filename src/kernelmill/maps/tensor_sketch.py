"""Tensor Sketch: features of polynomial kernels in loglinear time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.arguments import check_choice
from kernelmill.files.fields import Fields
from kernelmill.files.kinds import Choice, Integer, Number
from kernelmill.kernels import Polynomial
from kernelmill.maps.base import FeatureMap
from kernelmill.maps.fields import MOST_DEGREES, POSITIVE
from kernelmill.maps.scales import resolve_gamma
from kernelmill.sketches import HASHINGS, PolynomialSketch

__all__ = ["TensorSketchMap"]


class TensorSketchMap(FeatureMap):
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
    transforms. If these overflow, features are infinite or NaN. Scale the data, or set `gamma`, so
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

    _stored_parameters = FeatureMap._stored_parameters | {
        "degree": Integer(1, MOST_DEGREES),
        "gamma": Number() | Choice("scale"),
        "coef0": Number(),
        "hashing": Choice(*HASHINGS),
    }
    _stored_attributes = Fields(gamma_=POSITIVE)

    def __init__(
        self,
        degree: int = 2,
        *,
        gamma: float | str = 1.0,
        coef0: float = 0.0,
        n_components: int = 100,
        hashing: str = "collision_free",
        random_state: Any = None,
        n_threads: int | None = None,
    ) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.n_components = n_components
        self.hashing = hashing
        self.random_state = random_state
        self.n_threads = n_threads

    def _check_parameters(self) -> None:
        check_choice("hashing", self.hashing, HASHINGS)
        if not isinstance(self.gamma, str):
            resolve_gamma(self.gamma, None)
        Polynomial(self.degree, coef0=self.coef0)

    def _learn(self, X: Any) -> None:
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

    def _prepare(self, X: Any) -> None:
        self.sketch_.tables(X.dtype)

    def _features(self, X: Any) -> NDArray[Any]:
        out = np.empty((X.shape[0], self.sketch_.length), X.dtype)
        self.sketch_.write(X, out, n_threads=self.n_threads)
        return out

    def _exact_kernel(self, X: Any, Y: Any) -> NDArray[np.float64]:
        return self.kernel_(X, Y)
