"""Folds over pieces: their shape, the sample of rows, and the solvers on top of them."""

import itertools

import dask
import numpy as np
import pytest

from kernelmill import Fastfood, KernelClassifier, KernelRegressor
from kernelmill.learners.blocks import FoldState
from kernelmill.random import Stream
from kernelmill.scale import Cluster, Piece, PieceError, Pieces
from kernelmill.scale.pieces import group_pieces

N_ROWS, N_COLUMNS = 1100, 3
X = np.random.default_rng(0).normal(size=(N_ROWS, N_COLUMNS))
TARGETS = np.sin(2 * X[:, 0]) + X[:, 1]
LABELS = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
# Uneven: none, one row, and many.
EDGES = [0, 0, 1, 2, 300, 300, 301, 640, 1000, N_ROWS, N_ROWS]
MAP = Fastfood(n_components=64, length_scale=1.0, random_state=0)


@pytest.fixture(autouse=True)
def synchronous():
    with dask.config.set(scheduler="synchronous"):
        yield


def read_targets(rows):
    yield X[rows], TARGETS[rows]


def read_labels(rows):
    middle = (rows.start + rows.stop) // 2
    for part in (slice(rows.start, middle), slice(middle, rows.stop)):
        yield X[part], LABELS[part], np.ones(part.stop - part.start)


def make_pieces(read, **kwargs):
    pieces = [
        Piece(f"rows {begin} to {end}", slice(begin, end))
        for begin, end in itertools.pairwise(EDGES)
    ]
    return Pieces(pieces, read, Cluster(), **kwargs)


@pytest.mark.representative
def test_ridge_is_that_of_all_rows():
    here = KernelRegressor(MAP, alpha=0.1).fit(X, TARGETS)
    there = KernelRegressor(MAP, alpha=0.1).fit_blocks(make_pieces(read_targets))
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-11 * np.abs(here.coef_).max())
    assert there.statistics_.n_rows == N_ROWS
    np.testing.assert_allclose(*(m.predict(X, return_std=True)[1] for m in (there, here)))


def test_lbfgs_is_that_of_all_rows():
    settings = {"solver": "lbfgs", "tol": 1e-9, "alpha": 1e-3}
    here = KernelClassifier(MAP, **settings).fit(X, LABELS)
    there = KernelClassifier(MAP, **settings).fit_blocks(make_pieces(read_labels))
    assert there.classes_.tolist() == here.classes_.tolist()
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-5 * np.abs(here.coef_).max())


def test_least_squares_of_signs_is_that_of_all_rows():
    here = KernelClassifier(MAP, loss="squared").fit(X, LABELS)
    there = KernelClassifier(MAP, loss="squared").fit_blocks(make_pieces(read_labels))
    assert there.alpha_ == here.alpha_
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-9 * np.abs(here.coef_).max())


def test_balanced_weights_count_the_rows_of_all_pieces():
    settings = {"loss": "squared", "class_weight": "balanced"}
    here = KernelClassifier(MAP, **settings).fit(X, LABELS)
    there = KernelClassifier(MAP, **settings).fit_blocks(make_pieces(read_labels))
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-9 * np.abs(here.coef_).max())


def test_sample_is_uniform_and_without_replacement():
    pieces = make_pieces(read_targets)
    counts = np.zeros(N_ROWS)
    n_samples, n_rows = 60, 110
    position = {row.tobytes(): i for i, row in enumerate(X)}
    for seed in range(n_samples):
        sample = pieces.sample(n_rows, Stream.from_seed(seed))
        chosen = [position[row.tobytes()] for row in sample.rows.X]
        assert len(set(chosen)) == n_rows
        np.testing.assert_array_equal(sample.rows.y, TARGETS[chosen])
        counts[chosen] += 1
    assert sum(sample.counts.values()) == N_ROWS
    # Counts of each row are binomial with p = 0.1; chi-squared of 1100 rows, with the correction
    # for sampling without replacement, exceeds its mean by 4 deviations with probability 1e-4.
    p = n_rows / N_ROWS
    chi2 = ((counts - n_samples * p) ** 2).sum() / (n_samples * p * (1 - p))
    assert abs(chi2 - N_ROWS) < 4 * np.sqrt(2 * N_ROWS)


