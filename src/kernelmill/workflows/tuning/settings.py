"""Tuning on a sample of the rows: kernel, map, length scales, penalty and number of features.

A search by ridge regression (`kernel_search`) finds the kernel and its length scales. Up to 20,000
rows, and in regression as long as the budget allows a few thousand landmarks, the features are
those of `Nystroem`; with all rows as landmarks, as for small tables, this is the exact kernel
machine. For a classifier, penalty and bandwidth are then refined with its own loss (`refinement`).
docs/decisions/018, 021, 023, 030 and 033 have the measurements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.formatting import plain
from kernelmill.learners.solvers.choice import BRIEF_LBFGS, choose_solver
from kernelmill.random.row_hashes import Keys
from kernelmill.runtime.progress import Progress
from kernelmill.workflows.records import TuningPoint
from kernelmill.workflows.tuning.budget import USUAL_BUDGET, estimate_seconds
from kernelmill.workflows.tuning.kernel_search import (
    FIRST_SEARCH,
    LEAST_RIDGE,
    MOST_COMPARING_ROWS,
    NEXT_SEARCH,
    NOTE_OF_LINE,
    Candidate,
    KernelSearch,
    Sample,
    average_scales,
    takes_line,
)
from kernelmill.workflows.tuning.map_choice import AUTO, LINE, MapChoice
from kernelmill.workflows.tuning.memory import TuningMemory
from kernelmill.workflows.tuning.refinement import ONE_LOSS, Refinement

__all__ = ["TunedSettings", "tune_settings"]

_Array = NDArray[np.float64]

_FEW_ROWS = 20_000  # up to which random features are not considered
_MANY_LANDMARKS = 3072  # with which they beat random features for more rows
_MOST_LANDMARK_COLUMNS = 1024
_AROUND = tuple(10.0 ** (power / 2) for power in range(-2, 3))  # of a ridge found with fewer rows
_CHECK_AT_SIZE = 0.25  # the share of the budget for a penalty that suits all features


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
    alphas : tuple of float
        If there are several, the learner of values chooses among them by all rows.
    solver : str
        The solver that the penalty was chosen for; "" if any will do.
    """

    choice: MapChoice
    length_scale: Any
    alpha: float
    n_components: int
    points: list[TuningPoint]
    notes: tuple[str, ...] = ()
    alphas: tuple[float, ...] = ()
    solver: str = ""

    def solver_parameters(self) -> dict[str, Any]:
        """The solver parameters of a classifier that the penalty was chosen for."""
        return dict(BRIEF_LBFGS) if self.solver == "lbfgs" else {}


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
    solver: str = "sgd",
    epochs: int | None = None,
    batch_size: int | None = None,
    n_rows: int,
    in_memory: bool = True,
    seed: int,
    n_threads: int | None = None,
    progress: Progress,
    groups: NDArray[Any] | None = None,
    column_scales: bool = True,
    steps: bool = False,
    budget: float = USUAL_BUDGET,
    sample_weight: _Array | None = None,
    sample_keys: Keys | None = None,
    in_order: bool = False,
    independent: bool = True,
    at_size: bool = True,
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
    solver : str, default="sgd"
        With "auto", a classifier may be trained by L-BFGS, where that is estimated to end within
        half of the budget.
    epochs, batch_size : int, optional
        Parameters of gradient descent that are given.
    n_rows : int
        The number of rows the model will be trained on: the penalty of a classifier is per row.
    in_memory : bool, default=True
        Whether these rows are in memory, so that landmarks can be drawn from all of them.
    groups : ndarray of int, optional
        Columns with the same number share a length scale.
    column_scales : bool, default=True
        Whether to learn a length scale for each column.
    steps : bool, default=False
        Whether step functions of single columns may be added to random features; otherwise the
        kernel is that of other machines, too.
    budget : float
        As in `fit_table`.
    sample_weight : ndarray, optional
        The weights of the rows of the sample, in training and in validation.
    sample_keys : ndarray of uint64, optional
        The keys of the rows: those with equal keys are not divided into training and validation.
    in_order : bool, default=False
        Whether keys are times: the latest rows are the validation rows.
    independent : bool, default=True
        Whether rows are neither copies of others nor in groups or in order, so that generalized
        cross-validation of all rows can choose alpha.
    at_size : bool, default=True
        Whether the penalty has to suit a given number of features; otherwise other machines of the
        kernel share it.
    memory : TuningMemory, optional
        The results of steps, some of which an earlier run may have computed.
    """
    memory = TuningMemory() if memory is None else memory
    sample = Sample.of(X, target, n_classes, sample_weight, sample_keys, in_order=in_order)
    points, notes = list[TuningPoint](), list[str]()
    is_free = length_scale is None and choice.has_length_scale
    if is_free and in_memory:
        choice = _map_of_auto(choice, X, n_rows, n_classes, budget)
    learns = column_scales and choice.takes_column_scales
    search = KernelSearch(choice, sample, seed, n_threads, points, progress, memory)
    progress.start(
        "Tuning",
        _expect_steps(
            len(choice.candidates(X.shape[1])) if is_free else 0,
            learns=learns,
            n_folds=len(sample.quarters()),
            chooses_size=n_components is None,
            refines=n_classes is not None,
        ),
        "steps",
    )
    if is_free:
        best = search.best_candidate(groups, learns=learns, steps=steps, notes=notes)
        best = search.with_folds(best, groups)
        if n_classes is None:  # a classifier has a loss of its own for this
            best = search.or_line(search.best_bandwidth(best), notes)
    else:
        folds = (length_scale,) * len(sample.quarters())
        best = Candidate(choice.candidates(X.shape[1])[0], length_scale, folds=folds)
        if n_components is None or (alpha is None and n_classes is None):
            best = search.measure(best)
    is_given = at_size and n_components is not None
    if n_components is None:
        n_components = search.enough_components(best, n_classes, n_rows, budget)
    elif is_given and n_classes is None and alpha is None and n_rows <= MOST_COMPARING_ROWS:
        best = _best_at_size(search, best, n_components, budget, notes)
    _mark_chosen(points, next((p for p in best.tried if p.alpha == best.ridge), None))
    ridge = best.ridge if alpha is None else alpha
    folds, mean = best.folds, average_scales(best.folds)
    settings = TunedSettings(best.choice, mean, ridge, n_components, points)
    if n_classes is None and alpha is None and independent and n_rows > MOST_COMPARING_ROWS:
        least = LEAST_RIDGE.get(best.choice.name, 0.0)
        around = [max(ridge * factor, least) for factor in _AROUND]
        settings = replace(settings, alphas=tuple(dict.fromkeys(around)))
    if n_classes is not None:
        refine = partial(
            Refinement,
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
        chosen = choose_solver(
            "classification",
            solver,
            loss=loss,
            n_features=n_components,
            epochs=epochs,
            batch_size=batch_size,
            n_rows=n_rows if in_memory else None,
            n_classes=n_classes,
            landmarks=best.choice.name == "nystroem",
            seconds=budget / 2,
        )
        if solver == "auto" and chosen == "lbfgs":
            settings = replace(settings, solver=chosen)
        settings = _refine_classifier(
            refine,
            settings,
            folds,
            search.shared_scale if is_free and alpha is None else None,
            alpha=alpha,
            n_rows=n_rows,
            is_free=is_free,
            given_size=is_given,
            budget=budget,
            notes=notes,
        )
    return _limit_landmarks(replace(settings, notes=tuple(notes)), sample.n_train)


def _refine_classifier(
    refine: Callable[..., Refinement],
    settings: TunedSettings,
    folds: tuple[Any, ...],
    shared_scale: float | None,
    *,
    alpha: float | None,
    n_rows: int,
    is_free: bool,
    given_size: bool,
    budget: float,
    notes: list[str],
) -> TunedSettings:
    """Return the settings with penalty and length scales refined for the loss of a classifier.

    A given `alpha` is kept. A linear kernel with `shared_scale` is considered, too.
    """
    choice, scales = settings.choice, settings.length_scale
    is_landmarks = choice.name == "nystroem"
    fixed_C = None if alpha is None else 1 / max(alpha * n_rows, 1e-300)
    found = refine(choice, scales=folds).best(fixed_C, search_length_scale=is_free)
    if shared_scale is not None and takes_line(choice):
        linear = replace(choice, options={"linear": LINE})
        shared = (shared_scale,) * len(folds)
        other = refine(linear, scales=shared).best_line(found.loss)
        if other.loss < found.loss:
            choice, found, folds, scales = linear, other, shared, shared_scale
            notes[:] = [NOTE_OF_LINE]
    if alpha is None:
        if settings.solver == "lbfgs":
            found = refine(choice, scales=folds, lbfgs=True).best_at_minimum(found)
        elif given_size or not is_landmarks:  # which take long: only if so many are wanted
            last, said = refine(choice, scales=folds), notes if given_size else []
            found = _best_at_size(last, found, settings.n_components, budget, said)
        alpha = 1 / (found.C * n_rows)
    _mark_chosen(settings.points, found.point)
    scaled = scales * found.factor if is_free else scales
    return replace(settings, choice=choice, length_scale=scaled, alpha=alpha)


def _mark_chosen(points: list[TuningPoint], chosen: TuningPoint | None) -> None:
    """Mark a setting as chosen where it was last measured."""
    places = [place for place, point in enumerate(points) if point == chosen]
    if places:
        points[places[-1]] = replace(points[places[-1]], chosen=True)


def _limit_landmarks(settings: TunedSettings, n_rows: int) -> TunedSettings:
    """Return the settings with at most one landmark per training row in each tuning point."""
    if settings.choice.name != "nystroem":
        return settings
    points = [replace(p, n_components=min(p.n_components, n_rows)) for p in settings.points]
    return replace(settings, points=points)


def _best_at_size(
    search: KernelSearch | Refinement,
    found: Any,
    n_components: int,
    budget: float,
    notes: list[str],
) -> Any:
    """Return the result with the best penalty for all features of the model, or add a note."""
    n_tuned = search.n_components_of(found)
    seconds = search.seconds_at_size(found, n_components)
    if n_components <= n_tuned or seconds <= budget * _CHECK_AT_SIZE:
        return search.best_at_size(found, n_components)
    notes.append(
        f"The penalty was tuned with {plain.count(n_tuned)} of {plain.count(n_components)} "
        "features, since more would take longer than a quarter of the budget."
    )
    return found


_USUAL_BANDWIDTHS, _USUAL_LOSSES = 4, 10


def _expect_steps(
    n_kernels: int, *, learns: bool, n_folds: int, chooses_size: bool, refines: bool
) -> int:
    """Return the approximate number of steps of a tuning; searches may end earlier or later."""
    steps = 0
    if n_kernels:
        steps += FIRST_SEARCH + (n_kernels - 1) * NEXT_SEARCH + n_kernels + learns
        steps += (n_folds - 1) * (FIRST_SEARCH + NEXT_SEARCH) * learns
        steps += 0 if refines else _USUAL_BANDWIDTHS
    elif chooses_size or not refines:
        steps += 1
    return steps + 2 * chooses_size + ONE_LOSS * _USUAL_LOSSES * refines


def _map_of_auto(
    choice: MapChoice, X: Any, n_rows: int, n_classes: int | None, budget: float
) -> MapChoice:
    """Return what "auto" stands for: landmarks for few rows, otherwise random features.

    For more rows, landmarks pay in regression if the budget allows a few thousand of them.
    """
    is_auto = choice.feature_map == AUTO and not choice.options
    fits = isinstance(X, np.ndarray) and X.shape[1] <= _MOST_LANDMARK_COLUMNS
    is_few = n_rows <= _FEW_ROWS or (
        n_classes is None
        and estimate_seconds("nystroem", _MANY_LANDMARKS, n_rows, None) <= budget / 2
    )
    if is_auto and fits and is_few:
        return replace(choice, feature_map="nystroem")
    return choice
