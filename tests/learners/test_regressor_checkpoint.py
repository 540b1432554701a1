"""Regressions that are killed and resume: the same result, bit for bit, or a clear error."""

import pickle
import runpy
import signal
import sys
import time
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.kernel_approximation import RBFSampler

from kernelmill import Fastfood, KernelClassifier
from kernelmill.learners import CheckpointError
from kernelmill.learners import statistics as statistics_module
from kernelmill.learners.digests import digest_block
from kernelmill.learners.regressor import KernelRegressor
from kernelmill.random import Stream

PROGRAM = """
import sys, time
import numpy as np
from threadpoolctl import threadpool_limits
from kernelmill import Fastfood
from kernelmill.learners import statistics
from kernelmill.learners.regressor import KernelRegressor

statistics._MOST_ROWS = 255  # as in all tests here
rng = np.random.default_rng(0)
X = rng.normal(size=(9000, 4))
Y = np.stack([np.sin(X[:, 0] * X[:, 1]) + 9, X[:, 2] ** 2], axis=1)
weights = rng.uniform(0, 2, 9000)
path, solver, blocks, seed, seconds = sys.argv[1:]

class Slow(Fastfood):
    def _features(self, X):
        time.sleep(float(seconds))
        return super()._features(X)

np.random.seed(int(seed))  # what random_state=None draws from
model = KernelRegressor(
    Slow(n_components=64, length_scale=1.0), alpha=1e-2, solver=solver, tol=1e-11, max_iter=2000,
    checkpoint=path, checkpoint_seconds=0.0,
)
with threadpool_limits(1, user_api="blas"):
    if int(blocks):
        model.fit_blocks([
            (X[i : i + 1111], Y[i : i + 1111], weights[i : i + 1111]) for i in range(0, 9000, 1111)
        ])
    else:
        model.fit(X, Y, weights)
"""


@pytest.mark.parametrize(("solver", "blocks"), [("exact", "1"), ("cg", "0")])
def test_resumes_after_a_kill(tmp_path, monkeypatch, fork, solver, blocks):
    program = tmp_path / "train.py"
    program.write_text(PROGRAM)
    path = tmp_path / "state.npz"

    def model(file, seed):
        arguments = [str(program), str(file), solver, blocks, seed, "0"]
        monkeypatch.setattr(sys, "argv", arguments)
        return runpy.run_path(str(program))["model"]

    whole = model(tmp_path / "unused.npz", "5")
    process = fork(program, path, solver, blocks, 5, 0.05)
    deadline = time.monotonic() + 300
    while process.is_alive() and time.monotonic() < deadline and not path.exists():
        time.sleep(0.02)
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert path.exists()
    resumed = model(path, "6")  # another seed than before, which no longer matters
    assert not path.exists()
    for name in ("coef_", "intercept_", "noise_", "n_iter_"):
        np.testing.assert_array_equal(getattr(resumed, name), getattr(whole, name), err_msg=name)
    assert resumed.n_iter_ > 3 or solver == "exact"
    assert model(tmp_path / "unused.npz", "6").coef_[0, 0] != whole.coef_[0, 0]


class Stopped(Exception):
    pass


class Stopping(Fastfood):
    """A map that fails after some calls."""

    calls_left = 10**9

    def _features(self, X):
        Stopping.calls_left -= 1
        if Stopping.calls_left < 0:
            raise Stopped
        return super()._features(X)


@pytest.fixture(autouse=True)
def small_updates(monkeypatch):
    """Of 255 rows, so that a few thousand rows take many of them."""
    monkeypatch.setattr(statistics_module, "_MOST_ROWS", 255)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (2000, 3))
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(2000)


def training(path, **parameters):
    parameters = {"random_state": 0, "alpha": 0.1, "tol": 1e-9, **parameters}
    feature_map = Stopping(n_components=64, length_scale=1.5)
    return KernelRegressor(feature_map, checkpoint=path, checkpoint_seconds=0.0, **parameters)


def stopped(calls, action):
    Stopping.calls_left = calls
    try:
        with pytest.raises(Stopped):
            action()
    finally:
        Stopping.calls_left = 10**9


def calls_of(action):
    Stopping.calls_left = 10**9
    action()
    return 10**9 - Stopping.calls_left


def in_blocks(X, y, step=170):
    return [(X[i : i + step], y[i : i + step]) for i in range(0, len(X), step)]


