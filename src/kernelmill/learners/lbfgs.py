"""The minimum of a smooth loss to any accuracy: L-BFGS over passes, in even coordinates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy  # scipy.optimize is loaded when it is first used
from numpy.typing import NDArray

from kernelmill.learners.mapped_rows import row_blocks, rows_per_block, take_rows
from kernelmill.learners.problem import Blocks, Problem
from kernelmill.learners.row_order import visiting_order
from kernelmill.learners.spectrum import TopSpectrum, rows_to_sample
from kernelmill.random import Stream

__all__ = ["Minimum", "minimize"]


class Minimum(NamedTuple):
    """Weights of shape (D, n_outputs), intercepts, the objective by iterations, how it ended."""

    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]
    curve: list[float]
    converged: bool
    message: str


def minimize(
    problem: Problem,
    blocks: Blocks,
    stream: Stream,
    *,
    max_iter: int,
    tol: float,
    callback: Callable[[int, float], None],
) -> Minimum:
    """Go down until the gradient is below `tol`; each evaluation passes over all blocks.

    The variables are coordinates in which the curvature is about even: the weights are
    :math:`P^{1/2}` times them, with P as in `kernelmill.learners.spectrum`.
    """
    spectrum, first_scores = _look_at_first_block(problem, blocks, stream)
    constant = spectrum.constant
    vectors = spectrum.vectors.astype(np.float64)
    shrink = (1 - np.sqrt(1 - spectrum.damping))[:, None]
    shape = (len(vectors), problem.n_outputs)

    def evened(array: NDArray[np.float64]) -> NDArray[np.float64]:
        return array - vectors @ (shrink * (vectors.T @ array))

    def objective(coordinates: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weights = evened(coordinates.reshape(shape))
        value, gradient = _loss_and_gradient(problem, blocks, weights, constant)
        gradient[:-1] += problem.alpha * weights[:-1]
        value += 0.5 * problem.alpha * float(np.sum(weights[:-1] ** 2))
        return value, evened(gradient).ravel()

    curve: list[float] = []

    def after_iteration(intermediate_result: Any) -> None:
        curve.append(float(intermediate_result.fun))
        callback(len(curve) - 1, curve[-1])

    start = np.zeros(shape)
    start[-1] = first_scores / constant
    # Undo `evened` on the start: in the span of the vectors, 1 - shrink is inverted.
    start += vectors @ (shrink / (1 - shrink) * (vectors.T @ start))
    result = scipy.optimize.minimize(
        objective,
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        callback=after_iteration,
        options={
            "maxiter": max_iter,
            "maxfun": 20 * max_iter,
            "gtol": tol,
            "ftol": 0,
            "maxcor": 20,
        },
    )
    weights = evened(result.x.reshape(shape))
    # Where rounding of the values ends the search, gradients are about the root of it.
    rounding = float(np.sqrt(np.finfo(spectrum.vectors.dtype).eps))
    converged = bool(result.success) or float(np.abs(result.jac).max()) <= rounding
    return Minimum(weights[:-1], constant * weights[-1], curve, converged, str(result.message))


def _look_at_first_block(
    problem: Problem, blocks: Blocks, stream: Stream
) -> tuple[TopSpectrum, NDArray[np.float64]]:
    """The spectrum of a sample of its rows, and the scores to start from."""
    rows = next(iter(blocks()))
    mean_weight = 1.0 if rows.weights is None else float(rows.weights.mean())
    if mean_weight <= 0:
        raise ValueError("All weights are zero: there are no rows to train on.")
    order = visiting_order(len(rows.codes), rows.weights, mean_weight, stream.substream("sample"))
    probe = problem.features(take_rows(rows.X, order[:1]))
    wanted = rows_to_sample(probe.shape[1], probe.itemsize)
    sample = problem.features(take_rows(rows.X, order[:wanted]))
    spectrum = TopSpectrum.of_sample(
        sample, ridge=problem.alpha / problem.curvature, complete=len(order) <= wanted
    )
    return spectrum, problem.first_scores(rows)


def _loss_and_gradient(
    problem: Problem, blocks: Blocks, weights: NDArray[np.float64], constant: float
) -> tuple[float, NDArray[np.float64]]:
    """The mean loss over all blocks and its gradient, in float64 sums."""
    value = total = 0.0
    gradient = np.zeros_like(weights)
    for rows in blocks():
        n_rows = len(rows.codes)
        for part in row_blocks(n_rows, rows_per_block(len(weights), weights.itemsize)):
            Z = problem.features(take_rows(rows.X, part))
            scores = (Z @ weights[:-1].astype(Z.dtype)).astype(np.float64)
            scores += constant * weights[-1]
            losses, derivatives = problem.loss.derivatives(scores, rows.codes[part])
            if rows.weights is not None:
                losses = losses * rows.weights[part]
                derivatives = derivatives * rows.weights[part][:, None]
            value += float(losses.sum())
            gradient[:-1] += Z.T @ derivatives.astype(Z.dtype)
            gradient[-1] += constant * derivatives.sum(axis=0)
        total += n_rows if rows.weights is None else float(rows.weights.sum())
    return value / total, gradient / total
