"""Fitted learners from the plain values and arrays of a model file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.learners.classifier import KernelClassifier
from kernelmill.learners.learner_values import CHECKS, learner_record
from kernelmill.learners.regressor import KernelRegressor
from kernelmill.learners.stored_labels import labels_from_values, numbers_from_values
from kernelmill.learners.stored_uncertainty import uncertainty_from_tensors
from kernelmill.learners.stored_weights import weights_from_tensors
from kernelmill.maps.base import FeatureMap
from kernelmill.maps.seed_specification import random_state_from_values, stream_from_text
from kernelmill.maps.specification import (
    map_from_parameters,
    map_from_specification,
    names_from_values,
)
from kernelmill.storage import ModelFileError, errors_of_file, read_model_file, without_prefix

__all__ = ["learner_from_record", "learner_record", "load_learner"]

Values = dict[str, Any]
Tensors = Mapping[str, NDArray[Any]]

_FIELDS = {
    "alpha",
    "coef_dtype",
    "feature_map",
    "feature_names_in",
    "key",
    "learner",
    "map",
    "n_features_in",
    "n_iter",
    "parameters",
    "random_state",
    "weights",
}
_FIELDS_OF: dict[str, set[str]] = {
    "KernelClassifier": {"classes", "loss_curve", "solver", "validation_curve"},
    "KernelRegressor": {"alphas", "noise", "scores", "targets_ndim", "tuning", "uncertainty"},
}
_ADVICE = (
    "no `save` of kernelmill writes that, so the file was made by something else: do not use it"
)


def load_learner(path: str | os.PathLike[str]) -> KernelClassifier | KernelRegressor:
    """The learner in a file that its `save` wrote. Nothing in the file is executed.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    KernelClassifier or KernelRegressor
        It predicts as the saved one did, up to the rounding of its weights; `fit` starts anew, and
        `partial_fit` is an error.

    Raises
    ------
    ModelFileError
        If it is not such a file, is damaged, was changed or is of a newer version.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn.datasets import load_iris
    >>> from kernelmill import KernelClassifier
    >>> from kernelmill.learners import load_learner
    >>> X, y = load_iris(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "iris.kmill")
    ...     KernelClassifier(loss="squared", random_state=0).fit(X, y).save(path)
    ...     classifier = load_learner(path)
    >>> bool(classifier.score(X, y) > 0.95)
    True
    """
    file = read_model_file(path)
    with errors_of_file(path):
        if file.kind != "learner":
            raise ModelFileError(
                f"it holds a {file.kind}, not a learner; load it with kernelmill.load"
            )
    with errors_of_file(path, _ADVICE):
        return learner_from_record(file.record, file.tensors)


def learner_from_record(values: Any, tensors: Tensors) -> KernelClassifier | KernelRegressor:
    """The fitted learner that `learner_record` described.

    Only the learners, maps, kernels and parameters of fixed tables are made; values that do not fit
    give a ModelFileError.

    Parameters
    ----------
    values : dict
    tensors : mapping of str to ndarray
        Others than those of the learner are left alone.

    Returns
    -------
    KernelClassifier or KernelRegressor

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill import KernelClassifier
    >>> from kernelmill.learners.model_record import learner_from_record, learner_record
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> classifier = KernelClassifier("tensor_sketch", random_state=0).fit(X, X[:, 0] > X[:, 1])
    >>> again = learner_from_record(*learner_record(classifier, weights="float64"))
    >>> bool((again.predict_proba(X) == classifier.predict_proba(X)).all())
    True
    """
    name = values.get("learner") if type(values) is dict else None
    if type(name) is not str or name not in _FIELDS_OF:
        raise ModelFileError(f"its learner {str(name)[:80]!r} is not known")
    if set(values) != _FIELDS | _FIELDS_OF[name]:
        raise ModelFileError(f"its {name} has other fields than it should have")
    coef_dtype = values["coef_dtype"]
    if coef_dtype not in ("float32", "float64"):
        raise ModelFileError(f"its weights were {str(coef_dtype)[:80]}")
    coef = weights_from_tensors(tensors, values["weights"], coef_dtype)
    family = KernelClassifier if name == "KernelClassifier" else KernelRegressor
    model = family(
        _feature_map_from(values["feature_map"], tensors),
        random_state=random_state_from_values(values["random_state"]),
        **_parameters(values["parameters"], name),
    )
    try:
        model._check_parameters()
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"its {name} makes no sense: {error}") from error
    model.feature_map_ = _fitted_map(values["map"], tensors, coef.shape[1])
    model.stream_ = stream_from_text(values["key"])
    _set_columns(model, values)
    model.coef_, model.intercept_ = coef, _intercept(tensors, coef)
    model.alpha_ = _not_negative("alpha", values["alpha"])
    model.n_iter_ = _count("n_iter", values["n_iter"])
    if isinstance(model, KernelClassifier):
        _set_classification(model, values)
    else:
        _set_regression(model, values, tensors)
    model._is_loaded = True
    return model


def _feature_map_from(value: Any, tensors: Tensors) -> Any:
    if type(value) is str:
        return value
    if type(value) is not dict or set(value) != {"map", "parameters"}:
        raise ModelFileError("its feature_map is neither a name nor a map")
    own = without_prefix("feature_map", tensors)
    return map_from_parameters(value["map"], value["parameters"], own)


def _parameters(values: Any, name: str) -> Values:
    checks = CHECKS[name]
    if type(values) is not dict or set(values) != set(checks):
        raise ModelFileError(f"its {name} has other parameters than it should have")
    for key, value in values.items():
        if not checks[key](value):
            raise ModelFileError(f"{key} of its {name} is {str(value)[:80]}")
    given = dict(values)
    if type(given.get("class_weight")) is list:
        given["class_weight"] = dict(given["class_weight"])
    return given


def _fitted_map(values: Any, tensors: Tensors, n_weights: int) -> FeatureMap:
    """The map, if it has a feature for each weight; the weights are there, so it is not too big."""
    parameters = values.get("parameters") if type(values) is dict else None
    if type(parameters) is not dict:
        raise ModelFileError("the description of its map is missing")
    parts = 2 if parameters.get("features") == "complex" else 1
    components = parameters.get("n_components")
    if type(components) is not int or components * parts != n_weights:
        raise ModelFileError(
            f"its map has {str(components)[:80]} components, which do not fit {n_weights} weights"
        )
    return map_from_specification(values, without_prefix("map", tensors))


def _set_columns(model: Any, values: Values) -> None:
    dim = values["n_features_in"]
    if type(dim) is not int or dim != model.feature_map_.n_features_in_:
        raise ModelFileError(f"it has {str(dim)[:80]} input columns, and its map another number")
    model.n_features_in_ = dim
    names = names_from_values(values["feature_names_in"], dim)
    if names is not None:
        model.feature_names_in_ = names


def _intercept(tensors: Tensors, coef: NDArray[Any]) -> NDArray[Any]:
    intercept = tensors.get("intercept")
    if intercept is None or intercept.dtype not in (np.float32, np.float64):
        raise ModelFileError("its intercept is missing or of another kind")
    if intercept.shape != coef.shape[:1] or not np.isfinite(intercept).all():
        raise ModelFileError("its intercept does not fit its weights")
    return intercept.copy()  # a view would keep the bytes of the whole file in memory


def _set_classification(model: KernelClassifier, values: Values) -> None:
    model.classes_ = labels_from_values(values["classes"])
    n_outputs = 1 if len(model.classes_) == 2 else len(model.classes_)
    if len(model.coef_) != n_outputs:
        raise ModelFileError(
            f"its {len(model.classes_)} classes do not fit {len(model.coef_)} rows of weights"
        )
    solver = values["solver"]
    if type(solver) is not str or len(solver) > 40:
        raise ModelFileError(f"its solver is {str(solver)[:80]}")
    model.solver_ = solver
    model.loss_curve_ = numbers_from_values(values["loss_curve"])
    model.validation_curve_ = numbers_from_values(values["validation_curve"])
    model._training = model._statistics = None


def _set_regression(model: KernelRegressor, values: Values, tensors: Tensors) -> None:
    ndim, n_outputs = values["targets_ndim"], len(model.coef_)
    if type(ndim) is not int or ndim not in (1, 2) or (ndim == 1 and n_outputs != 1):
        raise ModelFileError(f"targets of {str(ndim)[:80]} dimensions do not fit its weights")
    model._targets_ndim, model._n_outputs = ndim, n_outputs
    noise = np.array(numbers_from_values(values["noise"]))
    if len(noise) != n_outputs or (noise < 0).any():
        raise ModelFileError("the variances of its noise do not fit its outputs")
    model.noise_ = noise if ndim == 2 else float(noise[0])
    if values["alphas"] is not None:
        model.alphas_ = np.array(numbers_from_values(values["alphas"]))
        scores = values["scores"]
        model.scores_ = None if scores is None else np.array(numbers_from_values(scores))
    tuning = values["tuning"]
    if tuning is not None:
        if type(tuning) is not dict:
            raise ModelFileError("what its tuning tried is not a table")
        model.tuning_ = {
            key: np.array(numbers_from_values(column)) for key, column in tuning.items()
        }
    if values["uncertainty"] is not None:
        model._fit = uncertainty_from_tensors(
            values["uncertainty"],
            tensors,
            alpha=model.alpha_,
            coef=model.coef_,
            intercept=model.intercept_,
        )


def _not_negative(name: str, value: Any) -> float:
    if type(value) is not float or not value >= 0:
        raise ModelFileError(f"its {name} is {str(value)[:80]}")
    return value


def _count(name: str, value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ModelFileError(f"its {name} is {str(value)[:80]}")
    return value
