"""kernelmill and its peers with their defaults: from a split to predictions and times."""

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression, RidgeCV, SGDClassifier
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC, SVR

from benchmarks.tables.sources import Split

SVM_ROWS, SVM_TUNING_ROWS = 10_000, 3_000
ALPHAS = np.logspace(-6, 6, 25)
MAX_LEVELS = 254  # Maximum number of categories that HistGradientBoosting accepts.


@dataclass(frozen=True)
class Outcome:
    """Predictions of the test rows, and what they cost.

    Probabilities are None for regression and for models without them; their columns are `classes`.
    """

    predictions: NDArray[Any]
    probabilities: NDArray[Any] | None
    classes: NDArray[Any] | None
    n_train: int
    seconds: float
    cpu_seconds: float
    predict_seconds: float
    tuning_share: float | None = None


class Stopwatch:
    """Wall time and CPU time of this process since it was made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def read(self) -> tuple[float, float]:
        """Return the seconds that have passed: wall, CPU."""
        return time.perf_counter() - self._wall, time.process_time() - self._cpu


def run_kernelmill(split: Split) -> Outcome:
    """Fit by `kernelmill.fit_table` on a file of all training rows; predict the file of the others.

    The defaults reject missing values, so that a table with any asks for imputation; for others it
    changes nothing.
    """
    import kernelmill  # noqa: PLC0415  the peers run without a built kernelmill

    classify = split.task == "classification"
    with tempfile.TemporaryDirectory() as name:
        train, test, out = (Path(name) / f"{part}.parquet" for part in ("train", "test", "out"))
        split.train.to_parquet(train, index=False)
        split.test.drop(columns=split.target).to_parquet(test, index=False)
        watch = Stopwatch()
        model = kernelmill.fit_table(
            train,
            split.target,
            task=split.task,
            holdout=0.0,
            missing="impute",
            random_state=split.seed,
        )
        seconds, cpu_seconds = watch.read()
        watch = Stopwatch()
        model.predict_table(test, out=out, probabilities=classify)
        predict_seconds, _ = watch.read()
        made = pd.read_parquet(out)
    classes = model.learner.classes_ if classify else None
    return Outcome(
        predictions=made.iloc[:, 0].to_numpy(),
        probabilities=made.iloc[:, 1:].to_numpy(float) if classify else None,
        classes=classes,
        n_train=len(split.train),
        seconds=seconds,
        cpu_seconds=cpu_seconds,
        predict_seconds=predict_seconds,
        tuning_share=model.summary.seconds["tune"] / seconds,
    )


def run_estimator(
    make: Callable[[Split], Any], split: Split, *, max_rows: int | None = None
) -> Outcome:
    """Fit an estimator, its encoding of the columns included, to a split."""
    train = split.train.iloc[:max_rows]
    X, X_test = _inputs(train, split), _inputs(split.test, split)
    y = train[split.target].to_numpy()
    watch = Stopwatch()
    model = make(split).fit(X, y)
    seconds, cpu_seconds = watch.read()
    watch = Stopwatch()
    classes = model.classes_ if hasattr(model, "predict_proba") else None
    if classes is None:
        probabilities, predictions = None, model.predict(X_test)
    else:
        probabilities = model.predict_proba(X_test)
        predictions = classes[np.argmax(probabilities, axis=1)]
    predict_seconds, _ = watch.read()
    return Outcome(
        predictions, probabilities, classes, len(train), seconds, cpu_seconds, predict_seconds
    )


def _inputs(rows: pd.DataFrame, split: Split) -> pd.DataFrame:
    """Return the inputs, with the categories of the training rows; others are missing."""
    X = rows.drop(columns=split.target)
    for column in split.categorical:
        levels = split.train[column].value_counts().index[:MAX_LEVELS]
        X[column] = pd.Categorical(X[column].astype(object), categories=sorted(levels))
    X.columns = pd.Index([f"c{i}" for i in range(X.shape[1])])
    return X


def hist_gradient_boosting(split: Split) -> Any:
    """Return scikit-learn's boosted trees, which take categories and missing values as they are."""
    kinds = {
        "classification": HistGradientBoostingClassifier,
        "regression": HistGradientBoostingRegressor,
    }
    return kinds[split.task](categorical_features="from_dtype", random_state=split.seed)


def lightgbm(split: Split) -> Any:
    """Return LightGBM's boosted trees."""
    import lightgbm  # noqa: PLC0415  optional

    kinds = {"classification": lightgbm.LGBMClassifier, "regression": lightgbm.LGBMRegressor}
    return kinds[split.task](random_state=split.seed, n_jobs=1, verbose=-1)


