"""Random Fourier features with a dense matrix of frequencies."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from kernelmill.arguments import check_choice, check_flag
from kernelmill.files.kinds import Choice, Flag
from kernelmill.kernels import Kernel
from kernelmill.maps.shift_invariant import ShiftInvariantMap
from kernelmill.projections import DenseProjection
from kernelmill.projections.dense import SAMPLINGS
from kernelmill.random import Stream

__all__ = ["RandomFourierMap"]


class RandomFourierMap(ShiftInvariantMap):
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

    _stored_parameters = ShiftInvariantMap._stored_parameters | {
        "sampling": Choice(*SAMPLINGS),
        "store_matrix": Flag(),
    }

    def __init__(
        self,
        kernel: str | Kernel = "gaussian",
        *,
        n_components: int = 100,
        length_scale: float | str | ArrayLike | None = None,
        gamma: float | str | None = None,
        features: str = "cos_sin",
        sampling: str = "iid",
        store_matrix: bool = True,
        random_state: Any = None,
        n_threads: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.length_scale = length_scale
        self.gamma = gamma
        self.features = features
        self.sampling = sampling
        self.store_matrix = store_matrix
        self.random_state = random_state
        self.n_threads = n_threads

    def _check_kernel(self, kernel: Kernel) -> None:
        check_choice("sampling", self.sampling, SAMPLINGS)
        check_flag("store_matrix", self.store_matrix)

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
