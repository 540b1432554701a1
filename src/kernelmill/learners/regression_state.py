"""The state of a regression as arrays for a checkpoint, and back: exact, or an iteration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.learners.conjugate_gradients import Iteration, Means
from kernelmill.learners.digests import DIGEST_BYTES
from kernelmill.learners.run import SavedState
from kernelmill.learners.statistics import RidgeStatistics

__all__ = [
    "PassedRows",
    "iteration_from_arrays",
    "iteration_to_arrays",
    "rows_from_arrays",
    "rows_to_arrays",
]


@dataclass(frozen=True)
class PassedRows:
    """What the exact solver knows of the first rows.

    Attributes
    ----------
    statistics : RidgeStatistics
    n_passed : int
        How many rows are in, those of weight zero included.
    digest : bytes
        Of the blocks that they are in.
    """

    statistics: RidgeStatistics
    n_passed: int
    digest: bytes


def rows_to_arrays(passed: PassedRows) -> dict[str, NDArray[Any]]:
    """The arrays that `rows_from_arrays` makes the same of again, bit for bit."""
    statistics = passed.statistics
    return {
        "counts": np.array([passed.n_passed, statistics.n_rows], np.int64),
        "weights": np.array([statistics.weight, statistics.log_weight]),
        "feature_mean": statistics.feature_mean,
        "target_mean": statistics.target_mean,
        "moments": statistics.moments,
        "cross": statistics.cross,
        "target_moments": statistics.target_moments,
        "digest": np.frombuffer(passed.digest, np.uint8),
    }


def rows_from_arrays(saved: SavedState, n_features: int, n_targets: int) -> PassedRows:
    """The rows that were saved; ValueError if something does not fit the model."""
    n_passed, n_rows = saved.counts("counts", 2)
    weight, log_weight = saved.array("weights", (2,), np.float64).tolist()
    if n_rows > n_passed or not weight >= 0 or not np.isfinite(weight):
        raise saved.error(f"in it {n_rows} of {n_passed} rows have a weight of {weight}")
    moments = saved.array("moments", (n_features, n_features), np.float64)
    statistics = RidgeStatistics.__new__(RidgeStatistics)  # without a matrix of zeros
    vars(statistics).update(
        n_rows=n_rows,
        weight=weight,
        log_weight=log_weight,
        feature_mean=saved.array("feature_mean", (n_features,), np.float64),
        target_mean=saved.array("target_mean", (n_targets,), np.float64),
        moments=np.require(moments, requirements=["F", "A", "W"]),
        cross=saved.array("cross", (n_features, n_targets), np.float64),
        target_moments=saved.array("target_moments", (n_targets,), np.float64),
        _scratch=None,
    )
    digest = saved.array("digest", (DIGEST_BYTES,), np.uint8)
    return PassedRows(statistics, n_passed, digest.tobytes())


def iteration_to_arrays(iteration: Iteration, digest: bytes) -> dict[str, NDArray[Any]]:
    """The arrays that `iteration_from_arrays` takes; `digest` is that of all blocks."""
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
        "digest": np.frombuffer(digest, np.uint8),
    }


def iteration_from_arrays(
    saved: SavedState, n_features: int, n_targets: int
) -> tuple[Iteration, bytes]:
    """The iteration that was saved, and the digest of all blocks; ValueError if it cannot be."""
    n_seen, n_rows, n_iter = saved.counts("counts", 3)
    matrix, row = (n_features, n_targets), (n_targets,)
    eigenvalues = saved.array("eigenvalues", (None,), np.float64)
    iteration = Iteration(
        means=Means(
            n_seen,
            n_rows,
            float(saved.array("weights", (1,), np.float64)[0]),
            saved.array("feature_mean", (n_features,), np.float64),
            saved.array("target_mean", row, np.float64),
        ),
        cross=saved.array("cross", matrix, np.float64),
        target_moments=saved.array("target_moments", row, np.float64),
        eigenvalues=eigenvalues,
        vectors=saved.array("vectors", (len(eigenvalues), n_features), np.float64),
        solution=saved.array("solution", matrix, np.float64),
        residuals=saved.array("residuals", matrix, np.float64),
        directions=saved.array("directions", matrix, np.float64),
        energy=saved.array("energy", row, np.float64),
        n_iter=n_iter,
    )
    return iteration, saved.array("digest", (DIGEST_BYTES,), np.uint8).tobytes()
