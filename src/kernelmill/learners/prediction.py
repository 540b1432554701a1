"""Predictions of fitted estimators, and predictors from files, which need no scikit-learn.

Nothing here imports scikit-learn, which takes longer than the predictions for a few thousand rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelmill.errors import ArgumentError, ArgumentTypeError
from kernelmill.files import ModelFileError
from kernelmill.files.kinds import Choice
from kernelmill.kernels.points import canonical_rows
from kernelmill.learners.blocks import count_rows, slice_rows, take_rows
from kernelmill.learners.features import Features, ReusedMemory, compute_features, rows_per_block
from kernelmill.learners.few_outputs import score_rows
from kernelmill.learners.losses import classes_of_scores, probabilities_of_scores
from kernelmill.learners.stored import LEARNERS, restore_shared
from kernelmill.maps.base import REAL
from kernelmill.maps.finite import NotFiniteError, require_finite
from kernelmill.maps.nystroem import Nystroem

if TYPE_CHECKING:
    from kernelmill.learners.posterior import Posterior

__all__ = [
    "ClassPredictor",
    "LinearModel",
    "ValuePredictor",
    "check_row",
    "predictor_from_record",
    "read_learner",
]

_Array = NDArray[np.float64]


# Scores are about as large as the norm of the weights of features. Where the sum of dual weights is
# many times that, they have both signs and nearly cancel each other: kernel values that are rounded
# to float32 would then change the scores visibly.
_LARGE_DUAL = 64.0

_FEW_SCORES = 16

_FINITE_IN_THE_END = np.errstate(over="ignore", invalid="ignore")  # what is not is an error


class LinearModel(NamedTuple):
    """Weights on the features of a fitted map: scores of rows, in blocks.

    Attributes
    ----------
    feature_map : FeatureMap or transformer
        Fitted.
    coef : ndarray of shape (n_outputs, D)
    intercept : ndarray of shape (n_outputs,)
    dual : ndarray of shape (n_outputs, D) or None
        For Nyström features: weights of the kernel values at the landmarks with the same scores.
    """

    feature_map: Any
    coef: NDArray[Any]
    intercept: NDArray[Any]
    dual: NDArray[np.float64] | None = None

    def weighed_features(self) -> tuple[Features, NDArray[Any]]:
        """Return features that are cheap to compute, and weights of them that give the scores."""
        if self.dual is not None:
            dtype = np.dtype(np.float64) if self._cancels() else None
            return partial(self.feature_map._kernel_rows, dtype=dtype), self.dual
        return partial(compute_features, self.feature_map), np.atleast_2d(self.coef)

    def _cancels(self) -> bool:
        """Return whether rounding to float32, of kernel values or features, changes the scores."""
        if self.dual is None:
            return False
        norms = np.linalg.norm(np.atleast_2d(self.coef), axis=1)
        return bool((np.abs(self.dual).sum(axis=1) > _LARGE_DUAL * norms).any())

    @_FINITE_IN_THE_END
    def scores(self, X: Any, dtype: Any = None) -> NDArray[Any]:
        """Return z(x)ᵀ W + b for checked rows, of shape (n_samples, n_outputs).

        Without a `dtype` it is that of the features. All scores are finite: otherwise a
        `NotFiniteError` names the row.
        """
        features, coef = self.weighed_features()
        scores: NDArray[Any] | None = None
        n_threads = getattr(self.feature_map, "n_threads", None)
        for block, Z in feature_blocks(features, X, coef.shape[1]):
            if scores is None:
                coef = np.ascontiguousarray(coef, dtype=dtype or Z.dtype)
                scores = np.empty((count_rows(X), coef.shape[0]), coef.dtype)
            scores[block] = score_rows(Z.astype(coef.dtype, copy=False), coef, n_threads)
        assert scores is not None  # checks reject an empty X
        scores += np.atleast_1d(self.intercept).astype(scores.dtype)
        if dtype is None and self.dual is not None and X.dtype == np.float32:
            scores = scores.astype(np.float32, copy=False)
        _check_finite(scores, X, "scores")
        return scores

    @_FINITE_IN_THE_END
    def means_and_deviations(
        self, X: Any, posterior: Posterior, include_noise: bool
    ) -> tuple[_Array, _Array]:
        """Return scores and their standard deviations in float64, of shape (n_samples, n_outputs).

        Variances take a solve with a D x D matrix, which few rows are not worth.
        """
        from kernelmill.learners.statistics import rows_per_update  # noqa: PLC0415 # scipy.linalg

        n_outputs, n_features = self.coef.shape
        weights = np.asfortranarray(self.coef.T)
        mean, variances = np.empty((count_rows(X), n_outputs)), np.empty((count_rows(X), 1))
        features = partial(compute_features, self.feature_map)
        for block, mapped in feature_blocks(features, X, n_features, rows_per_update(n_features)):
            Z = mapped.astype(np.float64)  # a copy, which the variances overwrite
            np.matmul(Z, weights, out=mean[block])
            prior = None
            if isinstance(self.feature_map, Nystroem):
                prior = self.feature_map._variances(take_rows(X, block))
            variances[block, 0] = posterior.relative_variances(Z, prior)
        mean += self.intercept
        if self._cancels():
            mean = self.scores(X, np.float64)
        std = np.sqrt((variances + (1.0 if include_noise else 0.0)) * posterior.noise)
        _check_finite(mean, X, "scores")
        _check_finite(std, X, "standard deviations")
        return mean, std


def _check_finite(found: NDArray[Any], X: Any, what: str) -> None:
    """Raise a `NotFiniteError` that names the first row with numbers that are not finite."""
    if found.size <= _FEW_SCORES:  # where a call of NumPy takes longer
        is_finite = all(map(math.isfinite, found.ravel().tolist()))
    else:
        is_finite = bool(np.isfinite(found).all())
    if not is_finite:
        require_finite(found, X, what, first_row=0)


def feature_blocks(
    features: Features, X: Any, n_features: int, rows: int | None = None
) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Yield slices of checked rows with their features, in order.

    Without `rows`, blocks are as large as the cache allows. Nothing is as large as n x D. Features
    may be overwritten by those of the next block. A `NotFiniteError` names the row.
    """
    features = ReusedMemory(features)
    if rows is None:
        rows = rows_per_block(n_features, np.dtype(np.float64).itemsize)
    for block in slice_rows(count_rows(X), rows):
        try:
            Z = features(take_rows(X, block))
        except NotFiniteError as error:
            raise error.found.error(block.start) from None
        yield block, Z


