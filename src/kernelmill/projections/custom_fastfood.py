"""Fastfood with custom coefficients."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelmill.arguments import LengthScale
from kernelmill.errors import ArgumentError, Remedy
from kernelmill.projections.fastfood import FastfoodFactors, Scoring, apply_factors
from kernelmill.projections.layout import FeatureLayout
from kernelmill.runtime.arrays import divide_by_length_scale, split_length_scale

__all__ = ["GivenFactors", "GivenProjection"]


@dataclass(frozen=True, eq=False)
class GivenFactors:
    """B, the permutation, G and S of some blocks, each of shape (n_blocks, p)."""

    B: NDArray[np.float64]
    permutation: NDArray[np.int32]
    G: NDArray[np.float64]
    S: NDArray[np.float64]

    @property
    def block_size(self) -> int:
        """The longest input, p."""
        return int(self.G.shape[1])

    @property
    def n_frequencies(self) -> int:
        """The number of frequencies of all blocks."""
        return self.G.size

    @classmethod
    def from_arrays(
        cls, B: ArrayLike, permutation: ArrayLike, G: ArrayLike, S: ArrayLike
    ) -> GivenFactors:
        """Check the arrays and return them as factors."""
        arrays = {name: _diagonal(name, value) for name, value in (("B", B), ("G", G), ("S", S))}
        shape = arrays["G"].shape
        for name, array in arrays.items():
            if array.shape != shape:
                raise ArgumentError(
                    f"B, permutation, G and S must have the same shape, (n_blocks, p), but G has "
                    f"{shape} and {name} has {array.shape}"
                )
        if shape[1] & (shape[1] - 1):
            raise ArgumentError(
                f"the number of columns of a block must be a power of two, got {shape[1]}",
                "pad the factors to the next power of two",
            )
        places = np.atleast_2d(np.asarray(permutation))
        if places.dtype.kind not in "iu" or places.shape != shape:
            raise ArgumentError(
                f"must be an array of integers with the shape of G, {shape}, got dtype "
                f"{places.dtype} and shape {places.shape}",
                parameter="permutation",
            )
        wrong = (np.sort(places, axis=1) != np.arange(shape[1])).any(axis=1)
        if wrong.any():
            raise ArgumentError(
                f"must contain every integer from 0 to {shape[1] - 1} once in each row, but row "
                f"{int(wrong.argmax())} does not",
                parameter="permutation",
            )
        return cls(arrays["B"], places.astype(np.int32), arrays["G"], arrays["S"])

    def __repr__(self) -> str:
        return f"<{self.G.shape[0]} blocks of {self.G.shape[1]}>"


def _diagonal(name: str, value: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(value)
    if array.dtype.kind not in "fiub" or array.ndim not in (1, 2) or array.size == 0:
        raise ArgumentError(
            f"must be real and of shape (n_blocks, p) or (p,), got dtype {array.dtype} and "
            f"shape {array.shape}",
            parameter=name,
        )
    with np.errstate(over="ignore"):
        diagonal = np.atleast_2d(array).astype(np.float64)
    if not np.isfinite(diagonal).all():
        raise ArgumentError(
            "must be finite in float64, got NaN, infinity or a larger number", parameter=name
        )
    return diagonal


@dataclass(eq=False)
class GivenProjection:
    r"""The projection :math:`S H G \Pi H B / (\ell \sqrt{p})` of given factors."""

    given: GivenFactors
    length_scale: LengthScale
    dim: int
    n_frequencies: int
    _rounded: dict[str, FastfoodFactors] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.dim > self.given.block_size:
            raise ArgumentError(
                f"the factors support at most {self.given.block_size} columns, got {self.dim}",
                "pass factors for a larger power of two",
            )
        if self.n_frequencies > self.given.n_frequencies:
            raise ArgumentError(
                f"the factors have {self.given.n_frequencies} frequencies, but "
                f"{self.n_frequencies} are needed",
                Remedy("use fewer components", n_components=...),
                "pass more blocks",
            )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_rounded": {}}

    def factors(self, dtype: Any = np.float64) -> FastfoodFactors:
        """Return the coefficients in float64 or float32."""
        kind = np.dtype(dtype)
        if kind.char not in self._rounded:
            given = self.given
            scale, weights = split_length_scale(self.length_scale)
            signs = given.B.copy()
            if weights is not None:
                signs[:, : self.dim] *= weights
            factors = FastfoodFactors(
                signs=signs[:, np.newaxis],
                permutation=given.permutation,
                inner=given.G,
                outer=divide_by_length_scale(given.S / np.sqrt(given.block_size), scale),
                blocks_per_group=1,
                first_turn=given.block_size,
            )
            self._rounded[kind.char] = factors.astype(kind)
        return self._rounded[kind.char]

    def prepare(self, dtype: Any) -> None:
        """Round the coefficients for data of this dtype."""
        self.factors(dtype)

    def features(
        self,
        X: Any,
        layout: FeatureLayout,
        phases: NDArray[Any] | None,
        out: NDArray[Any],
        n_threads: int | None = None,
        *,
        scoring: Scoring | None = None,
    ) -> None:
        """Write the features of the rows of X, which has the real dtype of `out`."""
        apply_factors(self.factors(out.dtype), X, layout, phases, out, n_threads, scoring)
