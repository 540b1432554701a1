"""A training run on its own: checkpoint, progress, and who deletes the file."""

import io
import json
import pickle
import sys
import zipfile

import numpy as np
import pytest

from kernelmill import Fastfood, KernelClassifier, KernelRegressor
from kernelmill.learners import CheckpointError, Run
from kernelmill.random import Stream
from kernelmill.runtime.progress import StderrProgress


class Recorder:
    """Progress that remembers what it was called with."""

    def __init__(self):
        self.stages, self.rows, self.passes = [], 0, []

    def start(self, stage, total=None, unit="rows"):
        self.stages.append((stage, total))

    def advance(self, amount, status=""):
        self.rows += amount

    def end_pass(self, summary):
        self.passes.append(summary)

    def note(self, message):
        raise AssertionError(message)


@pytest.fixture
def rows():
    X = np.random.default_rng(0).normal(size=(300, 2))
    return X, (X[:, 0] > 0).astype(int)


MODELS = {
    "sgd": lambda: KernelClassifier(Fastfood(n_components=32), epochs=3, random_state=0),
    "exact": lambda: KernelRegressor(Fastfood(n_components=32), random_state=0),
    "cg": lambda: KernelRegressor(Fastfood(n_components=32), solver="cg", random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("in_blocks", [False, True])
def test_the_maker_of_a_run_finishes_it(tmp_path, rows, name, in_blocks):
    run = Run(tmp_path / "state.npz", checkpoint_seconds=0)
    model = MODELS[name]()
    if in_blocks:
        model.fit_blocks([rows], run=run)
    else:
        model.fit(*rows, run=run)
    assert run.path.exists()
    assert model.checkpoint is None
    run.finish()
    run.finish()
    assert list(tmp_path.iterdir()) == []
    plain = MODELS[name]()
    plain = plain.fit_blocks([rows]) if in_blocks else plain.fit(*rows)
    np.testing.assert_array_equal(model.coef_, plain.coef_)


LAST = {
    **MODELS,
    "early stopping": lambda: KernelClassifier(
        Fastfood(n_components=32), validation_fraction=0.3, patience=1, epochs=50, random_state=0
    ),
    "plain": lambda: KernelClassifier(
        Fastfood(n_components=32), solver="plain_sgd", epochs=3, random_state=0
    ),
    "lbfgs": lambda: KernelClassifier(Fastfood(n_components=32), solver="lbfgs", random_state=0),
    "few iterations": lambda: KernelRegressor(
        Fastfood(n_components=32), solver="cg", tol=1e-30, max_iter=4, random_state=0
    ),
}


@pytest.mark.filterwarnings("ignore:Conjugate gradients stopped")
@pytest.mark.parametrize("name", LAST)
@pytest.mark.parametrize("in_blocks", [False, True])
def test_the_last_state_is_kept_however_short_the_run(tmp_path, rows, name, in_blocks):
    """What resumes from it has the same bits, and does no work."""
    X, y = rows
    blocks = [(X[:200], y[:200]), (X[200:], y[200:])]

    def train(blocks, progress=None):
        run = Run(tmp_path / "state.npz", progress=progress)
        model = LAST[name]()
        if in_blocks:
            return model.fit_blocks(blocks, run=run)
        return model.fit(X, y, run=run)

    whole = train(blocks)
    content = (tmp_path / "state.npz").read_bytes()
    progress = Recorder()
    resumed = train(blocks, progress)
    for part in ("coef_", "intercept_", "n_iter_"):
        np.testing.assert_array_equal(getattr(resumed, part), getattr(whole, part))
    assert progress.rows == 0
    assert (tmp_path / "state.npz").read_bytes() == content
    if in_blocks:
        other = [blocks[0], (X[200:], y[200:][::-1])]
        with pytest.raises(CheckpointError, match="blocks must be the same"):
            train(other)


@pytest.mark.parametrize("name", MODELS)
def test_a_disk_without_room_for_the_model_gets_no_last_state(tmp_path, rows, name, monkeypatch):
    monkeypatch.setattr("kernelmill.learners.run._has_room", lambda path, n_bytes: n_bytes < 0)
    MODELS[name]().fit(*rows, run=Run(tmp_path / "state.npz"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", MODELS)
def test_an_own_run_deletes_its_checkpoint(tmp_path, rows, name):
    model = MODELS[name]().set_params(checkpoint=tmp_path / "state.npz", checkpoint_seconds=0)
    model.fit(*rows)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", MODELS)
def test_progress_counts_every_row_of_every_pass(rows, name):
    progress = Recorder()
    model = MODELS[name]().fit(*rows, run=Run(progress=progress))
    assert [stage for stage, _ in progress.stages] == ["Training"]
    passes = {"sgd": 3, "exact": 1, "cg": model.n_iter_ + 2}[name]
    assert progress.rows == passes * 300
    assert len(progress.passes) == {"sgd": 3, "exact": 0, "cg": model.n_iter_}[name]


def test_the_first_total_counts(rows):
    progress = Recorder()
    run = Run(progress=progress)
    run.begin(1234)
    MODELS["sgd"]().fit(*rows, run=run)
    assert progress.stages == [("Training", 1234)]


def test_states_are_written_atomically_and_read_again(tmp_path):
    run = Run(tmp_path / "state.npz", checkpoint_seconds=0)
    run.open({"what": "this"})
    assert run.saved is None
    stream = run.draw_stream(3)
    run.set_origin(stream, np.ones((1, 4)))
    run.save({"numbers": np.arange(3)})
    with pytest.raises(ValueError, match="pickle"):
        run.save({"numbers": np.array([object()])})
    assert [file.name for file in tmp_path.iterdir()] == ["state.npz"]
    resumed = Run(tmp_path / "state.npz")
    resumed.open({"what": "this"})
    assert resumed.draw_stream(4).key == stream.key == Stream.from_random_state(3).key
    resumed.set_origin(stream, np.ones((1, 4)))
    np.testing.assert_array_equal(resumed.saved.array("numbers", (None,), np.int64), np.arange(3))
    assert resumed.saved.counts("numbers", 3) == [0, 1, 2]
    with pytest.raises(CheckpointError, match="no 'others'"):
        resumed.saved.array("others", (3,), np.int64)
    with pytest.raises(CheckpointError, match=r"shape \(4,\)"):
        resumed.saved.array("numbers", (4,), np.int64)
    with pytest.raises(CheckpointError, match="different features"):
        resumed.set_origin(stream, np.zeros((1, 4)) + 2)
    with pytest.raises(CheckpointError, match="where what was this, not that"):
        Run(tmp_path / "state.npz").open({"what": "that"})


def test_a_link_stays_and_what_it_points_to_is_removed(tmp_path, rows):
    (tmp_path / "link").symlink_to("state.npz")
    run = Run(tmp_path / "link", checkpoint_seconds=0)
    MODELS["sgd"]().fit(*rows, run=run)
    assert (tmp_path / "state.npz").exists()
    run.finish()
    assert [path.name for path in tmp_path.iterdir()] == ["link"]


def test_writes_no_more_often_than_asked(tmp_path):
    assert not Run(tmp_path / "state.npz", checkpoint_seconds=3600.0).is_due()
    assert Run(tmp_path / "state.npz", checkpoint_seconds=0.0).is_due()
    assert not Run().is_due()


def header(**fields):
    return np.frombuffer(json.dumps(fields).encode(), np.uint8)


@pytest.mark.parametrize(
    "content",
    [
        {"header": np.array(3 * 10**9)},
        {"header": np.zeros(10, np.uint8)},
        {"header": header(format=1, identity=2)},
        {"header": header(format="kernelmill checkpoint 3", identity={}, last=False)},
        {},
    ],
    ids=["number", "zeros", "odd", "old", "none"],
)
def test_files_of_other_content_are_rejected(content, tmp_path):
    np.savez(tmp_path / "state.npz", **content)
    with pytest.raises(CheckpointError, match="delete it"):
        Run(tmp_path / "state.npz").open({})


def test_members_that_are_no_arrays_are_rejected(tmp_path):
    with zipfile.ZipFile(tmp_path / "state.npz", "w") as file:
        text = io.BytesIO()
        np.save(text, header(format="kernelmill checkpoint 4", identity={}, last=False))
        file.writestr("header.npy", text.getvalue())
        file.writestr("counts.npy", b"no array")
    with pytest.raises(CheckpointError, match="delete it"):
        Run(tmp_path / "state.npz").open({})


def test_compressed_files_are_rejected(tmp_path):
    """A small file could become large in memory."""
    np.savez_compressed(
        tmp_path / "state.npz",
        header=header(format="kernelmill checkpoint 4", identity={}, last=False),
        many=np.zeros(10**6),
    )
    with pytest.raises(CheckpointError, match="delete it"):
        Run(tmp_path / "state.npz").open({})


def test_paths_are_checked_before_training(tmp_path):
    with pytest.raises(IsADirectoryError, match="checkpoint must be the path of a file"):
        Run(tmp_path)
    with pytest.raises(FileNotFoundError, match="existing folder"):
        Run(tmp_path / "nowhere" / "state.npz")
    for seconds in (-1.0, "often", None, np.nan):
        with pytest.raises(ValueError, match="checkpoint_seconds must be"):
            Run(tmp_path / "state.npz", checkpoint_seconds=seconds)


def test_errors_carry_the_path_and_can_be_pickled(tmp_path):
    error = CheckpointError(tmp_path / "state.npz", "it is damaged", "make a copy")
    assert error.path == str(tmp_path / "state.npz")
    assert [remedy.action for remedy in error.message.remedies] == [
        "make a copy",
        "delete it to start from the beginning",
    ]
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.path) == (str(error), error.path)


class TestStderrProgress:
    def run(self, monkeypatch, is_terminal):
        monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)
        monkeypatch.setattr("kernelmill.runtime.progress._SECONDS_BETWEEN_LINES", 0.0)
        progress = StderrProgress()
        progress.start("Training", 200)
        progress.advance(50, "pass 1/2  loss 0.5")
        progress.advance(50, "pass 1/2  loss 0.4")
        progress.end_pass("pass 1/2  loss 0.4")

    def test_rewrites_one_line_in_a_terminal(self, monkeypatch, capsys):
        self.run(monkeypatch, is_terminal=True)
        text = capsys.readouterr().err
        assert text.count("\n") == 1
        assert text.count("\r") == 3
        assert "rows/s" in text
        assert "s left" in text

    def test_writes_a_line_for_each_pass_elsewhere(self, monkeypatch, capsys):
        self.run(monkeypatch, is_terminal=False)
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("pass 1/2  loss 0.4  0.")


class Notes(Recorder):
    def __init__(self):
        super().__init__()
        self.notes = []

    def note(self, message):
        self.notes.append(str(message))


@pytest.fixture
def full_disk(monkeypatch):
    """Every write of a checkpoint fails, after the first so many."""
    state = {"writes": 0, "allowed": 0}
    original = np.savez

    def save(file, **arrays):
        state["writes"] += 1
        if state["writes"] > state["allowed"]:
            raise OSError(28, "No space left on device")
        original(file, **arrays)

    monkeypatch.setattr("numpy.savez", save)
    return state


@pytest.mark.parametrize("name", MODELS)
def test_training_goes_on_without_its_checkpoint(tmp_path, rows, name, full_disk):
    progress = Notes()
    run = Run(tmp_path / "state.npz", checkpoint_seconds=0, progress=progress)
    model = MODELS[name]().fit(*rows, run=run)
    assert full_disk["writes"] > 0
    (note,) = progress.notes
    assert note.startswith(f"The checkpoint {tmp_path / 'state.npz'} (")
    assert (
        ") cannot be written: no space left on device; training continues, and there is none"
        in note
    )
    assert list(tmp_path.iterdir()) == []
    np.testing.assert_array_equal(model.coef_, MODELS[name]().fit(*rows).coef_)


def test_an_earlier_checkpoint_is_kept_and_estimators_warn(tmp_path, rows, full_disk):
    full_disk["allowed"] = 1
    model = MODELS["sgd"]().set_params(checkpoint=tmp_path / "state.npz", checkpoint_seconds=0)
    with pytest.warns(UserWarning, match="an earlier one is kept") as found:
        model.fit(*rows)
    assert len(found) == 1
    assert found[0].filename == __file__
