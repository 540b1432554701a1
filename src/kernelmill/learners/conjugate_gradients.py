"""Ridge regression without a D x D matrix: preconditioned conjugate gradients over the rows.

Every iteration passes over the rows once and makes their features anew. The preconditioner takes
the top of the spectrum from a sample of the rows (Frangella, Tropp & Udell 2023):
P⁻¹ = V diag((l_k + α)/(lᵢ + α)) Vᵀ + (I - VVᵀ), for eigenvalues l₁ ≥ … ≥ l_k with eigenvectors V.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from kernelmill.random import Stream

__all__ = ["Iteration", "Means", "RidgeSolution", "ridge_by_conjugate_gradients"]

_Array = NDArray[np.float64]
Block = tuple[NDArray[Any], _Array, _Array | None]
"""Features (n, D), targets (n, T) and weights (n,), or None for weights of one."""

_SAMPLE_ROWS = 1024
_SAMPLE_BYTES = 1 << 27  # of the features of the sample, in float64
_LEAST_RELATIVE_EIGENVALUE = 1e-10


@dataclass(frozen=True)
class RidgeSolution:
    """Where conjugate gradients arrived.

    Attributes
    ----------
    coef : ndarray of shape (T, D)
    intercept : ndarray of shape (T,)
    n_iter : int
        Iterations, each a pass over the rows; three passes more prepare them.
    residual : float
        The norm of C - (M + αI) W by that of C; the largest one of all outputs.
    objective : ndarray of shape (T,)
        The minimum of Σ w (y - zᵀW - b)² + α|W|².
    n_rows : int
        Rows of positive weight.
    """

    coef: _Array
    intercept: _Array
    n_iter: int
    residual: float
    objective: _Array
    n_rows: int


@dataclass(frozen=True)
class Means:
    """Of the rows, or zeros without an intercept; rows of weight zero are seen, but not counted."""

    n_seen: int
    n_rows: int
    weight: float
    features: _Array
    targets: _Array


@dataclass
class Iteration:
    """Where conjugate gradients are, and all that they need to go on.

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


def ridge_by_conjugate_gradients(
    passes: Callable[[], Iterable[Block]],
    alpha: float,
    *,
    fit_intercept: bool,
    tol: float,
    max_iter: int,
    stream: Stream,
    report: Callable[[str], None] = lambda _: None,
    saved: Iteration | None = None,
    keep: Callable[[Iteration], None] = lambda _: None,
) -> RidgeSolution:
    """Minimize Σ w |y - zᵀW - b|² + α|W|² to a relative residual of `tol` for each output.

    Parameters
    ----------
    passes : callable
        Each call gives the same blocks of rows again.
    alpha : float
        Positive.
    fit_intercept : bool
    tol, max_iter
        When to stop, and when to give up.
    stream : Stream
        Chooses the rows of the sample.
    report : callable, optional
        Takes a line of text after each iteration.
    saved : Iteration, optional
        To go on from, with the same rows and arguments; it is written into.
    keep : callable, optional
        Takes where it is before the first iteration and after each; it is changed afterwards.
    """
    if saved is None:
        iteration = _prepared(passes, alpha, fit_intercept=fit_intercept, stream=stream)
        keep(iteration)
    else:
        iteration = saved
    residual = _iterate(
        iteration, passes, alpha, tol=tol, max_iter=max_iter, report=report, keep=keep
    )
    means, cross, coef = iteration.means, iteration.cross, iteration.solution
    least = alpha * np.einsum("dt,dt->t", coef, coef)
    explained = np.einsum("dt,dt->t", cross, coef)
    return RidgeSolution(
        coef=np.ascontiguousarray(coef.T),
        intercept=means.targets - means.features @ coef,
        n_iter=iteration.n_iter,
        residual=residual,
        objective=np.maximum(iteration.target_moments - explained, least),
        n_rows=means.n_rows,
    )


def _prepared(
    passes: Callable[[], Iterable[Block]], alpha: float, *, fit_intercept: bool, stream: Stream
) -> Iteration:
    """What two passes over the rows tell: means, the right-hand side and the preconditioner."""
    means = _means(passes())
    if means.n_rows == 0:
        raise ValueError(
            "sample_weight must be above zero for some row, got zeros; leave it out for equal "
            "weights."
        )
    if not fit_intercept:
        means = Means(
            means.n_seen,
            means.n_rows,
            means.weight,
            np.zeros_like(means.features),
            np.zeros_like(means.targets),
        )
    cross, target_moments, sample = _moments_and_sample(passes(), means, stream)
    eigenvalues, vectors = _top_of_spectrum(sample)
    del sample
    residuals = cross.copy()
    preconditioned = _preconditioned(residuals, eigenvalues, vectors, alpha)
    return Iteration(
        means,
        cross,
        target_moments,
        eigenvalues,
        vectors,
        solution=np.zeros_like(cross),
        residuals=residuals,
        directions=preconditioned.copy(),
        energy=np.einsum("dt,dt->t", residuals, preconditioned),
    )


