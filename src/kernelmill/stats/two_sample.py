"""The two-sample test of maximum mean discrepancy on random features, in linear time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.arguments import check_flag, check_integer
from kernelmill.learners.feature_map import unfitted_feature_map
from kernelmill.learners.mapped_rows import features_of, rows_per_block
from kernelmill.maps.base import REAL
from kernelmill.maps.shift_invariant import ShiftInvariantMap
from kernelmill.random import Stream
from kernelmill.runtime.threads import resolve_threads
from kernelmill.stats.bins import BinnedSamples, most_bins_for
from kernelmill.stats.permutations import permuted_norms
from kernelmill.stats.result import TwoSampleResult
from kernelmill.stats.row_source import MatrixRows, RowSource, row_source, stacked

__all__ = ["two_sample_test"]

_ROWS_TO_FIT = 1000  # as many as the median distance is taken of
_FIRST_ROWS = 512  # of two streams together


def two_sample_test(
    X: Any,
    Y: Any,
    *,
    feature_map: Any = "fastfood",
    n_permutations: int = 999,
    shuffle: bool = True,
    random_state: Any = None,
    n_threads: int | None = None,
) -> TwoSampleResult:
    """Test whether the rows of X and the rows of Y come from one distribution.

    The statistic is the maximum mean discrepancy (Gretton et al., 2012) of the kernel that the
    features have: the distance between the mean features of X and of Y. Its distribution under the
    hypothesis is found by permuting labels. Features are made a block at a time, and all that is
    kept of them are sums over bins of rows, equally many rows in each; labels are permuted among
    the bins (Domingo-Enrich, Dwivedi & Mackey, 2023), so that permutations cost the same for any
    number of rows. Up to 1024 rows, bins are single rows and this is the classical permutation
    test.

    Parameters
    ----------
    X, Y : array_like, sparse matrix, data frame, or iterable of such, with the same columns
        The samples; their sizes may differ as they like. An iterable of blocks (a generator, a list
        of matrices) is a stream: it is read once, in turn with the other one, and never stored.
    feature_map : str or transformer, default="fastfood"
        A map of kernelmill, any other transformer of numeric matrices, or the name of a map, such
        as "random_fourier": then with 2048 components, and with ``length_scale="median"`` if it has
        a length scale. It is copied, and fitted on at most 1000 rows of both samples together.
    n_permutations : int, default=999
        The least p-value is 1 / (n_permutations + 1).
    shuffle : bool, default=True
        Whether rows of matrices are assigned to bins at random: the order in which they are given
        then does not matter. Without it, and in streams, a bin holds consecutive rows.
    random_state : int, RandomState, Generator or Stream, default=None
        For the map, the bins and the permutations.
    n_threads : int, default=None
        For the features; by default :func:`kernelmill.get_num_threads`.

    Returns
    -------
    TwoSampleResult
        With `p_value`, `statistic`, `mmd2`, and where the samples differ (`witness`).

    Notes
    -----
    The p-value (1 + #{permuted >= observed}) / (1 + n_permutations) is valid at any numbers of
    rows, not only in the limit, if rows are independent: under the hypothesis bins of one size are
    exchangeable. What is not in a complete bin counts for the statistic and keeps its label. The
    rows that the map is fitted on are chosen without regard to labels. For streams they have to be
    the first ones, 256 of each; these then are bins of their own, of one row each, and change
    labels only among each other, which keeps the test valid but costs power where one of the
    samples has hardly more rows than that. A map with a given `length_scale` needs no such rows.

    Rows of a stream should come in random order. If they do not (sorted, drifting, correlated in
    time), bins of consecutive rows differ more than random ones, and the test tends to be
    conservative rather than to see differences where there are none.

    Cost: that of the features, and one addition for each of them; memory: 1024 times the number of
    features (fewer if there are more than 8192), whatever the number of rows, and with `shuffle`
    8 bytes for each row of a matrix. A row costs the same in a stream.

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
    unfitted = _median_by_default(feature_map, unfitted_feature_map(feature_map, stream, n_threads))
    if X is Y and hasattr(X, "__next__"):
        raise ValueError("X and Y must be two streams, got one iterator twice; make another one.")
    order = stream.substream("order of rows")
    x = row_source("X", X, order.substream(0) if shuffle else None)
    y = row_source("Y", Y, order.substream(1) if shuffle else None)

    first = None
    if isinstance(x, MatrixRows) and isinstance(y, MatrixRows):
        _check_columns(x, y)
        rows = _rows_of_both(x, y, stream.substream("rows for the map"))
        dtype = _common_dtype(x.X, y.X)
    else:
        first = _first_rows(x, y)
        _check_columns(x, y)
        rows, dtype = stacked(list(first)), _common_dtype(*first)
    fitted = unfitted.fit(rows.astype(dtype, copy=False))
    n_features = features_of(fitted, rows[:1].astype(dtype, copy=False)).shape[1]

    most_bins = most_bins_for(n_features)
    block_rows = _block_rows(n_features, most_bins)
    strata = [BinnedSamples(n_features, most_bins, block_rows)]
    with np.errstate(over="ignore", invalid="ignore"):  # an error below says what to do about it
        if first is not None and _looks_at_data(fitted):
            strata.append(BinnedSamples(n_features, most_bins, block_rows))
            first_x, first_y = MatrixRows("X", first[0], None), MatrixRows("Y", first[1], None)
            _read_in_turn(strata[1], first_x, first_y, block_rows, fitted, dtype)
        elif first is not None:
            x.put_back(first[0])
            y.put_back(first[1])
        _read_in_turn(strata[0], x, y, block_rows, fitted, dtype)
        return _result(strata, n_permutations, block_rows, stream, fitted)


def _median_by_default(feature_map: Any, unfitted: Any) -> Any:
    """The map that a name stands for, with the length scale that is usual for this test."""
    if isinstance(feature_map, str) and "length_scale" in unfitted.get_params():
        unfitted.set_params(length_scale="median")
    return unfitted


def _looks_at_data(fitted: Any) -> bool:
    """Whether the rows that the map was fitted on can have changed it; if unsure, yes."""
    if not isinstance(fitted, ShiftInvariantMap):
        return True
    return not any(
        value is not None and not isinstance(value, str)
        for value in (fitted.length_scale, fitted.gamma)
    )


def _check_columns(x: RowSource, y: RowSource) -> None:
    if x.n_columns != y.n_columns:
        raise ValueError(
            f"X and Y must have the same columns, got {x.n_columns} columns in X and "
            f"{y.n_columns} in Y; select those to compare."
        )
    if x.column_names is not None and y.column_names is not None:
        pairs = zip(x.column_names, y.column_names, strict=True)
        for a, b in pairs:
            if a != b:
                raise ValueError(
                    f"X and Y must have the same columns in the same order, got {a!r} in X where "
                    f"Y has {b!r}; select and order the columns of both."
                )


def _common_dtype(*parts: Any) -> np.dtype[Any]:
    """float32 if all rows are that: rounding in one sample alone would tell it from the other."""
    return np.result_type(*(p.dtype if p.dtype in REAL else np.dtype(np.float64) for p in parts))


def _rows_of_both(x: MatrixRows, y: MatrixRows, stream: Stream) -> Any:
    """A uniform sample of all rows together: independent of the labels."""
    chosen = stream.permutation(x.n_rows + y.n_rows)[:_ROWS_TO_FIT]
    chosen.sort()
    split = int(np.searchsorted(chosen, x.n_rows))
    parts = [x.X[chosen[:split]], y.X[chosen[split:] - x.n_rows]]
    return stacked([part for part in parts if part.shape[0]])


def _first_rows(x: RowSource, y: RowSource) -> tuple[Any, Any]:
    """The first rows of both: equally many if both have them, otherwise more of the longer one."""
    halves = [x.take(_FIRST_ROWS // 2), y.take(_FIRST_ROWS // 2)]
    for source, rows in zip((x, y), halves, strict=True):
        if rows is None:
            raise ValueError(f"{source.name} must have at least one row, got none.")
    _check_columns(x, y)
    for i, source in enumerate((x, y)):
        missing = _FIRST_ROWS // 2 - halves[1 - i].shape[0]
        if missing and (more := source.take(missing)) is not None:
            halves[i] = stacked([halves[i], more])
    return halves[0], halves[1]


def _block_rows(n_features: int, most_bins: int) -> int:
    """How many rows to map at a time: a power of two, so that bins are cut at its multiples."""
    fitting = rows_per_block(n_features, 8)
    return int(min(1 << (fitting.bit_length() - 1), most_bins // 4))


def _read_in_turn(
    samples: BinnedSamples,
    x: RowSource,
    y: RowSource,
    block_rows: int,
    fitted: Any,
    dtype: np.dtype[Any],
) -> None:
    """Take a block of each sample in turn, until both are read."""
    unread: dict[int, RowSource] = {0: x, 1: y}
    while unread:
        for which, source in list(unread.items()):
            rows = source.take(block_rows)
            if rows is None:
                del unread[which]
            else:
                samples.add(which, features_of(fitted, rows.astype(dtype, copy=False)))


def _result(
    strata: list[BinnedSamples],
    n_permutations: int,
    block_rows: int,
    stream: Stream,
    fitted: Any,
) -> TwoSampleResult:
    counts = [sum(stratum.samples[i].n_rows for stratum in strata) for i in range(2)]
    squares = [sum(stratum.samples[i].squares for stratum in strata) for i in range(2)]
    totals: list[NDArray[np.float64]] = [
        np.sum([stratum.samples[i].total for stratum in strata], axis=0) for i in range(2)
    ]
    if not np.isfinite([*squares, *totals[0], *totals[1]]).all():
        raise ValueError(
            f"The features of X and Y must be finite and of finite norm, got others from {fitted}; "
            "divide the data by a number, or take another feature_map."
        )
    norms = permuted_norms(strata, n_permutations, block_rows, stream)
    at_least = int(np.count_nonzero(norms.permuted >= norms.observed - norms.rounding))

    n_x, n_y = counts
    factor = (n_x + n_y) / (n_x * n_y)
    # Equal means differ by rounding errors, which are no discrepancy.
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
        length_scale=getattr(fitted, "length_scale_", None),
        null_statistics=factor * permuted**2,
        mean_difference=totals[0] / n_x - totals[1] / n_y,
        feature_map=fitted,
    )
