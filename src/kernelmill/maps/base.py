"""What all feature maps have in common: how they are fitted, called, copied and described."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import scipy  # scipy.sparse is loaded when it is first used
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from kernelmill.arguments import check_integer
from kernelmill.errors import ArgumentError, ArgumentTypeError
from kernelmill.maps.fields import SeedKind
from kernelmill.random import Stream
from kernelmill.runtime.threads import resolve_threads
from kernelmill.storage.fields import Fields
from kernelmill.storage.kinds import Integer, Null

__all__ = ["MOST_COMPONENTS", "REAL", "FeatureMap", "check_data"]

MOST_COMPONENTS = 2**31 - 1
REAL = (np.dtype(np.float64), np.dtype(np.float32))


class FeatureMap(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc] # scikit-learn is untyped
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
    ABC,
):
    """A transformer whose features have inner products that estimate a kernel.

    A subclass defines what `fit` draws, how rows become features, what the kernel is, and which
    parameters and fitted attributes a model file holds. If `fit` raises an error, the map is
    unchanged.
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
    stream_: Stream
    _fitted_parameters: dict[str, Any]

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the coefficients for data with the columns of X.

        Parameters
        ----------
        X : array_like or CSR matrix of shape (n_samples, n_features)
            Only its number of columns matters, unless a parameter is estimated from the data.
        y : None
            Ignored.

        Returns
        -------
        self
            The fitted map. If `fit` raises an error, the map is unchanged.
        """
        before = dict(vars(self))
        try:
            n_components = check_integer("n_components", self.n_components, 1, MOST_COMPONENTS)
            resolve_threads(self.n_threads)
            self._check_parameters()
            X = check_data(self, X, reset=True)
            self._learn(X)
            self.stream_ = Stream.from_random_state(self.random_state)
            self._build(X.shape[1], n_components)
            self._prepare(X)
            self._remember_parameters()
        except BaseException:
            self.__dict__ = before
            raise
        return self

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise an error if a parameter is invalid; called before the data are checked."""

    def _learn(self, X: Any) -> None:
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
            for name, value in self.get_params(deep=False).items()
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

    def _check_attributes(self) -> None:
        """Raise an error if fitted attributes that were read from a file contradict parameters."""

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
            X = check_data(self, X, reset=False)
        return self._features(X)

    def _is_plain(self, X: Any) -> bool:
        """Whether X is a few valid rows: full checks would take longer than their features."""
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
        X = check_data(self, X, reset=False)
        Y = None if Y is None else check_data(self, Y, reset=False)
        return self._exact_kernel(X, Y)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def check_data(estimator: Any, X: Any, *, reset: bool, keep_integers: bool = False) -> Any:
    """X as a finite matrix of float32 or float64: an ndarray, or a CSR array in canonical format.

    With `reset`, the estimator remembers the columns; otherwise they have to be the same. With
    `keep_integers`, dense rows of integers stay what they are, for callers that go by blocks.
    """
    if isinstance(X, np.ma.MaskedArray):
        raise ArgumentTypeError(
            "is a masked array, whose mask would be lost", "fill or impute it first", parameter="X"
        )
    dtype = getattr(X, "dtype", None)
    if isinstance(dtype, np.dtype) and not dtype.isnative:
        X = X.astype(dtype.newbyteorder("="))  # scikit-learn would make float64 of float32
    kinds = [np.float32] if _is_float32_frame(X) else list(REAL)
    if keep_integers and type(X) is np.ndarray and X.dtype.kind in "iub":
        return validate_data(estimator, X, dtype=None, reset=reset)
    X = validate_data(estimator, X, accept_sparse="csr", dtype=kinds, reset=reset)
    return X if isinstance(X, np.ndarray) else _make_canonical(X)


def _is_float32_frame(X: Any) -> bool:
    """Whether all columns of a frame are float32, of which scikit-learn would make float64."""
    dtypes = getattr(X, "dtypes", None)
    if dtypes is None or not hasattr(X, "columns"):
        return False
    names = {str(dtype) for dtype in dtypes}
    return bool(names) and names <= {"float32", "Float32"}


def _make_canonical(X: Any) -> Any:
    """The CSR matrix X with sorted columns, each once in a row; or an error if it is damaged."""
    try:
        # A new matrix around the same numbers: the checks and sorting leave the caller's alone.
        parts = tuple(np.ascontiguousarray(part) for part in (X.data, X.indices, X.indptr))
        rows = scipy.sparse.csr_array(parts, X.shape)
        rows.check_format(full_check=True)
    except ValueError as error:
        raise ArgumentError(
            f"is not a valid CSR matrix: {error}",
            "build it again from its entries, for example with "
            "scipy.sparse.coo_array((data, (rows, columns)), shape).tocsr()",
            parameter="X",
        ) from error
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows
