"""Mini-batch stochastic gradient descent on features, preconditioned and averaged.

A run can stop after any batch and resume there with the same result, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kernelmill.errors import ArgumentError, Remedy
from kernelmill.learners.blocks import Block, count_rows, slice_rows, take_rows
from kernelmill.learners.feature_map import rows_per_block
from kernelmill.learners.few_outputs import add_weighted_rows, lay_out_columns, score_rows
from kernelmill.learners.losses import ClassifierFit, Loss, Objective, classes_of_scores
from kernelmill.learners.run import Run, SavedState, Watch
from kernelmill.learners.solvers.spectrum import MOST_DIRECTIONS, TopSpectrum, rows_to_sample
from kernelmill.random import Stream
from kernelmill.runtime.threads import one_blas_thread

__all__ = [
    "PLAIN_EPOCHS",
    "PLAIN_LEARNING_RATE",
    "Descent",
    "SgdSettings",
    "SgdState",
    "Training",
    "Weights",
    "default_epochs",
    "held_out_rows",
    "solve_sgd",
    "state_from_arrays",
    "state_to_arrays",
    "visiting_order",
]

_ROWS_TO_SEE = 100_000
_FEWEST_EPOCHS, _MOST_EPOCHS = 4, 500
# Curtó et al. (2017, McKernel), captions of Figures 2 and 3; the step is for unit features.
PLAIN_EPOCHS, _PLAIN_BATCH, PLAIN_LEARNING_RATE = 20, 10, 0.001

_AVERAGING = 8.0
_DECAY_ROWS = 1 << 13
_LARGEST_BATCH = 256

_INTEGERS = ("decay_rows", "epoch", "block", "batch", "loss_rows", "weight_rows", "n_stale")
_FLOATS = ("loss_sum", "weight_sum")
_SCALARS = ("largest_left", "longest_left", "constant", "longest", "mean_square")


def default_epochs(n_rows: int | None) -> int:
    """Return the number of passes in which 100,000 rows are seen, from 4 to 500.

    Examples
    --------
    >>> from kernelmill.learners import default_epochs
    >>> default_epochs(1000), default_epochs(10**9), default_epochs(None)
    (100, 4, 4)
    """
    if n_rows is None:
        return _FEWEST_EPOCHS
    return int(np.clip(-(-_ROWS_TO_SEE // n_rows), _FEWEST_EPOCHS, _MOST_EPOCHS))


@dataclass(frozen=True)
class SgdSettings:
    """How to descend.

    Attributes
    ----------
    n_epochs : int
        The number of passes, or the most if there are held-out rows.
    batch_size : int or None
        None for one that suits the number of rows.
    plain : bool
        Without preconditioning and averaging, with fixed steps; all weights start at zero, and the
        intercept is the weight of a constant of the size of a cosine.
    learning_rate : float
        The step of plain descent, for features of unit size: cosines and sines.
    one_block : bool
        Whether the first block has all the rows.
    validation_fraction : float
        The share of rows to hold out.
    patience : int
        Stop after this number of epochs without a better score on the held-out rows.
    """

    n_epochs: int
    batch_size: int | None = None
    plain: bool = False
    learning_rate: float = PLAIN_LEARNING_RATE
    one_block: bool = False
    validation_fraction: float = 0.0
    patience: int = 3


def visiting_order(
    n_rows: int, weights: NDArray[np.float64] | None, mean_weight: float, stream: Stream
) -> NDArray[np.intp]:
    """Return a shuffled list with row i weights[i] / mean_weight times on average.

    By systematic sampling: the number of visits of a row is rounded up or down, never more. Steps
    on such a list need no weights, and one heavy row does not make them large. Without weights it
    is a permutation.
    """
    rows = np.arange(n_rows, dtype=np.intp)
    if weights is not None:
        edges = np.cumsum(weights) / mean_weight
        offset = float(stream.substream("offset").uniforms(1)[0])
        counts = np.diff(np.floor(edges + offset), prepend=np.floor(offset)).astype(np.intp)
        rows = np.repeat(rows, counts)
    if len(rows) == 0:
        return rows
    order: NDArray[np.intp] = rows[stream.permutation(len(rows))]
    return order


def held_out_rows(
    classes: NDArray[np.intp], fraction: float, stream: Stream, block: int
) -> NDArray[np.bool_]:
    """Return which rows of a block are held out: this fraction of each class, at random.

    The same rows in every pass. At least one row of each class is left for training.
    """
    out = np.zeros(len(classes), bool)
    if not fraction:
        return out
    shuffled = stream.substream("held out", block).permutation(len(classes))
    by_class = shuffled[np.argsort(classes[shuffled], kind="stable")]
    sorted_classes = classes[by_class]
    starts = np.flatnonzero(np.diff(sorted_classes, prepend=-1))
    sizes = np.diff(starts, append=len(classes))
    ranks = np.arange(len(classes)) - np.repeat(starts, sizes)
    taken = np.repeat(np.minimum(np.round(sizes * fraction), sizes - 1), sizes)
    out[by_class] = ranks < taken
    return out


@dataclass
class Weights:
    """The weights of descent, and the number of its steps.

    Attributes
    ----------
    last : ndarray of shape (D + 1, n_outputs)
        Weights of the features and, below them, of the constant.
    average : ndarray of shape (D + 1, n_outputs)
        Their average over the steps, recent ones counting more (polynomial decay averaging, Shamir
        & Zhang, 2013): what predictions use.
    n_steps, n_rows : int
        Steps taken, and rows seen in them.

    Notes
    -----
    Columns are contiguous, as native products take them.
    """

    last: NDArray[Any]
    average: NDArray[Any]
    n_steps: int = 0
    n_rows: int = 0

    def __post_init__(self) -> None:
        self.last, self.average = lay_out_columns(self.last), lay_out_columns(self.average)

    @classmethod
    def constant_scores(
        cls, n_features: int, scores: NDArray[np.float64], constant: float, dtype: Any
    ) -> Self:
        """Return weights that give every row these scores."""
        start = np.zeros((n_features + 1, len(scores)), dtype)
        start[-1] = scores / constant
        return cls(start, start.copy())

    def copy(self) -> Weights:
        """Return a copy."""
        return Weights(self.last.copy(), self.average.copy(), self.n_steps, self.n_rows)


@dataclass
class Descent:
    """One step of descent on a batch.

    The objective is the mean loss plus ``alpha / 2`` times the squared norm of the weights, the
    intercept left out. The step size falls with the square root of the rows seen.

    Parameters
    ----------
    loss : Loss
    alpha : float
    spectrum : TopSpectrum
        Without eigenvectors, descent is plain.
    curvature : float
        Of the loss: see `Loss.curvature`.
    decay_rows : int
        The number of rows after which steps are shorter by the square root of two.
    fixed_step : float, default=None
        Instead of steps from the spectrum: constant ones, without averaging.
    n_threads : int, default=None
    """

    loss: Loss
    alpha: float
    spectrum: TopSpectrum
    curvature: float
    decay_rows: int
    fixed_step: float | None = None
    n_threads: int | None = None
    _vectors: NDArray[Any] = field(init=False)
    _damping: NDArray[Any] = field(init=False)
    _buffer: NDArray[Any] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        spectrum = self.spectrum
        self._vectors = lay_out_columns(spectrum.vectors).T
        self._damping = spectrum.damping.astype(spectrum.vectors.dtype)[:, None]

    def step(self, weights: Weights, Z: NDArray[Any], codes: NDArray[np.intp]) -> float:
        """Improve the weights by a batch; return the sum of its losses before that."""
        n = len(Z)
        last, average = weights.last.T, weights.average.T
        losses, derivatives = self.loss.derivatives(self._scores(last, Z), codes)
        move = self._move(last, Z, derivatives)
        if self.fixed_step is None:
            step = self._step_size(n, weights.n_rows)
            step *= self._best_share(last, move, step, derivatives, self._scores(move, Z))
        else:
            step = self.fixed_step
        move *= step
        last -= move
        weights.n_steps += 1
        weights.n_rows += n
        if self.fixed_step is None:
            np.subtract(last, average, out=move)
            move *= (_AVERAGING + 1) / (weights.n_steps + _AVERAGING)
            average += move
        else:
            average[...] = last
        return float(losses.sum(dtype=np.float64))

    def _scores(self, weights: NDArray[Any], Z: NDArray[Any]) -> NDArray[Any]:
        scores = score_rows(Z, weights[:, :-1], self.n_threads)
        scores += self.spectrum.constant * weights[:, -1]
        return scores

    def _move(self, last: NDArray[Any], Z: NDArray[Any], derivatives: NDArray[Any]) -> NDArray[Any]:
        """Return the preconditioned gradient, of shape (n_outputs, D + 1), until the next call."""
        factors = np.divide(derivatives, len(Z), order="C")
        if self._buffer is None:
            self._buffer = lay_out_columns(np.zeros_like(last.T, order="C")).T
        move = self._buffer  # not a new array in each step, whose pages would be new as well
        np.multiply(last, self.alpha, out=move)
        move[:, -1] = self.spectrum.constant * factors.sum(axis=0)
        add_weighted_rows(Z, factors, move[:, :-1], self.n_threads)
        if len(self._vectors):
            along = score_rows(self._vectors, move, self.n_threads)
            along *= -self._damping
            add_weighted_rows(self._vectors, along, move, self.n_threads)
        return move

    def _step_size(self, n: int, n_rows: int) -> float:
        r"""Return half of the largest stable step, less as more rows are seen.

        For least squares in mean square: with :math:`\beta` the largest :math:`z^T P z` and
        :math:`\lambda` the largest eigenvalue that P leaves, steps below
        :math:`2 b / (h (\beta + (b - 1) \lambda))` are (Ma, Bassily & Belkin, 2018).
        """
        spectrum = self.spectrum
        steepest = self.curvature * (spectrum.longest_left + (n - 1) * spectrum.largest_left)
        decay = np.sqrt(1 + n_rows / self.decay_rows)
        return float(n / (steepest + n * self.alpha) / decay)

    def _best_share(
        self,
        last: NDArray[Any],
        move: NDArray[Any],
        step: float,
        derivatives: NDArray[Any],
        change: NDArray[Any],
    ) -> float:
        """Return the share of a step that lowers the objective of its batch the most, at most 1.

        Rows unlike those of the sample can be longer, or lie in directions that P damps too
        little. Without this limit they would make descent unstable.
        """
        n = len(change)
        gain = step * _inner_product(derivatives, change) / n
        bend = step**2 * self.curvature * _inner_product(change, change) / n
        if self.alpha:
            last, move = last[:, :-1], move[:, :-1]
            gain += step * self.alpha * _inner_product(last, move)
            bend += step**2 * self.alpha * _inner_product(move, move)
        return gain / bend if bend > gain > 0 else 1.0


def _inner_product(a: NDArray[Any], b: NDArray[Any]) -> float:
    """Return the inner product of two matrices, not by a BLAS: it depends on them alone."""
    return float(np.einsum("ij,ij->i", a, b).sum(dtype=np.float64))


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
        "last": weights.last,
        "average": weights.average,
        "vectors": spectrum.vectors,
        "damping": spectrum.damping,
        "scalars": np.array([getattr(spectrum, name) for name in _SCALARS], np.float64),
        "sample_rows": np.array([spectrum.n_rows], np.int64),
    }
    if state.sample is not None:
        arrays["sample"] = state.sample
    if state.best is not None:
        arrays["best"] = state.best
    return arrays


def state_from_arrays(saved: SavedState, stream: Stream, objective: Objective) -> SgdState:
    """Return the state that was saved."""
    n_features, dtype = objective.n_features, objective.dtype
    shape = (n_features + 1, objective.n_outputs)
    damping = saved.array("damping", (None,), np.float64)
    n_steps, n_rows = map(int, saved.array("counts", (2,), np.int64))
    scalars = saved.array("scalars", (len(_SCALARS),), np.float64).tolist()
    last = saved.array("last", shape, dtype)
    average = saved.array("average", shape, dtype)
    sample = best = None
    if "sample" in saved:
        sample = saved.array("sample", (None, n_features), dtype)
    if "best" in saved:
        best = saved.array("best", shape, dtype)
    state = SgdState(
        stream=stream,
        weights=Weights(last, average, n_steps, n_rows),
        spectrum=TopSpectrum(
            saved.array("vectors", (n_features + 1, len(damping)), dtype),
            damping,
            **dict(zip(_SCALARS, scalars, strict=True)),
            n_rows=int(saved.array("sample_rows", (1,), np.int64)[0]),
        ),
        sample=sample,
        constant=scalars[_SCALARS.index("constant")],
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
    return state


def solve_sgd(
    objective: Objective,
    blocks: Iterable[Block],
    run: Run,
    settings: SgdSettings,
    state: SgdState,
) -> ClassifierFit:
    """Pass over the blocks until all epochs are done or the held-out score stops improving.

    Parameters
    ----------
    objective : Objective
    blocks : iterable of Block
        Gives the same blocks in each pass.
    run : Run
        If it has a saved state, training resumes from there.
    settings : SgdSettings
    state : SgdState
        The state to start from otherwise; it is changed.
    """
    saved = run.take_saved()
    if saved is not None:
        state = state_from_arrays(saved, state.stream, objective)
    training = Training(objective, settings, run, state)
    training.pass_over(blocks)
    return training.finish()


@dataclass(frozen=True)
class Training:
    """The passes of one call of `solve_sgd`, or the part of them that one machine has.

    Parameters
    ----------
    objective : Objective
    settings : SgdSettings
    run : Run
    state : SgdState
        It is changed.
    """

    objective: Objective
    settings: SgdSettings
    run: Run
    state: SgdState

    def pass_over(self, blocks: Iterable[Block]) -> None:
        """Train until the end."""
        state, n_epochs = self.state, self.settings.n_epochs
        if self.run.watch is not None:
            self.run.watch.begin(state.epoch * state.weight_rows + state.loss_rows)
        while state.epoch < n_epochs:
            self.visit(blocks)
            if self.end_epoch(lambda: self.count_correct(blocks)):
                break
        if self.run.watch is not None:
            self._measure(self.run.watch)

    def visit(self, blocks: Iterable[Block]) -> None:
        """Take the steps of one epoch, or of the rest of it."""
        state = self.state
        for index, block in enumerate(blocks):
            if index < state.block:
                continue
            for n_rows in self._steps(block, index):
                mean = state.loss_sum / state.loss_rows
                status = f"pass {state.epoch + 1}/{self.settings.n_epochs}  loss {mean:.4g}"
                self.run.progress.advance(n_rows, status)
                watch = self.run.watch
                if watch is not None and watch.advance(n_rows, state.loss_sum, state.loss_rows):
                    self._measure(watch)
                if self.run.is_due():
                    self.run.save(state_to_arrays(state))
            state.block, state.batch = index + 1, 0

    def end_epoch(self, count_correct: Callable[[], tuple[float, float]]) -> bool:
        """Record the loss of the epoch and the held-out score; return whether it is the last one.

        `count_correct` returns the weights of correctly classified and of all held-out rows.
        """
        state, fraction = self.state, self.settings.validation_fraction
        if state.loss_rows == 0:
            raise ArgumentError("are all zero: no rows to train on", parameter="sample_weight")
        state.loss_curve.append(state.loss_sum / state.loss_rows)
        state.loss_sum, state.loss_rows = 0.0, 0
        text = f"pass {state.epoch + 1}/{self.settings.n_epochs}  loss {state.loss_curve[-1]:.5g}"
        if fraction:
            self._keep_best(*count_correct())
            text += f"  held-out accuracy {state.validation_curve[-1]:.5g}"
        self.run.progress.end_pass(text)
        state.epoch, state.block = state.epoch + 1, 0
        return bool(fraction) and state.n_stale >= self.settings.patience

    def begin(self, block: Block) -> None:
        """Estimate the spectrum and the first weights from these rows, which are not visited."""
        state = self.state
        state.weight_sum = len(block.y) if block.weight is None else float(block.weight.sum())
        state.weight_rows = len(block.y)
        mean_weight = state.weight_sum / state.weight_rows
        if mean_weight <= 0:
            raise ArgumentError("are all zero: no rows to train on", parameter="sample_weight")
        stream = state.stream.substream("first rows")
        self._sample_spectrum(
            block, visiting_order(len(block.y), block.weight, mean_weight, stream)
        )
        state.sample = None

    def finish(self) -> ClassifierFit:
        """Return the fit: the averaged weights, or those with the best held-out score."""
        state = self.state
        assert state.weights is not None
        assert state.spectrum is not None
        weights = state.weights.average if state.best is None else state.best
        return ClassifierFit(
            np.ascontiguousarray(weights[:-1].T),
            state.spectrum.constant * weights[-1],
            state.loss_curve,
            state.validation_curve,
            state,
        )

    def _measure(self, watch: Watch) -> None:
        """Measure the averaged weights on the watched rows."""
        weights, spectrum = self.state.weights, self.state.spectrum
        if weights is None or spectrum is None:
            return
        scores = self._score(self.objective.features(watch.X), weights, spectrum)
        wrong = classes_of_scores(scores) != watch.codes
        watch.add(self.objective.loss.derivatives(scores, watch.codes)[0], wrong)

    def _score(self, Z: NDArray[Any], weights: Weights, spectrum: TopSpectrum) -> NDArray[Any]:
        """Return the scores of rows by the averaged weights."""
        average = weights.average.T
        scores = score_rows(Z, average[:, :-1], self.objective.n_threads)
        scores += spectrum.constant * average[:, -1]
        return scores

    def _steps(self, block: Block, index: int) -> Iterator[int]:
        """Visit the rows of a block in random order; yield the number of rows of each batch."""
        state = self.state
        out = held_out_rows(block.y, self.settings.validation_fraction, state.stream, index)
        chosen = np.flatnonzero(~out)
        weights = None if block.weight is None else block.weight[chosen]
        if state.epoch == 0 and state.batch == 0:
            state.weight_sum += len(chosen) if weights is None else float(weights.sum())
            state.weight_rows += len(chosen)
        mean_weight = state.weight_sum / max(state.weight_rows, 1)
        if mean_weight <= 0:
            return
        if weights is None and mean_weight != 1.0:
            weights = np.ones(len(chosen))  # of a block without weights among others with some
        order_stream = state.stream.substream("order", state.epoch, index)
        order = chosen[visiting_order(len(chosen), weights, mean_weight, order_stream)]
        if len(order) == 0:
            return
        if state.batch == 0:
            self._sample_spectrum(block, order)
        assert state.weights is not None
        assert state.spectrum is not None
        descent = self._descent(state.spectrum, state.decay_rows)
        usual = _PLAIN_BATCH if self.settings.plain else _batch_size(len(order))
        size = self.settings.batch_size or usual
        n_features = len(state.weights.last) - 1
        # Batches that fit into the cache together are mapped together.
        fitting = rows_per_block(n_features, state.weights.last.itemsize)
        for mapped in slice_rows(len(order), max(1, fitting // size) * size):
            if mapped.stop <= state.batch * size:
                continue
            visited = order[mapped]
            Z = self.objective.features(take_rows(block.X, visited))
            for batch in slice_rows(len(visited), size):
                if mapped.start + batch.start < state.batch * size:
                    continue
                codes = block.y[visited[batch]]
                loss = descent.step(state.weights, Z[batch], codes)
                if not np.isfinite(loss):
                    raise ArgumentError(
                        "the loss of a batch is not finite: features or scores of some rows are "
                        "too large",
                        "scale the columns of X",
                        "look for outliers",
                    )
                state.loss_sum += loss
                state.loss_rows += len(codes)
                state.batch += 1
                yield len(codes)

    def _descent(self, spectrum: TopSpectrum, decay_rows: int) -> Descent:
        objective = self.objective
        fixed_step = None
        if self.settings.plain:
            # A step on features and a constant of unit size, in terms of z = unit * (features).
            fixed_step = self.settings.learning_rate / spectrum.constant**2
        return Descent(
            objective.loss,
            objective.alpha,
            spectrum,
            objective.curvature,
            decay_rows,
            fixed_step,
            objective.n_threads,
        )

    def _sample_spectrum(self, block: Block, order: NDArray[np.intp]) -> None:
        """Estimate the spectrum from the next rows; again whenever the sample has doubled."""
        state = self.state
        if state.epoch > 0 and state.spectrum is not None:
            state.sample = None  # these rows were seen before
        if state.spectrum is not None and state.sample is None:
            return
        features = self.objective.features
        probe = features(take_rows(block.X, order[:1]))
        wanted = rows_to_sample(probe.shape[1], probe.itemsize)
        missing = wanted - (0 if state.sample is None else len(state.sample))
        sample = features(take_rows(block.X, order[:missing]))
        if state.sample is not None:
            sample = np.concatenate([state.sample, sample])
        if self.settings.plain and state.constant is None:
            state.constant = _unit_size(sample)
        built = 0 if state.spectrum is None else state.spectrum.n_rows
        if len(sample) >= min(2 * built, wanted):
            with one_blas_thread():  # results must not depend on the number of threads
                state.spectrum = TopSpectrum.of_sample(
                    sample,
                    ridge=self.objective.alpha / self.objective.curvature,
                    complete=self.settings.one_block and len(order) <= wanted,
                    most=0 if self.settings.plain else MOST_DIRECTIONS,
                    constant=state.constant,
                )
            state.constant = state.spectrum.constant
        state.sample = sample if len(sample) < wanted else None
        if state.weights is None:
            assert state.spectrum is not None
            state.decay_rows = max(count_rows(block.X), _DECAY_ROWS)
            scores = self.objective.first_scores(block)
            if self.settings.plain:
                scores = np.zeros_like(scores)
            state.weights = Weights.constant_scores(
                sample.shape[1], scores, state.spectrum.constant, sample.dtype
            )

    def count_correct(self, blocks: Iterable[Block]) -> tuple[float, float]:
        """Return the weights of correctly classified and of all held-out rows."""
        state = self.state
        assert state.weights is not None
        assert state.spectrum is not None
        size = rows_per_block(self.objective.n_features, np.dtype(self.objective.dtype).itemsize)
        correct = total = 0.0
        for index, block in enumerate(blocks):
            out = held_out_rows(block.y, self.settings.validation_fraction, state.stream, index)
            chosen = np.flatnonzero(out)
            for part in slice_rows(len(chosen), size):
                some = chosen[part]
                Z = self.objective.features(take_rows(block.X, some))
                scores = self._score(Z, state.weights, state.spectrum)
                weights = np.ones(len(some)) if block.weight is None else block.weight[some]
                correct += float(weights[classes_of_scores(scores) == block.y[some]].sum())
                total += float(weights.sum())
        return correct, total

    def _keep_best(self, correct: float, total: float) -> None:
        """Record the score on the held-out rows; keep the weights if it is the best yet."""
        state = self.state
        assert state.weights is not None
        if total == 0:
            fraction = self.settings.validation_fraction
            raise ArgumentError(
                f"is {fraction}, which holds out no row of positive weight",
                "hold out more rows",
                Remedy("hold out none", validation_fraction=None),
                parameter="validation_fraction",
            )
        score = correct / total
        if not state.validation_curve or score > max(state.validation_curve):
            state.best, state.n_stale = state.weights.average.copy(), 0
        else:
            state.n_stale += 1
        state.validation_curve.append(score)


def _unit_size(Z: NDArray[Any]) -> float:
    """Return what the features have in place of cosines and sines, whose squares sum to D / 2."""
    mean_square = float(np.mean(np.einsum("ij,ij->i", Z, Z, dtype=np.float64)))
    return float(np.sqrt(2 * mean_square / Z.shape[1])) or 1.0


def _batch_size(n_rows: int) -> int:
    """Return 256, or less if a pass would have few steps."""
    return int(np.clip(n_rows // 8, 16, _LARGEST_BATCH))
