"""The base class of feature maps of shift-invariant kernels."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kernelmill import _native
from kernelmill.arguments import LengthScale, check_choice
from kernelmill.errors import ArgumentError, Remedy
from kernelmill.files.fields import Fields
from kernelmill.files.kinds import Choice
from kernelmill.kernels import Kernel, resolve
from kernelmill.maps.base import FeatureMap
from kernelmill.maps.fields import FITTED_LENGTH_SCALE, GAMMA, LENGTH_SCALE, KernelKind
from kernelmill.maps.scales import check_length_scales, resolve_length_scale
from kernelmill.projections.custom_fastfood import GivenProjection
from kernelmill.projections.fastfood import HadamardProjection, Scoring
from kernelmill.projections.layout import KINDS, FeatureLayout
from kernelmill.random import Stream
from kernelmill.runtime.threads import resolve_threads

__all__ = ["ShiftInvariantMap"]


class Projection(Protocol):
    """The interface of a projection."""

    def prepare(self, dtype: Any) -> None:
        """Draw the coefficients for data of this dtype."""

    def features(
        self,
        X: Any,
        layout: FeatureLayout,
        phases: NDArray[Any] | None,
        out: NDArray[Any],
        n_threads: int | None = None,
    ) -> None:
        """Write the features of the rows of X to `out`."""


class ShiftInvariantMap(FeatureMap):
    """A transformer whose features have inner products that estimate a shift-invariant kernel.

    A subclass declares its parameters and constructs the projection from them.
    """

    _stored_parameters = FeatureMap._stored_parameters | {
        "kernel": KernelKind(),
        "length_scale": LENGTH_SCALE,
        "gamma": GAMMA,
        "features": Choice(*KINDS),
    }
    _stored_attributes = Fields(length_scale_=FITTED_LENGTH_SCALE)

    kernel: Any
    length_scale: Any
    gamma: Any
    features: str

    def _check_parameters(self) -> None:
        check_choice("features", self.features, KINDS)
        self._check_kernel(resolve(self.kernel))

    def _learn(self, X: Any) -> None:
        self.length_scale_ = self._resolve_length_scale(X)

    def _check_attributes(self) -> None:
        check_length_scales(self)

    def _build(self, dim: int, n_components: int) -> None:
        self.kernel_ = resolve(self.kernel)
        self._layout = FeatureLayout(self.features, n_components)
        self._phases: dict[str, NDArray[Any] | None] = {}
        self.n_frequencies_ = self._layout.n_frequencies
        self._n_features_out = self._layout.n_columns
        self.projection_ = self._make_projection(dim)

    def _prepare(self, X: Any) -> None:
        self.projection_.prepare(X.dtype)

    def _resolve_length_scale(self, X: Any) -> LengthScale:
        return resolve_length_scale(resolve(self.kernel), self.length_scale, self.gamma, X)

    @abstractmethod
    def _check_kernel(self, kernel: Kernel) -> None:
        """Raise an error if the kernel or the parameters of the subclass are not supported."""

    @abstractmethod
    def _substream(self) -> Stream:
        """Return the part of the stream that belongs to this kind of map."""

    @abstractmethod
    def _make_projection(self, dim: int) -> Projection:
        """Return the projection for data of `dim` columns, from the fitted attributes."""

    def _features(self, X: Any) -> NDArray[Any]:
        out, view = self._layout.empty(X.shape[0], X.dtype)
        self._write_features(X, view)
        return out

    def _write_features(self, X: Any, out: NDArray[Any], scoring: Scoring | None = None) -> None:
        """Write the features of checked rows, complex ones as real and imaginary parts.

        With `scoring`, also their inner products with each row of its weights.
        """
        projection = self.projection_
        arguments = (X, self._layout, self._phases_in(X.dtype), out, self.n_threads)
        if scoring is not None and isinstance(projection, HadamardProjection | GivenProjection):
            projection.features(*arguments, scoring=scoring)  # while they are in the cache
            return
        projection.features(*arguments)
        if scoring is not None:
            _native.score_rows(out, *scoring, resolve_threads(self.n_threads))

    def _phases_in(self, dtype: np.dtype[Any]) -> NDArray[Any] | None:
        if dtype.char not in self._phases:
            phases = self._layout.phases(self._substream())
            self._phases[dtype.char] = None if phases is None else phases.astype(dtype)
        return self._phases[dtype.char]

    def _exact_kernel(self, X: Any, Y: Any) -> NDArray[np.float64]:
        if self.features == "projection":
            raise ArgumentError(
                "features='projection' computes plain projections, which have no kernel",
                Remedy("use cosine and sine features", features="cos_sin"),
            )
        return self.kernel_(X, Y, length_scale=self.length_scale_)

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return {**state, "_phases": {}} if "_phases" in state else state
