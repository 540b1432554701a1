"""Tuning on a sample of the rows: kernel, map, length scales, penalty and number of features.

Length scales of columns are learned by evidence (`kernelmill.learners.length_scales`), for each
kernel that is considered. Ridge regression then compares the kernels by leave-one-out errors of
rows that no length scale was learned from; for classification, on the signs of the classes. This
takes a fraction of the time of another loss. Up to 20,000 rows, and in regression as long as the
budget allows some thousands of landmarks, the features are those of `Nystroem`; with all rows as
landmarks, which few rows are worth, that is the exact kernel machine. For a classifier, penalty and
bandwidth are then refined with its own loss. docs/decisions/014, 018, 021 and 023 have the
measurements.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import FunctionTransformer

from kernelmill.kernels import resolve
from kernelmill.learners import DEFAULT_C, KernelClassifier, default_epochs
from kernelmill.learners.classifier import KEPT_BYTES
from kernelmill.learners.length_scales import (
    MOST_COLUMNS,
    LearnedScales,
    learn_length_scales,
    leave_one_out_errors,
)
from kernelmill.maps.registry import map_name
from kernelmill.random import Stream
from kernelmill.runtime.progress import Progress
from kernelmill.runtime.threads import get_num_threads, one_blas_thread
from kernelmill.workflows.map_choice import AUTO, MapChoice
from kernelmill.workflows.records import TuningPoint
from kernelmill.workflows.tuning_memory import TuningMemory

__all__ = ["Sample", "TunedSettings", "default_components", "tune_settings"]

_Array = NDArray[np.float64]

_TUNING_COMPONENTS = 1024
_MOST_LEARNING_ROWS = 2500
_MOST_COMPARING_ROWS = 5000
_MOST_JUDGED_ROWS = 2500
_FEW_ROWS = 20_000  # up to which random features are not considered
_MANY_LANDMARKS = 3072  # with which they beat random features for more rows
_MOST_LANDMARK_COLUMNS = 1024
_FACTORS = 2.0 ** np.array([0.5, -0.5])  # of the bandwidth
_LINEAR_WEIGHTS = (1.0, 10.0, 100.0)  # of a linear kernel beside one of variance 1
_MOST_STEPS = 6
_WARM_EVALUATIONS = 20
_SCALING_COMPONENTS = 1536
_REFINING_COMPONENTS = 2048
_USUAL_BUDGET = 60.0
_REFINING_ROWS = 8000  # for Nyström features, whose cost is O(D²) for each
_ROWS_TO_SEE = 40_000
_NEAR, _FAR = 1.1, 1.5  # times the smallest loss: worth a closer look, or not worth another
_MOST_FOLDED_ROWS = 300  # up to which a classifier is refined by cross-validation
_SECONDS_OF_FEATURE = 3e-9  # of one row, in a classifier
_WORTH_IT = 0.995  # a weaker penalty must lower the loss by at least half a percent
_WORTH_FEATURES = 0.002  # twice as many features must lower the squared error by at least that
# Landmarks are exact but for 1e-6 (`Nystroem`): a smaller ridge would fit that.
_LEAST_RIDGE = {"nystroem": 1e-4}
# What another doubling gains, of the gain before it: errors of random features fall as 1/D, those
# of landmarks more slowly where the kernel is rough.
_LEFT_TO_GAIN = {"nystroem": 0.7}


@dataclass(frozen=True)
class TunedSettings:
    """The best settings, and all settings that were tried.

    Attributes
    ----------
    choice : MapChoice
        With the kernel that was chosen.
    length_scale : float, ndarray of shape (n_inputs,), or None
    alpha : float
    n_components : int
    points : list of TuningPoint
    notes : list of str
    """

    choice: MapChoice
    length_scale: Any
    alpha: float
    n_components: int
    points: list[TuningPoint]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sample:
    """Rows in random order. The first ones are learned from; those from `n_train` on validate."""

    X: Any
    Y: _Array  # signs of classes, or values
    codes: NDArray[Any] | None  # of classes
    n_train: int
    weight: _Array | None = None  # of the rows

    @classmethod
    def of(
        cls, X: Any, target: NDArray[Any], n_classes: int | None, weight: _Array | None = None
    ) -> Sample:
        """A sample of which the last quarter validates."""
        n_train = max(1, (3 * len(target)) // 4)
        if n_classes is None:
            return cls(X, np.asarray(target, np.float64)[:, None], None, n_train, weight)
        signs = np.where(target[:, None] == np.arange(n_classes), 1.0, -1.0)
        return cls(X, signs[:, 1:] if n_classes == 2 else signs, target, n_train, weight)

    def weights_of(self, rows: Any) -> _Array | None:
        """The weights of some rows, with mean 1."""
        if self.weight is None:
            return None
        found = self.weight[rows]
        mean = float(found.mean()) if len(found) else 1.0
        return found / mean if mean > 0 else np.ones(len(found))


@dataclass(frozen=True)
class _Candidate:
    """A kernel and length scales, with their error and the ridge that has it."""

    choice: MapChoice
    length_scale: Any
    error: float = math.inf
    ridge: float = 0.1
    tried: tuple[TuningPoint, ...] = ()

    @property
    def is_per_column(self) -> bool:
        return isinstance(self.length_scale, np.ndarray)


def tune_settings(
    choice: MapChoice,
    X: Any,
    target: NDArray[Any],
    *,
    n_classes: int | None,
    n_components: int | None,
    length_scale: Any = None,
    alpha: float | None = None,
    loss: str = "log_loss",
    n_rows: int,
    in_memory: bool = True,
    seed: int,
    n_threads: int | None = None,
    progress: Progress,
    groups: NDArray[Any] | None = None,
    column_scales: bool = True,
    budget: float = 60.0,
    sample_weight: _Array | None = None,
    memory: TuningMemory | None = None,
) -> TunedSettings:
    """Choose what is not given: kernel, map, length scales, penalty, number of features.

    Parameters
    ----------
    choice : MapChoice
    X, target
        The sample, in random order.
    n_classes : int or None
        None for regression.
    n_components : int or None
        None to choose it within the budget.
    length_scale, alpha : optional
        Given values are kept.
    n_rows : int
        The number of rows the model will be trained on: the penalty of a classifier is per row.
    in_memory : bool, default=True
        Whether these rows are in memory, so that landmarks can be drawn from all of them.
    groups : ndarray of int, optional
        Columns with the same number share a length scale.
    column_scales : bool, default=True
        Whether to learn a length scale for each column.
    budget : float
        As in `fit_table`.
    sample_weight : ndarray, optional
        The weights of the rows of the sample, in training and in validation.
    memory : TuningMemory, optional
        The results of steps, some of which an earlier run may have computed.
    """
    memory = TuningMemory() if memory is None else memory
    sample = Sample.of(X, target, n_classes, sample_weight)
    points: list[TuningPoint] = []
    notes: list[str] = []
    is_free = length_scale is None and choice.has_length_scale
    if is_free and in_memory:
        choice = _map_of_auto(choice, X, n_rows, n_classes, budget)
    search = _Search(choice, sample, seed, n_threads, points, progress, memory)
    progress.start(
        "Tuning",
        _expect_steps(
            len(choice.candidates(X.shape[1])) if is_free else 0,
            learns=column_scales,
            chooses_size=n_components is None,
            refines=n_classes is not None,
        ),
        "steps",
    )
    if is_free:
        best = search.best_candidate(groups, learns=column_scales, notes=notes)
        if n_classes is None:  # a classifier has a loss of its own for this
            best = search.best_bandwidth(best)
    else:
        best = _Candidate(choice.candidates(X.shape[1])[0], length_scale)
        if n_components is None or (alpha is None and n_classes is None):
            best = search.measure(best)
    if n_components is None:
        n_components = search.enough_components(best, n_classes, n_rows, budget)
    ridge = best.ridge if alpha is None else alpha
    settings = TunedSettings(best.choice, best.length_scale, ridge, n_components, points)
    if n_classes is not None:
        refine = partial(
            _Refinement,
            sample=sample,
            n_components=n_components,
            loss=loss,
            seed=seed,
            n_threads=n_threads,
            n_rows=n_rows,
            budget=budget,
            points=points,
            progress=progress,
            memory=memory,
        )
        chosen = best.choice
        fixed_C = None if alpha is None else 1 / max(alpha * n_rows, 1e-300)
        found = refine(chosen).best(best.length_scale, fixed_C, search_length_scale=is_free)
        if alpha is None and search.shared_scale is not None and _takes_line(chosen):
            linear = replace(chosen, options={"linear": _LINEAR_WEIGHTS[-1]})
            other = refine(linear).best_line(search.shared_scale, found.loss)
            if other.unseen_loss < found.unseen_loss:
                chosen, found = linear, other
                notes[:] = [
                    "The kernel is nearly linear, with one length scale for all columns: that has "
                    "the smallest loss on validation rows."
                ]
        if alpha is None:
            found = refine(chosen).best_at_size(found, n_components, budget)
        penalty = 1 / (found.C * n_rows) if alpha is None else alpha
        settings = replace(settings, choice=chosen, length_scale=found.length_scale, alpha=penalty)
    return replace(settings, notes=tuple(notes))


# What the steps of a search take, in units of the shortest; the time left is estimated from them.
_FIRST_SEARCH, _NEXT_SEARCH, _LOSS = 8, 4, 2
_USUAL_BANDWIDTHS, _USUAL_LOSSES = 4, 10


def _expect_steps(n_kernels: int, *, learns: bool, chooses_size: bool, refines: bool) -> int:
    """About how many units of work a tuning takes; searches may end earlier or later."""
    steps = 0
    if n_kernels:
        steps += _FIRST_SEARCH + (n_kernels - 1) * _NEXT_SEARCH + n_kernels + learns
        steps += 0 if refines else _USUAL_BANDWIDTHS
    elif chooses_size or not refines:
        steps += 1
    return steps + 2 * chooses_size + _LOSS * _USUAL_LOSSES * refines


def _map_of_auto(
    choice: MapChoice, X: Any, n_rows: int, n_classes: int | None, budget: float
) -> MapChoice:
    """Return what "auto" stands for: landmarks for few rows, otherwise random features.

    For more rows, landmarks pay in regression if the budget allows some thousands of them.
    """
    is_auto = choice.feature_map == AUTO and not choice.options
    fits = isinstance(X, np.ndarray) and X.shape[1] <= _MOST_LANDMARK_COLUMNS
    is_few = n_rows <= _FEW_ROWS or (
        n_classes is None and not _is_over("nystroem", _MANY_LANDMARKS, n_rows, None, budget / 2)
    )
    if is_auto and fits and is_few:
        return replace(choice, feature_map="nystroem")
    return choice


def _takes_line(choice: MapChoice) -> bool:
    """Whether a linear kernel may be added: to landmarks, unless the user has set options."""
    return choice.name == "nystroem" and set(choice.options) <= {"linear"}


class _Search:
    """Search over kernels and length scales by ridge regression."""

    def __init__(
        self,
        choice: MapChoice,
        sample: Sample,
        seed: int,
        n_threads: int | None,
        points: list[TuningPoint],
        progress: Progress,
        memory: TuningMemory,
    ) -> None:
        self._choice = choice
        self._sample = sample
        self._memory = memory
        self._seed = seed
        self._n_threads = n_threads
        self._points = points
        self._progress = progress
        self.shared_scale: float | None = None  # of the best kernel, once it is known
        self._n_learning = min(_MOST_LEARNING_ROWS, sample.n_train)
        # A few hundred rows do not tell more features apart.
        few = 1 << math.ceil(math.log2(max(len(sample.Y) / 2, 128)))
        self._n_components = min(_TUNING_COMPONENTS, few)

    def best_candidate(
        self, groups: NDArray[Any] | None, *, learns: bool, notes: list[str]
    ) -> _Candidate:
        """The best kernel, with one length scale or with one for each group of columns."""
        dim = self._sample.X.shape[1]
        learns = learns and 1 < dim <= MOST_COLUMNS
        choices = self._choice.candidates(dim)
        learned = self._learn(choices[:1], groups, learns, None)
        learned += self._learn(choices[1:], groups, learns, learned[0])
        candidates = []
        for choice, scales in zip(choices, learned, strict=True):
            found = scales.length_scale if learns else scales.isotropic
            candidates.append(_Candidate(choice, found, ridge=scales.alpha))
        measured = self._in_threads(self._measure, candidates)
        for each in measured:
            self._points.extend(each.tried)
        place = min(range(len(measured)), key=lambda each: measured[each].error)
        best: _Candidate = measured[place]
        self.shared_scale = learned[place].isotropic
        if learns:
            shared = replace(best, length_scale=self.shared_scale)
            best = self._better_scales(best, self.measure(shared), notes)
        return self._with_line(best, notes)

    def _better_scales(self, best: _Candidate, shared: _Candidate, notes: list[str]) -> _Candidate:
        """Length scales of columns if they lower the error, otherwise the shared one."""
        if best.error < shared.error:
            gain = 100 * (1 - best.error / shared.error)
            notes.append(
                "Learned a length scale for each column: the squared error of validation rows "
                f"is {gain:.2g} % lower than with one for all columns."
            )
            return best
        notes.append(
            "One length scale for all columns: learned ones did not lower the error of "
            "validation rows."
        )
        return shared

    def _with_line(self, best: _Candidate, notes: list[str]) -> _Candidate:
        """The kernel plus a linear one, with ten times the weight as long as the error falls.

        A table that is linear but for noise is then learned as well as by a linear model.
        """
        if not _takes_line(best.choice):
            return best
        for weight in _LINEAR_WEIGHTS:
            choice = replace(best.choice, options={"linear": weight})
            changed = self.measure(replace(best, choice=choice))
            if changed.error >= best.error:
                break
            best = changed
        if best.choice.options:
            notes.append("Added a linear kernel, which lowers the error of validation rows.")
        return best

    def _learn(
        self,
        choices: list[MapChoice],
        groups: NDArray[Any] | None,
        learns: bool,
        start: LearnedScales | None,
    ) -> list[LearnedScales]:
        sample, n = self._sample, self._n_learning

        def learn(choice: MapChoice) -> LearnedScales:
            kernel = resolve(choice.kernel_name)
            stream = Stream.from_seed(self._seed).substream("length scales", str(kernel))
            learned = self._memory.recall_scales(
                ("length scales", choice, start),
                lambda: learn_length_scales(
                    kernel,
                    sample.X[:n],
                    sample.Y[:n],
                    groups=groups if learns else np.zeros(sample.X.shape[1], np.int64),
                    stream=stream,
                    n_frequencies=int(np.clip(n // 8, 32, 256)),
                    start=start if learns else None,
                    sample_weight=sample.weights_of(slice(n)),
                    max_evaluations=(40 if start is None else _WARM_EVALUATIONS) if learns else 1,
                ),
            )
            self._progress.advance(_FIRST_SEARCH if start is None else _NEXT_SEARCH)
            return learned

        return self._in_threads(learn, choices)

    def _in_threads(self, work: Callable[[Any], Any], items: list[Any]) -> list[Any]:
        """Results in the order of the items; BLAS has one thread in each."""
        workers = min(len(items), self._n_threads or get_num_threads())
        with one_blas_thread():
            if workers <= 1:
                return [work(item) for item in items]
            with ThreadPoolExecutor(workers) as pool:
                return list(pool.map(work, items))

    def measure(self, candidate: _Candidate, n_components: int | None = None) -> _Candidate:
        """The candidate with its smallest error and the ridge that has it, recorded."""
        measured = self._measure(candidate, n_components)
        self._points.extend(measured.tried)
        return measured

    def _measure(self, candidate: _Candidate, n_components: int | None = None) -> _Candidate:
        size = n_components or self._n_components
        found = self._memory.recall(
            ("errors", candidate.choice, candidate.length_scale, candidate.ridge, size),
            lambda: list(self._errors(candidate, size).items()),
        )
        errors: dict[float, float] = dict(found)
        best = min(errors, key=lambda ridge: errors[ridge])
        typical = _typical(candidate.length_scale)
        tried = tuple(
            TuningPoint(
                typical,
                ridge,
                error,
                kernel=candidate.choice.kernel_name,
                per_column=candidate.is_per_column,
                n_components=size,
            )
            for ridge, error in errors.items()
            if math.isfinite(error)
        )
        self._progress.advance(1)
        return replace(candidate, error=errors[best], ridge=best, tried=tried)

    def _errors(self, candidate: _Candidate, size: int) -> dict[float, float]:
        """Leave-one-out errors, by ridge."""
        # The rows whose errors count come last: no length scale was learned from them.
        total, n_learning = len(self._sample.Y), self._n_learning
        n_rows = min(total, _MOST_COMPARING_ROWS)
        others = np.arange(total - n_rows + n_learning, total)
        kept = np.concatenate([np.arange(n_learning), others])
        X, Y = self._sample.X[kept], self._sample.Y[kept]
        first = max(n_learning, n_rows - _MOST_JUDGED_ROWS) if others.size else 0
        fitted = candidate.choice.make(candidate.length_scale, size, self._seed, 1).fit(X)
        least = _LEAST_RIDGE.get(candidate.choice.name, 1e-8)
        start = max(candidate.ridge, least)
        weights = self._sample.weights_of(kept)
        return leave_one_out_errors(
            fitted, X, Y, first, start=start, least=least, sample_weight=weights
        )

    def best_bandwidth(self, best: _Candidate) -> _Candidate:
        """All length scales times a common factor: more rows and features need shorter ones."""
        size = min(_SCALING_COMPONENTS, max(self._n_components, len(self._sample.Y)))
        best = self.measure(best, size)
        for factor in _FACTORS:
            for _ in range(_MOST_STEPS):
                changed = replace(best, length_scale=best.length_scale * float(factor))
                changed = self.measure(changed, size)
                if changed.error >= best.error:
                    break
                best = changed
            else:
                break
        return best

    def enough_components(
        self, best: _Candidate, n_classes: int | None, n_rows: int, budget: float
    ) -> int:
        """The number of features beyond which more do not pay, or do not fit in the budget."""
        task = "regression" if n_classes is None else "classification"
        name = best.choice.name
        most = min(int(_MOST_COMPONENTS[name == "nystroem", task] * _extent(budget)), 4 * n_rows)
        least = default_components(task)
        if name == "nystroem":
            most, least = min(most, n_rows), min(2048, n_rows)
        gain = 0.0
        if least < most:
            half, full = self.measure(best, self._n_components // 2), self.measure(best)
            gain = 1 - full.error / half.error if half.error > 0 else 0.0
        size = self._n_components
        while size < least or (gain >= _WORTH_FEATURES and size < most):
            next_size = min(2 * size, most)
            while next_size > size and _is_over(name, next_size, n_rows, n_classes, budget / 2):
                next_size -= 256
            if next_size <= size:
                break
            size = next_size
            gain *= _LEFT_TO_GAIN.get(name, 0.5)
        while size > 1024 and _is_over(name, size, n_rows, n_classes, budget):
            size //= 2
        return max(1, min(size, n_rows) if name == "nystroem" else size)


_MOST_COMPONENTS = {  # by whether they are landmarks, and by the task
    (False, "classification"): 16384,
    (False, "regression"): 8192,
    (True, "classification"): 6144,
    (True, "regression"): 6144,
}


def _extent(budget: float) -> float:
    """How much larger models may be than with the default budget: up to four times."""
    return float(np.clip(budget / _USUAL_BUDGET, 1.0, 4.0))


def default_components(task: str) -> int:
    """The least number of random features that a model has if none is given."""
    return {"classification": 4096, "regression": 2048}[task]


def _is_over(
    name: str, n_components: int, n_rows: int, n_classes: int | None, seconds: float
) -> bool:
    return estimate_seconds(n_components, n_rows, n_classes, name) > seconds


def estimate_seconds(
    n_components: int, n_rows: int, n_classes: int | None, name: str = "fastfood"
) -> float:
    """The time of training on two cores of a usual machine.

    A model must not depend on how busy a machine is, so no clock is read.
    """
    D, n = n_components, n_rows
    whitening = 1.2e-11 * n * D**2 + 3e-11 * D**3 if name == "nystroem" else 0.0
    if n_classes is None:
        return whitening + 2.5e-11 * n * D**2 + 6e-11 * D**3
    outputs = 1 if n_classes == 2 else n_classes
    epochs = default_epochs(n)
    if name != "nystroem":
        return (2e-9 + 2e-10 * outputs) * epochs * n * D
    passes = 1 if 4 * n * D <= KEPT_BYTES else epochs
    return passes * whitening + 2e-10 * outputs * epochs * n * D


def _typical(length_scale: Any) -> float:
    if length_scale is None:
        return 0.0
    scales = np.asarray(length_scale, np.float64)
    return float(np.exp(np.log(scales[np.isfinite(scales)]).mean()))


class _Fold:
    """Rows to train on, and others to validate with."""

    def __init__(self, sample: Sample, out: slice, most_rows: int) -> None:
        assert sample.codes is not None
        is_out = np.zeros(len(sample.codes), bool)
        is_out[out] = True
        training = np.flatnonzero(~is_out)[:most_rows]
        self.X, self.codes = sample.X[training], sample.codes[training]
        self.weights = sample.weights_of(training)
        known = np.flatnonzero(is_out & np.isin(sample.codes, self.codes))
        self.validation_X, self.validation_codes = sample.X[known], sample.codes[known]
        self.validation_weights = sample.weights_of(known)
        self._features: tuple[Any, Any, Any] | None = None

    @property
    def is_useful(self) -> bool:
        return len(np.unique(self.codes)) > 1 and len(self.validation_codes) > 0

    def map_rows(self, feature_map: Any) -> tuple[Any, Any, Any]:
        """A map, and the rows to train on and to validate with.

        Nyström features are computed once for all penalties, since they take long.
        """
        if map_name(feature_map) != "nystroem":
            return feature_map, self.X, self.validation_X
        scale = feature_map.length_scale  # a refinement has one kernel
        if self._features is None or not np.array_equal(self._features[0], scale):
            feature_map.fit(self.X)
            features = feature_map.transform(self.X), feature_map.transform(self.validation_X)
            self._features = (scale, *features)
        return FunctionTransformer(), *self._features[1:]


class _Refined(NamedTuple):
    """The best settings, their loss, and that of rows which no length scale was learned from."""

    length_scale: Any
    C: float
    loss: float = math.inf
    unseen_loss: float = math.inf


class _Refinement:
    """Search around a bandwidth with the loss and the solver of the model.

    Ridge regression on few rows finds length scales that suit few rows: more rows, and other
    penalties, need shorter ones. Of few rows each quarter validates in turn: the last one alone
    would leave the choice to chance.
    """

    def __init__(
        self,
        choice: MapChoice,
        sample: Sample,
        *,
        n_components: int,
        loss: str,
        seed: int,
        n_threads: int | None,
        n_rows: int,
        budget: float,
        points: list[TuningPoint],
        progress: Progress,
        memory: TuningMemory,
    ) -> None:
        self._choice = choice
        self._memory = memory
        self._n_rows = n_rows
        self._n_components = min(n_components, int(_REFINING_COMPONENTS * _extent(budget)))
        self._loss, self._seed, self._n_threads = loss, seed, n_threads
        self._points, self._progress = points, progress
        total = len(sample.Y)
        begins = [(total * quarter) // 4 for quarter in range(4)]
        outs = [slice(begin, end) for begin, end in pairwise([*begins, total])]
        if total > _MOST_FOLDED_ROWS:
            outs = [slice(sample.n_train, total)]
        most = _REFINING_ROWS if choice.name == "nystroem" else total
        folds = [_Fold(sample, out, most) for out in outs]
        self._folds = [fold for fold in folds if fold.is_useful]
        self._losses: dict[tuple[float, float], list[float]] = {}  # the last rows are unseen

    def best(
        self, length_scale: Any, fixed_C: float | None, *, search_length_scale: bool
    ) -> _Refined:
        """The length scale and C = 1 / (alpha n) with the smallest loss on the validation rows."""
        if not self._folds:
            return _Refined(length_scale, fixed_C or DEFAULT_C)
        self._length_scale = length_scale
        C = fixed_C or self._better_C(1.0, DEFAULT_C, steps=(10.0, 0.1))
        factor = 1.0
        if length_scale is not None and search_length_scale:
            step = 2**-0.5
            if self._loss_at(factor * step, C) >= self._loss_at(factor, C):
                step = 2**0.5
            for _ in range(_MOST_STEPS):
                if self._loss_at(factor * step, C) >= self._loss_at(factor, C):
                    break
                factor *= step
        if fixed_C is None:
            C = self._better_C(factor, C, steps=(10**0.5, 10**-0.5))
        scaled = None if length_scale is None else length_scale * factor
        return _Refined(scaled, C, self._loss_at(factor, C), self._losses[factor, C][-1])

    def best_line(self, length_scale: float, to_beat: float) -> _Refined:
        """The best C of a kernel that is linear for the most part, if it is near the other loss.

        Squared errors, by which kernels are compared, do not show that a line separates classes.
        """
        if not self._folds:
            return _Refined(length_scale, DEFAULT_C)
        self._length_scale = length_scale
        C = DEFAULT_C / _LINEAR_WEIGHTS[-1]
        if self._loss_at(1.0, C) < _FAR * to_beat:
            C = self._better_C(1.0, C, steps=(10.0, 0.1))
        if self._loss_at(1.0, C) < _NEAR * to_beat:
            C = self._better_C(1.0, C, steps=(10**0.5, 10**-0.5))
        return _Refined(length_scale, C, self._loss_at(1.0, C), self._losses[1.0, C][-1])

    def best_at_size(self, found: _Refined, n_components: int, budget: float) -> _Refined:
        """The best C for all features of the model: more of them may need another penalty.

        Fewer serve for the search before. Landmarks are left out, since they take long, and so is
        what a quarter of the budget does not allow.
        """
        seconds = 3 * len(self._folds) * _ROWS_TO_SEE * n_components * _SECONDS_OF_FEATURE
        is_larger = n_components > self._n_components
        if self._choice.name == "nystroem" or not is_larger or seconds > budget / 4:
            return found
        self._length_scale, self._n_components = found.length_scale, n_components
        C = self._better_C(1.0, found.C, steps=(10**0.5, 10**-0.5)) if self._folds else found.C
        return found._replace(C=C)

    def _better_C(self, factor: float, C: float, steps: tuple[float, ...]) -> float:
        """The best value that is reached from C by these factors, one after the other."""
        for step in steps:
            enough = _WORTH_IT if step > 1 else 1.0
            while 1e-6 < C < 1e6:
                if self._loss_at(factor, C * step) >= enough * self._loss_at(factor, C):
                    break
                C *= step
        return C

    def _loss_at(self, factor: float, C: float) -> float:
        if (factor, C) not in self._losses:
            scaled = None if self._length_scale is None else self._length_scale * factor
            step = ("loss", self._choice, scaled, C, self._n_components)
            losses = self._memory.recall(step, lambda: self._measure(scaled, C))
            criterion = "log loss" if self._loss == "log_loss" else "error"
            # As the penalty of the final model: C is the same, and alpha depends on the rows.
            self._points.append(
                TuningPoint(
                    _typical(scaled),
                    1 / (C * self._n_rows),
                    float(np.mean(losses)),
                    criterion,
                    kernel=self._choice.kernel_name,
                    per_column=isinstance(scaled, np.ndarray),
                    n_components=self._n_components,
                )
            )
            self._progress.advance(_LOSS)
            self._losses[factor, C] = losses
        return float(np.mean(self._losses[factor, C]))

    def _measure(self, length_scale: Any, C: float) -> list[float]:
        return [self._measure_fold(fold, length_scale, C) for fold in self._folds]

    def _measure_fold(self, fold: _Fold, length_scale: Any, C: float) -> float:
        n = len(fold.codes)
        feature_map, X, validation_X = fold.map_rows(
            self._choice.make(length_scale, self._n_components, self._seed, self._n_threads)
        )
        learner = KernelClassifier(
            feature_map,
            loss=self._loss,
            alpha=1 / (C * n),
            epochs=int(np.clip(-(-_ROWS_TO_SEE // n), 2, 100 if len(self._folds) == 1 else 40)),
            random_state=self._seed,
            n_threads=self._n_threads,
        )
        learner.fit(X, fold.codes, sample_weight=fold.weights)
        codes, weights = fold.validation_codes, fold.validation_weights
        return _held_out_loss(learner, validation_X, codes, weights)


def _held_out_loss(
    learner: KernelClassifier, X: Any, codes: NDArray[Any], weights: _Array | None
) -> float:
    if learner.loss == "log_loss":
        places = np.searchsorted(learner.classes_, codes)
        logarithms = learner.predict_log_proba(X)
        return float(-np.average(logarithms[np.arange(len(codes)), places], weights=weights))
    return float(np.average(learner.predict(X) != codes, weights=weights))
