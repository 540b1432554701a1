"""Least squares from normal equations: one pass over the rows, and a D x D matrix.

The statistics of rows can be collected by several machines and merged before they are solved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.errors import ArgumentError
from kernelmill.files import ModelFileError
from kernelmill.learners.blocks import (
    Block,
    BlockSource,
    FoldState,
    count_rows,
    first_block,
    slice_rows,
    take_rows,
)
from kernelmill.learners.evidence import Evidence, evidence_of
from kernelmill.learners.features import (
    FeatureBlock,
    Features,
    ReusedMemory,
    compute_feature_blocks,
    gather_blocks,
    rows_per_block,
)
from kernelmill.learners.losses import ClassifierFit, Objective, signs_of_classes
from kernelmill.learners.ridge import (
    CholeskyInverse,
    Inverse,
    RidgeObjective,
    gcv_scores,
    leave_one_out_scores,
)
from kernelmill.learners.run import CheckpointError, Run, SavedState
from kernelmill.learners.statistics import RidgeStatistics, check_some_weight, rows_per_update

__all__ = [
    "RidgeFit",
    "add_rows",
    "collect_statistics",
    "solve_exact",
    "solve_signs",
    "solve_statistics",
]

_Array = NDArray[np.float64]
_SIGN_ROWS = 2048

# Sums in float32, see `_allows_single_precision`. Below this number of products nothing is gained.
_LEAST_PRODUCTS = 1 << 36
_PROBED_ROWS = 64
_NORM_OF_ERROR = 0.1
_SUMMED_ROWS = 128  # in float32, before sums are added in float64
_HARMLESS = 2.0**-14  # ratio of the norm to the penalty


@dataclass(frozen=True)
class RidgeFit:
    """The exact minimum of Σ w |y - zᵀW - b|² + α|W|².

    Attributes
    ----------
    alpha : float
    coef, intercept : ndarray of shapes (T, D) and (T,)
    evidence : Evidence
    scores : ndarray, or None
        Those of the penalties that alpha was chosen from.
    inverse : CholeskyInverse or SpectralInverse
        Of M + αI.
    feature_mean : ndarray of shape (D,), or None
        None without an intercept.
    weight : float
        Σ w.
    n_iter : int
        1, as one pass over the rows is enough.
    """

    alpha: float
    coef: _Array
    intercept: _Array
    evidence: Evidence
    scores: _Array | None
    inverse: Inverse
    feature_mean: _Array | None
    weight: float
    n_iter: int = 1

    def noise(self) -> _Array:
        """Return the variance of the noise with the largest evidence for this penalty."""
        return self.evidence.noise()

    def relative_variances(self, Z: _Array) -> _Array:
        """Return variances of the function at rows of features, relative to the noise.

        zᵀ (M + αI)⁻¹ z; with an intercept, 1/Σw and the same for z - z̄. Z is overwritten.
        """
        if self.feature_mean is None:
            return self.inverse.quadratic_forms(Z)
        Z -= self.feature_mean
        return self.inverse.quadratic_forms(Z) + 1.0 / self.weight


def solve_exact(
    objective: RidgeObjective,
    blocks: Iterable[Block],
    run: Run,
    *,
    again: Block | None = None,
) -> tuple[RidgeFit, RidgeStatistics]:
    """Minimize the objective over the rows of the blocks, each of which is taken once.

    Parameters
    ----------
    objective : RidgeObjective
    blocks : iterable of Block
    run : Run
        If it has a saved state, the pass resumes from there.
    again : Block, optional
        All rows: penalties are then compared by leaving out each row, otherwise by generalized
        cross-validation.
    """
    statistics = RidgeStatistics(
        objective.n_features,
        objective.n_targets,
        single_precision=_allows_single_precision(objective, blocks),
    )
    statistics = collect_statistics(objective.features, blocks, run, statistics)
    rows = None
    if again is not None:
        size = rows_per_update(objective.n_features)
        rows = compute_feature_blocks(objective.features, again, size)
    fit = solve_statistics(
        statistics, objective.penalty, fit_intercept=objective.fit_intercept, rows=rows
    )
    return fit, statistics


def _allows_single_precision(objective: RidgeObjective, blocks: Iterable[Block]) -> bool:
    """Return whether products may be summed in float32: for many of them, and large penalties.

    Such sums change the moments by a matrix whose norm grows with the square root of the number
    of rows, and predictions by about a hundredth of the ratio of that norm to the penalty. Up to
    1e-6 of the targets is allowed, some ten times what rounding the features to float32 does (docs/
    decisions/030-products-in-float32.md). The lengths of a few features stand for those of all:
    where lengths differ, a single long one could ruin the sums.
    """
    if not (isinstance(blocks, BlockSource) and blocks.is_whole and objective.equal_lengths):
        return False
    n_features, n_rows = objective.n_features, blocks.n_rows or 0
    if n_rows * n_features**2 < _LEAST_PRODUCTS:
        return False
    block = first_block(blocks)
    if block.weight is not None:
        return False
    some = objective.features(take_rows(block.X, slice(0, _PROBED_ROWS)))
    if some.dtype != np.float32:
        return False
    mean_square = float(np.einsum("ij,ij->", some, some, dtype=np.float64)) / len(some)
    eps = float(np.finfo(np.float32).eps)
    norm = _NORM_OF_ERROR * eps * mean_square * np.sqrt(n_rows * _SUMMED_ROWS)
    return bool(np.min(objective.penalty) >= norm / _HARMLESS)


def collect_statistics(
    features: Features, blocks: Iterable[Block], run: Run, statistics: RidgeStatistics
) -> RidgeStatistics:
    """Add the rows of the blocks to the statistics, or to those that the run has saved.

    Rows on other machines are added to statistics there, which are merged.
    """
    return _add_blocks(partial(_add_rows, features), blocks, run, statistics)


def _add_blocks(
    add: Callable[[Iterable[Block], Run, RidgeStatistics], RidgeStatistics],
    blocks: Iterable[Block],
    run: Run,
    statistics: RidgeStatistics,
) -> RidgeStatistics:
    """Return the statistics after `add`, wherever the blocks are.

    With a checkpoint, sums of finished groups of spread blocks are saved.
    """
    if not isinstance(blocks, BlockSource) or not blocks.is_spread:
        return add(blocks, run, statistics)
    shape = statistics.n_features, statistics.n_targets
    saved = run.take_saved()

    def save(state: FoldState) -> bool:
        if state.n_done == state.n_groups:
            run.save_last(_fold_to_arrays(state))
        is_due = state.n_done < state.n_groups and run.is_due()
        if is_due:
            run.save(_fold_to_arrays(state))
        return is_due

    try:
        total = blocks.fold(
            partial(_fold_statistics, add, *shape),
            RidgeStatistics.merge,
            progress=run.progress,
            state=None if saved is None else _fold_from_arrays(saved, *shape),
            save=None if run.path is None else save,
        )
    except ArgumentError as error:
        if error.message.parameter == "blocks":  # there are other groups of them than in the state
            raise run.explain(error) from None
        raise
    return statistics.merge(total)


def _fold_statistics(
    add: Callable[[Iterable[Block], Run, RidgeStatistics], RidgeStatistics],
    n_features: int,
    n_targets: int,
    before: RidgeStatistics | None,
    blocks: Iterable[Block],
    _: int,
) -> RidgeStatistics:
    statistics = add(blocks, Run(), RidgeStatistics(n_features, n_targets))
    return statistics if before is None else statistics.merge(before)


def _add_rows(
    features: Features, blocks: Iterable[Block], run: Run, statistics: RidgeStatistics
) -> RidgeStatistics:
    n_features = statistics.n_features
    n_passed = 0
    saved = run.take_saved()
    if saved is not None:
        statistics, n_passed = _statistics_from_arrays(
            saved, n_features, statistics.n_targets, statistics.single_precision
        )
        del saved
    rows = rows_per_update(n_features)
    features = ReusedMemory(features)
    # New arrays are small: then their memory is used again instead of being requested each time.
    together = rows if features.is_used else min(rows, rows_per_block(n_features, 8))

    def compute_unseen(to_skip: int) -> Iterator[FeatureBlock]:
        for block in blocks:
            n_rows = count_rows(block.X)
            if n_rows > to_skip:
                yield from compute_feature_blocks(features, block, together, begin=to_skip)
            to_skip = max(0, to_skip - n_rows)
            del block  # not held while the next one is read
        if to_skip:
            assert run.path is not None
            raise CheckpointError(run.path, f"it has {to_skip} rows more than the data")

    for mapped in gather_blocks(compute_unseen(n_passed), rows):
        statistics.update(*mapped)
        n_passed += len(mapped[1])
        run.progress.advance(len(mapped[1]))
        if run.is_due():
            run.save(_statistics_to_arrays(statistics, n_passed))
    run.save_last(_statistics_to_arrays(statistics, n_passed))
    return statistics


def add_rows(statistics: RidgeStatistics, features: Features, block: Block) -> RidgeStatistics:
    """Return the statistics of the given rows and of a block; the given ones do not change."""
    both = RidgeStatistics(statistics.n_features, statistics.n_targets)
    for mapped in compute_feature_blocks(features, block, rows_per_update(both.n_features)):
        both.update(*mapped)
    return both.merge(statistics)


def solve_statistics(
    statistics: RidgeStatistics,
    penalty: float | _Array,
    *,
    fit_intercept: bool,
    rows: Iterable[FeatureBlock] | None = None,
) -> RidgeFit:
    """Solve with the penalty, or with the best one of several; of equal ones, the largest.

    Parameters
    ----------
    statistics : RidgeStatistics
    penalty : float or ndarray
    fit_intercept : bool
    rows : iterable of (Z, Y, weights), optional
        The rows again: penalties are then compared by leaving out each row, otherwise by
        generalized cross-validation.
    """
    check_some_weight(statistics.n_rows)
    equations = statistics.finalize(fit_intercept=fit_intercept)
    scores = None
    if isinstance(penalty, np.ndarray):
        if rows is None:
            scores = gcv_scores(equations, penalty)
        else:
            scores = leave_one_out_scores(equations, penalty, rows)
        penalty = float(penalty[scores == scores.min()].max())
    inverse = equations.inverse(penalty)
    coef, intercept = equations.weights(inverse)
    return RidgeFit(
        alpha=penalty,
        coef=coef,
        intercept=intercept,
        evidence=evidence_of(equations, inverse, coef),
        scores=scores,
        inverse=inverse,
        feature_mean=None if equations.means is None else equations.means[0],
        weight=equations.weight,
    )


def solve_signs(
    objective: Objective,
    blocks: Iterable[Block],
    run: Run,
    statistics: RidgeStatistics | None = None,
) -> ClassifierFit:
    """Minimize the squared loss of a classifier: least squares of the signs of its classes.

    Parameters
    ----------
    objective : Objective
    blocks : iterable of Block
    run : Run
        Receives the progress; there are no checkpoints.
    statistics : RidgeStatistics, optional
        Those of earlier rows; the new rows are added to them.
    """
    n_outputs = objective.n_outputs
    if statistics is None:
        statistics = RidgeStatistics(objective.n_features, n_outputs)
    statistics = _add_blocks(partial(_add_signs, objective), blocks, run, statistics)
    check_some_weight(statistics.n_rows)
    # The mean of squares / 2 and alpha / 2 in the objective; their sum and alpha here.
    alpha = objective.alpha * statistics.weight
    coef, intercept = statistics.finalize().solve(alpha)
    return ClassifierFit(coef, intercept, state=statistics)


def _add_signs(
    objective: Objective, blocks: Iterable[Block], run: Run, statistics: RidgeStatistics
) -> RidgeStatistics:
    for block in blocks:
        for part in slice_rows(len(block.y), _SIGN_ROWS):
            signs = signs_of_classes(block.y[part], objective.n_outputs, np.float64)
            weights = None if block.weight is None else block.weight[part]
            statistics.update(objective.features(take_rows(block.X, part)), signs, weights)
            run.progress.advance(len(signs))
    return statistics


def _statistics_to_arrays(statistics: RidgeStatistics, n_passed: int) -> dict[str, NDArray[Any]]:
    """Return the state after `n_passed` rows, those of weight zero included."""
    return {
        "counts": np.array([n_passed, statistics.n_rows], np.int64),
        "weights": np.array([statistics.weight, statistics.log_weight]),
        "feature_mean": statistics.feature_mean,
        "target_mean": statistics.target_mean,
        "moments": statistics.moments,
        "cross": statistics.cross,
        "target_moments": statistics.target_moments,
    }


def _statistics_from_arrays(
    saved: SavedState, n_features: int, n_targets: int, single_precision: bool = False
) -> tuple[RidgeStatistics, int]:
    """Return the statistics that were saved, and the number of rows passed."""
    n_passed, n_rows = saved.counts("counts", 2)
    weight, log_weight = saved.array("weights", (2,), np.float64).tolist()
    if n_rows > n_passed or weight < 0 or (n_rows > 0) != (weight > 0):
        raise saved.error(f"in it {n_rows} of {n_passed} rows have a weight of {weight}")
    moments = saved.array("moments", (n_features, n_features), np.float64)
    target_moments = saved.array("target_moments", (n_targets,), np.float64)
    saved.check(bool((target_moments >= 0).all()), "'target_moments'")
    statistics = RidgeStatistics.__new__(RidgeStatistics)  # without a matrix of zeros
    vars(statistics).update(
        n_rows=n_rows,
        weight=weight,
        log_weight=log_weight,
        feature_mean=saved.means("feature_mean", n_features),
        target_mean=saved.means("target_mean", n_targets),
        moments=np.require(moments, requirements=["F", "A", "W"]),
        cross=np.asfortranarray(saved.array("cross", (n_features, n_targets), np.float64)),
        target_moments=target_moments,
        single_precision=single_precision,
        _scratch=None,
    )
    return statistics, n_passed


def _fold_to_arrays(state: FoldState) -> dict[str, NDArray[Any]]:
    """Return the sums of finished groups of blocks on other machines."""
    arrays = {"groups": np.array([state.n_groups, state.n_done], np.int64)}
    for number, total in enumerate(state.totals):
        members = _statistics_to_arrays(total, total.n_rows)
        arrays |= {f"part {number} {name}": array for name, array in members.items()}
    return arrays


def _fold_from_arrays(saved: SavedState, n_features: int, n_targets: int) -> FoldState:
    """Return the sums that were saved."""
    n_groups, n_done = saved.counts("groups", 2)
    if n_done > n_groups:
        raise saved.error(f"in it {n_done} of {n_groups} groups are done")
    n_totals = 1 if n_done == n_groups else n_done.bit_count()
    totals = [
        _statistics_from_arrays(saved.part(f"part {number} "), n_features, n_targets)[0]
        for number in range(n_totals)
    ]
    return FoldState(n_groups, n_done, totals)


def restore_fit(weights: Any, alpha: float, values: Mapping[str, Any]) -> RidgeFit:
    """Return the fit of a regressor from a file, from its weights and the packed factor.

    `weights` have `coef` and `intercept`; values that do not fit raise a ModelFileError.
    """
    n_outputs, n = weights.coef.shape
    packed, objective = values["factor"], values["objective"]
    if packed.shape != (n * (n + 1) // 2,):
        raise ModelFileError(
            f"factor must have {n * (n + 1) // 2} elements for {n} weights, got {packed.size}"
        )
    if len(objective) != n_outputs:
        raise ModelFileError(
            f"uncertainty.objective must have an element for each of {n_outputs} outputs, got "
            f"{len(objective)}"
        )
    factor = np.zeros((n, n), order="F")
    end = 0
    for j in range(n):
        begin, end = end, end + n - j
        factor[j:, j] = packed[begin:end]
    if not (np.diagonal(factor) > 0).all():
        raise ModelFileError("factor must have a positive diagonal, got other elements")
    log_volume, log_weight = values["log_volume"], values["log_weight"]
    return RidgeFit(
        alpha=alpha,
        coef=weights.coef,
        intercept=weights.intercept,
        evidence=Evidence(alpha, objective, log_volume, values["n_degrees"], log_weight),
        scores=None,
        inverse=CholeskyInverse(factor, alpha),
        feature_mean=values["feature_mean"],
        weight=values["weight"],
    )
