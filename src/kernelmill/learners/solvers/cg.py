"""Ridge regression without a D x D matrix: preconditioned conjugate gradients over the rows.

Every iteration passes over the rows once and computes their features again. The preconditioner
takes the top of the spectrum from a sample of the rows (Frangella, Tropp & Udell, 2023):
P⁻¹ = V diag((l_k + α)/(lᵢ + α)) Vᵀ + (I - VVᵀ), for eigenvalues l₁ ≥ … ≥ l_k with eigenvectors V.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.exceptions import ConvergenceWarning

from kernelmill.errors import ArgumentError, Remedy
from kernelmill.learners.blocks import (
    Block,
    BlockSource,
    first_block,
    fold_blocks,
    take_rows,
)
from kernelmill.learners.features import FeatureBlock, Features, compute_feature_blocks
from kernelmill.learners.ridge import RidgeObjective
from kernelmill.learners.run import Run, SavedState
from kernelmill.learners.statistics import check_some_weight, rows_per_update
from kernelmill.random import Stream

__all__ = ["CgFit", "Iteration", "Means", "solve_cg"]

_Array = NDArray[np.float64]
_Sums = TypeVar("_Sums")

_SAMPLE_ROWS = 1024
_SAMPLE_BYTES = 1 << 27  # of the features of the sample, in float64
_LEAST_RELATIVE_EIGENVALUE = 1e-10
_TOO_LARGE = "the sums are not finite: targets, weights or features are too large"
_SMALLER = "divide them by a constant"


@dataclass(frozen=True)
class CgFit:
    """The result of conjugate gradients.

    Attributes
    ----------
    alpha : float
    coef : ndarray of shape (T, D)
    intercept : ndarray of shape (T,)
    n_iter : int
        Iterations, each a pass over the rows; two more passes prepare them.
    residual : float
        The norm of C - (M + αI) W relative to that of C; the largest of all outputs.
    objective : ndarray of shape (T,)
        The minimum of Σ w (y - zᵀW - b)² + α|W|².
    n_degrees : int
        Rows of positive weight, less one with an intercept.
    """

    alpha: float
    coef: _Array
    intercept: _Array
    n_iter: int
    residual: float
    objective: _Array
    n_degrees: int

    def noise(self) -> _Array:
        """Return the variance of the noise with the largest evidence for this penalty."""
        return self.objective / self.n_degrees if self.n_degrees else self.objective * np.nan


@dataclass(frozen=True)
class Means:
    """Means of the rows, or zeros without an intercept.

    `n_seen` counts all rows, `n_rows` those of positive weight.
    """

    n_seen: int
    n_rows: int
    weight: float
    features: _Array
    targets: _Array


@dataclass
class Iteration:
    """The state of conjugate gradients between two iterations.

    Attributes
    ----------
    means : Means
    cross, target_moments : ndarray of shapes (D, T) and (T,)
        The right-hand side, and Σ w (y - ȳ)².
    eigenvalues, vectors : ndarray of shapes (k,) and (k, D)
        Of the preconditioner.
    solution, residuals, directions : ndarray of shape (D, T)
    energy : ndarray of shape (T,)
        Residuals times preconditioned residuals.
    n_iter : int
        Iterations done.
    """

    means: Means
    cross: _Array
    target_moments: _Array
    eigenvalues: _Array
    vectors: _Array
    solution: _Array
    residuals: _Array
    directions: _Array
    energy: _Array
    n_iter: int = 0

    def without_preconditioner(self) -> Iteration:
        """Return the last state, which is smaller."""
        return replace(self, eigenvalues=self.eigenvalues[:0], vectors=self.vectors[:0])


def solve_cg(
    objective: RidgeObjective,
    blocks: Iterable[Block],
    run: Run,
    *,
    stream: Stream,
    tol: float,
    max_iter: int,
) -> CgFit:
    """Minimize the objective to a relative residual of `tol` for each output.

    Warns if that takes more than `max_iter` iterations.

    Parameters
    ----------
    objective : RidgeObjective
        With one positive penalty.
    blocks : iterable of Block
        Gives the same blocks in each pass.
    run : Run
        If it has a saved state, the iteration resumes from there.
    stream : Stream
        Draws the rows of the sample.
    tol, max_iter
        When to stop, and when to give up.
    """
    alpha = objective.penalty
    if not isinstance(alpha, float) or alpha == 0.0:
        raise ArgumentError(
            f"must be one positive number for solver='cg', got {np.asarray(alpha).tolist()}",
            Remedy("compare several", solver="exact"),
            parameter="alpha",
        )
    passes = _Passes(objective, blocks, run)
    saved = run.take_saved()
    if saved is not None:
        iteration = _iteration_from_arrays(saved, objective.n_features, objective.n_targets)
        saved.check(iteration.n_iter <= max_iter, "the number of iterations")
        max_iter = iteration.n_iter if saved.is_last else max_iter
        del saved
    else:
        iteration = _prepare(passes, alpha, fit_intercept=objective.fit_intercept, stream=stream)
        passes.save(iteration)
    residual = _iterate(iteration, passes, alpha, tol=tol, max_iter=max_iter)
    run.save_last(_iteration_to_arrays(iteration.without_preconditioner()))
    if residual > tol:
        warnings.warn(
            f"Conjugate gradients stopped after {iteration.n_iter} iterations at a residual of "
            f"{residual:.1e}, above tol={tol:g}; increase max_iter, alpha or tol.",
            ConvergenceWarning,
            stacklevel=5,  # the caller of `fit`
        )
    means, cross, coef = iteration.means, iteration.cross, iteration.solution
    least = alpha * np.einsum("dt,dt->t", coef, coef)
    explained = np.einsum("dt,dt->t", cross, coef)
    return CgFit(
        alpha=alpha,
        coef=np.ascontiguousarray(coef.T),
        intercept=means.targets - means.features @ coef,
        n_iter=iteration.n_iter,
        residual=residual,
        objective=np.maximum(iteration.target_moments - explained, least),
        n_degrees=means.n_rows - bool(objective.fit_intercept),
    )


class _Passes:
    """Passes over the features of all rows."""

    def __init__(self, objective: RidgeObjective, blocks: Iterable[Block], run: Run) -> None:
        self._features = objective.features
        self._rows = rows_per_update(objective.n_features)
        self._blocks = blocks
        self.run = run

    def __iter__(self) -> Iterator[FeatureBlock]:
        for block in self._blocks:
            for mapped in compute_feature_blocks(self._features, block, self._rows):
                yield mapped
                self.run.progress.advance(len(mapped[1]))
            del block  # not held while the next one is read

    @property
    def sample(self) -> Block | None:
        """Rows that are here, of blocks on other machines; these have no order to draw from."""
        blocks = self._blocks
        spread = isinstance(blocks, BlockSource) and blocks.is_spread
        return first_block(blocks) if spread else None

    def sum(
        self,
        add: Callable[[Iterable[FeatureBlock]], _Sums],
        merge: Callable[[_Sums, _Sums], _Sums],
    ) -> _Sums:
        """Return what `add` returns for the features of all rows, wherever these are."""
        if self.sample is None:
            return add(self)
        fold = partial(_fold_features, self._features, self._rows, add, merge)
        return fold_blocks(self._blocks, fold, merge, progress=self.run.progress)

    def map_rows(self, block: Block, most: int) -> Iterator[FeatureBlock]:
        """Yield the features of the first rows of a block."""
        weight = None if block.weight is None else block.weight[:most]
        some = Block(take_rows(block.X, slice(0, most)), block.y[:most], weight)
        yield from compute_feature_blocks(self._features, some, self._rows)

    def save(self, iteration: Iteration) -> None:
        """Write the state to the checkpoint if it is time."""
        if self.run.is_due():
            self.run.save(_iteration_to_arrays(iteration))


def _fold_features(
    features: Features,
    rows: int,
    add: Callable[[Iterable[FeatureBlock]], _Sums],
    merge: Callable[[_Sums, _Sums], _Sums],
    before: _Sums | None,
    blocks: Iterable[Block],
    _: int,
) -> _Sums:
    mapped = (each for block in blocks for each in compute_feature_blocks(features, block, rows))
    found = add(mapped)
    return found if before is None else merge(before, found)


def _prepare(passes: _Passes, alpha: float, *, fit_intercept: bool, stream: Stream) -> Iteration:
    """Compute means, the right-hand side and the preconditioner in two passes over the rows."""
    means = passes.sum(_compute_means, _merge_means)
    check_some_weight(means.n_rows)
    if not fit_intercept:
        means = Means(
            means.n_seen,
            means.n_rows,
            means.weight,
            np.zeros_like(means.features),
            np.zeros_like(means.targets),
        )
    spread = passes.sample
    most = max(1, min(_SAMPLE_ROWS, _SAMPLE_BYTES // (8 * len(means.features))))
    if spread is None:
        moments = _compute_moments(passes, means, _choose_rows(means.n_seen, most, stream))
        sample = moments.sample
    else:
        nothing = np.empty(0, np.intp)
        moments = passes.sum(partial(_compute_moments, means=means, chosen=nothing), _add_moments)
        rows = passes.map_rows(spread, most)
        sample = _compute_moments(rows, means, np.arange(most)).sample
    eigenvalues, vectors = _compute_top_spectrum(sample)
    del sample
    residuals = moments.cross.copy()
    preconditioned = _precondition(residuals, eigenvalues, vectors, alpha)
    return Iteration(
        means,
        moments.cross,
        moments.targets,
        eigenvalues,
        vectors,
        solution=np.zeros_like(residuals),
        residuals=residuals,
        directions=preconditioned.copy(),
        energy=np.einsum("dt,dt->t", residuals, preconditioned),
    )


def _precondition(residuals: _Array, eigenvalues: _Array, vectors: _Array, alpha: float) -> _Array:
    shrink = (eigenvalues[-1:] + alpha) / (eigenvalues + alpha) - 1.0
    return np.asarray(residuals + vectors.T @ (shrink[:, None] * (vectors @ residuals)))


class _Image(NamedTuple):
    """Sums over rows: of z (zᵀd - shift) for directions d, of (zᵀd - shift), and of rows."""

    product: _Array
    total: _Array
    n_seen: int


def _multiply(directions: _Array, passes: _Passes, means: Means, alpha: float) -> _Array:
    """Return (M + αI) times the directions, by a pass over the rows."""
    shift = means.features @ directions
    image = passes.sum(partial(_project, directions, shift), _add_images)
    if image.n_seen != means.n_seen:
        error = ArgumentError(
            f"must have the same rows in each pass, got {image.n_seen} rows after {means.n_seen}",
            "give a list or an object whose __iter__ starts again",
            parameter="blocks",
        )
        raise passes.run.explain(error)
    product = alpha * directions + image.product
    return np.asarray(product - np.outer(means.features, image.total))


def _project(directions: _Array, shift: _Array, blocks: Iterable[FeatureBlock]) -> _Image:
    product = np.zeros_like(directions)
    total = np.zeros(directions.shape[1])
    n_seen = 0
    for Z, _, weights in blocks:
        rows = Z.astype(np.float64, copy=False)
        projected = rows @ directions - shift
        if weights is not None:
            projected *= weights[:, None]
        product += rows.T @ projected
        total += projected.sum(axis=0)
        n_seen += len(Z)
    return _Image(product, total, n_seen)


def _add_images(a: _Image, b: _Image) -> _Image:
    return _Image(a.product + b.product, a.total + b.total, a.n_seen + b.n_seen)


def _iterate(
    at: Iteration,
    passes: _Passes,
    alpha: float,
    *,
    tol: float,
    max_iter: int,
) -> float:
    """Solve for all outputs together, each until it converges; return the largest residual."""
    norms = np.linalg.norm(at.cross, axis=0)
    if not np.isfinite(norms).all():
        raise passes.run.explain(ArgumentError(_TOO_LARGE, _SMALLER))
    norms[norms == 0] = 1.0
    relative = np.linalg.norm(at.residuals, axis=0) / norms
    while relative.max() > tol and at.n_iter < max_iter:
        images = _multiply(at.directions, passes, at.means, alpha)
        at.n_iter += 1
        curvature = np.einsum("dt,dt->t", at.directions, images)
        if not np.isfinite(curvature).all():
            raise passes.run.explain(ArgumentError(_TOO_LARGE, _SMALLER))
        moving = (relative > tol) & (curvature > 0)
        if not moving.any():
            break
        steps = np.where(moving, at.energy / np.where(moving, curvature, 1.0), 0.0)
        at.solution += steps * at.directions
        at.residuals -= steps * images
        relative = np.linalg.norm(at.residuals, axis=0) / norms
        if not np.isfinite(relative).all():
            raise passes.run.explain(ArgumentError(_TOO_LARGE, _SMALLER))
        passes.run.progress.end_pass(f"iteration {at.n_iter}: residual {relative.max():.2e}")
        preconditioned = _precondition(at.residuals, at.eigenvalues, at.vectors, alpha)
        before, at.energy = at.energy, np.einsum("dt,dt->t", at.residuals, preconditioned)
        at.directions *= np.where(moving, at.energy / np.where(moving, before, 1.0), 0.0)
        at.directions += preconditioned
        passes.save(at)
    return float(relative.max())


def _compute_means(blocks: Iterable[FeatureBlock]) -> Means:
    means = Means(0, 0, 0.0, np.zeros(1), np.zeros(1))
    for Z, Y, weights in blocks:
        _check_finite(Z)
        counts = np.ones(len(Z)) if weights is None else weights
        weight = float(counts.sum())
        shares = counts / (weight or 1.0)
        block_means = (shares @ Z.astype(np.float64), shares @ Y)
        found = Means(len(Z), int(np.count_nonzero(counts)), weight, *block_means)
        means = _merge_means(means, found)
    return means


def _merge_means(a: Means, b: Means) -> Means:
    n_seen, n_rows = a.n_seen + b.n_seen, a.n_rows + b.n_rows
    if b.weight == 0.0:
        return replace(a, n_seen=n_seen, n_rows=n_rows)
    # By shifts of the mean: large targets keep their digits, however many rows there are.
    weight = a.weight + b.weight
    share = b.weight / weight
    return Means(
        n_seen,
        n_rows,
        weight,
        a.features + (b.features - a.features) * share,
        a.targets + (b.targets - a.targets) * share,
    )


def _check_finite(Z: NDArray[Any]) -> None:
    if Z.size and not np.isfinite(float(Z.max()) - float(Z.min())):
        raise ArgumentError(
            "must compute finite features, got NaN or infinity",
            "scale the data or use another map",
            parameter="feature_map",
        )


class _Moments(NamedTuple):
    """Cross moments (D, T), moments of targets (T,), and a sample of centered rows."""

    cross: _Array
    targets: _Array
    sample: _Array


def _choose_rows(n_rows: int, most: int, stream: Stream) -> NDArray[np.intp]:
    """Return the positions of the rows of the sample, in order."""
    if n_rows <= most:
        return np.arange(n_rows)
    draws = stream.substream("rows of the preconditioner").integers(most, n_rows)
    return np.unique(draws)


def _compute_moments(
    blocks: Iterable[FeatureBlock], means: Means, chosen: NDArray[np.intp]
) -> _Moments:
    """Return the moments of all rows, and the rows at some positions.

    These are weighted and scaled so that their moments estimate those of all rows.
    """
    n_features = len(means.features)
    sample = np.empty((len(chosen), n_features))
    cross = np.zeros((n_features, len(means.targets)))
    target_moments = np.zeros(len(means.targets))
    begin, taken, sample_weight = 0, 0, 0.0
    for Z, Y, weights in blocks:
        rows = Z.astype(np.float64)
        rows -= means.features
        targets = Y - means.targets
        counts = np.ones(len(Z)) if weights is None else weights
        cross += rows.T @ (counts[:, None] * targets)
        target_moments += counts @ np.square(targets)
        last = int(np.searchsorted(chosen, begin + len(Z)))
        here = chosen[taken:last] - begin
        sample[taken:last] = rows[here] * np.sqrt(counts[here])[:, None]
        sample_weight += float(counts[here].sum())
        begin, taken = begin + len(Z), last
    if sample_weight > 0:
        sample *= math.sqrt(means.weight / sample_weight)
    return _Moments(cross, target_moments, sample[:taken])


def _add_moments(a: _Moments, b: _Moments) -> _Moments:
    return _Moments(a.cross + b.cross, a.targets + b.targets, a.sample)


def _compute_top_spectrum(sample: _Array) -> tuple[_Array, _Array]:
    """Return descending eigenvalues of sampleᵀ sample and eigenvectors as rows: the upper half.

    The lower half depends more on the sample than on the spectrum. To take half of a sample that
    has all rows costs iterations, not accuracy.
    """
    is_tall = sample.shape[0] > sample.shape[1]
    gram = (sample.T @ sample if is_tall else sample @ sample.T).T  # in Fortran order, for eigh
    squares, found = eigh(gram, overwrite_a=True, check_finite=False)
    squares, found = squares[::-1], found[:, ::-1]
    n_kept = int(np.count_nonzero(squares > _LEAST_RELATIVE_EIGENVALUE * max(squares[0], 0.0)))
    n_kept = min(n_kept, max(1, len(sample) // 2))
    squares, found = squares[:n_kept], found[:, :n_kept]
    if is_tall:
        return squares, np.ascontiguousarray(found.T)
    return squares, (found / np.sqrt(squares)).T @ sample


def _iteration_to_arrays(iteration: Iteration) -> dict[str, NDArray[Any]]:
    """Return the arrays of a checkpoint."""
    means = iteration.means
    return {
        "counts": np.array([means.n_seen, means.n_rows, iteration.n_iter], np.int64),
        "weights": np.array([means.weight]),
        "feature_mean": means.features,
        "target_mean": means.targets,
        "cross": iteration.cross,
        "target_moments": iteration.target_moments,
        "eigenvalues": iteration.eigenvalues,
        "vectors": iteration.vectors,
        "solution": iteration.solution,
        "residuals": iteration.residuals,
        "directions": iteration.directions,
        "energy": iteration.energy,
    }


def _iteration_from_arrays(saved: SavedState, n_features: int, n_targets: int) -> Iteration:
    """Return the iteration that was saved."""
    n_seen, n_rows, n_iter = saved.counts("counts", 3)
    matrix, row = (n_features, n_targets), (n_targets,)
    eigenvalues = saved.array("eigenvalues", (None,), np.float64)
    weight = float(saved.array("weights", (1,), np.float64)[0])
    target_moments = saved.array("target_moments", row, np.float64)
    saved.check(0 < n_rows <= n_seen and weight > 0, "the weight of the rows")
    saved.check(bool((target_moments >= 0).all() and (eigenvalues >= 0).all()), "'target_moments'")
    return Iteration(
        means=Means(
            n_seen,
            n_rows,
            weight,
            saved.means("feature_mean", n_features),
            saved.means("target_mean", n_targets),
        ),
        cross=saved.array("cross", matrix, np.float64),
        target_moments=target_moments,
        eigenvalues=eigenvalues,
        vectors=saved.array("vectors", (len(eigenvalues), n_features), np.float64),
        solution=saved.array("solution", matrix, np.float64),
        residuals=saved.array("residuals", matrix, np.float64),
        directions=saved.array("directions", matrix, np.float64),
        energy=saved.array("energy", row, np.float64),
        n_iter=n_iter,
    )
