"""The state of a regression as arrays for a checkpoint, and back: exact, or an iteration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.learners.checkpoint import taken_array
from kernelmill.learners.conjugate_gradients import Iteration, Means
from kernelmill.learners.digests import DIGEST_BYTES
from kernelmill.learners.statistics import RidgeStatistics
from kernelmill.random import Stream

__all__ = [
    "PassedRows",
    "iteration_from_arrays",
    "iteration_to_arrays",
    "origin_to_arrays",
    "refuse_other_map",
    "rows_from_arrays",
    "rows_to_arrays",
]

_Arrays = Mapping[str, NDArray[Any]]
_KEY_BYTES = 16
_MAP_TOLERANCE = 1e-3  # other instruction sets round differently; another map differs by its size
_AGAIN = "delete the checkpoint to start from the beginning, or give another path"


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


def origin_to_arrays(stream: Stream, probe: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """What every state has: the stream of the training, and features of a row."""
    return {
        "stream": np.frombuffer(stream.key.to_bytes(_KEY_BYTES, "little"), np.uint8),
        "probe": probe,
    }


def refuse_other_map(arrays: _Arrays, probe: NDArray[Any]) -> None:
    """ValueError if the row that the state has features of has other ones now."""
    before = taken_array(arrays, "probe", probe.shape, probe.dtype)
    bound = _MAP_TOLERANCE * float(np.abs(probe).max())
    if not (np.abs(before - probe) <= bound).all():
        raise ValueError(
            "feature_map must give the features that it gave before the checkpoint was written, "
            f"got others; give it an integer random_state, or {_AGAIN}."
        )


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


def rows_from_arrays(arrays: _Arrays, n_features: int, n_targets: int) -> PassedRows:
    """The rows that were saved; ValueError if something does not fit the model."""
    n_passed, n_rows = _counts(arrays, 2)
    weight, log_weight = taken_array(arrays, "weights", (2,), np.float64).tolist()
    if n_rows > n_passed or not weight >= 0 or not np.isfinite(weight):
        raise ValueError(
            f"A checkpoint must have weights of its rows, got {n_rows} of {n_passed} rows with a "
            f"weight of {weight}; {_AGAIN}."
        )
    moments = taken_array(arrays, "moments", (n_features, n_features), np.float64)
    statistics = RidgeStatistics.__new__(RidgeStatistics)  # without a matrix of zeros
    vars(statistics).update(
        n_rows=n_rows,
        weight=weight,
        log_weight=log_weight,
        feature_mean=taken_array(arrays, "feature_mean", (n_features,), np.float64),
        target_mean=taken_array(arrays, "target_mean", (n_targets,), np.float64),
        moments=np.require(moments, requirements=["F", "A", "W"]),
        cross=taken_array(arrays, "cross", (n_features, n_targets), np.float64),
        target_moments=taken_array(arrays, "target_moments", (n_targets,), np.float64),
        _scratch=None,
    )
    digest = taken_array(arrays, "digest", (DIGEST_BYTES,), np.uint8)
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
    arrays: _Arrays, n_features: int, n_targets: int
) -> tuple[Iteration, bytes]:
    """The iteration that was saved, and the digest of all blocks; ValueError if it cannot be."""
    n_seen, n_rows, n_iter = _counts(arrays, 3)
    matrix, row = (n_features, n_targets), (n_targets,)
    eigenvalues = taken_array(arrays, "eigenvalues", (None,), np.float64)
    iteration = Iteration(
        means=Means(
            n_seen,
            n_rows,
            float(taken_array(arrays, "weights", (1,), np.float64)[0]),
            taken_array(arrays, "feature_mean", (n_features,), np.float64),
            taken_array(arrays, "target_mean", row, np.float64),
        ),
        cross=taken_array(arrays, "cross", matrix, np.float64),
        target_moments=taken_array(arrays, "target_moments", row, np.float64),
        eigenvalues=eigenvalues,
        vectors=taken_array(arrays, "vectors", (len(eigenvalues), n_features), np.float64),
        solution=taken_array(arrays, "solution", matrix, np.float64),
        residuals=taken_array(arrays, "residuals", matrix, np.float64),
        directions=taken_array(arrays, "directions", matrix, np.float64),
        energy=taken_array(arrays, "energy", row, np.float64),
        n_iter=n_iter,
    )
    return iteration, taken_array(arrays, "digest", (DIGEST_BYTES,), np.uint8).tobytes()


def _counts(arrays: _Arrays, length: int) -> list[int]:
    counts: list[int] = taken_array(arrays, "counts", (length,), np.int64).tolist()
    if min(counts) < 0:
        raise ValueError(f"Counts in a checkpoint must not be negative, got {counts}; {_AGAIN}.")
    return counts
