"""The base class of feature maps: parameters, fitting, features, checks of the data.

Maps are scikit-learn transformers, but computing features does not need scikit-learn, which takes
longer to import than most predictions take. So nothing here imports it until a map is constructed,
and maps are read from files without their constructors where they are only used for predictions.
"""

from __future__ import annotations

import dataclasses
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from functools import cache
from inspect import signature
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    NamedTuple,
    Self,
    TypeGuard,
    TypeVar,
    dataclass_transform,
)

import numpy as np
from numpy.typing import NDArray

from kernelmill.arguments import check_integer
from kernelmill.errors import ArgumentTypeError
from kernelmill.files.fields import declared_fields, fitted, parameter
from kernelmill.files.kinds import Integer, Null, SeedKind
from kernelmill.kernels.points import canonical_rows
from kernelmill.maps.finite import NotFiniteError, require_finite
from kernelmill.random import Stream
from kernelmill.random.seeding import RandomState
from kernelmill.runtime.arrays import Floats, Rows
from kernelmill.runtime.threads import MAX_THREADS, resolve_threads

__all__ = [
    "COMPONENTS",
    "MAX_COMPONENTS",
    "MAX_MEMORY",
    "REAL",
    "FeatureMap",
    "MapCost",
    "check_data",
    "fitted",
    "load_scikit_learn",
    "parameter",
    "with_parameters",
]

MAX_COMPONENTS = 2**31 - 1
MAX_MEMORY = 8 << 30
"""Bytes that a map from a file may take, unless the caller allows more."""

REAL = (np.dtype(np.float64), np.dtype(np.float32))

COMPONENTS = Integer(1, MAX_COMPONENTS)


class _Bases:
    """A base class that can be replaced, as `object` cannot."""


class Estimator(_Bases):
    """A class whose bases become those of scikit-learn's transformers when it is loaded."""

    if TYPE_CHECKING:  # scikit-learn has no types

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **parameters: object) -> Self: ...
        def fit_transform(self, X: object, y: object = None) -> NDArray[Any]: ...
        def set_output(self, *, transform: str | None = None) -> Self: ...
        def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]: ...


_loading = threading.Lock()


def load_scikit_learn() -> None:
    """Import scikit-learn, and make all maps transformers of it."""
    from sklearn.base import (  # noqa: PLC0415 # it takes longer than most predictions
        BaseEstimator,
        ClassNamePrefixFeaturesOutMixin,
        TransformerMixin,
    )

    with _loading:
        if not issubclass(Estimator, BaseEstimator):
            Estimator.__bases__ = (ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator)
            for family in _families(Estimator):
                super(Estimator, family).__init_subclass__()  # wraps `transform` for `set_output`


def _families(family: type[Estimator]) -> Iterator[type[Estimator]]:
    yield family
    for each in family.__subclasses__():
        yield from _families(each)


class MapCost(NamedTuple):
    """Upper estimates: the bytes of a map's coefficients, and the operations of one row."""

    n_bytes: int
    operations: int

    @classmethod
    def of_transforms(cls, n_columns: int, n_features: int, copies: int = 1) -> MapCost:
        """Return the cost of a map with some numbers for each column and for each feature.

        `copies` counts those of the columns.
        """
        transforms = n_features * (1 + n_features.bit_length())
        n_bytes = 32 * (copies * n_columns + n_features)
        return cls(n_bytes, copies * (n_columns + 8 * transforms))


Map = TypeVar("Map")


@dataclass_transform(eq_default=False, field_specifiers=(parameter, fitted))
def with_parameters(family: type[Map]) -> type[Map]:
    """Make a map of a class that declares its parameters and fitted attributes.

    The constructor assigns the parameters, as scikit-learn requires. A model file holds the
    parameters, and the fitted attributes with a kind.
    """
    return dataclasses.dataclass(eq=False, repr=False, match_args=False)(family)


