"""What a two-sample test returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from kernelmill.learners.mapped_rows import (
    features_of,
    n_rows_of,
    row_blocks,
    rows_per_block,
    take_rows,
)
from kernelmill.maps.base import check_data

__all__ = ["TwoSampleResult"]


@dataclass(frozen=True, eq=False, repr=False)
class TwoSampleResult:
    """The outcome of :func:`kernelmill.stats.two_sample_test`.

    Attributes
    ----------
    p_value : float
        If both samples have one distribution, it is at most u with probability at most u, for
        every u. Its least value is 1 / (n_permutations + 1).
    statistic : float
        n_x n_y / (n_x + n_y) times `mmd2`: what is compared with its values under permutations. Its
        distribution hardly depends on the numbers of rows if both distributions are the same.
    mmd2 : float
        The squared distance between the mean features of X and of Y; too large by about the
        variance of the means.
    mmd2_unbiased : float
        The same without that: unbiased for the kernel that the features have, and so possibly
        negative (Gretton et al., 2012, lemma 6). NaN if a sample has a single row.
    n_x, n_y : int
        The numbers of rows.
    n_features : int
    n_permutations : int
    bin_rows : int
        How many rows of a sample change their labels together: 1 in a classical permutation test,
        and here for up to 1024 rows.
    length_scale : float or None
        Of the kernel, if the map has one.
    null_statistics : ndarray of shape (n_permutations,)
        The statistic under permutations.
    mean_difference : ndarray of shape (n_features,)
        Mean features of X minus those of Y.
    feature_map : transformer
        As it was fitted.
    """

    p_value: float
    statistic: float
    mmd2: float
    mmd2_unbiased: float
    n_x: int
    n_y: int
    n_features: int
    n_permutations: int
    bin_rows: int
    length_scale: float | None
    null_statistics: NDArray[np.float64] = field(repr=False)
    mean_difference: NDArray[np.float64] = field(repr=False)
    feature_map: Any = field(repr=False)

    def __repr__(self) -> str:
        scale = "" if self.length_scale is None else f", length_scale={self.length_scale:.4g}"
        return (
            f"TwoSampleResult(p_value={self.p_value:.4g}, statistic={self.statistic:.4g}, "
            f"mmd2={self.mmd2:.4g}, mmd2_unbiased={self.mmd2_unbiased:.4g}, n_x={self.n_x}, "
            f"n_y={self.n_y}, n_features={self.n_features}, "
            f"n_permutations={self.n_permutations}{scale})"
        )

    def witness(self, rows: Any) -> NDArray[np.float64]:
        """Where the samples differ: positive where X has more mass than Y, negative where less.

        The witness function of Gretton et al. (2012, section 2.3): the inner product of a row's
        features with `mean_difference`.

        Parameters
        ----------
        rows : array_like or CSR matrix of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows,)

        Examples
        --------
        >>> import numpy as np
        >>> from kernelmill.stats import two_sample_test
        >>> rng = np.random.default_rng(0)
        >>> result = two_sample_test(
        ...     rng.normal(1.0, size=(300, 1)), rng.normal(-1.0, size=(300, 1)), random_state=0
        ... )
        >>> np.sign(result.witness([[-1.0], [1.0]]))
        array([-1.,  1.])
        """
        rows = check_data(BaseEstimator(), rows, reset=True, keep_integers=True)
        expected = getattr(self.feature_map, "n_features_in_", rows.shape[1])
        if rows.shape[1] != expected:
            raise ValueError(
                f"rows must have the {expected} columns of the samples, got {rows.shape[1]}."
            )
        values = np.empty(n_rows_of(rows))
        for block in row_blocks(values.size, rows_per_block(self.n_features, 8)):
            values[block] = features_of(self.feature_map, take_rows(rows, block)) @ (
                self.mean_difference
            )
        return values