# Calls of the map in a pass: eight, of 255 rows or fewer. One more shows the number of features.
@pytest.mark.parametrize(("solver", "unsaved"), [("exact", 1), ("cg", 7)])
def test_little_is_done_again(tmp_path, data, solver, unsaved):
    path = tmp_path / "state.npz"
    total = calls_of(lambda: training(path, solver=solver).fit(*data))
    before = total * 2 // 3
    stopped(before, lambda: training(path, solver=solver).fit(*data))
    after = calls_of(lambda: training(path, solver=solver).fit(*data))
    assert after - 1 <= total - before + unsaved
    assert not path.exists()


@pytest.mark.parametrize("solver", ["exact", "cg"])
@pytest.mark.parametrize("place", [0.5, 0.7])
@pytest.mark.parametrize("blocks", [True, False])
def test_the_same_bits_wherever_it_stopped(tmp_path, data, solver, place, blocks):
    path = tmp_path / "state.npz"

    def fit(seed):
        model = training(path, solver=solver, random_state=seed)
        return model.fit_blocks(in_blocks(*data)) if blocks else model.fit(*data)

    total = calls_of(lambda: fit(0))
    for seed in (None, np.random.RandomState(3)):
        stopped(int(place * total), lambda seed=seed: fit(seed))
        with np.load(path) as file:
            key = int.from_bytes(file["stream"].tobytes(), "little")
        resumed = fit(seed)
        assert not path.exists()
        whole = fit(Stream(key))
        np.testing.assert_array_equal(resumed.coef_, whole.coef_)
        np.testing.assert_array_equal(resumed.intercept_, whole.intercept_)
        assert resumed.noise_ == whole.noise_
        assert resumed.n_iter_ == whole.n_iter_


def test_other_parts_of_a_fit_are_the_same(tmp_path, data):
    path = tmp_path / "state.npz"
    for parameters in (
        {"alpha": [1e-3, 0.1], "scoring": "loo"},
        {"alpha": None, "tune": True, "tune_budget": 3},
    ):
        total = calls_of(lambda p=parameters: training(path, **p).fit(*data))
        whole = training(path, **parameters).fit(*data)
        stopped(total - 2, lambda p=parameters: training(path, **p).fit(*data))
        assert path.exists()
        resumed = training(path, **parameters).fit(*data)
        assert resumed.alpha_ == whole.alpha_
        np.testing.assert_array_equal(resumed.coef_, whole.coef_)


def test_a_failure_leaves_the_model_as_it_was(tmp_path, data):
    model = training(tmp_path / "state.npz").fit(*data)
    before = pickle.dumps(model)
    stopped(6, lambda: model.fit(*data))
    assert pickle.dumps(model) == before
    assert (tmp_path / "state.npz").exists()


def test_partial_fit_has_no_checkpoint(tmp_path, data):
    path = tmp_path / "state.npz"
    path.write_text("something else")
    X, y = data
    model = training(path).partial_fit(X[:1000], y[:1000]).partial_fit(X[1000:], y[1000:])
    assert path.read_text() == "something else"
    expected = training(None).fit(X, y).predict(X)
    np.testing.assert_allclose(model.predict(X), expected, rtol=0, atol=1e-9)


def changed(values):
    values = values.copy()
    values[0] += 1
    return values


@pytest.mark.parametrize("solver", ["exact", "cg"])
def test_other_parameters_or_data_are_rejected(tmp_path, data, solver):
    path = tmp_path / "state.npz"
    X, y = data
    stopped(40 if solver == "cg" else 6, lambda: training(path, solver=solver).fit(X, y))
    written = path.read_bytes()
    for parameters, rows in [
        ({"alpha": 0.2}, data),
        ({"fit_intercept": False}, data),
        ({"random_state": 1}, data),
        ({"solver": "auto"}, data),
        ({}, (changed(X), y)),
        ({}, (X, changed(y))),
        ({}, (X, y, np.ones(2000))),
        ({}, (X[:-1], y[:-1])),
        ({}, (X.astype(np.float32), y)),
    ]:
        model = training(path, **{"solver": solver, **parameters})
        before = pickle.dumps(model)
        with pytest.raises(CheckpointError, match="another training run"):
            model.fit(*rows)
        assert pickle.dumps(model) == before
    with pytest.raises(CheckpointError, match="another training run"):
        KernelClassifier(checkpoint=path).fit(X, y > 0)
    assert path.read_bytes() == written
    training(path, solver=solver, n_threads=1).fit(X, y)
    assert not path.exists()