@with_parameters
class FeatureMap(Estimator, ABC):
    """A map whose features have inner products that estimate a kernel.

    A subclass declares its parameters and the fitted attributes that a model file holds. It defines
    how rows become features, what the kernel is, and what fitting estimates from the data. If `fit`
    raises an error, the map is unchanged.

    Attributes
    ----------
    name : str
        The name of the map in model files, on the command line and as a parameter of learners.
    """

    name: ClassVar[str]

    _construction: ClassVar[str]  # a few words about how features are computed
    _is_costly: ClassVar[bool] = False  # whether computing features takes O(D²) for a row
    _is_dense: ClassVar[bool] = False  # whether it has a number for each column and feature

    n_components: int = parameter(COMPONENTS, default=100, kw_only=True)
    random_state: RandomState | Stream = parameter(SeedKind(), default=None, kw_only=True)
    n_threads: int | None = parameter(Integer(1, 1 << 16) | Null(), default=None, kw_only=True)

    n_features_in_: int = fitted()
    feature_names_in_: NDArray[np.object_] = fitted()
    stream_: Stream = fitted()
    _n_features_out: int = fitted()
    _fitted_parameters: dict[str, Any] = fitted()

    def __new__(cls, *args: object, **parameters: object) -> Self:  # noqa: D102
        load_scikit_learn()
        return super().__new__(cls)

    @classmethod
    def bare(cls, **parameters: Any) -> Self:
        """Return a map with these parameters without importing scikit-learn."""
        made = object.__new__(cls)
        cls.__init__(made, **parameters)
        return made

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

    @classmethod
    def _estimate_cost(cls, n_columns: int, n_features: int, degree: int) -> MapCost:
        """Return the cost of a map in a file; `degree` is the highest one there, or 1."""
        if cls._is_dense:
            size = n_columns * n_features * degree
            return MapCost(8 * size, size)
        return MapCost.of_transforms(n_columns, n_features, degree)

    def _describe(self) -> str:
        """Return a few words about how features are computed."""
        return self._construction

    def _check_parameters(self) -> None:
        """Raise an error if a parameter is invalid; called before the data are checked."""
        for name, kind in declared_fields(type(self)).items():
            kind.check(name, getattr(self, name))

    def _learn(self, X: Rows) -> None:  # few maps learn
        """Set the attributes that are estimated from checked data, and no others."""

    @abstractmethod
    def _build(self, dim: int, n_components: int) -> None:
        """Set what follows from parameters, estimated attributes and `stream_`, the seed.

        `_n_features_out` is part of it. Coefficients are drawn by `_prepare`, or later when they
        are first needed.
        """

    @abstractmethod
    def _prepare(self, X: Rows) -> None:
        """Draw the coefficients for data such as X."""

    def _remember_parameters(self) -> None:
        """Keep the parameters for model files: those set after `fit` do not change the features."""
        self._fitted_parameters = {
            name: value
            for name, value in self._parameters().items()
            if name not in ("random_state", "n_threads")
        }

    def _restore(self, dim: int, stream: Stream, learnt: Mapping[str, object]) -> Self:
        """Restore a fitted map from its attributes; coefficients are drawn when first needed."""
        n_components = check_integer("n_components", self.n_components, 1, MAX_COMPONENTS)
        resolve_threads(self.n_threads)
        self._check_parameters()
        self.__dict__.update(learnt)
        self._check_attributes()
        self.n_features_in_ = dim
        self.stream_ = stream
        self._build(dim, n_components)
        self._remember_parameters()
        return self

    def _check_attributes(self) -> None:  # few have any
        """Raise an error if fitted attributes from a file contradict parameters."""

    def _features(self, X: Rows) -> NDArray[np.inexact]:
        """Return the features of checked rows; raise a `NotFiniteError` if some are not finite."""
        out, view = self._empty_features(X.shape[0], X.dtype)
        self._fill(X, view)
        return out

    def _fill(self, X: Rows, out: Floats, **options: Any) -> None:
        """Write the features of checked rows to real numbers; raise if some are not finite."""
        if not self._write_features(X, out, **options):
            require_finite(out, X, "features")

    def _empty_features(
        self, n_rows: int, dtype: np.dtype[np.floating]
    ) -> tuple[NDArray[np.inexact], Floats]:
        """Return a new array for the features of rows of this dtype, and its view as reals."""
        out = np.empty((n_rows, self._n_features_out), dtype)
        return out, out

    @abstractmethod
    def _write_features(self, X: Rows, out: Floats) -> bool:
        """Write the features of checked rows to `out`, complex ones as real and imaginary parts.

        Return True if all of them are finite, which is checked while they are in the cache; False
        means that it is not known.
        """

    @abstractmethod
    def _exact_kernel(self, X: Rows, Y: Rows | None) -> NDArray[np.float64]:
        """Return the kernel between checked rows; Y is None where it is X."""

    def fit(self, X: object, y: object = None) -> Self:
        """Draw the coefficients for data with the columns of X.

        Parameters
        ----------
        X : array_like or CSR matrix of shape (n_samples, n_features)
            The data. Only the number of columns is used, unless a parameter is estimated from the
            data.
        y : None
            Ignored.

        Returns
        -------
        self
            The fitted map. If `fit` raises an error, the map is unchanged.
        """
        before = dict(vars(self))
        try:
            n_components = check_integer("n_components", self.n_components, 1, MAX_COMPONENTS)
            resolve_threads(self.n_threads)
            self._check_parameters()
            rows = check_data(self, X, reset=True)
            self._learn(rows)
            self.stream_ = Stream.from_random_state(self.random_state)
            self._build(rows.shape[1], n_components)
            self._prepare(rows)
            self._remember_parameters()
        except BaseException:
            self.__dict__ = before
            raise
        return self

    def transform(self, X: object) -> NDArray[Any]:
        """Map the rows of X to features.

        Parameters
        ----------
        X : array_like or CSR matrix of shape (n_samples, n_features)
            float32 data have float32 features, other data float64 features (or the corresponding
            complex type).

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            The features. Those of a row depend only on this row of X, to the last bit. All are
            finite; rows that are too large for that raise an error.
        """
        resolve_threads(self.n_threads)
        rows = X if self._is_plain(X) else self._check_rows(X)
        try:
            return self._features(rows)
        except NotFiniteError as error:
            raise error.found.error(first_row=0) from None

    def _is_plain(self, X: object) -> TypeGuard[Floats]:
        """Return whether X is a few valid rows, which other checks would take longer to check."""
        return (
            isinstance(X, np.ndarray)
            and type(X) is np.ndarray
            and X.ndim == 2
            and 0 < X.shape[0] <= 16
            and X.dtype in REAL
            and X.dtype.isnative
            and X.shape[1] == getattr(self, "n_features_in_", -1)
            and not hasattr(self, "feature_names_in_")
            and bool(np.isfinite(X).all())
        )

    def _check_rows(self, X: object) -> Rows:
        load_scikit_learn()  # a map from a file may be used without it before
        from sklearn.utils.validation import check_is_fitted  # noqa: PLC0415

        check_is_fitted(self)
        return check_data(self, X, reset=False)

    def exact_kernel(self, X: object, Y: object = None) -> NDArray[np.float64]:
        """Return the exact kernel matrix that inner products of the features estimate, in O(n²).

        Parameters
        ----------
        X, Y : array_like or sparse, of shapes (n_X, n_features) and (n_Y, n_features)
            The rows to compare. By default Y is X.

        Returns
        -------
        ndarray of shape (n_X, n_Y)
        """
        rows = self._check_rows(X)
        return self._exact_kernel(rows, None if Y is None else self._check_rows(Y))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc] # of scikit-learn
        tags.input_tags.sparse = True
        is_complex = getattr(self, "features", None) == "complex"
        tags.transformer_tags.preserves_dtype = [] if is_complex else ["float64", "float32"]
        return tags


