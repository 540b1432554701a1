"""The feature maps as scikit-learn transformers: `fit`, `transform`, checks of the data, tags.

A transformer is a map of `kernelmill.maps.registry` and a `MapTransformer`; it documents itself by
the map and adds no computation.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from kernelmill.arguments import check_integer
from kernelmill.errors import ArgumentError, ArgumentTypeError, Remedy
from kernelmill.files import ModelFileError
from kernelmill.files.kinds import Mismatch, Place, Tensors
from kernelmill.kernels.points import canonical_rows
from kernelmill.maps.additive_fourier import AdditiveFourierMap
from kernelmill.maps.base import MOST_COMPONENTS, REAL, FeatureMap
from kernelmill.maps.dot_product_fastfood import DotProductFastfoodMap
from kernelmill.maps.fastfood import FastfoodMap
from kernelmill.maps.finite import NotFiniteError
from kernelmill.maps.gaussian_templates import GaussianTemplatesMap
from kernelmill.maps.nystroem import NystroemMap
from kernelmill.maps.principal_fourier import PrincipalFourierMap
from kernelmill.maps.random_fourier import RandomFourierMap
from kernelmill.maps.random_maclaurin import RandomMaclaurinMap
from kernelmill.maps.registry import FAMILIES, map_name
from kernelmill.maps.stored import FittedMapKind
from kernelmill.maps.taylor_sketch import TaylorSketchMap
from kernelmill.maps.tensor_sketch import CountSketchMap, TensorSketchMap
from kernelmill.projections import GivenFactors
from kernelmill.random import Stream
from kernelmill.runtime.threads import resolve_threads

__all__ = [
    "MAPS",
    "AdditiveFourier",
    "CountSketch",
    "DotProductFastfood",
    "Fastfood",
    "GaussianTemplates",
    "MapTransformer",
    "Nystroem",
    "PrincipalFourier",
    "RandomFourier",
    "RandomMaclaurin",
    "TaylorSketch",
    "TensorSketch",
    "as_transformer",
    "check_data",
    "make_feature_map",
    "map_from_record",
    "map_record",
]

_COMPONENTS = 2048  # of a map that is given by its name


class MapTransformer(
    FeatureMap,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc] # scikit-learn is untyped
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """A feature map as a transformer. If `fit` raises an error, the map is unchanged."""

    def fit(self, X: Any, y: Any = None) -> Self:
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

    def transform(self, X: Any) -> NDArray[Any]:
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
        if not self._is_plain(X):
            check_is_fitted(self)
            X = check_data(self, X, reset=False)
        try:
            return self._features(X)
        except NotFiniteError as error:
            raise error.found.error(first_row=0) from None

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
        """Return the exact kernel matrix that inner products of the features estimate, in O(n²).

        Parameters
        ----------
        X, Y : array_like or sparse, of shapes (n_X, n_features) and (n_Y, n_features)
            The rows to compare. By default Y is X.

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
        is_complex = getattr(self, "features", None) == "complex"
        tags.transformer_tags.preserves_dtype = [] if is_complex else ["float64", "float32"]
        return tags


class AdditiveFourier(AdditiveFourierMap, MapTransformer):
    __doc__ = AdditiveFourierMap.__doc__


class CountSketch(CountSketchMap, MapTransformer):
    __doc__ = CountSketchMap.__doc__


class DotProductFastfood(DotProductFastfoodMap, MapTransformer):
    __doc__ = DotProductFastfoodMap.__doc__

    @property
    def degrees_(self) -> NDArray[np.int64]:
        """The degree of the polynomial of each column."""
        check_is_fitted(self)
        return self._zonal_columns().degrees


class Fastfood(FastfoodMap, MapTransformer):
    __doc__ = FastfoodMap.__doc__

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


class GaussianTemplates(GaussianTemplatesMap, MapTransformer):
    __doc__ = GaussianTemplatesMap.__doc__


class Nystroem(NystroemMap, MapTransformer):
    __doc__ = NystroemMap.__doc__


class PrincipalFourier(PrincipalFourierMap, MapTransformer):
    __doc__ = PrincipalFourierMap.__doc__


class RandomFourier(RandomFourierMap, MapTransformer):
    __doc__ = RandomFourierMap.__doc__


class RandomMaclaurin(RandomMaclaurinMap, MapTransformer):
    __doc__ = RandomMaclaurinMap.__doc__


class TaylorSketch(TaylorSketchMap, MapTransformer):
    __doc__ = TaylorSketchMap.__doc__


class TensorSketch(TensorSketchMap, MapTransformer):
    __doc__ = TensorSketchMap.__doc__


MAPS: dict[str, type[MapTransformer]] = {
    name: next(each for each in MapTransformer.__subclasses__() if issubclass(each, family))
    for name, family in FAMILIES.items()
}


def as_transformer(feature_map: FeatureMap) -> MapTransformer:
    """Return a map from a model file as a transformer with the same state."""
    name = map_name(feature_map)
    assert name is not None
    family = MAPS[name]
    made = family.__new__(family)
    made.__dict__.update(vars(feature_map))
    return made


def map_record(fitted_map: Any) -> tuple[dict[str, Any], Tensors]:
    """Return what a model file holds of a fitted map.

    Parameters
    ----------
    fitted_map : FeatureMap
        One of kernelmill's maps. Functions given by the user raise a ModelFileError.

    Returns
    -------
    dict, dict of ndarray
        The record and its tensors, for `map_from_record`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill import Fastfood
    >>> from kernelmill.maps.transformers import map_from_record, map_record
    >>> X = np.random.default_rng(0).normal(size=(5, 3))
    >>> features = Fastfood(n_components=100_000, length_scale=2.0, random_state=0).fit(X)
    >>> record, tensors = map_record(features)
    >>> record["learnt"], tensors
    ({'length_scale_': 2.0}, {})
    >>> again = map_from_record(record, tensors)
    >>> bool((again.transform(X) == features.transform(X)).all())
    True
    """
    if isinstance(fitted_map, FeatureMap):
        check_is_fitted(fitted_map)
    tensors: Tensors = {}
    return FittedMapKind().write(fitted_map, Place(tensors)), tensors


