"""Fitted learners from model files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.learners.classifier import KernelClassifier
from kernelmill.learners.evidence import Evidence
from kernelmill.learners.regressor import KernelRegressor
from kernelmill.learners.ridge import CholeskyInverse
from kernelmill.learners.solvers.exact import RidgeFit
from kernelmill.learners.stored import LEARNERS
from kernelmill.learners.targets import TargetShape
from kernelmill.storage import ModelFileError, errors_of_file, read_model_file
from kernelmill.storage.kinds import Choice

__all__ = ["learner_from_record", "load_learner"]

_DO_NOT_USE = "do not use the file: it was not written by `save` of kernelmill"


def load_learner(path: str | os.PathLike[str]) -> KernelClassifier | KernelRegressor:
    """Load the learner in a file that its `save` wrote. Nothing in the file is executed.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    KernelClassifier or KernelRegressor
        It predicts as the saved one did, up to the rounding of its weights. `fit` starts from the
        beginning, and `partial_fit` raises an error.

    Raises
    ------
    ModelFileError
        The file is not a model of a learner, is damaged, was changed, or has a newer version.

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
    with errors_of_file(path, _DO_NOT_USE):
        if file.kind != "learner":
            raise ModelFileError(
                f"it holds a {file.kind}, not a learner", "load it with kernelmill.load"
            )
        return learner_from_record(file.record, file.tensors)


def learner_from_record(
    record: Any, tensors: Mapping[str, NDArray[Any]]
) -> KernelClassifier | KernelRegressor:
    """Return the fitted learner of a record that `learner_record` returned.

    Only known learners, maps and kernels with their declared parameters are accepted; everything
    else raises a ModelFileError.

    Parameters
    ----------
    record : dict
    tensors : mapping of str to ndarray
        Tensors that are not the learner's are ignored.

    Returns
    -------
    KernelClassifier or KernelRegressor

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill import KernelClassifier
    >>> from kernelmill.learners.loading import learner_from_record
    >>> from kernelmill.learners.stored import learner_record
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> classifier = KernelClassifier("tensor_sketch", random_state=0).fit(X, X[:, 0] > X[:, 1])
    >>> again = learner_from_record(*learner_record(classifier, weights="float64"))
    >>> bool((again.predict_proba(X) == classifier.predict_proba(X)).all())
    True
    """
    name = record.get("learner") if type(record) is dict else None
    if type(name) is not str or name not in LEARNERS:
        raise ModelFileError(f"learner must be {Choice(*LEARNERS).description}, got {name!r:.80}")
    values = LEARNERS[name].read(record, tensors)
    family = KernelClassifier if name == "KernelClassifier" else KernelRegressor
    model = family(
        values["feature_map"], random_state=values["random_state"], **values["parameters"]
    )
    try:
        model._check_parameters()
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"parameters are inconsistent: {error}") from error
    if values["n_features_in"] != values["map"].n_features_in_:
        raise ModelFileError(
            f"n_features_in must be that of the map, {values['map'].n_features_in_}, got "
            f"{values['n_features_in']}"
        )
    model.feature_map_ = values["map"]
    model.stream_ = values["key"]
    model.n_features_in_ = values["n_features_in"]
    if values["feature_names_in"] is not None:
        model.feature_names_in_ = values["feature_names_in"]
    model.coef_, model.intercept_ = _weights(values), values["intercept"]
    if values["dual"] is not None:
        model._dual = (model.coef_, values["dual"])
    model.alpha_, model.n_iter_ = values["alpha"], values["n_iter"]
    if isinstance(model, KernelClassifier):
        _set_classification(model, values)
    else:
        _set_regression(model, values)
    model._is_loaded = True
    return model


def _weights(values: Mapping[str, Any]) -> NDArray[Any]:
    """The weights in the dtype that they had in the model."""
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
    if not np.isfinite(weights).all():
        raise ModelFileError(
            f"coef must be finite as {dtype}, got {np.abs(coef).max():.3g}",
        )
    return weights


def _set_classification(model: KernelClassifier, values: Mapping[str, Any]) -> None:
    model.classes_ = values["classes"]
    n_outputs = 1 if len(model.classes_) == 2 else len(model.classes_)
    if len(model.coef_) != n_outputs:
        raise ModelFileError(
            f"coef must have {n_outputs} rows for {len(model.classes_)} classes, got "
            f"{len(model.coef_)}"
        )
    model.solver_ = values["solver"]
    model.loss_curve_, model.validation_curve_ = values["loss_curve"], values["validation_curve"]
    model._state = None


def _set_regression(model: KernelRegressor, values: Mapping[str, Any]) -> None:
    ndim, n_outputs, noise = values["targets_ndim"], len(model.coef_), values["noise"]
    if ndim == 1 and n_outputs != 1:
        raise ModelFileError(f"coef must have one row if targets_ndim is 1, got {n_outputs}")
    model._targets = TargetShape(ndim, n_outputs)
    if len(noise) != n_outputs or (noise < 0).any():
        raise ModelFileError(
            f"noise must be a variance for each of {n_outputs} outputs, got {noise.tolist()!s:.80}"
        )
    model.noise_ = noise if ndim == 2 else float(noise[0])
    if values["alphas"] is not None:
        model.alphas_, model.scores_ = values["alphas"], values["scores"]
    if values["tuning"] is not None:
        model.tuning_ = values["tuning"]
    if values["uncertainty"] is not None:
        model._fit = _ridge_fit(model, values["uncertainty"])


def _ridge_fit(model: KernelRegressor, values: Mapping[str, Any]) -> RidgeFit:
    """The fit of a regressor with these weights, from the packed factor."""
    n_outputs, n = model.coef_.shape
    packed, objective = values["factor"], values["objective"]
    if packed.shape != (n * (n + 1) // 2,):
        raise ModelFileError(
            f"factor must have {n * (n + 1) // 2} elements for {n} weights, got {packed.size}"
        )
    if len(objective) != n_outputs:
        raise ModelFileError(
            f"uncertainty.objective must have an element for each of {n_outputs} outputs, got "
            f"{len(objective)}"
        )
    factor = np.zeros((n, n), order="F")
    end = 0
    for j in range(n):
        begin, end = end, end + n - j
        factor[j:, j] = packed[begin:end]
    if not (np.diagonal(factor) > 0).all():
        raise ModelFileError("factor must have a positive diagonal, got other elements")
    alpha, log_volume, log_weight = model.alpha_, values["log_volume"], values["log_weight"]
    return RidgeFit(
        alpha=alpha,
        coef=model.coef_,
        intercept=model.intercept_,
        evidence=Evidence(alpha, objective, log_volume, values["n_degrees"], log_weight),
        scores=None,
        inverse=CholeskyInverse(factor, alpha),
        feature_mean=values["feature_mean"],
        weight=values["weight"],
    )
