"""The two-sample test of maximum mean discrepancy on random features, in linear time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _get_feature_names

from kernelmill.arguments import check_flag, check_integer
from kernelmill.errors import ArgumentError, ArgumentTypeError
from kernelmill.learners.blocks import (
    RowReader,
    concatenate_rows,
    count_rows,
    slice_rows,
    take_rows,
)
from kernelmill.learners.features import compute_features, rows_per_block
from kernelmill.maps.base import REAL, check_data
from kernelmill.maps.principal_fourier import PrincipalFourier
from kernelmill.maps.random_fourier import ShiftInvariantMap
from kernelmill.maps.registry import make_feature_map
from kernelmill.maps.scales import typical_length_scale
from kernelmill.random import Stream
from kernelmill.random.seeding import RandomState
from kernelmill.runtime.arrays import Rows, SparseRows, Transformer
from kernelmill.runtime.threads import resolve_threads
from kernelmill.stats.permutations import BinnedSamples, choose_max_bins, permute_norms

__all__ = [
    "ROWS_TO_FIT",
    "TwoSampleResult",
    "TwoSampleTest",
    "prepare_map",
    "result_of_bins",
    "two_sample_test",
]

ROWS_TO_FIT = 1000  # Number of rows from which the median distance is estimated.
_FIRST_ROWS = 512  # Number of first rows of two streams, together.
_ROWS_AT_ONCE = 1024

MatrixLike: TypeAlias = ArrayLike | SparseRows
SampleLike: TypeAlias = MatrixLike | Iterable[MatrixLike]


class TwoSampleTest(BaseEstimator):  # type: ignore[misc] # scikit-learn is untyped
    """The estimator that the error messages of scikit-learn's checks name."""


@dataclass(frozen=True, eq=False, repr=False)
class TwoSampleResult:
    """The result of :func:`kernelmill.stats.two_sample_test`.

    Attributes
    ----------
    p_value : float
        If both samples have the same distribution, it is at most u with probability at most u,
        for every u. It is at least 1 / (n_permutations + 1).
    statistic : float
        n_x n_y / (n_x + n_y) times `mmd2`, which is compared with its values under permutations. If
        both samples have the same distribution, its own hardly depends on the numbers of rows.
    mmd2 : float
        The squared distance between the mean features of X and of Y; it is biased upwards by
        about the variance of the means.
    mmd2_unbiased : float
        The unbiased estimate, which may be negative (Gretton et al., 2012, lemma 6). NaN if a
        sample has a single row.
    n_x, n_y : int
        The numbers of rows.
    n_features : int
    n_permutations : int
    bin_rows : int
        The number of rows that change their labels together: 1, as in a classical permutation test,
        for up to 1024 rows.
    length_scale : float or None
        The length scale of the kernel, if the map has one; the geometric mean if there is one for
        each column.
    null_statistics : ndarray of shape (n_permutations,)
        The statistics of the permutations.
    mean_difference : ndarray of shape (n_features,)
        Mean features of X minus those of Y.
    feature_map : transformer
        The fitted map.
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
    feature_map: Transformer = field(repr=False)

    def __repr__(self) -> str:
        scale = "" if self.length_scale is None else f", length_scale={self.length_scale:.4g}"
        return (
            f"TwoSampleResult(p_value={self.p_value:.4g}, statistic={self.statistic:.4g}, "
            f"mmd2={self.mmd2:.4g}, mmd2_unbiased={self.mmd2_unbiased:.4g}, n_x={self.n_x}, "
            f"n_y={self.n_y}, n_features={self.n_features}, "
            f"n_permutations={self.n_permutations}{scale})"
        )

    def witness(self, rows: MatrixLike) -> NDArray[np.float64]:
        """Return where the samples differ: positive where X has more mass than Y, else negative.

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
        X: Rows = check_data(TwoSampleTest(), rows, reset=True, keep_integers=True)
        expected = getattr(self.feature_map, "n_features_in_", X.shape[1])
        if X.shape[1] != expected:
            raise ArgumentError(
                f"must have {expected} columns like the samples, got {X.shape[1]}",
                parameter="rows",
            )
        values = np.empty(X.shape[0])
        for block in slice_rows(values.size, rows_per_block(self.n_features, 8)):
            Z = compute_features(self.feature_map, take_rows(X, block))
            values[block] = Z @ self.mean_difference
        return values


