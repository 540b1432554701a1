"""Models to compare random features with: trees, Nyström features, the exact kernel."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy  # scipy.sparse is loaded when it is first used
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC

from kernelmill.encoding.columns import CategoryEncoding
from kernelmill.encoding.encoder import ColumnEncoder, Encoder
from kernelmill.kernels import Gaussian
from kernelmill.maps import Nystroem
from kernelmill.workflows.records import ComparedModel

__all__ = [
    "SECONDS",
    "TreeColumns",
    "fit_in_time",
    "make_exact",
    "make_nystroem",
    "make_trees",
    "tree_columns",
]

SECONDS = 30.0
"""The approximate time of the exact machine in seconds, which limits its number of rows."""

_FIRST_ROWS = 2000
_MOST_DENSE_BYTES = 512 << 20
_MOST_CODES = 254  # categories of one column in histograms
_BOOSTED_CELLS, _FOREST_CELLS = 400_000_000, 20_000_000


class TreeColumns(NamedTuple):
    """Columns as trees split them best: one for each category column, with codes.

    Attributes
    ----------
    is_category : ndarray of bool
        Whether a column has codes.
    """

    training: NDArray[np.float32]
    test: NDArray[np.float32]
    is_category: NDArray[np.bool_]


def tree_columns(encoder: Encoder, training: Any, test: Any) -> TreeColumns | None:
    """Undo the one-hot encoding of rows; None if they are sparse and too many to be dense."""
    if scipy.sparse.issparse(training):
        n_cells = training.shape[0] * encoder.n_inputs
        if not isinstance(encoder, ColumnEncoder) and 4 * n_cells > _MOST_DENSE_BYTES:
            return None
    parts: list[tuple[Any, Any, list[bool]]] = []
    if not isinstance(encoder, ColumnEncoder):
        rows, more = _as_dense(training), _as_dense(test)
        return TreeColumns(rows, more, np.zeros(rows.shape[1], bool))
    begin = 0
    for each in encoder.columns:
        columns = slice(begin, begin + each.n_columns)
        begin = columns.stop
        some, others = _as_dense(training[:, columns]), _as_dense(test[:, columns])
        if isinstance(each, CategoryEncoding) and each.n_columns:
            parts.append((_codes(some), _codes(others), [each.n_columns <= _MOST_CODES]))
        else:
            parts.append((some, others, [False] * each.n_columns))
    return TreeColumns(
        np.hstack([part[0] for part in parts]),
        np.hstack([part[1] for part in parts]),
        np.array([flag for part in parts for flag in part[2]]),
    )


def _as_dense(X: Any) -> NDArray[np.float32]:
    dense = X.toarray() if scipy.sparse.issparse(X) else X
    return np.asarray(dense, np.float32)


def _codes(indicators: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the number of the column that is set in each row; one more if none is."""
    codes = np.where(indicators.any(axis=1), indicators.argmax(axis=1), indicators.shape[1])
    column: NDArray[np.float32] = codes.astype(np.float32)[:, np.newaxis]
    return column


class Trees(NamedTuple):
    """A model of trees, its name, what it is, and the number of rows that it may get."""

    name: str
    model: Any
    detail: str
    most_rows: int


def make_trees(
    n_classes: int | None, is_category: NDArray[np.bool_], seed: int, n_threads: int | None
) -> list[Trees]:
    """Gradient boosting and a random forest with scikit-learn's defaults.

    They get so many rows that a fit takes a minute or so on two cores: up to 400 million entries
    times classes of boosting, up to 20 million entries among which a split of a forest chooses.
    """
    has_categories = bool(is_category.any())
    boosting, forest = (
        (HistGradientBoostingRegressor, RandomForestRegressor)
        if n_classes is None
        else (HistGradientBoostingClassifier, RandomForestClassifier)
    )
    n_columns = len(is_category)
    n_outputs = n_classes if n_classes is not None and n_classes > 2 else 1
    n_tried = n_columns if n_classes is None else math.isqrt(n_columns)
    split = "; native categories" if has_categories else ""
    codes = "; categories as codes" if has_categories else ""
    return [
        Trees(
            "boosted trees",
            boosting(categorical_features=is_category, random_state=seed),
            f"{boosting.__name__}, defaults{split}",
            _BOOSTED_CELLS // (n_columns * n_outputs),
        ),
        Trees(
            "random forest",
            forest(n_jobs=n_threads or -1, random_state=seed),
            f"{forest.__name__}, defaults{codes}",
            _FOREST_CELLS // n_tried,
        ),
    ]


def make_nystroem(fitted_map: Any, n_components: int, seed: int) -> Any:
    """Nyström features of the kernel of a fitted map."""
    return Nystroem(
        fitted_map.kernel_,
        n_components=n_components,
        length_scale=fitted_map.length_scale_,
        random_state=seed,
    )


def make_exact(fitted_map: Any, alpha: float, n_rows: int, task: str) -> tuple[Any, str, float]:
    """The exact machine with the kernel of a fitted map, its name, and the power of its cost.

    Parameters
    ----------
    alpha : float
        The penalty for `n_rows` rows: that of the mean loss, or of the sum of squares.
    """
    if task == "regression":
        return ExactRidge(fitted_map.exact_kernel, alpha), "KernelRidge, centered", 2.7
    # The penalty was tuned for all rows: C is the same for fewer.
    model = SVC(C=1 / (alpha * n_rows), cache_size=500)
    if isinstance(fitted_map.kernel_, Gaussian) and np.ndim(fitted_map.length_scale_) == 0:
        model.set_params(gamma=1 / (2 * fitted_map.length_scale_**2))
    else:
        model.set_params(kernel=fitted_map.exact_kernel)
    return model, "SVC", 2.2


class ExactRidge(BaseEstimator):  # type: ignore[misc] # scikit-learn is untyped
    """KernelRidge with an intercept, for a kernel that is a function of matrices."""

    def __init__(self, kernel: Callable[..., Any], alpha: float) -> None:
        self.kernel = kernel
        self.alpha = alpha

    def fit(self, X: Any, target: NDArray[Any], sample_weight: Any = None) -> ExactRidge:
        """Fit to centered targets."""
        self._model = KernelRidge(alpha=self.alpha, kernel="precomputed")
        self._X, self._mean = X, float(np.average(target, weights=sample_weight))
        self._model.fit(self.kernel(X), target - self._mean, sample_weight)
        return self

    def predict(self, X: Any) -> Any:
        """Return the predictions."""
        return self._model.predict(self.kernel(X, self._X)) + self._mean


def fit_in_time(
    measure: Callable[[int], ComparedModel], n_rows: int, power: float, seconds: float = SECONDS
) -> ComparedModel:
    """Measure a model on as many rows as it can take in the time.

    The number of rows doubles from 2000, in one or several steps, as long as the time that is
    expected from the last measurement is within the limit. All measurements together take at most
    about twice as long.

    Parameters
    ----------
    measure : callable
        Trains and tests the model on the first rows, of this number.
    n_rows : int
        The number of rows there are.
    power : float
        Times grow with this power of the number of rows.
    """
    rows = min(_FIRST_ROWS, n_rows)
    while True:
        model = measure(rows)
        took = model.fit_seconds + model.predict_seconds
        longer = (seconds / max(took, 1e-9)) ** (1 / power)
        doublings = math.floor(math.log2(longer)) if longer >= 1 else 0
        more = min(rows << min(doublings, 30), n_rows)
        if longer * rows >= n_rows:
            more = n_rows
        if more <= rows:
            return model
        # Times for many rows are hard to predict from times for few rows.
        rows = min(more, 8 * rows)
