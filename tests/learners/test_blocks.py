"""The source of blocks on its own, and solvers that are called on blocks of any source."""

import gc
import weakref
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from kernelmill import Fastfood, KernelClassifier, KernelRegressor
from kernelmill.learners import Run
from kernelmill.learners.blocks import Block, BlockSource, RowReader, RowTaker, take_rows
from kernelmill.learners.features import compute_features
from kernelmill.learners.losses import LOSSES, Objective
from kernelmill.learners.ridge import RidgeObjective
from kernelmill.learners.solvers.cg import solve_cg
from kernelmill.learners.solvers.exact import collect_statistics, solve_exact, solve_signs
from kernelmill.learners.solvers.exact import solve_statistics as solve_merged
from kernelmill.learners.solvers.lbfgs import solve_lbfgs
from kernelmill.learners.solvers.sgd import SgdSettings, solve_sgd
from kernelmill.learners.solvers.sgd_state import SgdState
from kernelmill.learners.statistics import RidgeStatistics


class Rows:
    """Something that can be referred to weakly."""

    def __init__(self, number):
        self.number = number


class TestBlockSource:
    def test_the_first_block_is_not_lost(self):
        for blocks in ([(1, 2), (3, 4)], iter([(1, 2), (3, 4)])):
            source = BlockSource(blocks)
            assert source.first == Block(1, 2)
            assert list(source) == [Block(1, 2), Block(3, 4)]

    def test_passes(self):
        source = BlockSource([(1, 2, 3)])
        assert source.repeatable
        assert [list(source) for _ in range(3)] == [[Block(1, 2, 3)]] * 3
        once = BlockSource(iter([(1, 2, 3)]))
        assert not once.repeatable
        assert list(once) == [Block(1, 2, 3)]
        with pytest.raises(ValueError, match="more than once for a second pass, got an iterator"):
            list(once)

    def test_blocks_without_rows_are_skipped(self):
        some, none = ([[1.0]], [0]), ([], [])
        source = BlockSource([none, some, none, some])
        assert source.first == Block(*some)
        for _ in range(2):
            assert list(source) == [Block(*some)] * 2
        assert list(BlockSource([none, none])) == [Block(*none)]  # which checks reject

    def test_an_object_that_returns_one_iterator_gives_one_pass(self):
        class Once:
            def __init__(self):
                self.iterator = iter([(1, 2)])

            def __iter__(self):
                return self.iterator

        assert not BlockSource(Once()).repeatable

    def test_checked_blocks(self):
        checked = []

        def check(X, y, weight):
            checked.append(X)
            return Block(10 * X, y, weight)

        source = BlockSource([(1, 2), (3, 4)])
        source.check_with(check, Block(10, 2))
        assert [block.X for block in source] == [10, 30]
        assert checked == [3]  # the first one was checked already
        assert [block.X for block in source] == [10, 30]

    def test_arrays_are_one_block_that_is_kept(self):
        source = BlockSource.from_arrays(1, 2)
        source.check_with(lambda *_: pytest.fail("checked again"), Block(5, 2))
        assert [list(source) for _ in range(2)] == [[Block(5, 2)]] * 2
        assert source.is_whole

    def test_no_block_is_held_while_the_next_one_is_read(self):
        alive = []

        def blocks():
            for number in range(4):
                gc.collect()
                assert not [rows for rows in alive if rows() is not None]
                rows = Rows(number)
                alive.append(weakref.ref(rows))
                yield rows, number
                del rows

        numbers = []
        for block in BlockSource(blocks()):
            numbers.append(block.X.number)
            del block
        assert numbers == [0, 1, 2, 3]

    @pytest.mark.parametrize(
        ("blocks", "message"),
        [
            ("text", "blocks must be an iterable"),
            (3, "blocks must be an iterable"),
            ([], "at least one block"),
            ([1], "got int as block 0"),
            ([(1,)], "got 1 items as block 0"),
        ],
        ids=str,
    )
    def test_what_is_no_source_is_rejected(self, blocks, message):
        with pytest.raises((TypeError, ValueError), match=message):
            BlockSource(blocks)


def test_rows_are_read_in_any_numbers():
    rows = np.arange(20.0).reshape(10, 2)
    for parts in ([rows], [rows[:3], rows[3:4], rows[4:]], [scipy.sparse.csr_array(rows)]):
        reader = RowReader(parts)
        taken = [reader.take(n) for n in (1, 4, 2)]
        reader.put_back(taken.pop())
        taken += [reader.take(2), reader.take(100)]
        assert reader.take(1) is None
        found = np.concatenate([p if isinstance(p, np.ndarray) else p.toarray() for p in taken])
        np.testing.assert_array_equal(found, rows)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    return X, (X**2).sum(axis=1) > 2.5, np.sin(X[:, :2])