@dataclass
class ClassPredictor:
    """A classifier from a file, for prediction only.

    Attributes
    ----------
    model : LinearModel
    n_features_in_ : int
    classes_ : ndarray of shape (n_classes,)
    loss : str
    """

    model: LinearModel
    n_features_in_: int
    classes_: NDArray[Any]
    loss: str

    @property
    def feature_map_(self) -> Any:
        """The fitted map."""
        return self.model.feature_map

    @property
    def coef_(self) -> NDArray[Any]:
        """The weights."""
        return self.model.coef

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return the scores, of shape (n_samples,) for two classes, else (n_samples, n_classes)."""
        scores = self.model.scores(_check_matrix(X, self.n_features_in_))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of each row."""
        scores = self.model.scores(_check_matrix(X, self.n_features_in_))
        labels: NDArray[Any] = self.classes_[classes_of_scores(scores)]
        return labels

    def predict_row(self, row: Any) -> Any:
        """Return the label of one row of numbers, of shape (n_features,)."""
        return self.classes_[
            classes_of_scores(self.model.scores(check_row(row, self.n_features_in_)))
        ][0]

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return the probability of each class; for the loss "log_loss" alone."""
        return probabilities_of_scores(self.model.scores(_check_matrix(X, self.n_features_in_)))


@dataclass
class ValuePredictor:
    """A regressor from a file, for prediction only.

    Attributes
    ----------
    model : LinearModel
    n_features_in_ : int
    ndim : int
        1 if the targets of the fit were a vector, 2 if they were a matrix.
    noise_ : ndarray of shape (n_outputs,)
    values : mapping
        What the file holds, for standard deviations.
    """

    model: LinearModel
    n_features_in_: int
    ndim: int
    noise_: _Array
    values: Mapping[str, Any] = field(repr=False)

    @property
    def feature_map_(self) -> Any:
        """The fitted map."""
        return self.model.feature_map

    @property
    def coef_(self) -> NDArray[Any]:
        """The weights."""
        return self.model.coef

    @cached_property
    def _posterior(self) -> Posterior:
        from kernelmill.learners.posterior import Posterior  # noqa: PLC0415 # few need it
        from kernelmill.learners.solvers.exact import restore_fit  # noqa: PLC0415

        fit, stored = None, self.values["uncertainty"]
        if stored is not None:
            fit = restore_fit(self.model, self.values["alpha"], stored)
        return Posterior(fit, None, self.noise_, is_loaded=True)

    def predict(self, X: Any, return_std: bool = False, include_noise: bool = False) -> Any:
        """Return the means and, with `return_std`, the standard deviations of rows."""
        X = _check_matrix(X, self.n_features_in_)
        if not return_std:
            return self._restore(self.model.scores(X, np.float64))
        self._posterior.require_fit()
        mean, std = self.model.means_and_deviations(X, self._posterior, include_noise)
        return self._restore(mean), self._restore(std)

    def predict_row(self, row: Any) -> Any:
        """Return the prediction for one row of numbers, of shape (n_features,)."""
        X = check_row(row, self.n_features_in_)
        return self._restore(self.model.scores(X, np.float64))[0]

    def _restore(self, values: _Array) -> _Array:
        return values[:, 0] if self.ndim == 1 else values


def check_row(row: Any, n_columns: int) -> NDArray[Any]:
    """Return one row of finite numbers as a matrix of float32 or float64."""
    x = _real_numbers(row, "row")
    if x.ndim != 1 or len(x) != n_columns:
        raise ArgumentError(f"must have {n_columns} elements, got shape {x.shape}", parameter="row")
    if not np.isfinite(x).all():
        raise ArgumentError("must be finite, got NaN or infinity", parameter="row")
    return x[np.newaxis]


def _check_matrix(X: Any, n_columns: int) -> Any:
    """Return rows of finite numbers, dense or CSR, of float32 or float64."""
    is_sparse = hasattr(X, "tocsr")
    if not is_sparse:
        X = _real_numbers(X, "X")
    if len(X.shape) != 2 or X.shape[1] != n_columns:
        raise ArgumentError(f"must have {n_columns} columns, got shape {X.shape}", parameter="X")
    if X.shape[0] == 0:
        raise ArgumentError("must have at least one row, got none", parameter="X")
    if is_sparse:  # arrays of other sparse formats would be misread as CSR
        X = canonical_rows(X.tocsr())
        X.data = _real_numbers(X.data, "X")
    if not np.isfinite(X.data if is_sparse else X).all():
        raise ArgumentError("must be finite, got NaN or infinity", parameter="X")
    return X


def _real_numbers(given: Any, parameter: str) -> NDArray[Any]:
    """Return an array of float32 or float64 without loss: no mask, no imaginary part."""
    if isinstance(given, np.ma.MaskedArray):
        raise ArgumentTypeError(
            "is a masked array, whose mask would be lost",
            "fill or impute it first",
            parameter=parameter,
        )
    try:
        array = np.asarray(given)
        if array.dtype.kind == "c":
            raise TypeError("complex numbers are not supported")
        if array.dtype.kind in "mM":
            raise TypeError(f"{array.dtype} has a unit")
        native = array.dtype.newbyteorder("=")
        return array.astype(native if native in REAL else np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentTypeError(
            f"must be an array of real numbers: {error}", parameter=parameter
        ) from error


def read_learner(
    record: Any, tensors: Mapping[str, NDArray[Any]]
) -> tuple[str, dict[str, Any], LinearModel]:
    """Return the class, the values and the weights of a record that `learner_record` returned.

    Only known learners, maps and kernels with their declared parameters are accepted; everything
    else raises a ModelFileError.
    """
    name = record.get("learner") if type(record) is dict else None
    if type(name) is not str or name not in LEARNERS:
        raise ModelFileError(f"learner must be {Choice(*LEARNERS).description}, got {name!r:.80}")
    values = LEARNERS[name].read(record, restore_shared(record, tensors))
    if values["n_features_in"] != values["map"].n_features_in_:
        raise ModelFileError(
            f"n_features_in must be that of the map, {values['map'].n_features_in_}, got "
            f"{values['n_features_in']}"
        )
    coef = _weights(values)
    _check_classes(values, len(coef)) if name == "KernelClassifier" else _check_noise(values, coef)
    return name, values, LinearModel(values["map"], coef, values["intercept"], values["dual"])


def predictor_from_record(
    record: Any, tensors: Mapping[str, NDArray[Any]]
) -> ClassPredictor | ValuePredictor:
    """Return the predictor of a record that `learner_record` returned.

    It predicts what the learner of `learner_from_record` does, bit for bit, and is not a
    scikit-learn estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill import KernelClassifier
    >>> from kernelmill.learners.prediction import predictor_from_record
    >>> from kernelmill.learners.saving import learner_record
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> classifier = KernelClassifier(epochs=5, random_state=0).fit(X, X[:, 0] > X[:, 1])
    >>> predictor = predictor_from_record(*learner_record(classifier, weights="float64"))
    >>> bool((predictor.predict_proba(X) == classifier.predict_proba(X)).all())
    True
    """
    name, values, model = read_learner(record, tensors)
    if isinstance(model.feature_map, Nystroem) and model.dual is None:
        model = model._replace(dual=model.feature_map._dual_weights(np.atleast_2d(model.coef)))
    n_columns = values["n_features_in"]
    if name == "KernelClassifier":
        return ClassPredictor(model, n_columns, values["classes"], values["parameters"]["loss"])
    return ValuePredictor(model, n_columns, values["targets_ndim"], values["noise"], values)


def _weights(values: Mapping[str, Any]) -> NDArray[Any]:
    """Return the weights in the dtype that they had in the model."""
    coef, scale, dtype = values["coef"], values["coef_scale"], values["coef_dtype"]
    if coef.dtype != values["weights"] or coef.size == 0:
        raise ModelFileError(
            f"coef must be a matrix of {values['weights']} that is not empty, got one of "
            f"{coef.dtype.name} of shape {coef.shape}"
        )
    if coef.dtype == np.float16:
        if scale is None:
            raise ModelFileError("coef_scale must be an array of float32, got nothing")
        coef = coef.astype(np.float64) * scale[:, np.newaxis]
    with np.errstate(over="ignore"):
        weights = np.array(coef, dtype)
        # Scores of classes are computed in the dtype of the features.
        narrow = weights.astype("float32" if "classes" in values else dtype, copy=False)
    if not np.isfinite(narrow).all():
        raise ModelFileError(
            f"coef must be finite as {narrow.dtype}, got {np.abs(coef).max():.3g}",
        )
    return weights


def _check_classes(values: Mapping[str, Any], n_weights: int) -> None:
    n_classes = len(values["classes"])
    n_outputs = 1 if n_classes == 2 else n_classes
    if n_weights != n_outputs:
        raise ModelFileError(
            f"coef must have {n_outputs} rows for {n_classes} classes, got {n_weights}"
        )


def _check_noise(values: Mapping[str, Any], coef: NDArray[Any]) -> None:
    ndim, n_outputs, noise = values["targets_ndim"], len(coef), values["noise"]
    if ndim == 1 and n_outputs != 1:
        raise ModelFileError(f"coef must have one row if targets_ndim is 1, got {n_outputs}")
    if len(noise) != n_outputs or (noise < 0).any():
        raise ModelFileError(
            f"noise must be a variance for each of {n_outputs} outputs, got {noise.tolist()!s:.80}"
        )
