"""Solvers by name: what each of them needs, which one "auto" stands for, and how it is called.

All who need to know the solver ask `choose_solver`: estimators, checks, tuning and reports. The
estimators describe their solver by one of the objects below, made from their parameters.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Any, Self

import numpy as np

from kernelmill.arguments import check_choice, check_integer, check_positive
from kernelmill.errors import ArgumentError, Remedy
from kernelmill.learners.blocks import Block, BlockSource
from kernelmill.learners.losses import LOSSES, ClassifierFit, Objective
from kernelmill.learners.ridge import RidgeObjective
from kernelmill.learners.run import Run
from kernelmill.learners.solvers import SOLVERS
from kernelmill.learners.solvers.averaging import solve_averaged_sgd
from kernelmill.learners.solvers.cg import CgFit, solve_cg
from kernelmill.learners.solvers.exact import RidgeFit, solve_exact, solve_signs
from kernelmill.learners.solvers.lbfgs import LBFGS_ITERATIONS, MOST_WHITENED, solve_lbfgs
from kernelmill.learners.solvers.sgd import (
    PLAIN_EPOCHS,
    PLAIN_LEARNING_RATE,
    SgdSettings,
    default_epochs,
    solve_sgd,
)
from kernelmill.learners.solvers.sgd_state import SgdState
from kernelmill.learners.statistics import RidgeStatistics
from kernelmill.random import Stream

__all__ = [
    "BRIEF_LBFGS",
    "MOST_EXACT_FEATURES",
    "ClassifierSolver",
    "RidgeSolver",
    "choose_solver",
    "takes_one_pass",
]

MOST_EXACT_FEATURES = 8192
"""For which solver="auto" stands for the exact solver: two D x D matrices take 1 GiB."""
BRIEF_LBFGS: dict[str, Any] = {"solver": "lbfgs", "epochs": 60, "tol": 1e-4}
"""The parameters of a classifier for which `choose_solver` chooses L-BFGS."""

_FEWEST_MINIMIZED_ROWS = 2000


def choose_solver(
    task: str,
    solver: str = "auto",
    *,
    loss: str = "log_loss",
    n_features: int | None,
    epochs: int | None = None,
    batch_size: int | None = None,
    n_rows: int | None = None,
    n_classes: int = 2,
    landmarks: bool = False,
    seconds: float = 0.0,
) -> str:
    """Return the name of the solver that a learner uses.

    Parameters
    ----------
    task : {"classification", "regression"}
    solver : str, default="auto"
        The solver that is asked for. Any other than "auto" is returned.
    loss : str, default="log_loss"
        The loss of a classifier.
    n_features : int or None
        None, if it is not known yet, stands for at most 8192.
    epochs, batch_size : int, optional
        The parameters of the learner: gradient descent is chosen for a log loss if one is given.
    n_rows : int, optional
        The number of training rows if they are all in memory.
    n_classes : int, default=2
    landmarks : bool, default=False
        Whether the features are those of landmarks, on which the minimum of the log loss is no
        better than where descent ends (docs/decisions/033).
    seconds : float, default=0
        The time in which L-BFGS has to end, on two cores of a usual machine, to be chosen. It is
        estimated from the numbers of rows and features.

    Examples
    --------
    >>> from kernelmill.learners.solvers.choice import choose_solver
    >>> choose_solver("regression", n_features=2048), choose_solver("regression", n_features=9000)
    ('exact', 'cg')
    >>> choose_solver("classification", loss="squared", n_features=9000)
    'sgd'
    >>> choose_solver("classification", n_features=4096, n_rows=30_000, seconds=30)
    'lbfgs'
    """
    if solver != "auto":
        return solver
    fits = n_features is None or n_features <= MOST_EXACT_FEATURES
    if task == "regression":
        return "exact" if fits else "cg"
    if loss == "squared":
        return "exact" if fits else "sgd"
    is_free = loss == "log_loss" and epochs is None and batch_size is None and not landmarks
    if not is_free or n_features is None or n_rows is None or n_rows <= _FEWEST_MINIMIZED_ROWS:
        return "sgd"
    if n_features > min(MOST_WHITENED, n_rows // 2):  # not all fit in the coordinates of L-BFGS
        return "sgd"
    outputs = 1 if n_classes == 2 else n_classes
    of_pass = n_rows * n_features * (2e-9 + 2e-10 * outputs)
    needed = BRIEF_LBFGS["epochs"] * of_pass + 4e-11 * n_features**3
    return "lbfgs" if needed <= seconds else "sgd"


def takes_one_pass(solver: str) -> bool:
    """Return whether a solver passes over the rows once, so that they need not be kept."""
    return solver == "exact"


@dataclass(frozen=True)
class _Solver:
    """The parameters of an estimator that concern its solver."""

    solver: str

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """Return the solver that the parameters of an estimator describe; others are ignored."""
        return cls(**{field.name: parameters[field.name] for field in fields(cls)})


@dataclass(frozen=True)
class ClassifierSolver(_Solver):
    """The solver of a `KernelClassifier`; attributes are the parameters of that class."""

    loss: str
    epochs: int | None
    batch_size: int | None
    learning_rate: float | None
    validation_fraction: float | None
    patience: int
    tol: float

    def check(self) -> None:
        """Raise if a parameter is out of range, or if the solver does not support the others."""
        check_choice("loss", self.loss, tuple(LOSSES))
        check_choice("solver", self.solver, SOLVERS["classification"])
        for name in ("epochs", "batch_size"):
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name), 1)
        check_integer("patience", self.patience, 1)
        check_positive("tol", self.tol)
        if self.validation_fraction is not None and not (
            isinstance(self.validation_fraction, Real) and 0 <= float(self.validation_fraction) < 1
        ):
            raise ArgumentError(
                f"must be None or a number from 0 to below 1, got {self.validation_fraction!r}",
                parameter="validation_fraction",
            )
        if self.learning_rate is not None:
            check_positive("learning_rate", self.learning_rate)
            if self.solver != "plain_sgd":
                raise ArgumentError(
                    f"is for the solver 'plain_sgd', got {self.learning_rate!r} for "
                    f"{self.solver!r}, which needs none",
                    Remedy("leave it out", learning_rate=None),
                    Remedy("use fixed steps", solver="plain_sgd"),
                    parameter="learning_rate",
                )
        if self.solver == "exact" and self.loss != "squared":
            raise ArgumentError(
                f"is 'exact', which needs loss='squared', got loss={self.loss!r}",
                Remedy("let the loss decide", solver="auto"),
                parameter="solver",
            )
        if self.solver == "lbfgs" and not LOSSES[self.loss].smooth:
            raise ArgumentError(
                f"is 'lbfgs', which needs a smooth loss, got loss={self.loss!r}",
                Remedy("use a smooth loss", loss="squared_hinge"),
                Remedy("use descent", solver="sgd"),
                parameter="solver",
            )

    def check_source(self, source: BlockSource, run: Run) -> None:
        """Raise if the blocks cannot be passed over as often as the run and the epochs need."""
        if self.epochs is not None and self.epochs > 1:
            source.require_passes(f"epochs={self.epochs}", Remedy("train in one pass", epochs=None))
        if run.path is None:
            return
        if self.solver == "exact" and not source.is_spread:
            raise ArgumentError(
                "needs solver='sgd' or 'lbfgs', got solver='exact'",
                Remedy("train without a checkpoint", checkpoint=None),
                parameter="checkpoint",
            )
        source.require_passes("a checkpoint")

    def resolve(self, n_features: int) -> Self:
        """Return the solver that "auto" stands for."""
        chosen = choose_solver("classification", self.solver, loss=self.loss, n_features=n_features)
        return replace(self, solver=chosen)

    def solve(
        self,
        objective: Objective,
        source: BlockSource,
        run: Run,
        *,
        stream: Stream,
        n_rows: int | None,
    ) -> ClassifierFit:
        """Minimize the objective over the rows of the source; `n_rows` is their number if known."""
        if self.solver == "exact":
            run.begin(n_rows)
            return solve_signs(objective, source, run)
        if self.solver == "lbfgs":
            source.require_passes("solver='lbfgs'")
            run.begin()
            max_iter = self.epochs or LBFGS_ITERATIONS
            return solve_lbfgs(
                objective, source, run, stream=stream, max_iter=max_iter, tol=float(self.tol)
            )
        if self.validation_fraction:
            source.require_passes("validation_fraction")
        n_epochs = self.epochs
        if n_epochs is None and not source.repeatable:
            n_epochs = 1
        elif n_epochs is None:
            n_epochs = PLAIN_EPOCHS if self.solver == "plain_sgd" else default_epochs(n_rows)
        settings = self._settings(int(n_epochs), one_block=source.is_whole)
        run.begin(None if n_rows is None else settings.n_epochs * n_rows)
        solve = solve_averaged_sgd if source.is_spread else solve_sgd
        fit = solve(objective, source, run, settings, SgdState(stream))
        return fit._replace(state=fit.state.without_spectrum())

    def add_rows(
        self, objective: Objective, block: Block, run: Run, *, stream: Stream, state: Any
    ) -> ClassifierFit:
        """Learn from more rows in one pass; `state` is that of the fit of earlier rows, or None."""
        run.begin(len(block.y))
        if self.solver == "exact":
            return solve_signs(objective, [block], run, copy.deepcopy(state))
        state = SgdState(stream) if state is None else state.for_more_rows()
        return solve_sgd(objective, [block], run, self._settings(1), state)

    def _settings(self, n_epochs: int, *, one_block: bool = False) -> SgdSettings:
        return SgdSettings(
            n_epochs,
            batch_size=self.batch_size,
            plain=self.solver == "plain_sgd",
            learning_rate=self.learning_rate or PLAIN_LEARNING_RATE,
            one_block=one_block,
            validation_fraction=self.validation_fraction or 0.0,
            patience=self.patience,
        )


@dataclass(frozen=True)
class RidgeSolver(_Solver):
    """The solver of a `KernelRegressor`; attributes are the parameters of that class."""

    scoring: str
    max_iter: int
    tol: float

    def check(self) -> None:
        """Raise if a parameter is out of range."""
        check_choice("solver", self.solver, SOLVERS["regression"])
        check_choice("scoring", self.scoring, ("gcv", "loo"))
        check_integer("max_iter", self.max_iter, 1)
        check_positive("tol", self.tol)

    def check_one_pass(self, alpha: Any) -> None:
        """Raise if penalties are compared in a second pass over rows that come only once."""
        if self.scoring == "loo" and np.ndim(alpha) > 0:
            raise ArgumentError(
                "must be 'gcv' for rows that come one after the other, got 'loo', which takes a "
                "second pass over them",
                "give all rows to fit",
                parameter="scoring",
            )

    def check_statistics(self, alpha: Any, method: str) -> None:
        """Raise if the solver does not solve from statistics of the rows alone."""
        self.check_one_pass(alpha)
        if self.solver == "cg":
            raise ArgumentError(f"must be 'exact' for {method}, got 'cg'", parameter="solver")

    def resolve(self, n_features: int, *, adding: bool = False) -> Self:
        """Return the solver that "auto" stands for; to add rows takes the exact one."""
        chosen = choose_solver("regression", self.solver, n_features=n_features)
        if adding and chosen == "cg" and self.solver == "auto":
            raise ArgumentError(
                f"partial_fit and statistics take at most {MOST_EXACT_FEATURES} features, got "
                f"{n_features}, to stay within 1 GiB",
                "use fewer components",
                Remedy("use more memory", solver="exact"),
            )
        return replace(self, solver=chosen)

    def solve(
        self, objective: RidgeObjective, source: BlockSource, run: Run, *, stream: Stream
    ) -> tuple[RidgeFit | CgFit, RidgeStatistics | None]:
        """Minimize the objective; return the fit, and the statistics that the exact solver has."""
        if self.solver == "cg":
            source.require_passes(
                "solver='cg'", Remedy("use the solver that needs one pass", solver="exact")
            )
            fit = solve_cg(
                objective, source, run, stream=stream, tol=self.tol, max_iter=self.max_iter
            )
            return fit, None
        again = source.first if self.scoring == "loo" and source.is_whole else None
        return solve_exact(objective, source, run, again=again)
