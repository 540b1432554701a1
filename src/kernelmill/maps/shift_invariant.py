"""What the feature maps of shift-invariant kernels have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from kernelmill.kernels import Kernel, resolve
from kernelmill.maps.bandwidth import resolve_length_scale
from kernelmill.maps.validation import REAL, checked_data
from kernelmill.projections.layout import KINDS, FeatureLayout
from kernelmill.random import Stream
from kernelmill.random.arguments import checked_integer
from kernelmill.runtime.threads import resolve_threads

__all__ = ["ShiftInvariantMap", "checked_choice"]


class Projection(Protocol):
    """What a map needs of a projection."""

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


def checked_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """`value` if it is one of the choices."""
    if isinstance(value, str) and value in choices:
        return value
    raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}.")


class ShiftInvariantMap(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc] # scikit-learn is untyped
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
    ABC,
):
    """A transformer whose features have inner products that estimate a shift-invariant kernel.

    A subclass names its parameters and says which projection they stand for.
    """

    kernel: Any
    n_components: int
    length_scale: Any
    gamma: Any
    features: str
    random_state: Any
    n_threads: int | None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the frequencies for data with the columns of X.

        Parameters
        ----------
        X : array_like or CSR matrix of shape (n_samples, n_features)
            Only its number of columns matters, unless the length scale is taken from the data.
        y : None
            Ignored.

        Returns
        -------
        self
            If anything is wrong, it stays as it was before the call.
        """
        before = dict(vars(self))
        try:
            self._fit(X)
        except BaseException:
            self.__dict__ = before
            raise
        return self

    def _fit(self, X: Any) -> None:
        n_components = checked_integer("n_components", self.n_components, 1)
        kind = checked_choice("features", self.features, KINDS)
        resolve_threads(self.n_threads)
        kernel = resolve(self.kernel)
        self._check_parameters(kernel)
        X = checked_data(self, X, reset=True)
        self.kernel_ = kernel
        self.length_scale_ = self._resolve_length_scale(X)
        self.stream_ = Stream.from_random_state(self.random_state)
        self._set_layout(FeatureLayout(kind, n_components))
        self.projection_ = self._make_projection(X.shape[1])
        self.projection_.prepare(X.dtype)

    def _set_layout(self, layout: FeatureLayout) -> None:
        self._layout = layout
        self._phases: dict[str, NDArray[Any] | None] = {}
        self.n_frequencies_ = layout.n_frequencies
        self._n_features_out = layout.n_columns

    def _resolve_length_scale(self, X: Any) -> float:
        return resolve_length_scale(self.kernel_, self.length_scale, self.gamma, X)

    @abstractmethod
    def _check_parameters(self, kernel: Kernel) -> None:
        """Refuse parameters of the subclass that make no sense."""

    @abstractmethod
    def _substream(self) -> Stream:
        """The part of the stream that belongs to this kind of map."""

    @abstractmethod
    def _make_projection(self, dim: int) -> Projection:
        """The projection for data of `dim` columns, from the fitted attributes."""

    def transform(self, X: Any) -> NDArray[Any]:
        """Map the rows of X to features.

        Parameters
        ----------
        X : array_like or CSR matrix of shape (n_samples, n_features)
            float32 gives float32 features, all else float64 ones (or complex numbers of these).

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            A row depends on the same row of X alone, to the last bit.
        """
        if not self._is_plain(X):
            check_is_fitted(self)
            X = checked_data(self, X, reset=False)
        out, view = self._layout.empty(X.shape[0], X.dtype)
        self.projection_.features(X, self._layout, self._phases_in(X.dtype), view, self.n_threads)
        return out

    def _is_plain(self, X: Any) -> bool:
        """Whether X is a few rows in good order: to check them more would outlast the work."""
        return (
            type(X) is np.ndarray
            and X.ndim == 2
            and 0 < X.shape[0] <= 16
            and X.dtype in REAL
            and X.dtype.isnative
            and X.shape[1] == getattr(self, "n_features_in_", -1)
            and not hasattr(self, "feature_names_in_")
            and bool(np.isfinite(X).all())
        )

    def _phases_in(self, dtype: np.dtype[Any]) -> NDArray[Any] | None:
        if dtype.char not in self._phases:
            phases = self._layout.phases(self._substream())
            self._phases[dtype.char] = None if phases is None else phases.astype(dtype)
        return self._phases[dtype.char]

    def exact_kernel(self, X: Any, Y: Any = None) -> NDArray[np.float64]:
        """The kernel that inner products of the features estimate, in O(n²).

        Parameters
        ----------
        X, Y : array_like or sparse, of shapes (n_X, n_features) and (n_Y, n_features)
            Without Y, the rows of X again.

        Returns
        -------
        ndarray of shape (n_X, n_Y)
        """
        check_is_fitted(self)
        X = checked_data(self, X, reset=False)
        Y = None if Y is None else checked_data(self, Y, reset=False)
        return self.kernel_(X, Y, length_scale=self.length_scale_)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {**state, "_phases": {}} if "_phases" in state else state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        if self.features != "complex":
            tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        else:
            tags.transformer_tags.preserves_dtype = []
        return tags
