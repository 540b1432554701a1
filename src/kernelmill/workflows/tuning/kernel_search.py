"""Search for a kernel, length scales and a number of features, by ridge regression on a sample.

For each kernel that is considered, length scales of columns are learned by maximizing the evidence
(`kernelmill.learners.tuning.length_scales`). Ridge regression then compares the kernels by
leave-one-out errors on rows that were not used to learn length scales; classes are regressed as
signs. This takes a fraction of the time of other losses.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.formatting import plain
from kernelmill.kernels import resolve
from kernelmill.learners.tuning.copies import merge_copies
from kernelmill.learners.tuning.length_scales import (
    MOST_COLUMNS,
    LearnedScales,
    learn_length_scales,
    leave_one_out,
    walk_ridges,
)
from kernelmill.maps.principal_fourier import principal_directions
from kernelmill.random import Stream
from kernelmill.random.row_hashes import Keys
from kernelmill.runtime.progress import Progress
from kernelmill.runtime.threads import get_num_threads, one_blas_thread
from kernelmill.workflows.records import TuningPoint
from kernelmill.workflows.splits import divide_sample
from kernelmill.workflows.tuning.budget import (
    MOST_COMPONENTS,
    budget_factor,
    default_components,
    estimate_seconds,
)
from kernelmill.workflows.tuning.map_choice import (
    AUTO,
    BRIEF_KERNELS,
    DIRECTIONS,
    LINE,
    STEPS,
    MapChoice,
)
from kernelmill.workflows.tuning.memory import TuningMemory, read_number, read_size

__all__ = [
    "LEAST_RIDGE",
    "LINEAR_WEIGHTS",
    "MOST_COMPARING_ROWS",
    "MOST_FOLDED_ROWS",
    "MOST_STEPS",
    "NOTE_OF_LINE",
    "STEP_WEIGHTS",
    "Candidate",
    "KernelSearch",
    "Sample",
    "average_scales",
    "takes_directions",
    "takes_line",
    "takes_steps",
    "typical_scale",
]

_Array = NDArray[np.float64]

LINEAR_WEIGHTS = (1.0, 10.0, 100.0)
"""Weights of a linear kernel that are tried, relative to a kernel of variance 1."""
NOTE_OF_LINE = (
    "The kernel is linear, since a linear kernel has the smallest error on validation rows."
)
STEP_WEIGHTS = (1.0, 10.0)
"""Weights of step functions that are tried, relative to a kernel of variance 1."""
MOST_FOLDED_ROWS = 1000
"""The number of rows up to which each quarter validates in turn."""
MOST_STEPS = 6
"""The maximum number of steps of the bandwidth in one direction."""
FIRST_SEARCH, NEXT_SEARCH = 8, 4
"""The durations of searches in units of the shortest step, to estimate the remaining time."""

_TUNING_COMPONENTS = 1024
_MOST_LEARNING_ROWS = 2500
MOST_COMPARING_ROWS = 5000  # of leave-one-out errors
_MOST_JUDGED_ROWS = 2500
_FACTORS = 2.0 ** np.array([0.5, -0.5])  # of the bandwidth
_EVALUATIONS, _WARM_EVALUATIONS, _BRIEF_EVALUATIONS = 40, 20, 5  # of the evidence
_SCALING_COMPONENTS = 1536
_USUAL_RIDGES = 5
_ROUNDING = 1e-6  # smaller relative differences of errors are ignored
_MOST_STEPPED_COLUMNS = 256
_NUMBERS_OF_DIRECTIONS = (64, 128)
_LEAST_REDUCTION = 1.5  # of the number of columns to that of principal components
_WORTH_DIRECTIONS = 0.01  # the relative gain required of principal components
_WORTH_STEPS = 0.001  # the relative gain required of step functions
_WORTH_FEATURES = 0.002  # the relative gain required of twice as many features
# Landmarks are exact up to 1e-6 (`Nystroem`): a smaller ridge would fit these errors.
LEAST_RIDGE = {"nystroem": 1e-4}
# The gain of another doubling, relative to the previous gain: errors of random features decrease as
# 1/D, those of landmarks more slowly if the kernel is rough.
_LEFT_TO_GAIN = {"nystroem": 0.7}


@dataclass(frozen=True)
class Sample:
    """Rows in quarters, or in fewer parts if they have few keys; the last one is for validation.

    Rows with equal keys are in one part. In each part, rows are in random order.
    """

    X: Any
    Y: _Array  # signs of classes, or values
    codes: NDArray[Any] | None  # of classes
    ends: tuple[int, ...]  # of the parts
    weight: _Array | None = None  # of the rows
    keys: Keys | None = None
    in_order: bool = False  # of time: validation rows are the latest, and are left out together

    @classmethod
    def of(
        cls,
        X: Any,
        target: NDArray[Any],
        n_classes: int | None,
        weight: _Array | None = None,
        keys: Keys | None = None,
        *,
        in_order: bool = False,
    ) -> Sample:
        """Divide rows in random order; with `in_order`, keys are times."""
        codes = None if n_classes is None else target
        order, ends = divide_sample(keys, codes, len(target), in_order=in_order)
        if order is not None:
            X, target = X[order], target[order]
            weight = None if weight is None else weight[order]
            keys = None if keys is None else keys[order]
        if n_classes is None:
            Y, codes = np.asarray(target, np.float64)[:, None], None
        else:
            signs = np.where(target[:, None] == np.arange(n_classes), 1.0, -1.0)
            Y, codes = signs[:, 1:] if n_classes == 2 else signs, target
        return cls(X, Y, codes, tuple(ends), weight, keys, in_order)

    @property
    def n_train(self) -> int:
        """The number of rows before the last part."""
        return max(1, self.ends[-2])

    def quarters(self) -> list[slice]:
        """Return the validation rows of each fold: each part of few rows, or the last."""
        if self.in_order or len(self.Y) > MOST_FOLDED_ROWS:
            return [slice(self.n_train, len(self.Y))]
        return [slice(begin, end) for begin, end in pairwise([0, *self.ends])]

    def keys_of(self, rows: Any) -> Keys | None:
        """Return the keys of some rows: those with equal keys are left out together."""
        if self.keys is None:
            return None
        keys: Keys = self.keys[rows]
        return np.zeros_like(keys) if self.in_order else keys

    def weights_of(self, rows: Any) -> _Array | None:
        """Return the weights of some rows, with mean 1."""
        if self.weight is None:
            return None
        found = self.weight[rows]
        mean = float(found.mean()) if len(found) else 1.0
        return found / mean if mean > 0 else np.ones(len(found))


@dataclass(frozen=True)
class Candidate:
    """A kernel and length scales, with their error and the ridge that has it.

    If each quarter of the rows is used for validation in turn, `folds` are the length scales
    learned without it; those of the candidate were learned without the last quarter.
    """

    choice: MapChoice
    length_scale: Any
    error: float = math.inf
    ridge: float = 0.1
    tried: tuple[TuningPoint, ...] = ()
    folds: tuple[Any, ...] = ()

    def scale(self, factor: float) -> Candidate:
        """Return the candidate with all length scales times a factor."""
        folds = tuple(scale * factor for scale in self.folds)
        return replace(self, length_scale=self.length_scale * factor, folds=folds)

    @property
    def is_per_column(self) -> bool:
        """Whether each column has a length scale of its own."""
        return isinstance(self.length_scale, np.ndarray)


def takes_line(choice: MapChoice) -> bool:
    """Return whether a linear kernel may be added: only to landmarks without user options."""
    return choice.name == "nystroem" and set(choice.options) <= {"linear"}


def takes_steps(choice: MapChoice, X: Any) -> bool:
    """Return whether steps may be added: only to random features not chosen by the user."""
    is_auto = choice.feature_map == AUTO and not choice.options
    return is_auto and isinstance(X, np.ndarray) and X.shape[1] <= _MOST_STEPPED_COLUMNS


def takes_directions(choice: MapChoice, X: Any) -> bool:
    """Return whether principal components may be tried: random features and many columns only."""
    is_auto = choice.feature_map == AUTO and not choice.options
    is_radial = is_auto and resolve(choice.kernel_name).radial
    fewest = _LEAST_REDUCTION * _NUMBERS_OF_DIRECTIONS[0]
    return is_radial and isinstance(X, np.ndarray) and X.shape[1] >= fewest


class KernelSearch:
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
        # A few hundred rows cannot distinguish more features.
        few = 1 << math.ceil(math.log2(max(len(sample.Y) / 2, 128)))
        self._n_components = min(_TUNING_COMPONENTS, few)

    def best_candidate(
        self, groups: NDArray[Any] | None, *, learns: bool, steps: bool, notes: list[str]
    ) -> Candidate:
        """Return the best kernel, with one length scale or with one for each group of columns."""
        dim = self._sample.X.shape[1]
        learns = learns and 1 < dim <= MOST_COLUMNS
        choices = self._choice.candidates(dim)
        rows = np.arange(self._n_learning)
        learned = self._learn(choices[:1], groups, learns, None, rows)
        learned += self._learn(choices[1:], groups, learns, learned[0], rows)
        candidates = []
        for choice, scales in zip(choices, learned, strict=True):
            found = scales.length_scale if learns else scales.isotropic
            candidates.append(Candidate(choice, found, ridge=scales.alpha))
        measured = self._measure_all(candidates)
        place = min(range(len(measured)), key=lambda each: measured[each].error)
        best: Candidate = measured[place]
        self.shared_scale = learned[place].isotropic
        if learns:
            shared = replace(best, length_scale=self.shared_scale)
            best = self._better_scales(best, self.measure(shared), notes)
        best = self._with_line(best, notes)
        if not steps:
            return best
        changed = [self._with_steps(best), self._with_directions(best)]
        chosen, note = min(changed, key=lambda each: each[0].error)
        if chosen.choice.feature_map == DIRECTIONS:
            notes.clear()  # about length scales of columns
        notes.extend([note] if note else [])
        return chosen

    def _better_scales(self, best: Candidate, shared: Candidate, notes: list[str]) -> Candidate:
        """Return length scales of columns if they lower the error, otherwise the shared one."""
        if best.error < (1 - _ROUNDING) * shared.error:
            gain = 100 * (1 - best.error / shared.error)
            notes.append(
                "Learned a length scale for each column: the squared error on validation rows "
                f"is {plain.number(gain, 2)} % lower than with one length scale for all columns."
            )
            return best
        notes.append(
            "All columns have the same length scale: learning one for each column did not lower "
            "the error on validation rows."
        )
        return shared

    def _with_line(self, best: Candidate, notes: list[str]) -> Candidate:
        """Return the kernel plus a linear kernel; its weight grows while the error decreases.

        A table that is linear but for noise is then learned as well as by a linear model.
        """
        if not takes_line(best.choice):
            return best
        for weight in LINEAR_WEIGHTS:
            choice = replace(best.choice, options={"linear": weight})
            changed = self.measure(replace(best, choice=choice))
            if changed.error >= best.error:
                break
            best = changed
        if best.choice.options:
            notes.append("Added a linear kernel, which lowers the error on validation rows.")
        return best

    def _with_steps(self, best: Candidate) -> tuple[Candidate, str]:
        """Return the kernel plus step functions of single columns if the error is lower.

        A smooth kernel blurs the thresholds that columns of people's tables often have.
        """
        if not takes_steps(best.choice, self._sample.X):
            return best, ""
        choices = [
            replace(best.choice, feature_map=STEPS, options={"weight": weight})
            for weight in STEP_WEIGHTS
        ]
        tried = self._measure_all([replace(best, choice=choice) for choice in choices])
        found = min(tried, key=lambda each: each.error)
        gain = 1 - found.error / best.error if best.error > 0 else 0.0
        if gain < _WORTH_STEPS:
            return best, ""
        return found, (
            "Added step functions of single columns: the squared error on validation rows is "
            f"{plain.number(100 * gain, 2)} % lower."
        )

    def _with_directions(self, best: Candidate) -> tuple[Candidate, str]:
        """Return the kernel of the principal components of the columns, and a note, if worth it.

        Fewer directions, or shorter ones for components of less variance, have less error with the
        few features of a search, and more with those of a model (docs/decisions/034).
        """
        X = self._sample.X
        if not takes_directions(best.choice, X) or self.shared_scale is None:
            return best, ""
        sizes = [k for k in _NUMBERS_OF_DIRECTIONS if k * _LEAST_REDUCTION <= X.shape[1]]
        directions = principal_directions(X[: self._sample.n_train], sizes[-1])
        tried = []
        for k in sizes:
            options = {"directions": directions[:k]}
            choice = replace(best.choice, feature_map=DIRECTIONS, options=options)
            tried.append(self.measure(replace(best, choice=choice, length_scale=self.shared_scale)))
        found = min(tried, key=lambda each: each.error)
        gain = 1 - found.error / best.error if best.error > 0 else 0.0
        if gain < _WORTH_DIRECTIONS:
            return best, ""
        return found, (
            f"The kernel compares {len(found.choice.options['directions'])} principal components "
            f"of the columns: the squared error on validation rows is "
            f"{plain.number(100 * gain, 2)} % lower."
        )

    def with_folds(self, best: Candidate, groups: NDArray[Any] | None) -> Candidate:
        """Return the candidate with length scales learned without each validation quarter.

        The searches begin as the first one does, not from its result, which has seen all rows but
        the last quarter.
        """
        quarters = self._sample.quarters()
        if not best.is_per_column or len(quarters) == 1:
            return replace(best, folds=(best.length_scale,) * len(quarters))
        gaussian = self._choice.candidates(self._sample.X.shape[1])[:1]
        plain = [replace(best.choice, options={})]
        scales = []
        for out in quarters[:-1]:
            rows = np.delete(np.arange(len(self._sample.Y)), out)
            learned = self._learn(gaussian, groups, True, None, rows)
            if plain != gaussian:
                learned = self._learn(plain, groups, True, learned[0], rows)
            scales.append(learned[0].length_scale)
        return replace(best, folds=(*scales, best.length_scale))

    def or_line(self, best: Candidate, notes: list[str]) -> Candidate:
        """Return a linear kernel with one length scale, if that has a smaller error."""
        if not takes_line(best.choice) or self.shared_scale is None:
            return best
        linear = Candidate(
            replace(best.choice, options={"linear": LINE}),
            self.shared_scale,
            folds=(self.shared_scale,) * len(best.folds),
        )
        linear = self.measure(linear, self._bandwidth_components)
        if linear.error >= best.error:
            return best
        notes[:] = [NOTE_OF_LINE]
        return linear

    def _learn(
        self,
        choices: list[MapChoice],
        groups: NDArray[Any] | None,
        learns: bool,
        start: LearnedScales | None,
        rows: NDArray[np.intp],
    ) -> list[LearnedScales]:
        sample = self._sample
        X, Y, weights = merge_copies(sample.X[rows], sample.Y[rows], sample.weights_of(rows))

        def learn(choice: MapChoice) -> LearnedScales:
            kernel = resolve(choice.kernel_name)
            stream = Stream.from_seed(self._seed).substream("length scales", str(kernel))
            evaluations = _EVALUATIONS
            if start is not None:
                is_brief = choice.kernel_name in BRIEF_KERNELS
                evaluations = _BRIEF_EVALUATIONS if is_brief else _WARM_EVALUATIONS
            learned = self._memory.recall_scales(
                ("length scales", choice, start, rows),
                lambda: learn_length_scales(
                    kernel,
                    X,
                    Y,
                    groups=groups if learns else np.zeros(X.shape[1], np.int64),
                    stream=stream,
                    n_frequencies=int(np.clip(len(Y) // 8, 32, 256)),
                    start=start if learns else None,
                    sample_weight=weights,
                    max_evaluations=evaluations if learns else 1,
                ),
                sample.X.shape[1],
            )
            self._progress.advance(FIRST_SEARCH if start is None else NEXT_SEARCH)
            return learned

        return self._in_threads(learn, choices)

    def _in_threads(self, work: Callable[[Any], Any], items: list[Any]) -> list[Any]:
        """Return results in the order of the items; BLAS uses one thread in each."""
        workers = min(len(items), self._n_threads or get_num_threads())
        with one_blas_thread():
            if workers <= 1:
                return [work(item) for item in items]
            with ThreadPoolExecutor(workers) as pool:
                return list(pool.map(work, items))

    def measure(self, candidate: Candidate, n_components: int | None = None) -> Candidate:
        """Return the candidate with its smallest error and the ridge that has it, recorded."""
        measured = self._measure(candidate, n_components)
        self._points.extend(measured.tried)
        return measured

    def _measure_all(
        self, candidates: list[Candidate], n_components: int | None = None
    ) -> list[Candidate]:
        """Return the same for several candidates, in threads."""
        work = partial(self._measure, n_components=n_components)
        measured: list[Candidate] = self._in_threads(work, candidates)
        for each in measured:
            self._points.extend(each.tried)
        return measured

    def _measure(self, candidate: Candidate, n_components: int | None = None) -> Candidate:
        size = n_components or self._n_components
        scales = candidate.length_scale, candidate.folds
        errors = self._memory.recall(
            ("errors", candidate.choice, scales, candidate.ridge, size),
            lambda: list(self._errors(candidate, size).items()),
            _read_errors,
        )
        best = min(errors, key=lambda ridge: errors[ridge])
        typical = typical_scale(candidate.length_scale)
        tried = tuple(
            TuningPoint(
                typical,
                ridge,
                error,
                kernel=candidate.choice.kernel_name,
                per_column=candidate.is_per_column,
                n_components=size,
                variant=candidate.choice.variant,
            )
            for ridge, error in errors.items()
            if math.isfinite(error)
        )
        self._progress.advance(1)
        return replace(candidate, error=errors[best], ridge=best, tried=tried)

    def _errors(self, candidate: Candidate, size: int) -> dict[float, float]:
        """Return leave-one-out errors, by ridge, of rows not used to learn length scales."""
        least = LEAST_RIDGE.get(candidate.choice.name, 1e-8)
        scales = candidate.folds if len(candidate.folds) > 1 else (candidate.length_scale,)
        measures = []
        for scale, rows, n_judged in zip(scales, *self._rows_to_judge(len(scales)), strict=True):
            X, Y = self._sample.X[rows], self._sample.Y[rows]
            fitted = candidate.choice.make(scale, size, self._seed, 1).fit(X)
            weights = self._sample.weights_of(rows)
            keys = self._sample.keys_of(rows)
            measures.append(leave_one_out(fitted, X, Y, len(rows) - n_judged, weights, keys))
        return walk_ridges(measures, start=max(candidate.ridge, least), least=least)

    def _rows_to_judge(self, n_folds: int) -> tuple[list[NDArray[np.intp]], list[int]]:
        """Return the training rows of each fold, and the number of rows at the end to measure."""
        total, n_learning = len(self._sample.Y), self._n_learning
        every = np.arange(total)
        if n_folds > 1:
            quarters = self._sample.quarters()
            rows = [np.concatenate([np.delete(every, out), every[out]]) for out in quarters]
            return rows, [len(every[out]) for out in quarters]
        n_rows = min(total, MOST_COMPARING_ROWS)
        others = every[total - n_rows + n_learning :]
        keys = self._sample.keys
        if self._sample.in_order:
            others = others[others >= self._sample.n_train]
        elif keys is not None:
            others = others[~np.isin(keys[others], keys[:n_learning])]
        kept = np.concatenate([every[:n_learning], others])
        return [kept], [min(len(others), _MOST_JUDGED_ROWS) if others.size else len(kept)]

    @property
    def _bandwidth_components(self) -> int:
        return min(_SCALING_COMPONENTS, max(self._n_components, len(self._sample.Y)))

    def best_bandwidth(self, best: Candidate) -> Candidate:
        """Scale all length scales by one factor, since more rows and features need shorter ones."""
        size = self._bandwidth_components
        best = self.measure(best, size)
        for factor in _FACTORS:
            for _ in range(MOST_STEPS):
                changed = self.measure(best.scale(float(factor)), size)
                if changed.error >= best.error:
                    break
                best = changed
            else:
                break
        return best

    def n_components_of(self, best: Candidate) -> int:
        """Return the number of features that the error of a candidate was measured with."""
        return max((point.n_components or 0 for point in best.tried), default=self._n_components)

    def seconds_at_size(self, best: Candidate, n_components: int) -> float:
        """Return the estimated time of `best_at_size`; 0 if the search had that many features."""
        n_rows = min(len(self._sample.Y), MOST_COMPARING_ROWS)
        D = self._useful_components(best, n_components)
        if self.n_components_of(best) == D:
            return 0.0
        ridges = _USUAL_RIDGES * (D**3 / 3 + min(n_rows, _MOST_JUDGED_ROWS) * D**2)
        return 4e-11 * (2 * n_rows * D**2 + ridges)

    def best_at_size(self, best: Candidate, n_components: int) -> Candidate:
        """Return the best ridge for all features of the model; the search uses fewer features."""
        if self.seconds_at_size(best, n_components) == 0:
            return best
        return self.measure(best, self._useful_components(best, n_components))

    def _useful_components(self, best: Candidate, n_components: int) -> int:
        """Return the number of features; of landmarks, at most the number of rows."""
        n_rows = min(len(self._sample.Y), MOST_COMPARING_ROWS)
        return min(n_components, n_rows) if best.choice.name == "nystroem" else n_components

    def enough_components(
        self, best: Candidate, n_classes: int | None, n_rows: int, budget: float
    ) -> int:
        """Return the number of features at which the error or the budget stops the increase."""
        task = "regression" if n_classes is None else "classification"
        name = best.choice.name
        most = min(
            int(MOST_COMPONENTS[name == "nystroem", task] * budget_factor(budget)), 4 * n_rows
        )
        least = default_components(task)
        if name == "nystroem":
            most, least = min(most, n_rows), min(2048, n_rows)
        gain = 0.0
        if least < most:
            smooth = _without_steps(best)  # of which there are fewer among half the features
            half, full = self.measure(smooth, self._n_components // 2), self.measure(smooth)
            gain = 1 - full.error / half.error if half.error > 0 else 0.0
        size = self._n_components
        while size < least or (gain >= _WORTH_FEATURES and size < most):
            next_size = min(2 * size, most)
            while (
                next_size > size
                and estimate_seconds(name, next_size, n_rows, n_classes) > budget / 2
            ):
                next_size -= 256
            if next_size <= size:
                break
            size = next_size
            gain *= _LEFT_TO_GAIN.get(name, 0.5)
        while size > 1024 and estimate_seconds(name, size, n_rows, n_classes) > budget:
            size //= 2
        return max(1, min(size, n_rows) if name == "nystroem" else size)


def _read_errors(found: Any) -> dict[float, float]:
    """Return errors by ridge from pairs of a JSON record."""
    errors = {read_size(ridge): read_number(error) for ridge, error in found}
    if not errors:
        raise ValueError("there are no errors")
    return errors


def _without_steps(candidate: Candidate) -> Candidate:
    choice = candidate.choice
    if choice.feature_map != STEPS:
        return candidate
    return replace(candidate, choice=replace(choice, feature_map=AUTO, options={}))


def average_scales(scales: tuple[Any, ...]) -> Any:
    """Return the geometric mean of length scales learned from several parts of the rows.

    Where the parts disagree about a column, the rows do not determine its length scale; the mean
    is less extreme than any of them.
    """
    if not isinstance(scales[-1], np.ndarray) or len(scales) == 1:
        return scales[-1]
    logs = np.log(np.array(scales))
    logs -= logs.mean(axis=1, keepdims=True)  # the common factor is that of the last one
    return np.exp(logs.mean(axis=0) + np.log(scales[-1]).mean())


def typical_scale(length_scale: Any) -> float:
    """Return the geometric mean of the finite length scales; 0 if there is none."""
    if length_scale is None:
        return 0.0
    scales = np.asarray(length_scale, np.float64)
    return float(np.exp(np.log(scales[np.isfinite(scales)]).mean()))
