"""Maps of shift-invariant kernels; random Fourier features with a dense matrix of frequencies."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY

import numpy as np
from numpy.typing import NDArray

from kernelmill.errors import ArgumentError, Remedy
from kernelmill.files.kinds import Choice, Flag
from kernelmill.kernels import resolve
from kernelmill.maps.base import fitted, parameter, with_parameters
from kernelmill.maps.scales import KernelMap
from kernelmill.projections import DenseProjection, FeatureLayout, Projection
from kernelmill.projections.base import KINDS, Scoring
from kernelmill.projections.dense import SAMPLINGS
from kernelmill.random import Stream
from kernelmill.runtime.arrays import Floats, PerDtype, Rows

__all__ = ["RandomFourier", "ShiftInvariantMap"]

_CONSTRUCTIONS = {
    "iid": "dense matrix",
    "orthogonal": "dense orthogonal matrix",
    "qmc": "dense matrix of quasi-Monte Carlo points",
}


@with_parameters
class ShiftInvariantMap(KernelMap):
    """A map whose features have inner products that estimate a shift-invariant kernel.

    A subclass declares its parameters and constructs the projection from them.
    """

    features: str = parameter(Choice(*KINDS), default="cos_sin", kw_only=True)

    n_frequencies_: int = fitted()
    projection_: Projection = fitted()

    def _build(self, dim: int, n_components: int) -> None:
        self.kernel_ = resolve(self.kernel)
        self._layout = FeatureLayout(self.features, n_components)
        self._phases: PerDtype[Floats | None] = PerDtype()
        self.n_frequencies_ = self._layout.n_frequencies
        self._n_features_out = self._layout.n_columns
        self.projection_ = self._make_projection(dim)

    def _prepare(self, X: Rows) -> None:
        self.projection_.prepare(X.dtype)

    @abstractmethod
    def _substream(self) -> Stream:
        """Return the part of the stream that belongs to this kind of map."""

    @abstractmethod
    def _make_projection(self, dim: int) -> Projection:
        """Return the projection for data of `dim` columns, from the fitted attributes."""

    def _empty_features(
        self, n_rows: int, dtype: np.dtype[np.floating]
    ) -> tuple[NDArray[np.inexact], Floats]:
        return self._layout.empty(n_rows, dtype)

    def _write_features(self, X: Rows, out: Floats, scoring: Scoring | None = None) -> bool:
        """Write the features of checked rows, complex ones as real and imaginary parts.

        With `scoring`, write also their inner products with each row of its weights. Return whether
        the features are finite.
        """
        phases = self._phases.of(X.dtype, self._draw_phases)
        return self.projection_.features(X, self._layout, phases, out, self._threads, scoring)

    def _draw_phases(self, dtype: np.dtype[np.floating]) -> Floats | None:
        phases = self._layout.phases(self._substream())
        return None if phases is None else phases.astype(dtype)

    def _exact_kernel(self, X: Rows, Y: Rows | None) -> NDArray[np.float64]:
        if self.features == "projection":
            raise ArgumentError(
                "features='projection' computes plain projections, which have no kernel",
                Remedy("use cosine and sine features", features="cos_sin"),
            )
        return self.kernel_(X, Y, length_scale=self.length_scale_)


@with_parameters
class RandomFourier(ShiftInvariantMap):
    r"""Random Fourier features ("Random Kitchen Sinks") of any shift-invariant kernel.

    Frequencies :math:`\omega_j` are drawn from the kernel's spectral measure, and with
    :math:`z_j = \langle \omega_j, x \rangle` the features are :math:`\cos z_j` and
    :math:`\sin z_j`, scaled so that inner products of rows estimate the kernel without bias
    (Rahimi & Recht, 2007).

    A drop-in replacement for :class:`sklearn.kernel_approximation.RBFSampler`. For inputs of more
    than about 30 dimensions, :class:`Fastfood` is faster.

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        "gaussian" (or "rbf"), "laplacian", "exponential", "matern" (nu = 3/2),
        "rational_quadratic", "cauchy", "ball_convolution", also with parameters such as
        "matern:nu=2.5"; or an object of
        :mod:`kernelmill.kernels` such as ``Matern(nu=2.5)`` or a custom ``Spectrum``.
    n_components : int, default=100
        The number of output columns, exactly.
    length_scale : float, array_like of shape (n_features,) or {"scale", "median"}, default=None
        Distances are divided by it: the Gaussian kernel is :math:`\exp(-r^2 / (2 \ell^2))`. With
        an array, each column is divided by its own, and the columns where it is infinite are
        ignored. "scale" is what scikit-learn's ``gamma="scale"`` means, "median" the median
        distance between the rows of a fixed sample of at most 1000. None is "scale", unless gamma
        is given.
    gamma : float or "scale", default=None
        An alternative to `length_scale`: :math:`\ell = 1 / \sqrt{2 \gamma}`, so that the Gaussian
        kernel is :math:`\exp(-\gamma r^2)`; for the Laplacian kernel :math:`\ell = 1 / \gamma`.
    features : {"cos_sin", "complex", "cos_phase", "projection"}, default="cos_sin"
        "cos_sin" has the cosines in the first half of the columns and the sines in the second (an
        odd number of columns ends with one ``cos(z + b)``); "complex" has ``exp(i z)``, whose
        inner products take a conjugate; "cos_phase" has ``cos(z + b)`` with a random phase b, one
        column for each frequency, and a larger error at the same number of columns. "projection"
        has z = V x itself, as a building block for other features; it estimates no kernel.
    sampling : {"iid", "orthogonal", "qmc"}, default="iid"
        "iid": independent frequencies. "orthogonal": rows of random orthogonal matrices with random
        lengths (Yu et al., 2016), with less error, for radial kernels. "qmc": scrambled Sobol
        points (Avron et al., 2016), best in few dimensions, for radial kernels and the Laplacian
        kernel.
    store_matrix : bool, default=True
        With False, the matrix is drawn again in every call of `transform`, some rows at a time,
        instead of taking ``n_components * n_features`` numbers of memory (Le, Sarlós & Smola, 2013,
        remark 5). The results are the same; every call then takes about 10 ns per element of the
        matrix, which is little for many rows and much for one.
    random_state : int, RandomState, Generator or Stream, default=None
        The seed. An integer gives the same frequencies on every machine and in every release.
    n_threads : int, default=None
        By default :func:`kernelmill.get_num_threads`. Results do not depend on it.

    Attributes
    ----------
    kernel_ : Kernel
    length_scale_ : float or ndarray of shape (n_features_in_,)
    n_frequencies_ : int
        The number of frequencies; for "cos_sin", half the number of columns.
    projection_ : DenseProjection
        ``projection_.frequencies()`` is the matrix.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If X had column names at `fit`.

    See Also
    --------
    Fastfood : The same kernels in O(log d) instead of O(d) operations per feature.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill import RandomFourier
    >>> X = np.random.default_rng(0).uniform(size=(100, 5))
    >>> features = RandomFourier(n_components=2000, random_state=0)
    >>> Z = features.fit_transform(X)
    >>> Z.shape
    (100, 2000)
    >>> bool(np.abs(Z @ Z.T - features.exact_kernel(X)).max() < 0.1)
    True
    """

    name = "random_fourier"
    _is_dense = True

    _: KW_ONLY
    sampling: str = parameter(Choice(*SAMPLINGS), default="iid")
    store_matrix: bool = parameter(Flag(), default=True)

    def _describe(self) -> str:
        return _CONSTRUCTIONS[self.sampling]

    def _substream(self) -> Stream:
        return self.stream_.substream("random fourier", self.sampling)

    def _make_projection(self, dim: int) -> DenseProjection:
        return DenseProjection(
            kernel=self.kernel_,
            length_scale=self.length_scale_,
            dim=dim,
            n_frequencies=self.n_frequencies_,
            stream=self._substream(),
            sampling=self.sampling,
            stored=bool(self.store_matrix),
        )
