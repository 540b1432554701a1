"""Random Maclaurin features of dot-product kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.arguments import check_choice, check_flag
from kernelmill.errors import ArgumentError, Remedy
from kernelmill.files.fields import Fields
from kernelmill.files.kinds import Choice, Flag, Integer
from kernelmill.kernels import DotProductKernel, resolve_dot_product
from kernelmill.maps.base import FeatureMap
from kernelmill.maps.fields import POSITIVE, RADIUS, KernelKind
from kernelmill.maps.scales import resolve_radius
from kernelmill.sketches.degrees import DEGREE_LAWS, degree_terms
from kernelmill.sketches.maclaurin import MaclaurinSketch

__all__ = ["RandomMaclaurinMap"]


class RandomMaclaurinMap(FeatureMap):
    r"""Random features of any dot-product kernel :math:`\sum_n a_n \langle x, y \rangle^n`.

    A feature of degree n is a product of n projections to vectors of independent random signs,

    .. math:: \sqrt{\frac{a_n}{D \pi_n}} \prod_{l=1}^n \langle \omega_l, x \rangle,

    where :math:`\pi_n` is the probability of the degree (Kar & Karnick, 2012). Inner products of
    the features estimate the kernel without bias for any probabilities.

    Parameters
    ----------
    kernel : str, DotProductKernel, array_like or callable, default="polynomial"
        "polynomial" (or "poly": degree 2, homogeneous), "exponential", an object of
        :mod:`kernelmill.kernels` such as ``Polynomial(3, coef0=1.0)``, or a custom kernel: an array
        of the coefficients :math:`a_n`, none negative, or a function of the degree n (not the
        kernel function).
    n_components : int, default=100
        D, the number of output columns, exactly.
    h01 : bool, default=False
        Whether the constant and the linear term are exact: the first columns are then
        :math:`\sqrt{a_0}` and :math:`\sqrt{a_1} x`, those of them that are not 0, and the others
        have degrees from 2 on ("H0/1" of Kar & Karnick).
    degrees : {"proportional", "geometric"}, default="proportional"
        :math:`\pi_n` is proportional to :math:`a_n R^{2n}`, which for points of norm R makes the
        features of all degrees equally large, or to :math:`2^{-n}` where :math:`a_n > 0`. (Kar
        & Karnick draw from all degrees, which gives columns of zeros where :math:`a_n = 0`.)
    radius : float or "scale", default="scale"
        R; "scale" is the root mean square norm of the rows given to `fit`, to three digits.
        "geometric" does not need it.
    store_matrix : bool, default=True
        With False, the random signs are drawn again in every call of `transform`, some at a time,
        instead of taking ``n_features`` numbers of memory for each factor of each column. The
        results are the same.
    random_state : int, RandomState, Generator or Stream, default=None
        The seed. An integer gives the same coefficients on every machine and in every release.
    n_threads : int, default=None
        By default :func:`kernelmill.get_num_threads`. Results do not depend on it.

    Attributes
    ----------
    kernel_ : DotProductKernel
    radius_ : float
        R; 1 for "geometric".
    degrees_ : ndarray of int64 of shape (n_components,)
        The degree of each column; -1 for columns of zeros, which are left over where all terms of
        the kernel are exact.
    sketch_ : MaclaurinSketch
        Of the random columns, which are the last ones.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If X had column names at `fit`.

    See Also
    --------
    TensorSketch : Polynomial kernels, faster; for homogeneous ones also with less error.

    Notes
    -----
    Degrees are spread over the columns by systematic sampling: degree n has :math:`D \pi_n` columns
    up to rounding, not a random number of them. If that is at least 1 for degree 0, the constant
    term is exact in a single column and the others are for degrees from 1 on: more columns of a
    constant would add nothing. Degrees whose expected number of columns is below 1e-16 never occur:
    of an infinite series, "proportional" omits terms below 1e-16 of the sum at norms up to R, and
    "geometric" omits the terms more than about 60 degrees after the first, which matter for series
    that converge slowly.

    The product for degree n has the second moment

    .. math::

        \left( \lVert x \rVert^2 \lVert y \rVert^2 + 2 \langle x, y \rangle^2
        - 2 \sum_i x_i^2 y_i^2 \right)^n,

    which grows up to :math:`3^n` times faster than the kernel: high degrees need many columns.

    References
    ----------
    P. Kar, H. Karnick, "Random feature maps for dot product kernels", Proc. AISTATS (2012).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill import RandomMaclaurin
    >>> from kernelmill.kernels import Polynomial
    >>> X = np.random.default_rng(0).uniform(size=(100, 5))
    >>> features = RandomMaclaurin(Polynomial(2, coef0=1.0), n_components=5000, random_state=0)
    >>> Z = features.fit_transform(X)
    >>> Z.shape
    (100, 5000)
    >>> bool(np.allclose(Z @ Z.T, features.exact_kernel(X), rtol=0.2))
    True
    """

    _stored_parameters = FeatureMap._stored_parameters | {
        "kernel": KernelKind(),
        "n_components": Integer(1, 1 << 24),  # the degrees of the columns are drawn at once
        "h01": Flag(),
        "degrees": Choice(*DEGREE_LAWS),
        "radius": RADIUS,
        "store_matrix": Flag(),
    }
    _stored_attributes = Fields(radius_=POSITIVE)

    def __init__(
        self,
        kernel: Any = "polynomial",
        *,
        n_components: int = 100,
        h01: bool = False,
        degrees: str = "proportional",
        radius: float | str = "scale",
        store_matrix: bool = True,
        random_state: Any = None,
        n_threads: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.h01 = h01
        self.degrees = degrees
        self.radius = radius
        self.store_matrix = store_matrix
        self.random_state = random_state
        self.n_threads = n_threads

    def _check_parameters(self) -> None:
        resolve_dot_product(self.kernel)
        check_choice("degrees", self.degrees, DEGREE_LAWS)
        check_flag("h01", self.h01)
        check_flag("store_matrix", self.store_matrix)

    def _learn(self, X: Any) -> None:
        radius = resolve_radius(self.radius, X)
        self.radius_ = radius if self.degrees == "proportional" else 1.0

    def _build(self, dim: int, n_components: int) -> None:
        self.kernel_: DotProductKernel = resolve_dot_product(self.kernel)
        terms, shares = self._terms()
        shares = self._set_exact_columns(terms, shares, dim, n_components)
        self.sketch_ = MaclaurinSketch(
            dim=dim,
            length=n_components - self._n_exact,
            terms=terms,
            shares=shares,
            radius=self.radius_,
            stream=self.stream_.substream("random maclaurin"),
            stored=bool(self.store_matrix),
        )
        self._n_features_out = n_components

    def _prepare(self, X: Any) -> None:
        self.sketch_.prepare(X.dtype)

    @property
    def degrees_(self) -> NDArray[np.int64]:
        """The degree of each column; -1 for columns of zeros."""
        sketch = self.sketch_
        exact = np.ones(self._n_exact, np.int64)
        exact[: self._n_constant] = 0
        return np.concatenate(
            [exact, sketch.degrees if sketch.shares.any() else sketch.degrees - 1]
        )

    def _terms(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Terms at the square of the radius, at least those of degrees 0 and 1, and shares."""
        square = self.radius_ * self.radius_
        if not (square > 0 and np.isfinite(square)):
            raise ArgumentError(
                f"must have a square that is finite in float64, got {self.radius_:.3g}",
                "scale the data",
                Remedy("set another radius", radius=...),
                parameter="radius",
            )
        terms, shares = degree_terms(self.kernel_, self.degrees, square)
        missing = (0, max(0, 2 - terms.size))
        return np.pad(terms, missing), np.pad(shares, missing)

    def _set_exact_columns(
        self,
        terms: NDArray[np.float64],
        shares: NDArray[np.float64],
        dim: int,
        n_components: int,
    ) -> NDArray[np.float64]:
        """Decide which terms are exact; the shares of the others."""
        exact = np.zeros(terms.size, bool)
        exact[:2] = self.h01
        exact[0] |= n_components * shares[0] >= shares.sum()
        exact &= terms > 0
        self._n_constant = int(exact[0])
        self._n_exact = self._n_constant + dim * int(exact[1])
        self._root_constant = float(np.sqrt(terms[0]))
        self._root_linear = float(np.sqrt(terms[1])) / self.radius_
        rest = np.where(exact, 0.0, shares)
        needed = self._n_exact + int(rest.any())
        if n_components < needed:
            raise ArgumentError(
                f"must be at least {needed} with h01=True, for the exact terms of {dim} columns of "
                f"data and one random feature, got {n_components}",
                Remedy("use more components", n_components=needed),
                Remedy("estimate all terms at random", h01=False),
                parameter="n_components",
            )
        return rest

    def _features(self, X: Any) -> NDArray[Any]:
        out = np.empty((X.shape[0], self._n_features_out), X.dtype)
        out[:, : self._n_constant] = self._root_constant
        if self._n_exact > self._n_constant:
            linear = out[:, self._n_constant : self._n_exact]
            root = X.dtype.type(self._root_linear)
            if isinstance(X, np.ndarray):
                np.multiply(X, root, out=linear)
            else:
                rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
                linear[:] = 0
                linear[rows, X.indices] = X.data * root
        self.sketch_.features(X, out[:, self._n_exact :], self.n_threads)
        return out

    def _exact_kernel(self, X: Any, Y: Any) -> NDArray[np.float64]:
        return self.kernel_(X, Y)
