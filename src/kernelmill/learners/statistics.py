"""Statistics of rows that determine a least-squares fit: blocks add to them, and they merge."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyr

from kernelmill import _native
from kernelmill.arguments import check_integer
from kernelmill.errors import ArgumentError, ArgumentTypeError
from kernelmill.learners.blocks import slice_rows
from kernelmill.learners.few_outputs import lay_out_rows
from kernelmill.learners.ridge import NormalEquations
from kernelmill.runtime.interrupts import defer_interrupts
from kernelmill.runtime.threads import get_num_threads

__all__ = [
    "RidgeStatistics",
    "check_some_weight",
    "check_weights",
    "rows_per_update",
]

_LARGEST = 1e140  # sums of squares and of products of such numbers are finite
_SAFE_WEIGHT = 1e27  # times squares of differences of such numbers is finite
_LARGEST_SINGLE = 1e15  # targets whose products are summed in float32
_MOST_ROWS = 2047  # and one more row, see `_add`
_FEWEST_ROWS = 255
_MOST_PRODUCTS = 1 << 35  # of one update, about a second, for Ctrl-C to be heard
_ROWS_IN_CACHE = 32

Moments = NDArray[np.float64]


def rows_per_update(n_features: int) -> int:
    """Return the number of rows whose products are added at a time."""
    return int(np.clip(_MOST_PRODUCTS // max(1, n_features) ** 2, _FEWEST_ROWS, _MOST_ROWS))


class RidgeStatistics:
    """Sums over rows that determine least squares with any penalty.

    Of features z, targets y and weights w of rows: the number of rows with positive weight, Σ w,
    Σ log w, the weighted means, and the moments around them: Σ w (z - z̄)(z - z̄)ᵀ,
    Σ w (z - z̄)(y - ȳ)ᵀ and Σ w (y - ȳ)², all in float64. Blocks are joined by the pairwise rule of
    Chan, Golub & LeVeque (1979): large means cost no digits. How rows are divided into blocks,
    in which order blocks come and which statistics are merged first changes nothing beyond
    rounding. The number of threads changes nothing at all. An object is not to be updated by
    several threads at once: give each its own, and merge them.

    Parameters
    ----------
    n_features : int
        The number D of columns of Z. The memory is that of D² numbers of 8 bytes.
    n_targets : int
        The number T of columns of Y.
    single_precision : bool, default=False
        Whether products of float32 features without weights are summed in float32 over 128 rows,
        and in float64 over these sums. That takes half the time; for which penalties it does no
        harm is up to the caller, see `exact.solve_exact`.

    Attributes
    ----------
    n_rows : int
        Rows with a positive weight. Those of weight zero are as if they were absent.
    weight : float
        Σ w.
    log_weight : float
        Σ log w.
    feature_mean, target_mean : ndarray of shapes (D,) and (T,)
    moments : ndarray of shape (D, D)
        Σ w (z - z̄)(z - z̄)ᵀ in the upper triangle, in Fortran order; zeros below.
    cross : ndarray of shape (D, T)
    target_moments : ndarray of shape (T,)

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.learners.statistics import RidgeStatistics
    >>> Z = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]])
    >>> Y = np.array([[1.0], [3.0], [5.0]])
    >>> first = RidgeStatistics(2, 1).update(Z[:2], Y[:2])
    >>> both = RidgeStatistics(2, 1).update(Z[2:], Y[2:]).merge(first)
    >>> coef, intercept = both.finalize().solve(alpha=0.0)
    >>> bool(np.allclose(Z @ coef.T + intercept, Y))
    True
    """

    def __init__(self, n_features: int, n_targets: int, *, single_precision: bool = False) -> None:
        n_features = check_integer("n_features", n_features, 1)
        n_targets = check_integer("n_targets", n_targets, 1)
        self.n_rows = 0
        self.weight = 0.0
        self.log_weight = 0.0
        self.feature_mean = np.zeros(n_features)
        self.target_mean = np.zeros(n_targets)
        self.moments: Moments = np.zeros((n_features, n_features), order="F")
        self.cross = np.zeros((n_targets, n_features)).T
        self.target_moments = np.zeros(n_targets)
        self.single_precision = single_precision
        self._scratch: NDArray[Any] | None = None

    @property
    def n_features(self) -> int:
        """The number of columns of Z."""
        return len(self.feature_mean)

    @property
    def n_targets(self) -> int:
        """The number of columns of Y."""
        return len(self.target_mean)

    def update(self, Z: Any, Y: Any, sample_weight: Any = None) -> Self:
        """Add the features and targets of some rows.

        Parameters
        ----------
        Z : array_like of shape (n, D)
            float32 loses nothing: products and sums are in float64.
        Y : array_like of shape (n, T)
            Or of shape (n,) for a single target.
        sample_weight : array_like of shape (n,), optional
            Not negative; 1 if not given.

        Returns
        -------
        self
            With all of the rows or, if anything is raised, with none of them. An interrupt waits
            for the end.
        """
        Z = self._check_matrix("Z", Z, self.n_features)
        Y = np.asarray(Y)
        Y = self._check_matrix("Y", Y[:, None] if Y.ndim == 1 else Y, self.n_targets)
        if len(Z) != len(Y):
            raise ArgumentError(
                f"Z and Y must have the same number of rows, got {len(Z)} and {len(Y)}"
            )
        weights = None if sample_weight is None else check_weights(sample_weight, len(Z))
        if not len(Z) or (weights is not None and not weights.any()):
            return self
        if weights is not None:
            self._check_weighted_sums(Z, Y, weights)
        is_single = self.single_precision and Z.dtype == np.float32 and weights is None
        is_single = is_single and float(np.abs(Y).max(initial=0.0)) <= _LARGEST_SINGLE
        dtype = np.dtype(np.float32 if is_single else np.float64)
        Z = lay_out_rows(Z)
        with defer_interrupts():
            for rows in slice_rows(len(Z), rows_per_update(self.n_features)):
                self._add(Z[rows], Y[rows], None if weights is None else weights[rows], dtype)
        return self

    def _check_weighted_sums(
        self, Z: NDArray[Any], Y: NDArray[Any], weights: NDArray[np.float64]
    ) -> None:
        """Raise if weights times squares of features or targets may be infinite."""
        total = self.weight + float(weights.sum())
        if total <= _SAFE_WEIGHT:
            return
        largest = max(abs(float(limit(values))) for values in (Z, Y) for limit in (np.max, np.min))
        if not math.isfinite(total * (2.0 * max(largest, 1.0)) ** 2):
            raise ArgumentError(
                f"has a sum of {total:.3g}, which is too large: its product with squares of "
                f"targets and features, up to {largest:.3g} in size, is infinite",
                "divide all weights by the largest",
                parameter="sample_weight",
            )

    def _add(
        self,
        Z: NDArray[Any],
        Y: NDArray[Any],
        weights: NDArray[np.float64] | None,
        dtype: np.dtype[Any],
    ) -> None:
        """Add a few checked rows, by products in a precision."""
        n_rows = len(Z)
        shares, roots = None, None
        weight, n_weighted, log_weight = float(n_rows), n_rows, 0.0
        if weights is not None:
            weight = float(weights.sum())
            if weight == 0:
                return
            positive = weights[weights > 0]
            n_weighted, log_weight = len(positive), float(np.log(positive).sum())
            shares, roots = weights / weight, np.sqrt(weights)
        total = self.weight + weight
        # The pairwise rule's shift between the means is a row like the others.
        shift_size = np.sqrt(self.weight * (weight / total))
        feature_mean = _mean(Z, shares)
        shift = feature_mean - self.feature_mean
        targets = np.empty((n_rows + 1, self.n_targets))
        centered = targets[:n_rows]
        centered[:] = Y
        target_mean = np.zeros(self.n_targets)
        for _ in range(2):  # targets may be far from zero
            rest = _mean(centered, shares)
            centered -= rest
            target_mean += rest
        if roots is not None:
            centered *= roots[:, np.newaxis]
        target_shift = target_mean - self.target_mean
        targets[n_rows] = target_shift * shift_size
        _native.add_moments(
            Z,
            feature_mean,
            roots,
            shift * shift_size,
            targets,
            self._scratch_for(n_rows, dtype),
            self.moments.T,
            self.cross.T,
            get_num_threads(),
        )
        self.target_moments += np.einsum("ij,ij->j", targets, targets)
        self.feature_mean += shift * (weight / total)
        self.target_mean += target_shift * (weight / total)
        self.weight = total
        self.n_rows += n_weighted
        self.log_weight += log_weight

    def _scratch_for(self, n_rows: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return scratch for packed rows: the same for all blocks, as new pages take time."""
        size = (n_rows + 1) * (self.n_features + self.n_targets + 128) + 16
        if self._scratch is None or self._scratch.dtype != dtype or self._scratch.size < size:
            self._scratch = np.empty(size, dtype)
        return self._scratch

    def merge(self, other: RidgeStatistics) -> Self:
        """Add the rows of other statistics, which stay as they are.

        Parameters
        ----------
        other : RidgeStatistics
            With the same numbers of features and targets. The features have to be those of the
            same map: same seed, same length scale.

        Returns
        -------
        self
            As if it had been given the rows of the other, too. An interrupt waits for the end.
        """
        if not isinstance(other, RidgeStatistics):
            raise ArgumentTypeError(
                f"must be RidgeStatistics, got {type(other).__name__}", parameter="other"
            )
        shapes = [(part.n_features, part.n_targets) for part in (self, other)]
        if shapes[0] != shapes[1]:
            raise ArgumentError(
                f"must have the same numbers of features and targets, {shapes[0][0]} and "
                f"{shapes[0][1]}, got {shapes[1][0]} and {shapes[1][1]}",
                "merge statistics of the same map and the same targets",
                parameter="other",
            )
        if other.n_rows == 0:
            return self
        total = self.weight + other.weight
        share = other.weight / total
        shift = other.feature_mean - self.feature_mean
        target_shift = other.target_mean - self.target_mean
        between = self.weight * share
        with defer_interrupts():
            self.moments += other.moments
            _in_place(dsyr(between, shift, a=self.moments, overwrite_a=1), self.moments)
            self.cross += other.cross + between * np.outer(shift, target_shift)
            self.target_moments += other.target_moments + between * target_shift**2
            self.feature_mean += share * shift
            self.target_mean += share * target_shift
            self.weight = total
            self.n_rows += other.n_rows
            self.log_weight += other.log_weight
        return self

    def finalize(self, *, fit_intercept: bool = True) -> NormalEquations:
        """Return the equations of least squares for the rows so far; more rows may follow.

        Parameters
        ----------
        fit_intercept : bool, default True
            Whether a constant that is not penalized is part of the model.

        Returns
        -------
        NormalEquations
            With a copy of the moments: later rows do not change it.
        """
        if self.n_rows == 0:
            raise ArgumentError(
                "the statistics must have rows with a positive weight, got none",
                "add rows with update",
            )
        self._scratch = None
        moments = self.moments.copy(order="F")
        cross, target_moments = self.cross.copy(), self.target_moments.copy()
        if not fit_intercept:
            dsyr(self.weight, self.feature_mean, a=moments, overwrite_a=1)
            cross += self.weight * np.outer(self.feature_mean, self.target_mean)
            target_moments += self.weight * self.target_mean**2
        return NormalEquations(
            moments,
            cross,
            target_moments,
            means=(self.feature_mean.copy(), self.target_mean.copy()) if fit_intercept else None,
            n_rows=self.n_rows,
            weight=self.weight,
            log_weight=self.log_weight,
        )

    @staticmethod
    def _check_matrix(name: str, given: Any, n_columns: int) -> NDArray[Any]:
        values: NDArray[Any] = np.asarray(given)
        if values.dtype not in (np.float32, np.float64):
            if values.dtype.kind not in "fiub":
                raise ArgumentTypeError(
                    f"must be real numbers, got dtype {values.dtype}", parameter=name
                )
            values = values.astype(np.float64)
        if values.ndim != 2 or values.shape[1] != n_columns:
            raise ArgumentError(
                f"must have shape (n, {n_columns}), got {values.shape}",
                "give the numbers of columns that RidgeStatistics was created with",
                parameter=name,
            )
        if not _are_small(values):
            raise ArgumentError(
                f"must be finite and at most {_LARGEST:g} in size, got NaN, infinity or a larger "
                "number",
                "remove such rows or scale the data",
                parameter=name,
            )
        return values

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_scratch": None}

    def __sizeof__(self) -> int:
        # Dask places tasks where their largest inputs are.
        arrays = (part for part in vars(self).values() if isinstance(part, np.ndarray))
        return super().__sizeof__() + sum(array.nbytes for array in arrays)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(n_features={self.n_features}, n_targets={self.n_targets}; "
            f"n_rows={self.n_rows})"
        )