def two_sample_test(
    X: SampleLike,
    Y: SampleLike,
    *,
    feature_map: str | Transformer = "fastfood",
    n_permutations: int = 999,
    shuffle: bool = True,
    random_state: RandomState | Stream = None,
    n_threads: int | None = None,
) -> TwoSampleResult:
    """Test whether the rows of X and the rows of Y have the same distribution.

    The statistic is the maximum mean discrepancy (Gretton et al., 2012) of the kernel of the
    features: the distance between the mean features of X and of Y. Its distribution under the null
    hypothesis is estimated by permuting labels. Features are computed in blocks. Only their
    sums over bins of rows are stored, with the same number of rows in each bin. Labels are permuted
    among the bins (Domingo-Enrich, Dwivedi & Mackey, 2023), so that the cost of permutations does
    not depend on the number of rows. Up to 1024 rows, each bin is a row and this is the classical
    permutation test.

    Parameters
    ----------
    X, Y : array_like, sparse matrix, data frame, or iterable of such, with the same columns
        The samples, of any sizes. An iterable of blocks (a generator, a list of matrices) is a
        stream: it is read once, alternating with the other one, and never stored.
    feature_map : str or transformer, default="fastfood"
        A map of kernelmill, any other transformer of numeric matrices, or the name of a map, such
        as "random_fourier". A named map has 2048 components and, if it has a length scale,
        ``length_scale="median"``. A copy is fitted to at most 1000 rows of both samples together.
    n_permutations : int, default=999
        The smallest possible p-value is 1 / (n_permutations + 1).
    shuffle : bool, default=True
        Whether to assign rows of matrices to bins at random, so that their order does not matter.
        Otherwise, and in streams, a bin has consecutive rows.
    random_state : int, RandomState, Generator or Stream, default=None
        The seed of the map, the bins and the permutations.
    n_threads : int, default=None
        The number of threads; by default :func:`kernelmill.get_num_threads`.

    Returns
    -------
    TwoSampleResult
        The result with `p_value`, `statistic` and `mmd2`, and a method `witness` that shows where
        the samples differ.

    Notes
    -----
    The p-value (1 + #{permuted >= observed}) / (1 + n_permutations) is valid for any numbers of
    rows, not only in the limit, if rows are independent: under the null hypothesis, bins of one
    size are exchangeable. Rows outside of complete bins count for the statistic and keep their
    labels. The rows to which the map is fitted are chosen independently of labels. For streams they
    are the first ones, 256 of each. These rows become bins of one row each and exchange labels only
    with each other. This keeps the test valid but reduces its power if one of the samples has few
    other rows. A map with a given `length_scale` needs no such rows.

    Rows of a stream should come in random order. Otherwise (sorted, drifting, correlated in time),
    bins of consecutive rows differ more than random ones, and the test tends to be conservative.

    The test takes the time of computing the features and one addition per feature. It needs memory
    for 1024 numbers per feature (fewer with more than 8192 features), for any number of rows, and
    with `shuffle` 8 bytes per row of a matrix.

    References
    ----------
    A. Gretton, K. M. Borgwardt, M. J. Rasch, B. Schölkopf, A. Smola, "A kernel two-sample test",
    Journal of Machine Learning Research 13 (2012).

    C. Domingo-Enrich, R. Dwivedi, L. Mackey, "Compress then test: powerful kernel testing in
    near-linear time", AISTATS (2023).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.stats import two_sample_test
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 5))
    >>> Y = rng.exponential(size=(700, 5)) - 1  # the same mean and variance
    >>> two_sample_test(X, Y, random_state=0).p_value
    0.001
    >>> blocks = (rng.normal(size=(200, 5)) for _ in range(20))
    >>> two_sample_test(X, blocks, random_state=0).p_value > 0.05
    True
    """
    n_permutations = check_integer("n_permutations", n_permutations, 1)
    check_flag("shuffle", shuffle)
    resolve_threads(n_threads)
    stream = Stream.from_random_state(random_state)
    unfitted = prepare_map(feature_map, stream, n_threads)
    if X is Y and hasattr(X, "__next__"):
        raise ArgumentError(
            "X and Y must be two streams, got one iterator twice",
            "pass a separate iterator for each sample",
        )
    order = stream.substream("order of rows")
    x = _SampleRows("X", X, order.substream(0) if shuffle else None)
    y = _SampleRows("Y", Y, order.substream(1) if shuffle else None)

    first = None
    if x.X is not None and y.X is not None:
        _check_columns(x, y)
        rows = _sample_both(x.X, y.X, stream.substream("rows for the map"))
        dtype = _common_dtype(x.X, y.X)
    else:
        first = _take_first(x, y)
        _check_columns(x, y)
        rows, dtype = concatenate_rows(list(first)), _common_dtype(*first)
    fitted = unfitted.fit(rows.astype(dtype, copy=False))
    n_features = compute_features(fitted, rows[:1].astype(dtype, copy=False)).shape[1]

    max_bins = choose_max_bins(n_features)
    block_rows = _block_rows(n_features, max_bins)
    strata = [BinnedSamples(n_features, max_bins, block_rows)]
    with np.errstate(over="ignore", invalid="ignore"):  # `result_of_bins` raises an error.
        if first is not None and _depends_on_data(fitted):
            strata.append(BinnedSamples(n_features, max_bins, block_rows))
            readers = (RowReader([first[0]]), RowReader([first[1]]))
            _read_in_turn(strata[1], readers, block_rows, fitted, dtype)
        elif first is not None:
            x.reader.put_back(first[0])
            y.reader.put_back(first[1])
        _read_in_turn(strata[0], (x.reader, y.reader), block_rows, fitted, dtype)
        return result_of_bins(strata, n_permutations, block_rows, stream, fitted)


