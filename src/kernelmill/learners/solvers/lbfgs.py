"""L-BFGS: the minimum of a smooth loss to any accuracy, in many passes over the rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy  # scipy.optimize is loaded when it is first used
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from kernelmill.errors import ArgumentError
from kernelmill.learners.blocks import (
    Block,
    BlockSource,
    first_block,
    fold_blocks,
    slice_rows,
    take_rows,
)
from kernelmill.learners.features import rows_per_block
from kernelmill.learners.few_outputs import add_weighted_rows, score_rows
from kernelmill.learners.losses import ClassifierFit, Objective
from kernelmill.learners.run import Run
from kernelmill.learners.solvers.descent import visiting_order
from kernelmill.learners.solvers.spectrum import TopSpectrum, rows_to_sample
from kernelmill.maps.finite import SMALLER_ROWS, require_finite
from kernelmill.random import Stream
from kernelmill.runtime.threads import one_blas_thread

__all__ = ["LBFGS_ITERATIONS", "MOST_WHITENED", "solve_lbfgs"]

LBFGS_ITERATIONS = 1000
MOST_WHITENED = 6144
"""Features whose second moments precondition all directions: two matrices take 600 MB."""

_ROWS_PER_FEATURE = 2
_WHITENED_ROWS = 512  # at a time
_LEAST_CURVATURE = 1e-9  # of the mean, so that rounding leaves the moments positive definite


def solve_lbfgs(
    objective: Objective,
    blocks: Iterable[Block],
    run: Run,
    *,
    stream: Stream,
    max_iter: int,
    tol: float,
) -> ClassifierFit:
    """Minimize until the gradient is below `tol`; each evaluation passes over all blocks.

    The gradient is that by the weights or by the coordinates, whichever is larger. Warns if that
    takes more than `max_iter` iterations. If the run has a saved state, the search begins with its
    weights; what earlier steps have shown of the curvature is learned again. The variables are
    coordinates in which the curvature is about even (`_Whitening`).
    """
    basis, first_scores = _sample_first_block(objective, blocks, stream)
    constant = basis.constant
    shape = (basis.n_weights, objective.n_outputs)

    def evaluate(coordinates: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weights = basis.weights(coordinates.reshape(shape))
        fold = partial(_add_losses, objective, weights, constant)
        value, gradient, total = fold_blocks(blocks, fold, _add_sums)
        value, gradient = value / total, gradient / total
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            error = ArgumentError("the loss is not finite: scores are too large", *SMALLER_ROWS)
            raise run.explain(error)
        gradient[:-1] += objective.alpha * weights[:-1]
        value += 0.5 * objective.alpha * float(np.sum(weights[:-1] ** 2))
        by_coordinates = basis.gradient(gradient).ravel()
        slope[0] = float(max(np.abs(gradient).max(), np.abs(by_coordinates).max()))
        return value, by_coordinates

    slope = [np.inf]  # the largest entry of the last gradient
    curve: list[float] = []

    def after_iteration(intermediate_result: Any) -> None:
        curve.append(float(intermediate_result.fun))
        run.progress.end_pass(f"pass {len(curve)}/{max_iter}  objective {curve[-1]:.6g}")
        if run.is_due():
            weights = basis.weights(intermediate_result.x.reshape(shape))
            run.save({"weights": weights, "curve": np.array(curve)})
        if slope[0] <= tol:
            raise StopIteration

    def finish(weights: NDArray[np.float64]) -> ClassifierFit:
        run.save_last({"weights": weights, "curve": np.array(curve)})
        return ClassifierFit(
            np.ascontiguousarray(weights[:-1].T, dtype=objective.dtype),
            (constant * weights[-1]).astype(objective.dtype),
            curve,
        )

    saved = run.take_saved()
    if saved is None:
        start = np.zeros(shape)
        start[-1] = first_scores / constant
    else:
        start = saved.array("weights", shape, np.float64).copy()
        curve.extend(saved.array("curve", (None,), np.float64).tolist())
        if saved.is_last:
            return finish(start)
    with one_blas_thread():  # many short products
        result = scipy.optimize.minimize(
            evaluate,
            basis.coordinates(start).ravel(),
            jac=True,
            method="L-BFGS-B",
            callback=after_iteration,
            options={
                "maxiter": max(1, max_iter - len(curve)),
                "maxfun": 20 * max_iter,
                "gtol": 0,  # coordinates may have much smaller gradients than weights
                "ftol": 0,
                "maxcor": 20,
            },
        )
    weights = basis.weights(result.x.reshape(shape))
    # Where rounding of the values ends the search, gradients are about the root of it.
    rounding = float(np.sqrt(np.finfo(basis.dtype).eps))
    if slope[0] > max(tol, rounding):
        warnings.warn(
            f"L-BFGS stopped after {len(curve)} iterations, before the gradient was below "
            f"tol={tol}: {result.message}; increase epochs or alpha.",
            ConvergenceWarning,
            stacklevel=5,  # the caller of `fit`
        )
    return finish(weights)


def _sample_first_block(
    objective: Objective, blocks: Iterable[Block], stream: Stream
) -> tuple[_DampedSpectrum | _Whitening, NDArray[np.float64]]:
    """Return coordinates from a sample of its rows, and the scores to start from.

    Blocks whose weights are all zero are skipped; of spread blocks there is a sample of all rows.
    """
    block = first_block(blocks)
    if block.weight is not None and not block.weight.any():
        is_spread = isinstance(blocks, BlockSource) and blocks.is_spread
        others = () if is_spread else blocks
        weighted = (each for each in others if each.weight is None or each.weight.any())
        if (found := next(iter(weighted), None)) is None:
            raise ArgumentError(
                "must be positive for at least one row, got only zeros", parameter="sample_weight"
            )
        block = found
    mean_weight = 1.0 if block.weight is None else float(block.weight.mean())
    order = visiting_order(len(block.y), block.weight, mean_weight, stream.substream("sample"))
    probe = objective.features(take_rows(block.X, order[:1]))
    first_scores = objective.first_scores(block)
    n_whitening = _ROWS_PER_FEATURE * probe.shape[1]
    if probe.shape[1] <= MOST_WHITENED and n_whitening <= len(order):
        whitening = _whiten(objective, block.X, order[:n_whitening])
        if whitening is not None:
            return whitening, first_scores
    wanted = rows_to_sample(probe.shape[1], probe.itemsize, len(order))
    sample = objective.features(take_rows(block.X, order[:wanted]))
    with one_blas_thread():
        spectrum = TopSpectrum.of_sample(
            sample,
            ridge=objective.alpha / objective.curvature,
            complete=len(order) <= wanted,
            bounds=False,
        )
    return _DampedSpectrum(spectrum), first_scores


class _DampedSpectrum:
    """Coordinates whose weights are :math:`P^{1/2}` times them, with P of `TopSpectrum`.

    For many features or few rows: the curvature along most directions is not known.
    """

    def __init__(self, spectrum: TopSpectrum) -> None:
        self.constant = spectrum.constant
        self.dtype = spectrum.vectors.dtype
        self.n_weights = len(spectrum.vectors)
        self._vectors = spectrum.vectors.astype(np.float64)
        self._shrink = (1 - np.sqrt(1 - spectrum.damping))[:, None]

    def weights(self, coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
        return coordinates - self._vectors @ (self._shrink * (self._vectors.T @ coordinates))

    def gradient(self, by_weights: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.weights(by_weights)  # the matrix is symmetric

    def coordinates(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        # In the span of the vectors, 1 - shrink is inverted.
        along = self._shrink / (1 - self._shrink) * (self._vectors.T @ weights)
        return np.asarray(weights + self._vectors @ along)


class _Whitening:
    r"""Coordinates :math:`R^T w` of weights w, with :math:`R R^T` a bound of the curvature.

    That is c/2 times the second moments of the features of a sample plus the penalty, where c is
    the largest second derivative of the loss. With twice as many rows as features, the curvature of
    the objective is about the same in all directions.
    """

    def __init__(self, factor: NDArray[np.float64], constant: float, dtype: np.dtype[Any]) -> None:
        self.constant = constant
        self.dtype = dtype
        self.n_weights = len(factor)
        self._factor = factor
        self._solve = partial(scipy.linalg.solve_triangular, factor, lower=True, check_finite=False)

    def weights(self, coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self._solve(coordinates, trans="T"))

    def gradient(self, by_weights: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self._solve(by_weights))

    def coordinates(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self._factor.T @ weights)


def _whiten(objective: Objective, X: Any, order: NDArray[Any]) -> _Whitening | None:
    """Return the whitening of some rows; None if their moments are not positive definite."""
    probe = objective.features(take_rows(X, order[:1]))
    n_features = probe.shape[1]
    moments = np.zeros((n_features + 1, n_features + 1), order="F")
    syrk = scipy.linalg.get_blas_funcs("syrk", (moments,))
    constant = 0.0
    for part in slice_rows(len(order), _WHITENED_ROWS):
        Z = objective.features(take_rows(X, order[part]))
        if not constant:
            constant = float(np.sqrt(np.mean(np.einsum("ij,ij->i", Z, Z, dtype=np.float64)))) or 1.0
        rows = np.empty((len(Z), n_features + 1))
        rows[:, :-1], rows[:, -1] = Z, constant
        moments = syrk(1.0, rows.T, beta=1.0, c=moments, lower=1, overwrite_c=1)
    moments *= objective.curvature / (2 * len(order))
    if not np.isfinite(moments).all():
        return None  # the other coordinates have an error about it
    places = np.diag_indices(n_features + 1)
    moments[places] += objective.alpha + _LEAST_CURVATURE * float(moments[places].mean())
    try:
        factor = scipy.linalg.cholesky(moments, lower=True, overwrite_a=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        return None
    return _Whitening(factor, constant, probe.dtype)


class _LossSums(NamedTuple):
    """Sums over rows: of losses, of their derivatives by the weights, of the rows' weights."""

    value: float
    gradient: NDArray[np.float64]
    total: float


