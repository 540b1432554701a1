"""Count sketch: random projection in time proportional to the nonzero entries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.arguments import check_choice
from kernelmill.files.kinds import Choice
from kernelmill.kernels import Polynomial
from kernelmill.maps.base import FeatureMap
from kernelmill.sketches import HASHINGS, PolynomialSketch

__all__ = ["CountSketchMap"]


class CountSketchMap(FeatureMap):
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

    _stored_parameters = FeatureMap._stored_parameters | {"hashing": Choice(*HASHINGS)}

    def __init__(
        self,
        n_components: int = 100,
        *,
        hashing: str = "collision_free",
        random_state: Any = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.hashing = hashing
        self.random_state = random_state
        self.n_threads = n_threads

    def _check_parameters(self) -> None:
        check_choice("hashing", self.hashing, HASHINGS)

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

    def _prepare(self, X: Any) -> None:
        self.sketch_.tables(X.dtype)

    def _features(self, X: Any) -> NDArray[Any]:
        out = np.empty((X.shape[0], self.sketch_.length), X.dtype)
        self.sketch_.write(X, out, n_threads=self.n_threads)
        return out

    def _exact_kernel(self, X: Any, Y: Any) -> NDArray[np.float64]:
        return self.kernel_(X, Y)