def prepare_map(
    feature_map: str | Transformer, stream: Stream, n_threads: int | None
) -> Transformer:
    """Return the unfitted map, with the median length scale if it was given by name."""
    unfitted: Transformer = make_feature_map(feature_map, stream, n_threads)
    if isinstance(feature_map, str) and "length_scale" in unfitted.get_params():
        unfitted.set_params(length_scale="median")
    return unfitted


def _depends_on_data(fitted: Transformer) -> bool:
    """Return whether the map may depend on the rows to which it was fitted."""
    if not isinstance(fitted, ShiftInvariantMap) or isinstance(fitted, PrincipalFourier):
        return True
    return not any(
        value is not None and not isinstance(value, str)
        for value in (fitted.length_scale, fitted.gamma)
    )


def _check_columns(x: _SampleRows, y: _SampleRows) -> None:
    if x.n_columns != y.n_columns:
        raise ArgumentError(
            f"X and Y must have the same columns, got {x.n_columns} columns in X and "
            f"{y.n_columns} in Y",
            "select the same columns in X and Y",
        )
    if x.column_names is not None and y.column_names is not None:
        pairs = zip(x.column_names, y.column_names, strict=True)
        for a, b in pairs:
            if a != b:
                raise ArgumentError(
                    f"X and Y must have the same columns in the same order, got {a!r} in X where "
                    f"Y has {b!r}",
                    "select the same columns in the same order in X and Y",
                )


def _common_dtype(*parts: Rows) -> np.dtype[np.floating]:
    """Return float32 if all rows have it; rounding only one sample would make it different."""
    return np.result_type(*(p.dtype if p.dtype in REAL else np.dtype(np.float64) for p in parts))


def _sample_both(X: Rows, Y: Rows, stream: Stream) -> Rows:
    """Return a uniform sample of all rows together, independent of the labels."""
    n_x = X.shape[0]
    chosen = stream.permutation(n_x + Y.shape[0])[:ROWS_TO_FIT]
    chosen.sort()
    split = int(np.searchsorted(chosen, n_x))
    parts = [X[chosen[:split]], Y[chosen[split:] - n_x]]
    both: Rows = concatenate_rows([part for part in parts if part.shape[0]])
    return both