def _add_losses(
    objective: Objective,
    weights: NDArray[np.float64],
    constant: float,
    sums: _LossSums | None,
    blocks: Iterable[Block],
    _: int,
) -> _LossSums:
    """Return the sums over the rows of the blocks, added to given ones."""
    value = total = 0.0
    gradient = np.zeros_like(weights)
    for block in blocks:
        n_rows = len(block.y)
        for part in slice_rows(n_rows, rows_per_block(len(weights), weights.itemsize)):
            rows = take_rows(block.X, part)
            Z = objective.features(rows)
            by_output = np.ascontiguousarray(weights[:-1].T, Z.dtype)
            scores = score_rows(Z, by_output, objective.n_threads).astype(np.float64)
            scores += constant * weights[-1]
            if not np.isfinite(scores).all():
                require_finite(scores, rows, "scores")
            losses, derivatives = objective.loss.derivatives(scores, block.y[part])
            if block.weight is not None:
                losses = losses * block.weight[part]
                derivatives = derivatives * block.weight[part][:, None]
            value += float(losses.sum())
            slopes = np.zeros_like(by_output)
            add_weighted_rows(Z, derivatives.astype(Z.dtype), slopes, objective.n_threads)
            gradient[:-1] += slopes.T
            gradient[-1] += constant * derivatives.sum(axis=0)
        total += n_rows if block.weight is None else float(block.weight.sum())
    found = _LossSums(value, gradient, total)
    return found if sums is None else _add_sums(found, sums)


def _add_sums(a: _LossSums, b: _LossSums) -> _LossSums:
    return _LossSums(a.value + b.value, a.gradient + b.gradient, a.total + b.total)
