"""Fitted learners as plain values and arrays: what a model file holds of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from kernelmill.learners.stored_labels import labels_to_values, numbers_to_values
from kernelmill.learners.stored_uncertainty import uncertainty_to_tensors
from kernelmill.learners.stored_weights import weights_to_tensors
from kernelmill.maps.seed_specification import key_text, random_state_values
from kernelmill.maps.specification import (
    feature_names,
    map_parameters,
    map_specification,
)
from kernelmill.random import Stream
from kernelmill.storage import ModelFileError, under_prefix

__all__ = ["CHECKS", "LEARNERS", "learner_record"]

MOST_UNCERTAIN_FEATURES = 4096  # for which uncertainty="auto" keeps the factor: 32 MiB

Values = dict[str, Any]
Check = Callable[[Any], bool]


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _is_number_or_none(value: Any) -> bool:
    return value is None or _is_number(value)


def _is_count_or_none(value: Any) -> bool:
    return value is None or (type(value) is int and 1 <= value < 2**63)


def _is_text(value: Any) -> bool:
    return type(value) is str and len(value) <= 40


def _is_flag(value: Any) -> bool:
    return type(value) in (bool, int)


def _is_penalty(value: Any) -> bool:
    return _is_number_or_none(value) or (type(value) is list and all(map(_is_number, value)))


def _is_class_weight(value: Any) -> bool:
    if type(value) is not list:
        return value is None or _is_text(value)
    return all(
        type(pair) is list
        and len(pair) == 2
        and type(pair[0]) in (bool, int, float, str)
        and _is_number(pair[1])
        for pair in value
    )


_OF_BOTH: dict[str, Check] = {
    "checkpoint_seconds": _is_number,
    "n_threads": _is_count_or_none,
    "solver": _is_text,
    "tol": _is_number,
    "verbose": _is_flag,
}

# What parameters may be; the learners themselves check the rest. Not here are those with values of
# their own: feature_map and random_state; and checkpoint, which is a path on the machine that
# trained.
CHECKS: dict[str, dict[str, Check]] = {
    "KernelClassifier": {
        **_OF_BOTH,
        "alpha": _is_number_or_none,
        "batch_size": _is_count_or_none,
        "class_weight": _is_class_weight,
        "epochs": _is_count_or_none,
        "loss": _is_text,
        "patience": _is_count_or_none,
        "validation_fraction": _is_number_or_none,
    },
    "KernelRegressor": {
        **_OF_BOTH,
        "alpha": _is_penalty,
        "fit_intercept": _is_flag,
        "max_iter": _is_count_or_none,
        "noise": _is_number_or_none,
        "scoring": _is_text,
        "tune": _is_flag,
        "tune_budget": _is_count_or_none,
    },
}
LEARNERS = tuple(CHECKS)
_HOME = "kernelmill.learners"


def learner_record(
    model: Any, weights: str = "float32", uncertainty: bool | str = "auto"
) -> tuple[Values, dict[str, NDArray[Any]]]:
    """A fitted KernelClassifier or KernelRegressor as plain values and arrays.

    Parameters
    ----------
    model : KernelClassifier or KernelRegressor
        With one of kernelmill's own maps. Functions given by the user are refused with a
        ModelFileError.
    weights : {"float32", "float16", "float64"}, default="float32"
    uncertainty : bool or "auto", default="auto"
        Of a regressor: whether standard deviations are to be had from the record; "auto" is up to
        4096 features.

    Returns
    -------
    dict, dict of ndarray
        For `learner_from_record`; together, or as a part of a larger record with the names of the
        tensors under a prefix.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill import CountSketch, KernelRegressor
    >>> from kernelmill.learners.model_record import learner_record
    >>> X = np.eye(20)
    >>> model = KernelRegressor(CountSketch(30, random_state=0)).fit(X, X[:, 0])
    >>> record, tensors = learner_record(model, uncertainty=False)
    >>> record["map"]["map"], sorted(tensors), tensors["coef"].shape
    ('count_sketch', ['coef', 'intercept'], (1, 30))
    """
    name = type(model).__name__
    if name not in LEARNERS or not type(model).__module__.startswith(_HOME):
        raise ModelFileError(
            f"A model must be a {' or a '.join(LEARNERS)} to be saved, got {name}, whose code no "
            "model file holds; keep it with the pickle module or skops."
        )
    check_is_fitted(model)
    model._check_parameters()  # they may have been set after `fit`
    specification, map_tensors = map_specification(model.feature_map_)
    map_stream = model.feature_map_.stream_
    parameter, parameter_tensors = _feature_map_values(model.feature_map, map_stream)
    record = {
        "learner": name,
        "parameters": _parameter_values(model, name),
        "random_state": random_state_values(model.random_state, model.stream_),
        "feature_map": parameter,
        "map": specification,
        "key": key_text(model.stream_),
        "weights": weights,
        "coef_dtype": model.coef_.dtype.name,
        "n_features_in": int(model.n_features_in_),
        "feature_names_in": feature_names(model),
        "alpha": float(model.alpha_),
        "n_iter": int(model.n_iter_),
    }
    tensors = {
        **weights_to_tensors(np.atleast_2d(model.coef_), weights),
        "intercept": np.atleast_1d(model.intercept_),
        **under_prefix("map", map_tensors),
        **under_prefix("feature_map", parameter_tensors),
    }
    if name == "KernelClassifier":
        record |= {
            "classes": labels_to_values(model.classes_),
            "solver": str(model.solver_),
            "loss_curve": numbers_to_values(model.loss_curve_),
            "validation_curve": numbers_to_values(model.validation_curve_),
        }
        return record, tensors
    fit = _kept_fit(model, uncertainty)
    record |= _regression_values(model)
    record["uncertainty"] = None
    if fit is not None:
        record["uncertainty"], of_fit = uncertainty_to_tensors(fit, weights)
        tensors |= of_fit
    return record, tensors


def _feature_map_values(feature_map: Any, stream: Stream) -> tuple[Any, dict[str, NDArray[Any]]]:
    """The parameter of the learner: a name, or a map that need not be fitted."""
    if isinstance(feature_map, str):
        return feature_map, {}
    name, parameters, tensors = map_parameters(feature_map, stream)
    return {"map": name, "parameters": parameters}, tensors


def _parameter_values(model: Any, name: str) -> Values:
    values: Values = {}
    for key, check in CHECKS[name].items():
        given = getattr(model, key)
        values[key] = _plain(given)
        if not check(values[key]):
            raise ModelFileError(
                f"{key} must be made of numbers and names to be saved, got {given!r:.200}; set "
                "another one, or keep the model with the pickle module or skops."
            )
    return values


def _plain(value: Any) -> Any:
    """Numbers of numpy as those of Python, sequences as lists, and mappings as lists of pairs."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return [[_plain(label), _plain(weight)] for label, weight in value.items()]
    return value