def _preconditioned(
    residuals: _Array, eigenvalues: _Array, vectors: _Array, alpha: float
) -> _Array:
    shrink = (eigenvalues[-1:] + alpha) / (eigenvalues + alpha) - 1.0
    return np.asarray(residuals + vectors.T @ (shrink[:, None] * (vectors @ residuals)))


def _product(directions: _Array, blocks: Iterable[Block], means: Means, alpha: float) -> _Array:
    """(M + αI) times the directions, by a pass over the rows."""
    product = alpha * directions
    shift = means.features @ directions
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
    if n_seen != means.n_seen:
        raise ValueError(
            f"blocks must have the same rows in each pass, got {n_seen} after {means.n_seen}; give "
            "a list, or an object whose __iter__ starts anew."
        )
    return np.asarray(product - np.outer(means.features, total))


def _iterate(
    at: Iteration,
    passes: Callable[[], Iterable[Block]],
    alpha: float,
    *,
    tol: float,
    max_iter: int,
    report: Callable[[str], None],
    keep: Callable[[Iteration], None],
) -> float:
    """Solve for all outputs side by side, each until it is there; returns the largest residual."""
    norms = np.linalg.norm(at.cross, axis=0)
    if not np.isfinite(norms).all():
        raise ValueError(
            "The sums of features and targets are not finite: targets, weights or features are too "
            "large; divide them by a constant."
        )
    norms[norms == 0] = 1.0
    relative = np.linalg.norm(at.residuals, axis=0) / norms
    while relative.max() > tol and at.n_iter < max_iter:
        images = _product(at.directions, passes(), at.means, alpha)
        at.n_iter += 1
        curvature = np.einsum("dt,dt->t", at.directions, images)
        moving = (relative > tol) & (curvature > 0)
        if not moving.any():
            break
        steps = np.where(moving, at.energy / np.where(moving, curvature, 1.0), 0.0)
        at.solution += steps * at.directions
        at.residuals -= steps * images
        relative = np.linalg.norm(at.residuals, axis=0) / norms
        if not np.isfinite(relative).all():
            raise ValueError(
                "The sums of conjugate gradients are not finite: targets, weights or features are "
                "too large; divide them by a constant."
            )
        report(f"iteration {at.n_iter}: residual {relative.max():.2e}")
        preconditioned = _preconditioned(at.residuals, at.eigenvalues, at.vectors, alpha)
        before, at.energy = at.energy, np.einsum("dt,dt->t", at.residuals, preconditioned)
        at.directions *= np.where(moving, at.energy / np.where(moving, before, 1.0), 0.0)
        at.directions += preconditioned
        keep(at)
    return float(relative.max())


def _means(blocks: Iterable[Block]) -> Means:
    n_seen = n_rows = 0
    weight = 0.0
    features: Any = 0.0
    targets: Any = 0.0
    for Z, Y, weights in blocks:
        _refuse_non_finite(Z)
        counts = np.ones(len(Z)) if weights is None else weights
        n_seen += len(Z)
        n_rows += int(np.count_nonzero(counts))
        block_weight = float(counts.sum())
        if block_weight == 0.0:
            continue
        # By shifts of the mean: large targets keep their digits, however many rows there are.
        weight += block_weight
        shares = counts / block_weight
        features = features + (shares @ Z.astype(np.float64) - features) * (block_weight / weight)
        targets = targets + (shares @ Y - targets) * (block_weight / weight)
    return Means(n_seen, n_rows, weight, features, targets)


def _refuse_non_finite(Z: NDArray[Any]) -> None:
    if Z.size and not np.isfinite(float(Z.max()) - float(Z.min())):
        raise ValueError(
            "The features must be finite, got NaN or infinity; scale the data or take another map."
        )


def _moments_and_sample(
    blocks: Iterable[Block], means: Means, stream: Stream
) -> tuple[_Array, _Array, _Array]:
    """Cross moments (D, T), moments of targets (T,), and centered, weighted rows of a sample.

    The rows of the sample are scaled such that their moments estimate those of all rows.
    """
    n_features = len(means.features)
    most = max(1, min(_SAMPLE_ROWS, _SAMPLE_BYTES // (8 * n_features)))
    chosen = np.arange(means.n_seen)
    if means.n_seen > most:
        draws = stream.substream("rows of the preconditioner").integers(most, means.n_seen)
        chosen = np.unique(draws)
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
    return cross, target_moments, sample


def _top_of_spectrum(sample: _Array) -> tuple[_Array, _Array]:
    """Descending eigenvalues of sampleᵀ sample and, as rows, eigenvectors: the upper half.

    The lower half of what a sample shows is more sample than spectrum. If the sample is all of the
    rows' space there is, rounding alone limits it; taking half costs iterations, not accuracy.
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