@pytest.mark.parametrize("solver", ["exact", "cg"])
def test_other_blocks_are_rejected(tmp_path, data, solver):
    path = tmp_path / "state.npz"
    X, y = data
    blocks = in_blocks(X, y)
    calls = calls_of(lambda: training(path, solver=solver).fit_blocks(blocks)) * 2 // 3
    stopped(calls, lambda: training(path, solver=solver).fit_blocks(blocks))
    written = path.read_bytes()
    other = [blocks[0], (changed(blocks[1][0]), blocks[1][1]), *blocks[2:]]
    shorter = blocks[:3]
    rearranged = [blocks[0], blocks[2], blocks[1], *blocks[3:]]
    wrongs = [other, shorter, rearranged]
    if solver == "cg":  # which has passed over all of them
        wrongs.append([*blocks, blocks[0]])
    for wrong in wrongs:
        with pytest.raises(CheckpointError, match="blocks must be the same"):
            training(path, solver=solver).fit_blocks(wrong)
    assert path.read_bytes() == written
    training(path, solver=solver).fit_blocks(blocks)


class Drifting(RBFSampler):
    """A map with a seed that nobody sees."""

    def fit(self, X, y=None):
        super().fit(X)
        self.random_weights_ = np.random.standard_normal(self.random_weights_.shape)
        return self

    def transform(self, X):
        Stopping.calls_left -= 1
        if Stopping.calls_left < 0:
            raise Stopped
        return super().transform(X)


def test_a_map_that_is_not_repeatable_is_rejected(tmp_path, data):
    path = tmp_path / "state.npz"
    model = KernelRegressor(Drifting(), checkpoint=path, checkpoint_seconds=0.0)
    stopped(6, lambda: model.fit(*data))
    with pytest.raises(ValueError, match="feature_map computes different features"):
        model.fit(*data)
    assert path.exists()


def rewritten(path, **changes):
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    for name, change in changes.items():
        arrays[name] = change(arrays[name])
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


DAMAGES = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:1000]),
    "flipped": lambda path: path.write_bytes(
        path.read_bytes()[:9000] + b"!?!" + path.read_bytes()[9003:]
    ),
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("not a checkpoint at all"),
    "object": lambda path: rewritten(path, cross=lambda _: np.array([{"an": "object"}])),
    "shape": lambda path: rewritten(path, cross=lambda values: values[:-1]),
    "dtype": lambda path: rewritten(path, cross=lambda values: values.astype(np.float32)),
    "missing": lambda path: rewritten(path, feature_mean=lambda _: None),
    "negative": lambda path: rewritten(path, counts=lambda values: -values),
    "huge": lambda path: rewritten(path, counts=lambda values: values + (1 << 60)),
    "no weight": lambda path: rewritten(path, weights=lambda values: 0 * values),
    "negative weight": lambda path: rewritten(path, weights=lambda values: -values),
    "no rows": lambda path: rewritten(path, counts=lambda values: 0 * values),
    "other rows": lambda path: rewritten(path, counts=lambda values: values + 3000),
    "negative squares": lambda path: rewritten(path, target_moments=lambda values: -1 - values),
    "infinite": lambda path: rewritten(path, cross=lambda values: values + np.inf),
    "too large": lambda path: rewritten(path, feature_mean=lambda values: values + 1e300),
    "stream": lambda path: rewritten(path, stream=lambda values: values[:3]),
    "probe": lambda path: rewritten(path, probe=lambda values: values + 1),
}


