"""Descent on several machines at once: each on its own rows, averaged after each epoch.

Every machine starts an epoch with the same weights and takes the steps of `sgd` on rows of its own.
Then the weights of all of them are averaged, by numbers of rows (Zinkevich et al., 2010; local SGD,
Stich, 2019). The spectrum that preconditions the steps is estimated once, from a sample of rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.learners.blocks import Block, BlockSource
from kernelmill.learners.losses import ClassifierFit, Objective
from kernelmill.learners.run import Run
from kernelmill.learners.solvers.descent import Weights
from kernelmill.learners.solvers.sgd import SgdSettings, Training, decay_rows
from kernelmill.learners.solvers.sgd_state import SgdState, state_from_arrays, state_to_arrays

__all__ = ["ROWS_PER_LANE", "solve_averaged_sgd"]

ROWS_PER_LANE = 1 << 17
"""Rows of an epoch that are visited one after the other, if there are many."""

_FEWEST_LANES = 4


def solve_averaged_sgd(
    objective: Objective, blocks: BlockSource, run: Run, settings: SgdSettings, state: SgdState
) -> ClassifierFit:
    """Minimize as `solve_sgd` does, with blocks that are spread over machines.

    Parameters
    ----------
    objective : Objective
    blocks : BlockSource
        Of spread blocks. Those that are folded one after the other are a lane.
    run : Run
        States are saved after epochs. If there is a saved one, training resumes from there.
    settings : SgdSettings
    state : SgdState
        The state to start from otherwise; it is changed.
    """
    saved = run.take_saved()
    if saved is not None:
        state = state_from_arrays(
            saved,
            state.stream,
            objective,
            settings.n_epochs,
            holds_out=settings.validation_fraction > 0,
        )
    training = Training(objective, settings, run, state)
    if state.weights is None:
        training.begin(blocks.take_first())
        # As on one machine: the rows of all lanes, since averaging makes up for longer steps.
        state.decay_rows = max(state.decay_rows, decay_rows(blocks.n_rows or 0))
    shape = {"rows_per_group": ROWS_PER_LANE, "fewest_groups": _FEWEST_LANES}

    def count_correct() -> tuple[float, float]:
        fold = partial(_count_correct, objective, settings, state)
        return blocks.fold(fold, _add_pairs)

    while not training.has_ended:
        fold = partial(_visit, objective, settings, state)
        lane = blocks.fold(fold, _average, progress=run.progress, **shape)
        state.weights, state.loss_sum, state.loss_rows = lane.weights, lane.loss_sum, lane.n_rows
        training.end_epoch(count_correct)
        if run.path is not None and not training.has_ended:
            run.save(state_to_arrays(state))
    run.save_last(state_to_arrays(state))
    return training.finish()


@dataclass(frozen=True)
class _Lane:
    """The weights after the rows of a lane, or the average of several lanes."""

    weights: Weights
    loss_sum: float = 0.0
    n_rows: int = 0


def _visit(
    objective: Objective,
    settings: SgdSettings,
    start: SgdState,
    before: _Lane | None,
    blocks: Iterable[Block],
    number: int,
) -> _Lane:
    """Return the weights after the rows of a piece, from those of the lane or of the epoch."""
    assert start.weights is not None
    lane = _Lane(start.weights) if before is None else before
    # Not epoch 0, in which the mean weight of rows would be estimated again from this piece.
    state = replace(
        start,
        weights=lane.weights.copy(),
        stream=start.stream.substream("piece", number),
        epoch=start.epoch + 1,
        is_limited=True,
    )
    training = Training(objective, settings, Run(), state)
    training.visit(blocks)
    assert state.weights is not None
    return _Lane(state.weights, lane.loss_sum + state.loss_sum, lane.n_rows + state.loss_rows)


def _average(a: _Lane, b: _Lane) -> _Lane:
    """Return the average of two lanes, by their rows."""
    n_rows = a.n_rows + b.n_rows
    share = b.n_rows / max(1, n_rows)

    def mean(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(one + share * (other - one), dtype=one.dtype)

    weights = Weights(
        mean(a.weights.last, b.weights.last),
        mean(a.weights.average, b.weights.average),
        # Steps shrink with the rows that one lane has seen, not all of them.
        max(a.weights.n_steps, b.weights.n_steps),
        max(a.weights.n_rows, b.weights.n_rows),
        a.weights.first_loss,
        a.weights.recent_loss + share * (b.weights.recent_loss - a.weights.recent_loss),
    )
    return _Lane(weights, a.loss_sum + b.loss_sum, n_rows)


def _count_correct(
    objective: Objective,
    settings: SgdSettings,
    state: SgdState,
    before: tuple[float, float] | None,
    blocks: Iterable[Block],
    number: int,
) -> tuple[float, float]:
    there = replace(state, stream=state.stream.substream("piece", number))
    found = Training(objective, settings, Run(), there).count_correct(blocks)
    return found if before is None else _add_pairs(before, found)


def _add_pairs(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    return a[0] + b[0], a[1] + b[1]