def check_data(estimator: object, X: Any, *, reset: bool, keep_integers: bool = False) -> Rows:
    """Return X as a finite matrix of float32 or float64, an ndarray or a canonical CSR array.

    With `reset`, the estimator remembers the columns; otherwise X must have the same columns. With
    `keep_integers`, dense rows of integers are returned as they are, for callers that convert
    blocks of them.
    """
    from sklearn.utils.validation import validate_data  # noqa: PLC0415

    if isinstance(X, np.ma.MaskedArray):
        raise ArgumentTypeError(
            "is a masked array, whose mask would be lost", "fill or impute it first", parameter="X"
        )
    _reject_times(X)
    dtype = getattr(X, "dtype", None)
    if isinstance(dtype, np.dtype) and not dtype.isnative:
        X = X.astype(dtype.newbyteorder("="))  # scikit-learn would make float64 of float32
    if keep_integers and type(X) is np.ndarray and X.dtype.kind in "iub":
        rows: Rows = validate_data(estimator, X, dtype=None, reset=reset)
        return rows
    kinds = [np.float32] if _is_float32_frame(X) else list(REAL)
    rows = validate_data(estimator, X, accept_sparse="csr", dtype=kinds, reset=reset)
    return rows if isinstance(rows, np.ndarray) else canonical_rows(rows)


def _reject_times(X: object) -> None:
    """Raise an error about dates and durations: as numbers, they would depend on their unit."""
    columns = getattr(X, "columns", None)
    dtypes = [getattr(X, "dtype", None)] if columns is None else getattr(X, "dtypes", [])
    names = [""] if columns is None else [f" in column {name!r}" for name in columns]
    for dtype, name in zip(dtypes, names, strict=False):
        is_polars = str(dtype).startswith(("Date", "Time", "Duration"))
        if is_polars or getattr(dtype, "kind", "") in ("m", "M"):
            raise ArgumentTypeError(
                f"must be numbers, got dtype {dtype}{name}",
                "convert times to floats in a unit",
                parameter="X",
            )


def _is_float32_frame(X: object) -> bool:
    """Return whether all columns of a frame are float32; scikit-learn would make float64 of it."""
    dtypes = getattr(X, "dtypes", None)
    if dtypes is None or not hasattr(X, "columns"):
        return False
    names = {str(dtype) for dtype in dtypes}
    return bool(names) and names <= {"float32", "Float32"}