@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")
@pytest.mark.parametrize("solver", ["exact", "cg"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_are_rejected(tmp_path, data, solver, damage):
    path = tmp_path / "state.npz"
    stopped(40 if solver == "cg" else 6, lambda: training(path, solver=solver).fit(*data))
    DAMAGES[damage](path)
    damaged = path.read_bytes()
    model = training(path, solver=solver)
    before = pickle.dumps(model)
    with pytest.raises(CheckpointError, match="delete it"):
        model.fit(*data)
    assert path.read_bytes() == damaged
    assert pickle.dumps(model) == before


def test_needs_a_folder_repeatable_blocks_and_a_time(tmp_path, data):
    with pytest.raises(FileNotFoundError, match="existing folder"):
        training(tmp_path / "nowhere" / "state.npz").fit(*data)
    with pytest.raises(ValueError, match="more than once for a checkpoint"):
        training(tmp_path / "state.npz").fit_blocks(iter([data]))
    for seconds in (-1.0, "often", None, np.nan):
        model = training(tmp_path / "state.npz").set_params(checkpoint_seconds=seconds)
        with pytest.raises(ValueError, match="checkpoint_seconds must be"):
            model.fit(*data)
    assert list(tmp_path.iterdir()) == []


def make_mixed_frame(rows):
    names = np.array(["a", "b", None], object)[rows[:, 0].astype(int) % 3]
    days = np.datetime64("2024-01-01", "ns") + rows[:, 1].astype("timedelta64[D]")
    return pd.DataFrame({"number": rows[:, 2], "name": names, "day": days})


KINDS = {  # of rows that hold the same numbers
    "float64": np.asarray,
    "float32": lambda rows: rows.astype(np.float32),
    "integers": lambda rows: rows.astype(np.int16),
    "columns first": np.asfortranarray,
    "a view": lambda rows: np.repeat(rows, 2, axis=1)[::-1, ::2],
    "CSR": scipy.sparse.csr_array,
    "CSC": scipy.sparse.csc_matrix,
    "lists": np.ndarray.tolist,
    "objects": lambda rows: rows.astype(object),
    "strings": lambda rows: rows.astype("U8"),
    "arrays": lambda rows: [row[: 2 + place % 2] for place, row in enumerate(rows)],
    "frame": pd.DataFrame,
    "mixed frame": make_mixed_frame,
    "polars": pl.DataFrame,
    "Arrow": lambda rows: pa.table(dict(zip("abc", rows.T, strict=True))),
}


@pytest.mark.parametrize("kind", KINDS)
def test_digests_have_all_values(kind):
    """A change of any one of 3,000 rows is seen; a sample of 1,000 of them missed two of three."""
    make = KINDS[kind]
    rng = np.random.default_rng(0)
    X, y = rng.integers(1, 100, (3000, 3)).astype(float), rng.normal(size=3000)
    digests = {digest_block(make(X), y, None), digest_block(make(X.copy()), y.copy(), None)}
    assert len(digests) == 1
    digests.add(digest_block(make(X), y, np.ones(3000)))
    for row in (0, 1, 1700, 2999):
        one = np.zeros(3000)
        one[row] = 1
        digests.add(digest_block(make(X + one[:, None]), y, None))
        digests.add(digest_block(make(X), y + one, None))
        digests.add(digest_block(make(X), y, 1 + one))
    assert len(digests) == 2 + 4 * 3


def test_digests_of_many_rows_do_not_copy_them():
    X = np.ones((1 << 20, 8))
    tracemalloc.start()
    digest_block(X.T, X[:, 0], None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.nbytes / 4


def test_blocks_are_hashed_once_in_a_process(tmp_path, data, monkeypatch):
    hashed = []

    def count(*block):
        hashed.append(len(block[1]))
        return digest_block(*block)

    monkeypatch.setattr("kernelmill.learners.digests.digest_block", count)
    monkeypatch.setattr("kernelmill.learners.base.digest_block", count)
    blocks = in_blocks(*data)
    model = training(tmp_path / "state.npz", solver="cg").fit_blocks(blocks)
    assert model.n_iter_ > 3
    assert hashed == [len(y) for _, y in blocks]


def test_the_form_of_the_data_counts(tmp_path, data):
    """A training run on several blocks is none on the first of them."""
    path = tmp_path / "state.npz"
    X, y = data
    stopped(6, lambda: training(path).fit_blocks(in_blocks(X, y, 1000)))
    with pytest.raises(CheckpointError, match="the form of the data was blocks, not all rows"):
        training(path).fit(X[:1000], y[:1000])


@pytest.mark.parametrize("damage", [lambda known: known[:, :3], lambda known: known[:0], None])
def test_damaged_digests_are_rejected(tmp_path, data, damage):
    path = tmp_path / "state.npz"
    blocks = in_blocks(*data)
    stopped(6, lambda: training(path).fit_blocks(blocks))
    rewritten(path, blocks=damage or (lambda _: None))
    with pytest.raises(CheckpointError, match="delete it"):
        training(path).fit_blocks(blocks)


@pytest.mark.parametrize("form", [np.asarray, list])
def test_every_length_scale_counts(tmp_path, form):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 2000)), rng.normal(size=600)
    scales = np.full(2000, 40.0)
    other = scales.copy()
    other[1000] += 1e-9  # not in the text of the map

    def model(scales):
        made = training(tmp_path / "state.npz")
        return made.set_params(feature_map__length_scale=form(scales))

    assert repr(model(scales).feature_map) == repr(model(other).feature_map)
    stopped(3, lambda: model(scales).fit(X, y))
    assert (tmp_path / "state.npz").exists()
    with pytest.raises(CheckpointError, match="feature_map"):
        model(other).fit(X, y)
    model(scales).fit(X, y)
