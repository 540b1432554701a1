"""Fits that are killed and resumed: the same result, bit for bit, or a clear error."""

import runpy
import signal
import sys
import time

import numpy as np
import pytest

from kernelmill import Fastfood, KernelClassifier
from kernelmill.learners import CheckpointError

PROGRAM = """
import sys, time
import numpy as np
from threadpoolctl import threadpool_limits
from kernelmill import Fastfood, KernelClassifier
from kernelmill.learners import CheckpointError

rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 4))
y = (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] > 1)
path, slowly = sys.argv[1:]

class Slow(Fastfood):
    def _features(self, X):
        time.sleep(0.01 * int(slowly))
        return super()._features(X)

classifier = KernelClassifier(
    Slow(n_components=64, length_scale=2.0), loss="squared_hinge", epochs=6, batch_size=100,
    validation_fraction=0.1, patience=6, random_state=3, checkpoint=path or None,
    checkpoint_seconds=0.0,
)
with threadpool_limits(1, user_api="blas"):
    classifier.fit(X, y)
"""


def test_resumes_after_a_kill(tmp_path, monkeypatch, fork):
    program = tmp_path / "train.py"
    program.write_text(PROGRAM)
    path = tmp_path / "state.npz"

    def train(file):
        monkeypatch.setattr(sys, "argv", [str(program), str(file), "0"])
        return runpy.run_path(str(program))["classifier"]

    whole = train("")
    process = fork(program, path, 1)
    deadline = time.monotonic() + 300
    while process.is_alive() and time.monotonic() < deadline and not path.exists():
        time.sleep(0.02)
    time.sleep(0.15)  # a few more states are written
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    resumed = train(path)
    assert not path.exists()
    for name in ("coef_", "intercept_", "loss_curve_", "validation_curve_"):
        np.testing.assert_array_equal(getattr(resumed, name), getattr(whole, name), err_msg=name)


class Interrupted(Exception):
    pass


class Interrupting(Fastfood):
    """A map that fails after some calls."""

    calls_left = 10**9

    def _features(self, X):
        Interrupting.calls_left -= 1
        if Interrupting.calls_left < 0:
            raise Interrupted
        return super()._features(X)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    return X, (X**2).sum(axis=1) > 2


def training(path, **parameters):
    parameters = {"random_state": 0, "epochs": 5, "batch_size": 50, **parameters}
    feature_map = Interrupting(n_components=32, length_scale=1.0)
    return KernelClassifier(feature_map, checkpoint=path, checkpoint_seconds=0.0, **parameters)


def interrupted_training(path, data, calls, **parameters):
    Interrupting.calls_left = calls
    try:
        with pytest.raises(Interrupted):
            training(path, **parameters).fit(*data)
    finally:
        Interrupting.calls_left = 10**9


@pytest.mark.parametrize(("in_blocks", "calls"), [(False, (6, 4)), (True, (18, 20))])
def test_stopped_twice_it_is_the_same(tmp_path, data, in_blocks, calls):
    def fit(path):
        X, y = data
        classifier = training(path, validation_fraction=0.1, patience=5)
        if not in_blocks:
            return classifier.fit(X, y)
        return classifier.fit_blocks([(X[i : i + 170], y[i : i + 170]) for i in range(0, 600, 170)])

    whole, path = fit(None), tmp_path / "state.npz"
    written = b""
    for some in calls:
        Interrupting.calls_left = some
        try:
            with pytest.raises(Interrupted):
                fit(path)
        finally:
            Interrupting.calls_left = 10**9
        assert path.read_bytes() != written
        written = path.read_bytes()
    resumed = fit(path)
    assert not path.exists()
    for name in ("coef_", "intercept_", "loss_curve_", "validation_curve_"):
        np.testing.assert_array_equal(getattr(resumed, name), getattr(whole, name), err_msg=name)


def test_seeds_left_open_are_kept(tmp_path, data):
    path = tmp_path / "state.npz"
    np.random.seed(1)
    interrupted_training(path, data, 7, random_state=None)
    resumed = training(path, random_state=None).fit(*data)
    np.random.seed(1)
    whole = training(path, random_state=None).fit(*data)
    np.testing.assert_array_equal(resumed.coef_, whole.coef_)
    assert not path.exists()


def test_a_failure_leaves_the_model_as_it_was(tmp_path, data):
    classifier = training(None).fit(*data)
    before = classifier.coef_.copy()
    classifier.set_params(checkpoint=tmp_path / "state.npz")
    Interrupting.calls_left = 7
    try:
        with pytest.raises(Interrupted):
            classifier.fit(*data)
    finally:
        Interrupting.calls_left = 10**9
    np.testing.assert_array_equal(classifier.coef_, before)
    classifier.predict(data[0])


def test_other_parameters_or_data_are_rejected(tmp_path, data):
    path = tmp_path / "state.npz"
    interrupted_training(path, data, 7)
    X, y = data
    other = X.copy()
    other[0, 0] += 1
    for classifier, rows in [
        (training(path, alpha=1e-3), data),
        (training(path, loss="hinge"), data),
        (training(path, random_state=1), data),
        (training(path), (other, y)),
        (training(path), (X, ~y)),
        (training(path), (X[:-1], y[:-1])),
    ]:
        with pytest.raises(ValueError, match="another training run"):
            classifier.fit(*rows)
    assert training(path, verbose=0, n_threads=1).fit(X, y).n_iter_ == 5