def map_from_record(record: Any, tensors: Mapping[str, NDArray[Any]]) -> MapTransformer:
    """Return the fitted map of a record, with bit-identical features.

    Only maps of the registry, known kernels and declared parameters are accepted; everything else
    raises a ModelFileError.

    Parameters
    ----------
    record : dict
    tensors : mapping of str to ndarray

    Returns
    -------
    MapTransformer

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill import TensorSketch
    >>> from kernelmill.maps.transformers import map_from_record, map_record
    >>> stored = map_record(TensorSketch(degree=3).fit(np.eye(4)))
    >>> map_from_record(*stored).transform(np.eye(4)).shape
    (4, 100)
    """
    place = Place(dict(tensors), path="map")
    try:
        found = as_transformer(FittedMapKind().read(record, place))
    except Mismatch:
        raise ModelFileError(f"a map must be an object, got {record!r:.80}") from None
    place.reject_unread()
    return found


def make_feature_map(feature_map: Any, stream: Stream | None, n_threads: int | None) -> Any:
    """Return an unfitted copy of the map; a name stands for that map with 2048 components.

    Seeds that the map leaves open are drawn from the stream of the learner, if there is one, so
    that one seed makes the whole learner repeatable. `n_threads` is filled in the same way.
    """
    if isinstance(feature_map, str):
        if feature_map not in MAPS:
            known = ", ".join(map(repr, MAPS))
            raise ArgumentError(
                f"must be one of {known}, or a transformer such as Fastfood(n_components=4096), "
                f"got {feature_map!r}",
                *(
                    Remedy("use the map with a similar name", feature_map=each)
                    for each in get_close_matches(feature_map.lower(), MAPS, n=1)
                ),
                parameter="feature_map",
            )
        copy: Any = MAPS[feature_map](n_components=_COMPONENTS)
    elif isinstance(feature_map, type) or not (
        hasattr(feature_map, "fit") and hasattr(feature_map, "transform")
    ):
        raise ArgumentTypeError(
            "must be a name such as 'fastfood', or a transformer with fit and transform such as "
            f"Fastfood(n_components=4096), got {feature_map!r}",
            parameter="feature_map",
        )
    else:
        copy = clone(feature_map)
    _fill(copy, "n_threads", n_threads)
    if stream is not None:
        _fill(copy, "random_state", int(stream.substream("feature map").integers(1, 2**31)[0]))
    return copy


def _fill(transformer: Any, name: str, value: Any) -> None:
    """Set each parameter of this name that is None, also in nested transformers."""
    if value is None or not hasattr(transformer, "get_params"):
        return
    parameters = transformer.get_params(deep=True)
    open_ones = {
        key: value
        for key, current in parameters.items()
        if (key == name or key.endswith(f"__{name}")) and current is None
    }
    if open_ones:
        transformer.set_params(**open_ones)


def check_data(estimator: Any, X: Any, *, reset: bool, keep_integers: bool = False) -> Any:
    """X as a finite matrix of float32 or float64: an ndarray, or a CSR array in canonical format.

    With `reset`, the estimator remembers the columns; otherwise they have to be the same. With
    `keep_integers`, dense rows of integers stay what they are, for callers that go by blocks.
    """
    if isinstance(X, np.ma.MaskedArray):
        raise ArgumentTypeError(
            "is a masked array, whose mask would be lost", "fill or impute it first", parameter="X"
        )
    _reject_times(X)
    dtype = getattr(X, "dtype", None)
    if isinstance(dtype, np.dtype) and not dtype.isnative:
        X = X.astype(dtype.newbyteorder("="))  # scikit-learn would make float64 of float32
    kinds = [np.float32] if _is_float32_frame(X) else list(REAL)
    if keep_integers and type(X) is np.ndarray and X.dtype.kind in "iub":
        return validate_data(estimator, X, dtype=None, reset=reset)
    X = validate_data(estimator, X, accept_sparse="csr", dtype=kinds, reset=reset)
    return X if isinstance(X, np.ndarray) else canonical_rows(X)


def _reject_times(X: Any) -> None:
    """Raise for dates and durations: as numbers, they would depend on their unit."""
    columns = getattr(X, "columns", None)
    dtypes = [getattr(X, "dtype", None)] if columns is None else getattr(X, "dtypes", [])
    names = [""] if columns is None else [f" in column {name!r}" for name in columns]
    for dtype, name in zip(dtypes, names, strict=False):
        is_time = str(dtype).startswith(("Date", "Time", "Duration"))  # those of polars
        if is_time or getattr(dtype, "kind", "") in ("m", "M"):
            raise ArgumentTypeError(
                f"must be numbers, got dtype {dtype}{name}",
                "convert times to floats in a unit",
                parameter="X",
            )


def _is_float32_frame(X: Any) -> bool:
    """Whether all columns of a frame are float32, of which scikit-learn would make float64."""
    dtypes = getattr(X, "dtypes", None)
    if dtypes is None or not hasattr(X, "columns"):
        return False
    names = {str(dtype) for dtype in dtypes}
    return bool(names) and names <= {"float32", "Float32"}
