"""What several experiments measure: kernel estimates, times, errors of regressions."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.stats import norm

from kernelmill.runtime.threads import one_blas_thread
from reproduce.declaration import CONFIDENCE

__all__ = [
    "draw_split",
    "estimate_pairs",
    "fit_linear_svm",
    "geometric",
    "half_width_of_rmse",
    "half_width_of_share",
    "run_seeds",
    "standardize",
    "time_rounds",
    "to_rows",
    "tune_ridge",
]

_Array = NDArray[np.float64]
_BLOCK_ELEMENTS = 1 << 20  # of features that are computed at once
_SHORT_CALL, _LONG_CALL = 0.2, 1.0  # seconds
_QUANTILE = float(norm.ppf((1 + CONFIDENCE) / 2))


def run_seeds(seed: int, n_runs: int) -> list[int]:
    """Return the seeds of the runs of an experiment.

    Examples
    --------
    >>> from reproduce.measuring import run_seeds
    >>> run_seeds(3, 2)
    [3000, 3001]
    """
    return [1000 * seed + run for run in range(n_runs)]


def estimate_pairs(feature_map: Any, x: Any, y: Any) -> _Array:
    """The inner product of the features of each row of x and the same row of y, in blocks."""
    fitted = feature_map.fit(x)
    estimates = np.empty(x.shape[0])
    n_rows = max(1, _BLOCK_ELEMENTS // max(1, int(feature_map.n_components)))
    for begin in range(0, len(estimates), n_rows):
        part = slice(begin, begin + n_rows)
        estimates[part] = np.einsum(
            "ij,ij->i", fitted.transform(x[part]), fitted.transform(y[part])
        )
    return estimates


def time_rounds(
    contenders: Mapping[str, Callable[[], object]], *, rounds: int, shortest: float = 2e-3
) -> dict[str, tuple[float, ...]]:
    """Return the seconds of one call of each contender, in each round.

    A round calls every contender in turn, often enough to last `shortest` seconds, so that a slow
    spell of the machine affects all of them, and ratios within a round are fair. Of short calls,
    each round takes the best of three: other programs interrupt them. Calls of more than a second
    need no warming up: the first one counts as a round.
    """
    repeats, tries = {}, {}
    times: dict[str, list[float]] = {}
    for name, call in contenders.items():
        begin = time.perf_counter()
        call()
        seconds = time.perf_counter() - begin
        repeats[name] = max(1, round(shortest / max(seconds, 1e-7)))
        tries[name] = 3 if seconds < _SHORT_CALL else 1
        times[name] = [seconds] if seconds > _LONG_CALL else []
    for round_ in range(rounds):
        for name, call in contenders.items():
            if len(times[name]) > round_:
                continue
            best = math.inf
            for _ in range(tries[name]):
                begin = time.perf_counter()
                for _ in range(repeats[name]):
                    call()
                best = min(best, (time.perf_counter() - begin) / repeats[name])
            times[name].append(best)
    return {name: tuple(each) for name, each in times.items()}


def draw_split(n_rows: int, n_training: int, n_test: int, seed: int) -> tuple[Any, Any]:
    """Return the indices of random training rows and of other, random test rows."""
    order = np.random.default_rng(seed).permutation(n_rows)
    n_training = min(n_training, n_rows - 1)
    return order[:n_training], order[n_training:][:n_test]


def standardize(X: Any, *others: Any) -> list[Any]:
    """Return the rows with the means and deviations of the columns of X taken out.

    Columns that are constant in X become 0.
    """
    mean, deviation = X.mean(axis=0), X.std(axis=0)
    inverse = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)
    return [(rows - mean) * inverse for rows in (X, *others)]


def half_width_of_rmse(residuals: _Array) -> float:
    """Half the width of the interval of an RMSE over other test rows, by the delta method."""
    squares = residuals**2
    rmse = math.sqrt(float(squares.mean()))
    if rmse == 0 or len(squares) < 2:
        return 0.0
    return _QUANTILE * float(squares.std(ddof=1)) / (2 * rmse * math.sqrt(len(squares)))


def half_width_of_share(share: float, n: int) -> float:
    """Half the width of the interval of a share of n test rows.

    Examples
    --------
    >>> from reproduce.measuring import half_width_of_share
    >>> round(half_width_of_share(0.5, 10_000), 4)
    0.0129
    """
    return _QUANTILE * math.sqrt(max(share * (1 - share), 1 / n) / n)


def tune_ridge(
    kernel: Callable[[Any, Any, float], _Array],
    X: Any,
    y: _Array,
    scales: Sequence[float],
    alphas: Sequence[float],
) -> tuple[float, float]:
    """Return the length scale and penalty with the least squared error of leaving out each row.

    Parameters
    ----------
    kernel : callable
        From two sets of rows and a length scale to the kernel matrix.
    X, y : arrays
        A sample of training rows, and their targets with mean 0.
    scales, alphas : sequence of float
        The candidates.

    Returns
    -------
    (float, float)
    """
    best = (math.inf, float(scales[0]), float(alphas[0]))
    for scale in scales:
        with one_blas_thread():  # threads wait for each other longer than they compute
            values, vectors = eigh(kernel(X, X, scale), overwrite_a=True, check_finite=False)
        projected = vectors.T @ y
        squares = vectors**2
        for alpha in alphas:
            inverse = 1.0 / np.maximum(values + alpha, 1e-12 * max(values[-1], 1.0))
            # The residual of a row that is left out: its dual coefficient / its leverage.
            left_out = (vectors @ (inverse * projected)) / (squares @ inverse)
            error = float(np.mean(left_out**2))
            if error < best[0]:
                best = (error, float(scale), float(alpha))
    return best[1], best[2]


def fit_linear_svm(Z: Any, y: Any, seed: int, C: float = 1.0) -> Any:
    """LIBLINEAR's support vector machine (squared hinge loss).

    Solver and stopping rule are those of LIBLINEAR's own program, which the papers ran;
    scikit-learn's defaults stop at a thousandth of that tolerance, much later.
    """
    from sklearn.svm import LinearSVC  # noqa: PLC0415

    machine = LinearSVC(C=C, dual=True, tol=0.1, random_state=seed)
    with warnings.catch_warnings(action="ignore"):  # it stops after 1000 passes, as in the papers
        return machine.fit(Z, y)


def to_rows(X: Any, indices: Any) -> Any:
    """These rows of an array or CSR matrix, as a dense array."""
    rows = X[indices]
    return rows.toarray() if scipy.sparse.issparse(rows) else rows


def geometric(low: int, high: int, factor: int = 2) -> Iterator[int]:
    """low, low * factor, ... up to high.

    Examples
    --------
    >>> from reproduce.measuring import geometric
    >>> list(geometric(16, 128))
    [16, 32, 64, 128]
    """
    while low <= high:
        yield low
        low *= factor