class HandWritten:
    """A source of blocks that no estimator knows."""

    def __init__(self, X, y):
        self.X, self.y = X, y

    def __iter__(self):
        for begin in range(0, len(self.X), 130):
            part = slice(begin, begin + 130)
            yield Block(self.X[part], self.y[part])

    def pairs(self):
        return [(block.X, block.y) for block in self]


MAP = Fastfood(n_components=64, length_scale=2.0, random_state=0)


def features_for(X):
    return partial(compute_features, MAP.fit(X))


@pytest.mark.parametrize("solver", ["sgd", "lbfgs", "exact"])
def test_solvers_of_classifiers_need_no_estimator(data, solver):
    X, y, _ = data
    blocks = HandWritten(X, y.astype(np.intp))
    loss = "squared" if solver == "exact" else "log_loss"
    model = KernelClassifier(
        MAP, loss=loss, solver=solver, alpha=1e-3, epochs=20, tol=1e-2, random_state=1
    )
    model.fit_blocks(blocks.pairs(), classes=[0, 1])
    objective = Objective(features_for(X[:130]), 64, np.float64, LOSSES[loss], 1e-3, 2)
    if solver == "sgd":
        state = SgdState(model.stream_)
        fit = solve_sgd(objective, blocks, Run(), SgdSettings(20), state)
        assert fit.loss_curve == model.loss_curve_
    elif solver == "lbfgs":
        fit = solve_lbfgs(objective, blocks, Run(), stream=model.stream_, max_iter=20, tol=1e-2)
        assert fit.loss_curve == model.loss_curve_
    else:
        fit = solve_signs(objective, blocks, Run())
    np.testing.assert_array_equal(fit.coef, model.coef_)
    np.testing.assert_array_equal(fit.intercept, model.intercept_)


@pytest.mark.parametrize("solver", ["exact", "cg"])
def test_solvers_of_regressors_need_no_estimator(data, solver):
    X, _, Y = data
    blocks = HandWritten(X, Y)
    model = KernelRegressor(MAP, alpha=0.1, solver=solver, random_state=1)
    model.fit_blocks(blocks.pairs())
    objective = RidgeObjective(features_for(X[:130]), 64, 2, 0.1)
    if solver == "exact":
        fit, statistics = solve_exact(objective, blocks, Run())
        np.testing.assert_array_equal(statistics.moments, model.statistics_.moments)
    else:
        fit = solve_cg(objective, blocks, Run(), stream=model.stream_, tol=1e-6, max_iter=500)
        assert fit.n_iter == model.n_iter_
    np.testing.assert_array_equal(fit.coef, model.coef_)
    np.testing.assert_array_equal(fit.intercept, model.intercept_)


def test_statistics_of_several_sources_merge(data):
    X, _, Y = data
    features = features_for(X)
    parts = [
        collect_statistics(features, HandWritten(X[rows], Y[rows]), Run(), RidgeStatistics(64, 2))
        for rows in (slice(0, 200), slice(200, 500))
    ]
    fit = solve_merged(parts[0].merge(parts[1]), 0.1, fit_intercept=True)
    model = KernelRegressor(MAP, alpha=0.1).fit(X, Y)
    np.testing.assert_allclose(fit.coef, model.coef_, rtol=0, atol=1e-9)


def test_rows_are_taken_into_memory_that_is_used_again(tmp_path):
    X = np.arange(60.0).reshape(20, 3)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    for rows in (
        X,
        np.asfortranarray(X),
        X[::2],
        mapped,
        scipy.sparse.csr_array(X),
        pd.DataFrame(X),
    ):
        take = RowTaker(rows)
        for numbers in (np.array([3, 1]), np.array([9, 0, 9]), np.array([5])):
            found, expected = take(numbers), take_rows(rows, numbers)
            assert type(found) in (type(expected), np.ndarray)
            np.testing.assert_array_equal(to_dense(found), to_dense(expected))
    take = RowTaker(X)
    assert np.shares_memory(take(np.array([3, 1])), take(np.array([2])))


def to_dense(rows):
    return rows.toarray() if scipy.sparse.issparse(rows) else np.asarray(rows)