def check_some_weight(n_rows: int) -> None:
    """Raise if there are no rows of positive weight."""
    if n_rows == 0:
        raise ArgumentError(
            "must be positive for at least one row, got only zeros",
            "leave it out for equal weights",
            parameter="sample_weight",
        )


def check_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64]:
    """Return the weights of rows in float64: one for each, finite, none negative."""
    weights = np.asarray(sample_weight)
    if weights.dtype.kind not in "fiub":
        raise ArgumentTypeError(
            f"must be real numbers, got dtype {weights.dtype}", parameter="sample_weight"
        )
    if weights.shape != (n_rows,):
        raise ArgumentError(
            f"must have shape ({n_rows},), one number for each row, got {weights.shape}",
            parameter="sample_weight",
        )
    weights = weights.astype(np.float64, copy=False)
    if not np.isfinite(weights).all() or (weights < 0).any():
        wrong = weights[~(np.isfinite(weights) & (weights >= 0))][0]
        raise ArgumentError(
            f"must be finite and not negative, got {wrong}",
            "give 0 to leave a row out",
            parameter="sample_weight",
        )
    if not np.isfinite(weights.sum()):
        raise ArgumentError(
            "must have a finite sum, got infinity",
            "divide all weights by the largest",
            parameter="sample_weight",
        )
    return weights


def _mean(rows: NDArray[Any], shares: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Return the mean of rows, or their sum times shares."""
    sums = np.empty(rows.shape[1])
    _native.sum_columns(rows, shares, sums, get_num_threads())
    return sums / len(rows) if shares is None else sums


def _are_small(values: NDArray[Any]) -> bool:
    """Return whether all numbers are finite and at most 1e140 in size."""
    if values.dtype == np.float32 and values.size:  # NaN and infinity show in their sums
        return bool(np.isfinite(_mean(lay_out_rows(values), None)).all())
    # NaN passes through max and min; squares of 1e140 are finite.
    parts = (values[part] for part in slice_rows(len(values), _ROWS_IN_CACHE) if values.size)
    return all(max(float(part.max()), -float(part.min())) <= _LARGEST for part in parts)


def _in_place(result: NDArray[Any], given: NDArray[Any]) -> None:
    """Raise if the BLAS wrapper has worked on a copy."""
    if not np.may_share_memory(result, given):
        raise RuntimeError("scipy's BLAS worked on a copy of the moments, which stay incomplete.")
