"""Fitted learners from model files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from kernelmill.arguments import check_integer
from kernelmill.files import ModelFileError, errors_of_file, read_model_file
from kernelmill.learners.classifier import KernelClassifier
from kernelmill.learners.prediction import LinearModel, read_learner
from kernelmill.learners.regressor import KernelRegressor
from kernelmill.learners.solvers.exact import restore_fit
from kernelmill.learners.targets import TargetShape
from kernelmill.maps.base import MAX_MEMORY, load_scikit_learn
from kernelmill.maps.stored import check_cost

__all__ = ["learner_from_record", "load_learner"]

_DO_NOT_USE = "do not use the file: it was not written by `save`"


def load_learner(
    path: str | os.PathLike[str], *, max_memory: int = MAX_MEMORY
) -> KernelClassifier | KernelRegressor:
    """Load the learner in a file that its `save` wrote. Nothing in the file is executed.

    Parameters
    ----------
    path : str or path
    max_memory : int, default=8 GiB
        The bytes that the map may take, as in `kernelmill.load`.

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
    max_memory = check_integer("max_memory", max_memory, 1)
    file = read_model_file(path)
    with errors_of_file(path, _DO_NOT_USE):
        if file.kind != "learner":
            raise ModelFileError(
                f"it holds a {file.kind}, not a learner", "load it with kernelmill.load"
            )
        check_cost(file.record.get("map"), max_memory)
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
    >>> from kernelmill.learners.saving import learner_record
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> classifier = KernelClassifier("tensor_sketch", epochs=5).fit(X, X[:, 0] > X[:, 1])
    >>> again = learner_from_record(*learner_record(classifier, weights="float64"))
    >>> bool((again.predict_proba(X) == classifier.predict_proba(X)).all())
    True
    """
    load_scikit_learn()  # the map is a transformer, too
    name, values, weights = read_learner(record, tensors)
    family = KernelClassifier if name == "KernelClassifier" else KernelRegressor
    model = family(
        values["feature_map"], random_state=values["random_state"], **values["parameters"]
    )
    try:
        model._check_parameters()
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"parameters are inconsistent: {error}") from error
    model.feature_map_ = values["map"]
    model.stream_ = values["key"]
    model.n_features_in_ = values["n_features_in"]
    if values["feature_names_in"] is not None:
        model.feature_names_in_ = values["feature_names_in"]
    model.coef_, model.intercept_ = weights.coef, weights.intercept
    if values["dual"] is not None:
        model._dual = (model.coef_, values["dual"])
    model.alpha_, model.n_iter_ = values["alpha"], values["n_iter"]
    if isinstance(model, KernelClassifier):
        _set_classification(model, values)
    else:
        _set_regression(model, values)
    model._is_loaded = True
    return model


def _set_classification(model: KernelClassifier, values: Mapping[str, Any]) -> None:
    model.classes_ = values["classes"]
    model.solver_ = values["solver"]
    model.loss_curve_, model.validation_curve_ = values["loss_curve"], values["validation_curve"]
    model._state = None


def _set_regression(model: KernelRegressor, values: Mapping[str, Any]) -> None:
    ndim, noise = values["targets_ndim"], values["noise"]
    model._targets = TargetShape(ndim, len(model.coef_))
    model.noise_ = noise if ndim == 2 else float(noise[0])
    if values["alphas"] is not None:
        model.alphas_, model.scores_ = values["alphas"], values["scores"]
    if values["tuning"] is not None:
        model.tuning_ = values["tuning"]
    if values["uncertainty"] is not None:
        weights = LinearModel(model.feature_map_, model.coef_, model.intercept_)
        model._fit = restore_fit(weights, model.alpha_, values["uncertainty"])
