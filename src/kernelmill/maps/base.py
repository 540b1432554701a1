"""The base class of all feature maps: parameters, fitting, restoring, features.

Nothing here imports scikit-learn: a map from a model file computes features without it. The public
classes add the scikit-learn interface (`kernelmill.maps.transformers`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from inspect import signature
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from kernelmill.arguments import check_integer
from kernelmill.files.fields import Fields
from kernelmill.files.kinds import Integer, Null
from kernelmill.maps.fields import SeedKind
from kernelmill.maps.finite import require_finite
from kernelmill.random import Stream
from kernelmill.runtime.threads import MAX_THREADS, resolve_threads

__all__ = ["MOST_COMPONENTS", "REAL", "FeatureMap"]

MOST_COMPONENTS = 2**31 - 1
REAL = (np.dtype(np.float64), np.dtype(np.float32))


class FeatureMap(ABC):
    """A map whose features have inner products that estimate a kernel.

    A subclass defines what fitting draws, how rows become features, what the kernel is, and which
    parameters and fitted attributes a model file holds.
    """

    _stored_parameters: ClassVar[Fields] = Fields(
        n_components=Integer(1, MOST_COMPONENTS),
        random_state=SeedKind(),
        n_threads=Integer(1, 1 << 16) | Null(),
    )
    _stored_attributes: ClassVar[Fields] = Fields()

    _is_costly: ClassVar[bool] = False  # whether computing features takes O(D²) for a row

    n_components: int
    random_state: Any
    n_threads: int | None

    n_features_in_: int
    _n_features_out: int
    feature_names_in_: NDArray[np.object_]
    stream_: Stream
    _fitted_parameters: dict[str, Any]

    @classmethod
    @cache
    def _parameter_names(cls) -> tuple[str, ...]:
        """Return the names of the parameters, sorted."""
        names = signature(cls.__init__).parameters
        return tuple(sorted(name for name in names if name != "self"))

    def _parameters(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._parameter_names()}

    @property
    def _threads(self) -> int:
        """The number of threads for native code; 0 stands for the default."""
        return min(self.n_threads or 0, MAX_THREADS)

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise an error if a parameter is invalid; called before the data are checked."""

    def _learn(self, X: Any) -> None:  # noqa: B027 # few maps learn
        """Set the attributes that are estimated from checked data, and no others."""

    @abstractmethod
    def _build(self, dim: int, n_components: int) -> None:
        """Set what follows from parameters, estimated attributes and `stream_`, the seed.

        `_n_features_out` is part of it. Coefficients are drawn by `_prepare`, or later when they
        are first needed.
        """

    @abstractmethod
    def _prepare(self, X: Any) -> None:
        """Draw the coefficients for data such as X."""

    def _remember_parameters(self) -> None:
        """Keep the parameters for model files: those set after `fit` do not change the features."""
        self._fitted_parameters = {
            name: value
            for name, value in self._parameters().items()
            if name not in ("random_state", "n_threads")
        }

    def _restore(self, dim: int, stream: Stream, learnt: Mapping[str, Any]) -> Self:
        """Restore a fitted map from its attributes; coefficients are drawn when first needed."""
        n_components = check_integer("n_components", self.n_components, 1, MOST_COMPONENTS)
        resolve_threads(self.n_threads)
        self._check_parameters()
        self.__dict__.update(learnt)
        self._check_attributes()
        self.n_features_in_ = dim
        self.stream_ = stream
        self._build(dim, n_components)
        self._remember_parameters()
        return self

    def _check_attributes(self) -> None:  # noqa: B027 # few have any
        """Raise an error if fitted attributes that were read from a file contradict parameters."""

    def _features(self, X: Any) -> NDArray[Any]:
        """Return the features of checked rows; raise a `NotFiniteError` if some are not finite."""
        out, view = self._empty_features(X.shape[0], X.dtype)
        self._fill(X, view)
        return out

    def _fill(self, X: Any, out: NDArray[Any], **options: Any) -> None:
        """Write the features of checked rows to real numbers; raise if some are not finite."""
        if not self._write_features(X, out, **options):
            require_finite(out, X, "features")

    def _empty_features(
        self, n_rows: int, dtype: np.dtype[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return a new array for the features of rows of this dtype, and its view as reals."""
        out = np.empty((n_rows, self._n_features_out), dtype)
        return out, out

    @abstractmethod
    def _write_features(self, X: Any, out: NDArray[Any]) -> bool:
        """Write the features of checked rows to `out`, complex ones as real and imaginary parts.

        Return True if all of them are finite. That is found out while they are in the cache; False
        means that it is not known.
        """

    @abstractmethod
    def _exact_kernel(self, X: Any, Y: Any) -> NDArray[np.float64]:
        """Return the kernel between checked rows; Y is None where it is X."""
