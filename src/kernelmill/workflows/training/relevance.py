"""The relevance of the columns of a table, and partial dependence.

A kernel with length scales ℓⱼ measures column j of the encoded rows in units of ℓⱼ: a column whose
spread is small in these units hardly changes distances. The relevance of a table column is this
spread. For maps with steps or principal components of columns, the relevance is the change of
predictions if the values of the column are permuted. Partial dependence (Friedman, 2001) shows how
predictions change.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy  # scipy.sparse is loaded when it is first used
from numpy.typing import ArrayLike, NDArray

from kernelmill.encoding.columns import category_values, numeric_values
from kernelmill.encoding.dates import date_values, format_seconds
from kernelmill.encoding.encoder import ColumnEncoder
from kernelmill.encoding.inputs import Inputs
from kernelmill.kernels import resolve
from kernelmill.learners.tuning.copies import merge_copies
from kernelmill.learners.tuning.length_scales import LearnedScales, learn_length_scales
from kernelmill.random import Stream
from kernelmill.runtime.progress import Progress
from kernelmill.runtime.threads import get_num_threads, one_blas_thread
from kernelmill.workflows.evaluation import class_names
from kernelmill.workflows.records import ColumnRelevance, PartialDependence
from kernelmill.workflows.training.survey import Survey
from kernelmill.workflows.tuning.kernel_search import Sample
from kernelmill.workflows.tuning.memory import TuningMemory
from kernelmill.workflows.tuning.settings import TunedSettings

__all__ = [
    "find_identifiers",
    "learn_scales_again",
    "measure_partial_dependence",
    "measure_relevance",
    "rank_columns",
]

_Array = NDArray[np.float64]

_SEARCHES = 3
_EVALUATIONS = 12
_SEARCHED_ROWS = 1500
_SEARCHED_FREQUENCIES = 160
_SPREAD_ROWS = 10_000

_MOST_DEPENDENCES = 6
_LEAST_RELEVANCE = 0.01  # of a column whose partial dependence is not flat
_MOST_VALUES = 20
_FEWEST_GROUPS, _FEWEST_OF_GROUP = 5, 3  # values of a column that identifies groups, rows of each
_MOST_IDENTIFIERS, _LEAST_OF_IDENTIFIER = 3, 0.05  # such columns, and their relevance
_MOST_OF_OTHERS = 0.3  # the largest relevance of other columns
_MOST_CLASSES = 5
_MOST_ROWS, _FEWEST_ROWS = 500, 100
_FEATURES = 2_000_000  # rows times features that are computed for one value,
_EXCHANGED_FEATURES, _MOST_EXCHANGED_FEATURES, _FEWEST_EXCHANGED = 10**8, 10**9, 50
_KERNEL_VALUES = 400_000  # or rows times landmarks


def measure_relevance(length_scale: ArrayLike, X: Any, groups: ArrayLike | None = None) -> _Array:
    r"""Return how much columns contribute to the distances of a kernel, relative to the largest.

    The relevance of a group of columns is :math:`(\sum_j \sigma_j^2 / \ell_j^2)^{1/2}` for standard
    deviations :math:`\sigma_j` and length scales :math:`\ell_j`, divided by the largest. For the
    columns of a category with frequencies p, the variances add up to :math:`1 - \sum p^2`.

    Parameters
    ----------
    length_scale : array_like of shape (n_columns,)
        Such as `length_scale_` of a fitted map. A column with an infinite length scale has
        relevance 0.
    X : ndarray or CSR matrix of shape (n_rows, n_columns)
        Rows like those that the map was fitted to.
    groups : array_like of int of shape (n_columns,), optional
        The group of each column, from 0. By default, each column is a group.

    Returns
    -------
    ndarray of shape (n_groups,)
        Numbers from 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill import KernelRegressor, RandomFourier
    >>> from kernelmill.workflows.training.relevance import measure_relevance
    >>> X = np.random.default_rng(0).uniform(size=(500, 3)) * [1, 10, 1]
    >>> feature_map = RandomFourier(length_scale=[1.0, 20.0, 4.0], random_state=0)
    >>> model = KernelRegressor(feature_map).fit(X, X[:, 0] + X[:, 1])
    >>> measure_relevance(model.feature_map_.length_scale_, X).round(1)
    array([1. , 0.5, 0.2])
    """
    scales = np.asarray(length_scale, np.float64)
    weights = _variances(X) / scales**2
    numbers = np.arange(len(scales)) if groups is None else np.asarray(groups)
    relevance = np.sqrt(np.bincount(numbers, weights))
    largest = relevance.max(initial=0.0)
    return relevance / largest if largest > 0 else relevance


def _variances(X: Any) -> _Array:
    rows = X[:_SPREAD_ROWS].astype(np.float64)
    if not scipy.sparse.issparse(rows):
        return np.asarray(rows.var(axis=0))
    means = np.asarray(rows.mean(axis=0)).ravel()
    squares = np.asarray(rows.power(2).mean(axis=0)).ravel()
    return np.asarray(np.maximum(squares - means**2, 0.0))


def learn_scales_again(
    tuned: TunedSettings,
    survey: Survey,
    seed: int,
    n_threads: int | None,
    progress: Progress,
    memory: TuningMemory,
) -> list[_Array]:
    """Learn the length scales of columns from other rows with other frequencies, three times.

    The searches begin at those that were chosen, and are short. How far their results are apart
    shows how well the rows determine them.

    Parameters
    ----------
    tuned : TunedSettings
    survey : Survey
    seed : int
    n_threads : int or None
    progress : Progress
    memory : TuningMemory

    Returns
    -------
    list of ndarray of shape (n_inputs,)
        Empty if one length scale was chosen for all columns.
    """
    if not isinstance(tuned.length_scale, np.ndarray):
        return []
    sample = Sample.of(survey.sample, survey.sample_target, survey.n_classes, survey.sample_weight)
    n = len(sample.Y)
    size = min(_SEARCHED_ROWS, max(2, (3 * n) // 4))
    kernel = resolve(tuned.choice.kernel_name)
    groups = survey.encoder.groups()
    typical = float(np.exp(np.log(tuned.length_scale).mean()))
    begin = LearnedScales(tuned.length_scale, typical, _best_ridge(tuned), np.nan)
    progress.start("Column relevance", _SEARCHES, "searches")

    def learn(number: int) -> _Array:
        stream = Stream.from_seed(seed).substream("relevance", number)
        rows = np.sort(stream.substream("subset").permutation(n)[:size])
        X, Y, weights = merge_copies(sample.X[rows], sample.Y[rows], sample.weights_of(rows))
        learned = memory.recall_scales(
            ("relevance", number, begin),
            lambda: learn_length_scales(
                kernel,
                X,
                Y,
                groups=groups,
                stream=stream,
                start=begin,
                max_evaluations=_EVALUATIONS,
                n_frequencies=_SEARCHED_FREQUENCIES,
                sample_weight=weights,
            ),
            sample.X.shape[1],
        )
        progress.advance(1)
        return learned.length_scale

    workers = min(_SEARCHES, n_threads or get_num_threads())
    with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        return list(pool.map(learn, range(_SEARCHES)))


def _best_ridge(tuned: TunedSettings) -> float:
    """Return the ridge penalty with the smallest error; the penalty of a classifier differs."""
    points = [p for p in tuned.points if p.per_column and p.criterion == "squared error"]
    return min(points, key=lambda point: point.error).alpha if points else 0.1


def rank_columns(learner: Any, survey: Survey, other_scales: list[_Array]) -> list[ColumnRelevance]:
    """Return the relevance of the columns of the table, the most relevant first.

    Parameters
    ----------
    learner : KernelClassifier or KernelRegressor
        Fitted.
    survey : Survey
    other_scales : list of ndarray
        Results of other searches for length scales: the intervals cover all of them. Without any,
        there are no intervals.

    Returns
    -------
    list of ColumnRelevance
        Empty if one length scale serves all columns, or the map has none.
    """
    scales: Any = getattr(learner.feature_map_, "length_scale_", None)
    has_scales = isinstance(scales, np.ndarray) and scales.ndim == 1
    if not has_scales and not hasattr(learner.feature_map_, "directions_"):
        return []
    names, sources = _list_sources(survey)
    exchanged = _measure_exchanges(learner, survey, sources)
    if exchanged is None and not has_scales:
        return []
    searched = [scales, *other_scales] if exchanged is None else []
    found = [measure_relevance(each, survey.sample, sources) for each in searched]
    found = found if exchanged is None else [exchanged]
    # Columns that are constant, and therefore not encoded, may be the last.
    each_search = np.array([np.pad(each, (0, len(names) - len(each))) for each in found])
    relevance, low, high = each_search[0], each_search.min(axis=0), each_search.max(axis=0)
    order = np.argsort(-relevance, kind="stable")
    return [
        ColumnRelevance(
            names[place],
            _round(relevance[place]),
            _round(low[place]) if other_scales else None,
            _round(high[place]) if other_scales else None,
        )
        for place in order
    ]


def find_identifiers(survey: Survey, relevance: list[ColumnRelevance]) -> dict[str, int]:
    """Return columns that may identify groups of rows, with the numbers of their values.

    These are at most three columns of integers or categories, each value of which many rows have.
    Other columns hardly matter beside them; otherwise the result is empty.
    """
    names, _ = _list_sources(survey)
    found: dict[str, int] = {}
    for each in relevance:
        if each.relevance < _LEAST_OF_IDENTIFIER:
            break
        n_distinct = _count_groups(*_read_values(survey, names.index(each.name)))
        if n_distinct:
            found[each.name] = n_distinct
        elif each.relevance > _MOST_OF_OTHERS:
            return {}
    return found if len(found) <= _MOST_IDENTIFIERS else {}


def _count_groups(kind: str, values: NDArray[Any]) -> int:
    """Return the number of values of a column that may identify groups; 0 if it may not."""
    if kind == "date":
        return 0
    if kind == "numeric":
        values = values[~np.isnan(values)]
        if not np.array_equal(values, np.round(values)):
            return 0
    n_distinct = len(set(values.tolist()))
    is_repeated = _FEWEST_OF_GROUP * n_distinct <= len(values)
    return n_distinct if n_distinct >= _FEWEST_GROUPS and is_repeated else 0


def _read_values(survey: Survey, place: int) -> tuple[str, NDArray[Any]]:
    """Return the kind of a column and its values in some rows of the sample."""
    data, columns = survey.unencoded, survey.inputs.columns
    if columns is None:
        values = data[:, [place]]
        values = values.toarray() if scipy.sparse.issparse(values) else values
        return "numeric", values.ravel().astype(np.float64)
    name, kind = columns[place]
    column = data.column(name)
    if kind == "category":
        return kind, np.array(category_values(column).to_pylist(), object)
    if kind == "date":
        encoder: Any = survey.encoder
        return kind, date_values(column, name, encoder.columns[place].format)
    return kind, numeric_values(column, name, 0, "the table")


def _measure_exchanges(learner: Any, survey: Survey, sources: NDArray[np.intp]) -> _Array | None:
    """Return the change of scores if a column is permuted, relative to the largest change.

    None for maps without steps or directions, and for more columns than short time allows.
    """
    n_columns, n_features = int(sources.max(initial=-1)) + 1, learner.coef_.shape[-1]
    features, of_row = learner.feature_map_, max(1, n_columns * n_features)
    has_more = len(getattr(features, "steps_", ())) or hasattr(features, "directions_")
    if not has_more or _FEWEST_EXCHANGED * of_row > _MOST_EXCHANGED_FEATURES:
        return None
    n_rows = int(np.clip(_EXCHANGED_FEATURES // of_row, _FEWEST_EXCHANGED, _MOST_ROWS))
    rows = survey.sample[: 2 * n_rows]
    rows = rows.toarray() if scipy.sparse.issparse(rows) else np.array(rows)
    X, others = rows[: len(rows) // 2], rows[len(rows) // 2 :][: len(rows) // 2]
    score = getattr(learner, "decision_function", learner.predict)
    before, changes = score(X), np.zeros(n_columns)
    for place in range(n_columns):
        columns = np.flatnonzero(sources == place)
        exchanged = X.copy()
        exchanged[:, columns] = others[:, columns]
        changes[place] = np.sqrt(np.mean(np.square(score(exchanged) - before), dtype=np.float64))
    largest = changes.max(initial=0.0)
    return changes / largest if largest > 0 else changes


def _list_sources(survey: Survey) -> tuple[list[str], NDArray[np.intp]]:
    """Return the names of the table columns, and the table column of each encoded column."""
    encoder = survey.encoder
    if isinstance(encoder, ColumnEncoder):
        names = [each.name for each in encoder.columns]
        return names, np.repeat(np.arange(len(names)), [each.n_columns for each in encoder.columns])
    names = _name_matrix_columns(survey.inputs, encoder.n_inputs)
    return names, np.arange(len(names))


def _name_matrix_columns(inputs: Inputs, n_inputs: int) -> list[str]:
    """Return the positions of columns in the file, which may also contain other columns."""
    if inputs.zero_based is not None:
        first = 0 if inputs.zero_based else 1
        return [str(place) for place in range(first, first + n_inputs)]
    left_out = {*inputs.dropped, inputs.target}
    places = [place for place in range(n_inputs + len(left_out)) if place not in left_out]
    return [str(place) for place in places[:n_inputs]]


def measure_partial_dependence(
    learner: Any, survey: Survey, relevance: list[ColumnRelevance]
) -> list[PartialDependence]:
    """Compute how predictions change with the most relevant columns, one at a time.

    For each of some values of a column, all rows of a sample get this value, are transformed and
    predicted, and the predictions are averaged.

    Parameters
    ----------
    learner : KernelClassifier or KernelRegressor
        Fitted.
    survey : Survey
    relevance : list of ColumnRelevance
        As `rank_columns` returns them.

    Returns
    -------
    list of PartialDependence
        The results for at most six columns.
    """
    if survey.encoder.rows is not None:  # the value of one column then changes all scaled columns
        return []
    is_costly = getattr(learner.feature_map_, "_is_costly", False)
    most = (_KERNEL_VALUES if is_costly else _FEATURES) // learner.coef_.shape[-1]
    n_rows = int(np.clip(most, _FEWEST_ROWS, _MOST_ROWS))
    X = survey.sample[:n_rows]
    X = X.toarray() if scipy.sparse.issparse(X) else np.array(X)
    outputs = _Outputs(learner, survey)
    names, sources = _list_sources(survey)
    found = []
    for each in relevance[:_MOST_DEPENDENCES]:
        if each.relevance < _LEAST_RELEVANCE:
            break
        place = names.index(each.name)
        kind, values, rows = _choose_values(survey, place)
        if len(values) < 2:
            continue
        columns = np.flatnonzero(sources == place)
        replaced = X.copy()
        means = []
        for row in rows:
            encoded = survey.sample[[row]]
            encoded = encoded.toarray() if scipy.sparse.issparse(encoded) else encoded
            replaced[:, columns] = encoded[0, columns]
            means.append(outputs.means(replaced))
        curves = [[_round(value, 6) for value in curve] for curve in np.transpose(means)]
        found.append(
            PartialDependence(
                each.name, kind, values, outputs.quantity, outputs.names, curves, len(X)
            )
        )
    return found


class _Outputs:
    """The averaged outputs: the prediction, or the probabilities of several classes."""

    def __init__(self, learner: Any, survey: Survey) -> None:
        self._learner = learner
        self._has_probabilities = getattr(learner, "loss", "") == "log_loss"
        classes = survey.reader.classes
        if classes is None:
            self.quantity = "prediction"
            self.names = [str(survey.inputs.target)]
            return
        self.quantity = "probability" if self._has_probabilities else "share"
        n_classes = len(classes)
        counts = np.bincount(survey.sample_target, minlength=n_classes)
        frequent = np.sort(np.argsort(-counts, kind="stable")[:_MOST_CLASSES])
        self._shown = np.array([1]) if n_classes == 2 else frequent
        names = class_names(classes) or []
        self.names = [names[place] for place in self._shown]

    def means(self, X: NDArray[Any]) -> _Array:
        """Return the mean of each output over these rows."""
        if self.quantity == "prediction":
            return np.atleast_1d(np.mean(self._learner.predict(X), dtype=np.float64))
        if self._has_probabilities:
            shares = self._learner.predict_proba(X)[:, self._shown]
        else:
            shares = self._learner.predict(X)[:, None] == self._learner.classes_[self._shown]
        return np.asarray(shares.mean(axis=0, dtype=np.float64))


def _choose_values(survey: Survey, place: int) -> tuple[str, list[float | str], NDArray[np.intp]]:
    """Return the kind of a column, some of its values, and a sample row with each value."""
    kind, found = _read_values(survey, place)
    if kind == "category":
        return "category", *_frequent_strings(found.tolist())
    values, rows = _quantiles(found)
    if kind == "date":
        encoder: Any = survey.encoder
        format_ = encoder.columns[place].format
        return "category", [format_seconds(float(each), format_) for each in values], rows
    return "numeric", values, rows


def _frequent_strings(strings: list[str | None]) -> tuple[list[float | str], NDArray[np.intp]]:
    rows: dict[str, list[int]] = {}
    for row, string in enumerate(strings):
        if string is not None:
            rows.setdefault(string, []).append(row)
    chosen = sorted(rows, key=lambda each: (-len(rows[each]), each))[:_MOST_VALUES]
    return [*chosen], np.array([rows[each][0] for each in chosen], np.intp)


def _quantiles(numbers: _Array) -> tuple[list[float | str], NDArray[np.intp]]:
    """Return all values if they are few, else quantiles (2.5 % to 97.5 %) and a common value."""
    present = np.flatnonzero(~np.isnan(numbers))
    _, first, counts = np.unique(numbers[present], return_index=True, return_counts=True)
    distinct = present[first]
    rows = distinct
    if len(distinct) > _MOST_VALUES:
        ascending = present[np.argsort(numbers[present], kind="stable")]
        rows = _spread_evenly(ascending)
        rows = rows[np.unique(numbers[rows], return_index=True)[1]]
        if len(rows) < _MOST_VALUES // 2:  # most rows have the same few values
            rows = _spread_evenly(distinct)
        if _MOST_VALUES * counts.max() >= len(present):
            rows = np.append(rows, distinct[np.argmax(counts)])
            rows = rows[np.unique(numbers[rows], return_index=True)[1]]
    return [float(number) for number in numbers[rows]], rows


def _spread_evenly(rows: NDArray[np.intp]) -> NDArray[np.intp]:
    shares = (np.arange(_MOST_VALUES) + 0.5) / _MOST_VALUES
    return rows[(shares * len(rows)).astype(np.intp)]


def _round(value: float, digits: int = 4) -> float:
    """Round to significant digits, which keeps model files and JSON small."""
    return float(f"{value:.{digits}g}")
