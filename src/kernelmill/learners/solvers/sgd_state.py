"""The state of a descent: weights, spectrum and progress, in memory and in checkpoints."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.learners.losses import Objective
from kernelmill.learners.run import LARGEST, SavedState
from kernelmill.learners.solvers.descent import Weights
from kernelmill.learners.solvers.spectrum import MOST_SAMPLED, TopSpectrum
from kernelmill.random import Stream

__all__ = ["SgdState", "state_from_arrays", "state_to_arrays"]

_INTEGERS = ("decay_rows", "epoch", "block", "batch", "loss_rows", "weight_rows", "n_stale")
_FLOATS = ("loss_sum", "weight_sum")
_SCALARS = ("largest_left", "longest_left", "constant", "longest", "mean_square")


@dataclass
class SgdState:
    """The progress of a training run, and what it has learned.

    Attributes
    ----------
    stream : Stream
        Draws the order of the rows.
    weights, spectrum
        None before the first rows.
    sample : ndarray
        Features of rows seen, while they are too few to estimate the spectrum.
    constant : float
        That of the first spectrum: the unit of the intercept.
    decay_rows : int
        See `Descent`.
    epoch, block, batch : int
        The numbers of epochs, blocks of the next epoch and batches of the next block done.
    loss_sum, loss_rows, weight_sum, weight_rows
        Sums over this epoch, and over the first one.
    is_limited : bool
        Whether a step was shortened by its limit, or taken with another spectrum. Otherwise the
        rows of later epochs, which are those of the first, need no limit.
    best : ndarray
        The averaged weights with the best score on held-out rows.
    n_stale : int
        The number of epochs since then.
    """

    stream: Stream
    weights: Weights | None = None
    spectrum: TopSpectrum | None = None
    sample: NDArray[Any] | None = None
    constant: float | None = None
    decay_rows: int = 0
    epoch: int = 0
    block: int = 0
    batch: int = 0
    loss_sum: float = 0.0
    loss_rows: int = 0
    weight_sum: float = 0.0
    weight_rows: int = 0
    is_limited: bool = False
    loss_curve: list[float] = field(default_factory=list)
    validation_curve: list[float] = field(default_factory=list)
    best: NDArray[Any] | None = None
    n_stale: int = 0

    def for_more_rows(self) -> SgdState:
        """Return a state for a pass over further rows; this one stays as it is."""
        return replace(
            self,
            stream=self.stream.substream("further rows"),
            weights=None if self.weights is None else self.weights.copy(),
            loss_curve=list(self.loss_curve),
            validation_curve=[],
            epoch=0,
            is_limited=False,
            best=None,
            n_stale=0,
        )

    def without_spectrum(self) -> SgdState:
        """Return what a finished run keeps: further rows give another spectrum."""
        return replace(self, spectrum=None, sample=None, best=None)


def state_to_arrays(state: SgdState) -> dict[str, NDArray[Any]]:
    """Return arrays from which `state_from_arrays` restores the state, bit for bit."""
    assert state.weights is not None
    assert state.spectrum is not None
    weights, spectrum = state.weights, state.spectrum
    arrays: dict[str, NDArray[Any]] = {
        "integers": np.array([getattr(state, name) for name in _INTEGERS], np.int64),
        "floats": np.array([getattr(state, name) for name in _FLOATS], np.float64),
        "loss_curve": np.array(state.loss_curve, np.float64),
        "validation_curve": np.array(state.validation_curve, np.float64),
        "counts": np.array([weights.n_steps, weights.n_rows], np.int64),
        "losses": np.array([weights.first_loss, weights.recent_loss], np.float64),
        "last": weights.last,
        "average": weights.average,
        "vectors": spectrum.vectors,
        "damping": spectrum.damping,
        "scalars": np.array([getattr(spectrum, name) for name in _SCALARS], np.float64),
        "sample_rows": np.array([spectrum.n_rows], np.int64),
        "is_limited": np.array([state.is_limited], np.int64),
    }
    if state.sample is not None:
        arrays["sample"] = state.sample
    if state.best is not None:
        arrays["best"] = state.best
    return arrays


def state_from_arrays(
    saved: SavedState, stream: Stream, objective: Objective, n_epochs: int, *, holds_out: bool
) -> SgdState:
    """Return the state that was saved, of a training with these epochs and held-out rows."""
    n_features, dtype = objective.n_features, objective.dtype
    shape = (n_features + 1, objective.n_outputs)
    damping = saved.array("damping", (None,), np.float64)
    n_steps, n_rows = saved.counts("counts", 2)
    scalars = saved.array("scalars", (len(_SCALARS),), np.float64).tolist()
    last = saved.array("last", shape, dtype)
    average = saved.array("average", shape, dtype)
    losses = saved.array("losses", (2,), np.float64).tolist() if "losses" in saved else [0.0, 0.0]
    sample = best = None
    if "sample" in saved:
        sample = saved.array("sample", (None, n_features), dtype)
    if "best" in saved:
        best = saved.array("best", shape, dtype)
    state = SgdState(
        stream=stream,
        weights=Weights(last, average, n_steps, n_rows, *losses),
        spectrum=TopSpectrum(
            saved.array("vectors", (n_features + 1, len(damping)), dtype),
            damping,
            **dict(zip(_SCALARS, scalars, strict=True)),
            n_rows=saved.counts("sample_rows", 1)[0],
        ),
        sample=sample,
        constant=scalars[_SCALARS.index("constant")],
        is_limited="is_limited" not in saved or bool(saved.counts("is_limited", 1)[0]),
        best=best,
        loss_curve=saved.array("loss_curve", (None,), np.float64).tolist(),
        validation_curve=saved.array("validation_curve", (None,), np.float64).tolist(),
    )
    integers = saved.counts("integers", len(_INTEGERS))
    for name, integer in zip(_INTEGERS, integers, strict=True):
        setattr(state, name, integer)
    floats = saved.array("floats", (len(_FLOATS),), np.float64)
    for name, number in zip(_FLOATS, floats, strict=True):
        setattr(state, name, float(number))
    _check(saved, state, n_epochs, holds_out)
    return state


def _check(saved: SavedState, state: SgdState, n_epochs: int, holds_out: bool) -> None:
    """Raise if no training has such a state; what is in it is used without further checks."""
    weights, spectrum = state.weights, state.spectrum
    assert weights is not None
    assert spectrum is not None
    n_scored = state.epoch if holds_out else 0
    saved.check(len(state.loss_curve) == state.epoch <= n_epochs, "the number of epochs")
    saved.check(len(state.validation_curve) == n_scored, "the number of held-out scores")
    saved.check((state.best is not None) == (n_scored > 0), "'best'")
    saved.check(state.n_stale <= n_scored, "'n_stale'")
    # States are saved after a batch, or after an epoch.
    is_within = state.batch > 0
    saved.check((state.loss_rows > 0) == is_within >= (state.block > 0), "the position")
    saved.check(state.epoch < n_epochs or not is_within, "the position")
    saved.check(state.weight_rows > 0 and state.weight_sum > 0, "the weight of the rows")
    saved.check(weights.n_steps <= weights.n_rows and state.decay_rows > 0, "the number of steps")
    saved.check(min(weights.first_loss, weights.recent_loss) >= 0, "'losses'")
    damping = spectrum.damping
    saved.check(bool(((damping >= 0) & (damping <= 1)).all()), "'damping'")
    sizes = spectrum.largest_left, spectrum.longest_left, spectrum.constant
    saved.check(min(sizes) > 0 <= min(spectrum.longest, spectrum.mean_square), "'scalars'")
    saved.check(spectrum.constant < LARGEST, "'scalars'")
    sample = np.zeros((0, 1)) if state.sample is None else state.sample
    squares = spectrum.constant**2 + np.einsum("ij,ij->i", sample, sample, dtype=np.float64)
    is_small = not len(squares) or float(squares.sum()) < np.finfo(weights.last.dtype).max / 8
    saved.check(spectrum.n_rows > 0 and len(sample) <= MOST_SAMPLED and is_small, "the sample")
