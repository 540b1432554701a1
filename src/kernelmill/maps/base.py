"""What all feature maps have in common: how they are fitted, called, copied and described."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from kernelmill.maps.validation import REAL, checked_data
from kernelmill.random.arguments import checked_integer
from kernelmill.runtime.threads import resolve_threads

__all__ = ["FeatureMap", "checked_choice"]

MOST_COMPONENTS = 2**31 - 1


def checked_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """`value` if it is one of the choices."""
    if isinstance(value, str) and value in choices:
        return value
    raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}.")


class FeatureMap(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc] # scikit-learn is untyped
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
    ABC,
):
    """A transformer whose features have inner products that estimate a kernel.

    A subclass says what `fit` draws, how rows become features, and what the kernel is. Whatever
    `fit` raises, the map stays as it was before.
    """

    n_components: int
    random_state: Any
    n_threads: int | None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the coefficients for data with the columns of X.

        Parameters
        ----------
        X : array_like or CSR matrix of shape (n_samples, n_features)
            Only its number of columns matters, unless a parameter is to be taken from the data.
        y : None
            Ignored.

        Returns
        -------
        self
            If anything is wrong, it stays as it was before the call.
        """
        before = dict(vars(self))
        try:
            n_components = checked_integer("n_components", self.n_components, 1)
            if n_components > MOST_COMPONENTS:
                raise ValueError(f"n_components must be below 2**31, got {n_components}.")
            resolve_threads(self.n_threads)
            self._check_parameters()
            self._fit(checked_data(self, X, reset=True), n_components)
        except BaseException:
            self.__dict__ = before
            raise
        return self

    @abstractmethod
    def _check_parameters(self) -> None:
        """Refuse parameters that make no sense, before the data are looked at."""

    @abstractmethod
    def _fit(self, X: Any, n_components: int) -> None:
        """Draw what is needed for checked data; sets `_n_features_out` among others."""

    @abstractmethod
    def _features(self, X: Any) -> NDArray[Any]:
        """The features of checked rows."""

    @abstractmethod
    def _exact_kernel(self, X: Any, Y: Any) -> NDArray[np.float64]:
        """The kernel between checked rows; Y is None where it is X."""

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
        return self._features(X)

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
        return self._exact_kernel(X, Y)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