def test_the_sample_does_not_depend_on_groups():
    one = make_pieces(read_targets)
    samples = [
        one.fold(*_sampling(50, Stream.from_seed(1)), rows_per_group=rows) for rows in (1, 10**6)
    ]
    np.testing.assert_array_equal(samples[0].keys, samples[1].keys)
    np.testing.assert_array_equal(samples[0].rows.X, samples[1].rows.X)


def _sampling(n_rows, stream):
    from kernelmill.scale.pieces import _SampleFold, _SampleMerge

    return _SampleFold(n_rows, stream), _SampleMerge(n_rows)


@pytest.mark.parametrize("n_pieces", [1, 2, 15, 16, 17, 1023, 1024, 1025, 5000])
@pytest.mark.parametrize("rows", [None, 0, 1, 1000, 10**6])
def test_groups_cover_all_pieces_in_order(n_pieces, rows):
    groups = group_pieces([rows] * n_pieces, 1 << 16)
    assert [number for group in groups for number in group] == list(range(n_pieces))
    assert all(len(group) for group in groups)
    assert len(groups) <= 1024
    if rows:
        assert len(groups) >= min(n_pieces, 8)


def test_a_fold_visits_each_piece_once_in_a_fixed_tree():
    def fold(total, blocks, number):
        rows = sum(len(X) for X, _ in blocks)
        return f"{'' if total is None else total}[{number}:{rows}]"

    def merge(a, b):
        return f"({a} {b})"

    pieces = make_pieces(read_targets)
    tree = pieces.fold(fold, merge)
    numbers = [int(part.split(":")[0]) for part in tree.split("[")[1:]]
    assert numbers == list(range(len(EDGES) - 1))
    assert tree == make_pieces(read_targets).fold(fold, merge)


def test_errors_name_the_piece_and_the_cause():
    def read(rows):
        if rows.start == 301:
            raise ZeroDivisionError("division by zero")
        yield X[rows], TARGETS[rows]

    with pytest.raises(PieceError, match=r"rows 301 to 640: ZeroDivisionError: division by zero"):
        KernelRegressor(MAP).fit_blocks(make_pieces(read))


def test_errors_of_checks_name_the_piece_and_keep_remedies():
    def read(rows):
        yield X[rows], np.where(rows.start == 640, np.inf, TARGETS[rows])

    with pytest.raises(PieceError, match=r"rows 640 to 1000: .*infinity") as found:
        KernelRegressor(MAP).fit_blocks(make_pieces(read, first=(X, TARGETS)))
    assert found.value.place == "rows 640 to 1000"


def test_no_rows_at_all():
    pieces = Pieces([Piece("nothing", slice(0, 0))], read_targets, Cluster())
    with pytest.raises(ValueError, match="at least one row"):
        KernelRegressor(MAP).fit_blocks(pieces)
    with pytest.raises(ValueError, match="at least one piece"):
        Pieces([], read_targets, Cluster())


def join(a, b):
    return f"({a}{b})"


def merge_in_pairs(names):
    while len(names) > 1:
        pairs = [names[i : i + 2] for i in range(0, len(names), 2)]
        names = [pair[0] if len(pair) == 1 else join(*pair) for pair in pairs]
    return names[0]


@pytest.mark.parametrize("most", [1, 2, 3, 8, 100])
def test_folds_in_parts_merge_in_the_same_tree(most):
    for n_groups in range(1, 40):
        state = FoldState(n_groups)
        while state.n_done < n_groups:
            groups = state.next_groups(most)
            state.add(merge_in_pairs([chr(65 + number) for number in groups]), groups, join)
            assert len(state.totals) <= n_groups.bit_length()
        assert state.totals == [merge_in_pairs([chr(65 + number) for number in range(n_groups)])]