def random_forest(split: Split) -> Any:
    """Return a random forest on numbered categories."""
    kinds = {"classification": RandomForestClassifier, "regression": RandomForestRegressor}
    numbers = OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-1
    )
    encoder = make_column_transformer((numbers, _category_columns), remainder="passthrough")
    return make_pipeline(encoder, kinds[split.task](random_state=split.seed, n_jobs=1))


def linear(split: Split) -> Any:
    """Return ridge regression with a penalty from leave-one-out errors, or logistic regression."""
    if split.task == "regression":
        return make_pipeline(standardized_one_hot(), RidgeCV(ALPHAS))
    return make_pipeline(standardized_one_hot(), LogisticRegression(max_iter=1000))


def rbf_sampler(split: Split) -> Any:
    """Return 1024 random features at the median distance, and a linear model on them."""
    kind = RidgeCV(ALPHAS) if split.task == "regression" else SGDClassifier(loss="log_loss")
    if split.task == "classification":
        kind.set_params(random_state=split.seed)
    return make_pipeline(standardized_one_hot(), MedianRBFSampler(split.seed), kind)


def svm(split: Split) -> Any:
    """Return an exact kernel machine whose C and gamma are tuned on a few rows."""
    return make_pipeline(standardized_one_hot(), TunedSVM(split.task))


def standardized_one_hot() -> Any:
    """Return an encoder: standardized numbers, means for missing ones, one-hot categories."""
    return make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), _category_columns),
        (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), _number_columns),
    )


def _category_columns(X: pd.DataFrame) -> list[str]:
    return [name for name in X if isinstance(X[name].dtype, pd.CategoricalDtype)]


def _number_columns(X: pd.DataFrame) -> list[str]:
    return [name for name in X if not isinstance(X[name].dtype, pd.CategoricalDtype)]


class MedianRBFSampler(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """`RBFSampler` in float32, whose length scale is the median distance of 1000 rows."""

    def __init__(self, seed: int):
        self.seed = seed

    def fit(self, X: NDArray[Any], y: Any = None) -> "MedianRBFSampler":
        """Draw the features."""
        distances = euclidean_distances(X[:1000])
        median = np.median(distances[np.triu_indices_from(distances, 1)])
        gamma = 0.5 / max(median, 1e-3) ** 2
        self.sampler_ = RBFSampler(gamma=gamma, n_components=1024, random_state=self.seed)
        self.sampler_.fit(X.astype(np.float32))
        return self

    def transform(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the features."""
        features: NDArray[Any] = self.sampler_.transform(X.astype(np.float32))
        return features


class TunedSVM(BaseEstimator):  # type: ignore[misc]
    """`SVC`, or `SVR` of a standardized target, tuned by cross-validation on the first rows."""

    def __init__(self, task: str):
        self.task = task

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> "TunedSVM":
        """Choose C and gamma, and fit to all rows."""
        machine: Any
        settings = {"cache_size": 1000, "max_iter": 1_000_000}
        if self.task == "classification":
            machine, prefix = SVC(**settings), ""
        else:
            machine = TransformedTargetRegressor(SVR(**settings), transformer=StandardScaler())
            prefix = "regressor__"
        few = slice(SVM_TUNING_ROWS)
        gamma = 1.0 / (X.shape[1] * X[few].var())  # gamma="scale"
        grid = {
            f"{prefix}C": [1.0, 10.0, 100.0],
            f"{prefix}gamma": [0.3 * gamma, gamma, 3.0 * gamma],
        }
        search = GridSearchCV(machine, grid, cv=3, refit=False).fit(X[few], y[few])
        self.machine_ = machine.set_params(**search.best_params_).fit(X, y)
        return self

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the predictions of the machine fitted to all rows."""
        predictions: NDArray[Any] = self.machine_.predict(X)
        return predictions


CONTENDERS: dict[str, Callable[[Split], Outcome]] = {
    "kernelmill": run_kernelmill,
    "hgb": partial(run_estimator, hist_gradient_boosting),
    "linear": partial(run_estimator, linear),
    "forest": partial(run_estimator, random_forest),
    "rbf_sampler": partial(run_estimator, rbf_sampler),
    "lightgbm": partial(run_estimator, lightgbm),
    "svm": partial(run_estimator, svm, max_rows=SVM_ROWS),
}


def list_contenders() -> list[str]:
    """Return the names of the contenders whose packages are installed."""
    return [name for name in CONTENDERS if name != "lightgbm" or find_spec("lightgbm")]