def _take_first(x: _SampleRows, y: _SampleRows) -> tuple[Rows, Rows]:
    """Return the first rows of both; more of one sample if the other one has too few."""
    halves: list[Rows] = []
    for source in (x, y):
        rows = source.take(_FIRST_ROWS // 2)
        if rows is None:
            raise ArgumentError("must have at least one row, got none", parameter=source.name)
        halves.append(rows)
    _check_columns(x, y)
    for i, source in enumerate((x, y)):
        missing = _FIRST_ROWS // 2 - halves[1 - i].shape[0]
        if missing and (more := source.take(missing)) is not None:
            halves[i] = concatenate_rows([halves[i], more])
    return halves[0], halves[1]


def _block_rows(n_features: int, max_bins: int) -> int:
    """Return the number of rows mapped at a time, a power of two so that bins align with blocks."""
    fitting = rows_per_block(n_features, 8)
    return int(min(1 << (fitting.bit_length() - 1), max_bins // 4))


def _read_in_turn(
    samples: BinnedSamples,
    readers: tuple[RowReader, RowReader],
    block_rows: int,
    fitted: Transformer,
    dtype: np.dtype[np.floating],
) -> None:
    """Add blocks of both samples, alternating, until both are read."""
    unread = dict(enumerate(readers))
    while unread:
        for which, reader in list(unread.items()):
            rows = reader.take(block_rows)
            if rows is None:
                del unread[which]
            else:
                samples.add(which, compute_features(fitted, rows.astype(dtype, copy=False)))


def result_of_bins(
    strata: list[BinnedSamples],
    n_permutations: int,
    block_rows: int,
    stream: Stream,
    fitted: Transformer,
) -> TwoSampleResult:
    """Permute the labels of bins, whose rows were summed `block_rows` at a time."""
    counts = [sum(stratum.samples[i].n_rows for stratum in strata) for i in range(2)]
    squares = [sum(stratum.samples[i].squares for stratum in strata) for i in range(2)]
    totals: list[NDArray[np.float64]] = [
        np.sum([stratum.samples[i].total for stratum in strata], axis=0) for i in range(2)
    ]
    if not np.isfinite([*squares, *totals[0], *totals[1]]).all():
        raise ArgumentError(
            "the features of X and Y must be finite and have finite norms, but they are not "
            f"with {fitted}",
            "divide the data by a number",
            "use another feature_map",
        )
    norms = permute_norms(strata, n_permutations, block_rows, stream)
    at_least = int(np.count_nonzero(norms.permuted >= norms.observed - norms.rounding))

    n_x, n_y = counts
    factor = (n_x + n_y) / (n_x * n_y)
    # Differences within the rounding error count as 0.
    observed, permuted = (
        np.where(values <= norms.rounding, 0.0, values)
        for values in (norms.observed, norms.permuted)
    )
    mmd2 = float((factor * observed) ** 2)
    unbiased = mmd2
    for count, square, total in zip(counts, squares, totals, strict=True):
        mean = total / count
        spread = max(0.0, square / count - float(mean @ mean))
        unbiased -= spread / (count - 1) if count > 1 else np.nan
    return TwoSampleResult(
        p_value=(1 + at_least) / (1 + n_permutations),
        statistic=float(factor * observed**2),
        mmd2=mmd2,
        mmd2_unbiased=unbiased,
        n_x=n_x,
        n_y=n_y,
        n_features=totals[0].size,
        n_permutations=n_permutations,
        bin_rows=strata[0].bin_rows,
        length_scale=typical_length_scale(fitted),
        null_statistics=factor * permuted**2,
        mean_difference=totals[0] / n_x - totals[1] / n_y,
        feature_map=fitted,
    )


class _SampleRows:
    """The rows of a matrix, in random order if `order` is given, or of an iterable of blocks.

    Attributes
    ----------
    name : str
    X : matrix or None
        All rows; None for an iterable of blocks.
    reader : RowReader
    n_columns, column_names
        None until the first block has been read.
    """

    def __init__(self, name: str, X: SampleLike, order: Stream | None) -> None:
        self.name = name
        self.n_columns: int | None = None
        self.column_names: NDArray[np.object_] | None = None
        self.X: Rows | None = None
        if isinstance(X, (str, bytes, dict)):
            raise ArgumentTypeError(
                f"must be a matrix or an iterable of blocks of rows, got {type(X).__name__}",
                parameter=name,
            )
        if _is_stream(X):
            self.reader = RowReader(self._read_blocks(X))
        else:
            self.X = self._check(X)  # type: ignore[arg-type] # It is not a stream.
            self.reader = RowReader(_read_matrix(self.X, order))

    def take(self, n_rows: int) -> Rows | None:
        """Return the next rows: fewer at the end, and None after it."""
        rows: Rows | None = self.reader.take(n_rows)
        return rows

    def _read_blocks(self, blocks: Iterable[MatrixLike]) -> Iterator[Rows]:
        for block in blocks:
            if not hasattr(block, "shape") and not isinstance(block, (list, tuple)):
                raise ArgumentTypeError(
                    "must be a matrix or an iterable of matrices, got an iterable with "
                    f"{block!r:.50} in it",
                    "combine the rows into blocks",
                    parameter=self.name,
                )
            if count_rows(block):
                # Copy: the source of the blocks may overwrite the array.
                yield self._check(block).copy()

    def _check(self, block: MatrixLike) -> Rows:
        """Return checked rows; raise an error if their columns differ from earlier blocks."""
        try:
            names = _get_feature_names(block)
            rows: Rows = check_data(TwoSampleTest(), block, reset=True, keep_integers=True)
        except (TypeError, ValueError) as error:
            kind = ArgumentTypeError if isinstance(error, TypeError) else ArgumentError
            problem = str(error).removesuffix(".")
            raise kind(f"cannot be tested: {problem}", parameter=self.name) from error
        if self.n_columns is None:
            self.n_columns, self.column_names = rows.shape[1], names
        elif rows.shape[1] != self.n_columns:
            raise ArgumentError(
                f"must have the same columns in all blocks, got {self.n_columns} columns first "
                f"and {rows.shape[1]} later",
                parameter=self.name,
            )
        return rows


def _is_stream(X: SampleLike) -> TypeGuard[Iterable[MatrixLike]]:
    if hasattr(X, "shape") or hasattr(X, "__array__"):
        return False
    if isinstance(X, (list, tuple)):  # A list of matrices, or a matrix as a list of rows.
        return bool(X) and len(getattr(X[0], "shape", ())) == 2
    return hasattr(X, "__iter__")


def _read_matrix(X: Rows, order: Stream | None) -> Iterator[Rows]:
    permutation = None if order is None else order.permutation(X.shape[0])
    for rows in slice_rows(X.shape[0], _ROWS_AT_ONCE):
        yield take_rows(X, rows if permutation is None else permutation[rows])