@pytest.mark.parametrize("solver", ["sgd", "lbfgs"])
@pytest.mark.parametrize("calls", [9, 26])  # in the first pass, and in a later one
def test_other_blocks_are_rejected(tmp_path, data, solver, calls):
    """Each before it is used: the checkpoint stays as it was."""
    path = tmp_path / "state.npz"
    X, y = data
    blocks = [(X[i : i + 100], y[i : i + 100]) for i in range(0, 600, 100)]

    def train(blocks, seconds=1000.0):
        model = training(path, solver=solver, epochs=4 if solver == "sgd" else 40, loss="log_loss")
        return model.set_params(checkpoint_seconds=seconds).fit_blocks(blocks)

    Interrupting.calls_left = calls if solver == "sgd" else calls + 20
    try:
        with pytest.raises(Interrupted):
            train(blocks, 0.0)
    finally:
        Interrupting.calls_left = 10**9
    written = path.read_bytes()
    X = X.copy()
    X[130, 0] += 1e-9
    other = [blocks[0], (X[100:200], y[100:200]), *blocks[2:]]
    wrongs = [other, [blocks[0], *blocks[:0:-1]]]
    if calls == 26:
        wrongs += [blocks[:-1], [*blocks, blocks[1]]]
    for number, wrong in enumerate(wrongs):
        with pytest.raises(CheckpointError, match="blocks must be the same"):
            train(wrong)
        if number < 2:
            assert path.read_bytes() == written
    train(blocks)


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "text", "pickle", "shape"])
def test_damaged_files_are_rejected(tmp_path, data, damage):
    path = tmp_path / "state.npz"
    interrupted_training(path, data, 7)
    content = path.read_bytes()
    if damage == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "flipped":
        middle = len(content) // 2
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :])
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "text":
        path.write_text("not a checkpoint at all")
    else:
        with np.load(path) as file:
            arrays = {name: file[name] for name in file.files}
        if damage == "pickle":
            arrays["last"] = np.array([{"an": "object"}], dtype=object)
        else:
            arrays["last"] = arrays["last"][:-1]
        np.savez(path, **arrays)
    damaged = path.read_bytes()
    with pytest.raises(ValueError, match="delete it"):
        training(path).fit(*data)
    assert path.read_bytes() == damaged


def within(place, value):
    """A change of one number of an array."""

    def change(array):
        array[place] = value
        return array

    return change


CRAFTED = {  # members of a state, and what no training has
    "other epochs": {"integers": within(1, 4)},
    "too many epochs": {"integers": within(1, 2**40), "loss_curve": lambda curve: curve[:0]},
    "a block too far": {"integers": within(2, 7)},
    "a batch too far": {"integers": within(3, 2**40)},
    "no batch": {"integers": within(3, 0)},
    "no decay": {"integers": within(0, 0)},
    "no loss": {"integers": within(4, 0)},
    "no rows": {"integers": within(5, 0)},
    "many rows": {"integers": within(5, 2**49)},
    "a huge number": {"integers": within(5, 2**62)},
    "stale": {"integers": within(6, 3)},
    "no weight": {"floats": within(1, 0.0)},
    "little weight": {"floats": within(1, 1e-300)},
    "much weight": {"floats": within(1, 1e300)},
    "fewer losses": {"loss_curve": lambda curve: curve[:-1]},
    "scores": {"validation_curve": lambda _: np.ones(1)},
    "negative losses": {"losses": within(0, -1.0)},
    "damping": {"damping": within(0, 1.5)},
    "directions": {"vectors": lambda vectors: vectors[:, :-1]},
    "a negative size": {"scalars": within(2, -1.0)},
    "a huge constant": {"scalars": within(2, 1e200)},
    "best": {"best": lambda _: np.zeros((33, 1))},
    "steps": {"counts": within(0, 2**40)},
    "text": {"counts": lambda _: np.array(["a", "b"])},
    "nothing": {"last": lambda _: None},
    "too large": {"last": lambda weights: weights + 1e308},
    "not finite": {"average": within((0, 0), np.nan)},
    "a sample": {"sample": lambda _: np.zeros((2001, 32))},
    "no form": {"header": lambda _: np.frombuffer(b'{"format": 1}', np.uint8)},
    "depth": {"header": lambda _: np.frombuffer(b"[" * 10**5, np.uint8)},
}


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    path = tmp_path_factory.mktemp("state") / "state.npz"
    interrupted_training(path, (X, (X**2).sum(axis=1) > 2), 5)
    return path


@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")
@pytest.mark.parametrize("name", CRAFTED)
def test_states_that_cannot_be_are_rejected(tmp_path, data, state, name):
    """With valid checksums; nobody can tell other numbers that could have been."""
    path = tmp_path / "state.npz"
    with np.load(state) as file:
        arrays = {name: file[name] for name in file.files}
    assert arrays["integers"].tolist() == [32768, 1, 0, 12, 600, 600, 0]
    for member, change in CRAFTED[name].items():
        arrays[member] = change(arrays.get(member, np.zeros(0)))
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(CheckpointError, match="delete it"):
        training(path).fit(*data)


def test_needs_a_folder_and_repeatable_blocks(tmp_path, data):
    with pytest.raises(FileNotFoundError, match="existing folder"):
        training(tmp_path / "nowhere" / "state.npz").fit(*data)
    with pytest.raises(ValueError, match="checkpoint"):
        training(tmp_path / "state.npz", epochs=None).fit_blocks(
            iter([data]), classes=[False, True]
        )
    assert list(tmp_path.iterdir()) == []
