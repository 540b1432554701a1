"""Fastfood: random Fourier features in loglinear time."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelmill.arguments import LengthScale, check_integer
from kernelmill.errors import ArgumentError, ArgumentTypeError
from kernelmill.files.fields import Fields
from kernelmill.files.kinds import Array, Choice, Kind, Mismatch, Place
from kernelmill.kernels import RadialKernel
from kernelmill.maps.base import parameter, with_parameters
from kernelmill.maps.random_fourier import ShiftInvariantMap
from kernelmill.projections import (
    FourierProjection,
    GivenFactors,
    GivenProjection,
    HadamardProjection,
    Projection,
)
from kernelmill.random import Stream
from kernelmill.runtime.arrays import Rows

__all__ = ["BLOCKS", "Fastfood"]

BLOCKS = ("stratified", "independent")

_CONSTRUCTIONS = {
    "hadamard": "Fastfood (Walsh-Hadamard)",
    "sorf": "SORF (Walsh-Hadamard)",
    "dct": "Fastfood with DCT",
    "fft": "Fastfood with FFT",
}


class _FactorsKind(Kind):
    """The parameter `factors`."""

    description = '"given", with arrays B, permutation, G and S, or null'
    _fields = Fields(
        B=Array(("float64",), ("blocks", "size")),
        permutation=Array(("int32",), ("blocks", "size")),
        G=Array(("float64",), ("blocks", "size")),
        S=Array(("float64",), ("blocks", "size")),
    )

    def write(self, value: object, place: Place) -> object:
        if value is None:
            return None
        self._fields.write_at(value, place.inside())
        return "given"

    def read(self, stored: object, place: Place) -> GivenFactors | None:
        if stored is None:
            return None
        if stored != "given":
            raise Mismatch
        return GivenFactors.from_arrays(**self._fields.read_at({}, place.inside()))


@with_parameters
class Fastfood(ShiftInvariantMap):
    r"""Random Fourier features of a radial kernel at O(log d) operations each.

    The matrix of frequencies is replaced by a product

    .. math:: V = \frac{1}{\ell \sqrt{p}} \, S H G \Pi H B

    in blocks of p rows: B holds random signs, :math:`\Pi` is a random permutation, G holds standard
    normals, H is the Walsh-Hadamard matrix, and S gives the rows lengths drawn from the spectrum
    of the kernel (Le, Sarlós & Smola, 2013). Inputs are padded with zeros to p, a power of two.
    Each row of V has exactly the distribution of a random frequency, so inner products of the
    features estimate the kernel without bias (with the default `structure`). V is never stored,
    and its coefficients are not saved: they are functions of the seed.

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        A radial kernel: "gaussian" (or "rbf"), "exponential", "matern" (nu = 3/2),
        "rational_quadratic", "cauchy", "ball_convolution", also with parameters such as
        "matern:nu=2.5"; or an object of
        :mod:`kernelmill.kernels` such as ``Matern(nu=2.5)`` or a custom ``Radial``. The Laplacian
        kernel is not radial: use :class:`RandomFourier`.
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
        kernel is :math:`\exp(-\gamma r^2)`.
    features : {"cos_sin", "complex", "cos_phase", "projection"}, default="cos_sin"
        "cos_sin" has the cosines in the first half of the columns and the sines in the second (an
        odd number of columns ends with one ``cos(z + b)``); "complex" has ``exp(i z)``, whose
        inner products take a conjugate; "cos_phase" has ``cos(z + b)`` with a random phase b, one
        column for each frequency, and a larger error at the same number of columns. "projection"
        has z = V x itself, as a building block for other features; it estimates no kernel.
    structure : {"hadamard", "sorf", "dct", "fft"}, default="hadamard"
        "hadamard" is the product above. "sorf": three rounds of random signs and H instead,
        :math:`S (H D)^3` (Yu et al., 2016); not quite unbiased, but with much less error for points
        that are close to each other. "dct": cosine transforms of any length instead of H; biased by
        up to about 0.3 / d (0.02 in few dimensions for `BallConvolution` and `Radial`). "fft": rows
        of a real Fourier matrix F in random order, with random signs, :math:`S \Pi F B`; in few
        dimensions its estimates are poor. That is the heuristic :math:`\Pi F B` of Le, Sarlós &
        Smola (section 6) with the lengths S of frequencies, without which all rows are equally long
        and the kernel is another one. The last two are slower.
    blocks : {"stratified", "independent"}, default="stratified"
        How the blocks of V depend on each other. "independent" is the construction of Le,
        Sarlós & Smola, in blocks of p rows, the least power of two that is at least d, but no
        fewer than 64: up to d = 32, rows are padded with more zeros than in the paper, which leaves
        the distribution of each row of V as it is. With "stratified", four consecutive blocks share
        B and :math:`\Pi`, and their normals are stratified. This is faster and has less error; each
        row of V has the same distribution. "sorf" and "fft" have independent blocks.
    factors : GivenFactors, default=None
        Custom coefficients instead of random ones; see :meth:`from_factors`. `kernel`, `structure`
        and `blocks` must then keep their defaults.
    random_state : int, RandomState, Generator or Stream, default=None
        The seed. An integer gives the same coefficients on every machine and in every release.
    n_threads : int, default=None
        By default :func:`kernelmill.get_num_threads`. Results do not depend on it.

    Attributes
    ----------
    kernel_ : Kernel
    length_scale_ : float or ndarray of shape (n_features_in_,)
    n_frequencies_ : int
        The number of frequencies; for "cos_sin", half the number of columns.
    projection_ : HadamardProjection, FourierProjection or GivenProjection
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If X had column names at `fit`.

    See Also
    --------
    RandomFourier : A dense matrix; for kernels that are not radial, and for very few dimensions.

    Notes
    -----
    With independent blocks the variance of an estimate is larger than with the same number of
    independent frequencies: for close points by a factor of about 2 (d - 1) / (d + 2). With
    stratified blocks it is about the same for distant points, and 0.4 to 0.7 times as large for
    close ones. Derivation and
    measurements: ``docs/decisions/008-stratified-blocks.md``.

    Entries of float32 data should stay below 1e30: if sums of them overflow, `transform` raises an
    error. Where d is not a
    power of two, kernels whose spectrum is not a scale mixture of Gaussians (`BallConvolution`,
    `Radial`) require `fit` to compute the lengths of the rows of V, in O(p log p) operations each.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill import Fastfood
    >>> X = np.random.default_rng(0).uniform(size=(100, 20))
    >>> features = Fastfood(n_components=2000, random_state=0)
    >>> Z = features.fit_transform(X)
    >>> Z.shape
    (100, 2000)
    >>> bool(np.abs(Z @ Z.T - features.exact_kernel(X)).max() < 0.1)
    True
    """

    name = "fastfood"

    _: KW_ONLY
    structure: str = parameter(Choice(*_CONSTRUCTIONS), default="hadamard")
    blocks: str = parameter(Choice(*BLOCKS), default="stratified")
    factors: GivenFactors | None = parameter(_FactorsKind(), default=None)

    @classmethod
    def from_factors(
        cls,
        B: ArrayLike,
        permutation: ArrayLike,
        G: ArrayLike,
        S: ArrayLike,
        *,
        length_scale: float | ArrayLike = 1.0,
        n_features: int | None = None,
        n_components: int | None = None,
        features: str = "cos_sin",
        n_threads: int | None = None,
    ) -> Self:
        r"""Return a map with given coefficients: :math:`V = S H G \Pi H B / (\ell \sqrt{p})`.

        Parameters
        ----------
        B, G, S : array_like of shape (n_blocks, p)
            The diagonals, p a power of two. One block may be given as an array of shape (p,).
        permutation : array_like of int of shape (n_blocks, p)
            Element i of :math:`\Pi w` is ``w[permutation[i]]``.
        length_scale : float or array_like of shape (n_features,), default=1.0
        n_features : int, default=None
            The number of columns of the data, at most p; by default p.
        n_components : int, default=None
            The number of output columns; by default all that the blocks give.
        features : {"cos_sin", "complex", "cos_phase", "projection"}, default="cos_sin"
            The phases of "cos_phase" are those of ``random_state=0``.
        n_threads : int, default=None

        Returns
        -------
        Fastfood
            Its copies by :func:`sklearn.base.clone` keep the coefficients.

        Examples
        --------
        >>> import numpy as np
        >>> from kernelmill import Fastfood
        >>> rng = np.random.default_rng(0)
        >>> G = rng.standard_normal((8, 16))
        >>> S = np.sqrt(rng.chisquare(16, (8, 16))) / np.linalg.norm(G, axis=1, keepdims=True)
        >>> B = rng.choice([-1, 1], (8, 16))
        >>> permutation = [rng.permutation(16) for _ in range(8)]
        >>> Fastfood.from_factors(B, permutation, G, S).transform(np.ones((2, 16))).shape
        (2, 256)
        """
        given = GivenFactors.from_arrays(B, permutation, G, S)
        if n_components is None:
            n_components = given.n_frequencies * (2 if features == "cos_sin" else 1)
        made = cls(
            n_components=n_components,
            length_scale=length_scale,
            features=features,
            factors=given,
            random_state=0,
            n_threads=n_threads,
        )
        dim = given.block_size if n_features is None else n_features
        return made.fit(np.zeros((1, check_integer("n_features", dim, 1))))

    def _describe(self) -> str:
        given = self.factors is not None
        return "Fastfood with custom factors" if given else _CONSTRUCTIONS[self.structure]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        kernel = self._kernel()
        if self.factors is not None:
            if not isinstance(self.factors, GivenFactors):
                raise ArgumentTypeError(
                    f"must come from Fastfood.from_factors, got {type(self.factors)}",
                    parameter="factors",
                )
            defaults = {"kernel": "gaussian", "structure": "hadamard", "blocks": "stratified"}
            for name, default in defaults.items():
                if getattr(self, name) != default:
                    raise ArgumentError(
                        f"must be {default!r} if factors are passed, got "
                        f"{getattr(self, name)!r}, which would have no effect",
                        parameter=name,
                    )
        if not kernel.radial:
            raise ArgumentError(
                "must be radial (a function of the Euclidean distance) for Fastfood, got "
                f"{type(kernel).__name__}",
                "use the map random_fourier (in Python: RandomFourier)",
                parameter="kernel",
            )

    def _resolve_length_scale(self, X: Rows) -> LengthScale:
        if self.factors is not None and self.length_scale is None and self.gamma is None:
            return 1.0
        return super()._resolve_length_scale(X)

    def _exact_kernel(self, X: Rows, Y: Rows | None) -> NDArray[np.float64]:
        if self.factors is not None:
            raise ArgumentError(
                "the kernel is not known, since the factors are custom",
                "call the kernel whose factors they are, such as "
                "kernelmill.kernels.Gaussian()(X, Y)",
            )
        return super()._exact_kernel(X, Y)

    def _substream(self) -> Stream:
        return self.stream_.substream("fastfood", self.structure)

    def _make_projection(self, dim: int) -> Projection:
        if self.factors is not None:
            return GivenProjection(self.length_scale_, dim, self.n_frequencies_, self.factors)
        assert isinstance(self.kernel_, RadialKernel)
        family = HadamardProjection if self.structure in ("hadamard", "sorf") else FourierProjection
        return family(
            kernel=self.kernel_,
            length_scale=self.length_scale_,
            dim=dim,
            n_frequencies=self.n_frequencies_,
            stream=self._substream(),
            structure=self.structure,
            stratified=self.blocks == "stratified",
        )