def _kept_fit(model: Any, uncertainty: Any) -> Any:
    """The fit whose factor goes to the file, or None."""
    if not (isinstance(uncertainty, (bool, np.bool_)) or uncertainty == "auto"):
        raise ValueError(f"uncertainty must be True, False or 'auto', got {uncertainty!r}.")
    fit = getattr(model, "_fit", None)
    if uncertainty == "auto":
        return fit if model.coef_.shape[1] <= MOST_UNCERTAIN_FEATURES else None
    if uncertainty and fit is None:
        raise ValueError(
            "uncertainty=True needs a regressor of the exact solver, got one that was fitted by "
            "conjugate gradients or loaded without it; fit with solver='exact', or save with "
            "uncertainty='auto'."
        )
    return fit if uncertainty else None


def _regression_values(model: Any) -> Values:
    """The attributes that a user finds after fitting a regressor."""
    scores = getattr(model, "scores_", None)
    tuning = getattr(model, "tuning_", None)
    return {
        "targets_ndim": int(model._targets_ndim),
        "noise": numbers_to_values(np.atleast_1d(model.noise_)),
        "alphas": numbers_to_values(model.alphas_) if hasattr(model, "alphas_") else None,
        "scores": None if scores is None else numbers_to_values(scores),
        "tuning": None
        if tuning is None
        else {str(key): numbers_to_values(column) for key, column in tuning.items()},
    }
