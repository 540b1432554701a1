"""Tuning that is interrupted, and resumes from its checkpoint."""

import json
import multiprocessing
import os
import signal

import numpy as np
import pytest

from kernelmill import fit_table
from kernelmill.learners import CheckpointError, Run
from kernelmill.runtime.progress import SilentProgress
from kernelmill.workflows.tuning import kernel_search
from kernelmill.workflows.tuning import memory as tuning_memory
from kernelmill.workflows.tuning.memory import TuningMemory, digest
from kernelmill.workflows.tuning.refinement import Refinement

SETTINGS = {"n_components": 32, "kernel": "gaussian", "epochs": 2, "checkpoint_seconds": 1000}


class Interrupting(SilentProgress):
    """Raises KeyboardInterrupt after some steps of a stage."""

    def __init__(self, stage, after):
        self.left, self._stage, self._now = after, stage, ""

    def start(self, stage, total=None, unit="rows"):
        self._now = stage

    def advance(self, amount, status=""):
        if self._now == self._stage:
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt


@pytest.fixture(scope="module", autouse=True)
def few_rows_to_see():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kernelmill.workflows.tuning.refinement._ROWS_TO_SEE", 1000)
        yield


@pytest.fixture(scope="module")
def columns():
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, 120))
    return {"x": x, "z": z, "y": np.where(np.sin(2 * x) + 0.2 * rng.normal(size=120) > 0, "a", "b")}


def count_steps(monkeypatch):
    """Return a list that gets the name of each step of tuning that is computed."""
    calls = []
    places = [(kernel_search, "learn_length_scales"), (kernel_search, "walk_ridges")]
    for place, name in [*places, (Refinement, "_measure")]:
        work = getattr(place, name)

        def count(*args, work=work, name=name, **settings):
            calls.append(name)
            return work(*args, **settings)

        monkeypatch.setattr(place, name, count)
    return calls


@pytest.fixture
def counted(monkeypatch):
    return count_steps(monkeypatch)


@pytest.fixture(scope="module")
def reference_and_steps(columns):
    """A fit that is not interrupted, and its number of steps."""
    with pytest.MonkeyPatch.context() as patch:
        steps = count_steps(patch)
        return fit_table(columns, "y", **SETTINGS), len(steps)


@pytest.fixture(scope="module")
def reference(reference_and_steps):
    return reference_and_steps[0]


@pytest.mark.parametrize("after", [1, 4])
def test_finished_steps_are_not_repeated(tmp_path, columns, reference_and_steps, counted, after):
    expected, steps = reference_and_steps
    path = tmp_path / "state"
    with pytest.raises(KeyboardInterrupt):
        fit_table(columns, "y", **SETTINGS, checkpoint=path, progress=Interrupting("Tuning", after))
    assert len(counted) >= after + 1
    resumed = SilentProgress()
    model = fit_table(columns, "y", **SETTINGS, checkpoint=path, progress=resumed)
    assert after != 1 or len(counted) == steps
    np.testing.assert_array_equal(model.learner.coef_, expected.learner.coef_)
    assert model.summary.tuning == expected.summary.tuning
    assert model.summary.column_relevance == expected.summary.column_relevance
    model.save(tmp_path / "model.kmill")
    assert not path.exists()


class Killing(Interrupting):
    """Kills the process after some steps of a stage: nothing can be saved any more."""

    def advance(self, amount, status=""):
        try:
            super().advance(amount, status)
        except KeyboardInterrupt:
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_killed_process_leaves_its_steps(tmp_path, columns, reference, monkeypatch):
    monkeypatch.setattr(tuning_memory, "_SECONDS", 0.0)
    path = tmp_path / "state"
    settings = {**SETTINGS, "checkpoint": path, "progress": Killing("Tuning", 3)}
    process = multiprocessing.get_context("fork").Process(
        target=fit_table, args=(columns, "y"), kwargs=settings
    )
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    assert path.exists()
    progress = SilentProgress()
    said = []
    monkeypatch.setattr(progress, "note", said.append)
    again = fit_table(columns, "y", **SETTINGS, checkpoint=path, progress=progress)
    assert any("Resumed tuning: " in str(note) for note in said), said
    assert again.summary.tuning == reference.summary.tuning
    np.testing.assert_array_equal(again.learner.coef_, reference.learner.coef_)


def test_training_resumes_with_the_settings_of_its_checkpoint(
    tmp_path, columns, reference, counted
):
    """The file has both: the tuning, and the state of the training."""
    path = tmp_path / "state"
    settings = SETTINGS | {"checkpoint_seconds": 0}
    progress = Interrupting("Training", 3)
    with pytest.raises(KeyboardInterrupt):
        fit_table(columns, "y", **settings, checkpoint=path, progress=progress)
    counted.clear()
    model = fit_table(columns, "y", **settings, checkpoint=path)
    assert counted == []
    np.testing.assert_array_equal(model.learner.coef_, reference.learner.coef_)


def test_another_tuning_is_an_error(tmp_path, columns):
    path = tmp_path / "state"
    with pytest.raises(KeyboardInterrupt):
        fit_table(columns, "y", **SETTINGS, checkpoint=path, progress=Interrupting("Tuning", 1))
    with pytest.raises(CheckpointError, match="another training run, where the digest of the s"):
        fit_table(columns, "y", **SETTINGS | {"kernel": "matern"}, checkpoint=path)
    other = columns | {"x": columns["x"] ** 3}
    with pytest.raises(CheckpointError, match="where the digest of the data was"):
        fit_table(other, "y", **SETTINGS, checkpoint=path)


@pytest.mark.parametrize("memory", [1 << 28, 0])  # rows in memory, or read in each pass
@pytest.mark.parametrize("target", ["class", "number"])
def test_two_exchanged_cells_are_another_table(tmp_path, target, memory):
    """Without tuning, whose identity has the rows of the sample; the encoding is the same."""
    rng = np.random.default_rng(0)
    table = {"x": rng.normal(size=3000), "z": rng.normal(size=3000)}
    table["y"] = np.where(table["x"] > 0, "a", "b") if target == "class" else table["x"]
    settings = {"tune": False, "n_components": 16, "checkpoint": tmp_path / "state"}
    settings |= {"memory": memory, "checkpoint_seconds": 0}
    settings |= {"epochs": 3} if target == "class" else {"solver": "cg"}
    with pytest.raises(KeyboardInterrupt):
        fit_table(table, "y", **settings, progress=Interrupting("Training", 5))
    written = settings["checkpoint"].read_bytes()
    for row in rng.choice(2999, 4, replace=False):
        changed = table["z"].copy()
        changed[[row, row + 1]] = changed[[row + 1, row]]
        with pytest.raises(CheckpointError, match=r"training run|blocks must be the same"):
            fit_table({**table, "z": changed}, "y", **settings)
        assert settings["checkpoint"].read_bytes() == written
    fit_table(table, "y", **settings)


@pytest.mark.parametrize("content", [b"no JSON", b"[]", b'{"identity": 3}', b"\xff"])
def test_damaged_results_are_an_error(tmp_path, content):
    run = Run(tmp_path / "state")
    run.keep("tuning", content)
    run.save()
    with pytest.raises(CheckpointError, match="it is damaged"):
        TuningMemory(Run(tmp_path / "state")).open({})


@pytest.mark.parametrize("content", ["[" * 10**5, '{"identity": {}, "results": [[[], 1]]}'])
def test_records_of_another_form_are_an_error(tmp_path, content):
    run = Run(tmp_path / "state")
    run.keep("tuning", content.encode())
    run.save()
    with pytest.raises(CheckpointError, match="it is damaged"):
        TuningMemory(Run(tmp_path / "state")).open({})
    np.savez(tmp_path / "state", tuning=np.zeros(3))
    (tmp_path / "state.npz").rename(tmp_path / "state")
    with pytest.raises(CheckpointError):
        TuningMemory(Run(tmp_path / "state")).open({})


@pytest.mark.parametrize("kind", ["list", "dict", "float"])
@pytest.mark.parametrize("value", [None, "text", [], {}, [[1.0]], [[-1.0, 1.0]], [0.0], True, 1])
def test_crafted_results_are_an_error(tmp_path, columns, kind, value):
    """Every result of this kind is replaced by a value that no step has."""
    path = tmp_path / "state"
    settings = {**SETTINGS, "checkpoint": path}
    with pytest.raises(KeyboardInterrupt):
        fit_table(columns, "y", **settings, progress=Interrupting("Training", 0))
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    record = json.loads(arrays["tuning"].tobytes())
    found = {type(each).__name__ for each in record["results"].values()}
    assert found == {"list", "dict", "float"}
    for key, result in record["results"].items():
        if type(result).__name__ == kind:
            record["results"][key] = value
    arrays["tuning"] = np.frombuffer(json.dumps(record).encode(), np.uint8)
    with path.open("wb") as file:
        np.savez(file, **arrays)
    with pytest.raises(CheckpointError, match="a result of tuning in it is damaged"):
        fit_table(columns, "y", **settings)


def test_results_survive_exactly(tmp_path):
    values = [0.1, 1e-300, float("inf"), [1 / 3, [2**0.5, 5e-324]]]
    memory = TuningMemory(Run(tmp_path / "state", checkpoint_seconds=1000))
    memory.open({"a": 1})
    with memory.save_at_end():
        assert memory.recall("step", lambda: values, list) == values
    again = TuningMemory(Run(tmp_path / "state"))
    again.open({"a": 1})
    assert again.recall("step", lambda: pytest.fail("computed again"), list) == values
    assert json.dumps(values) == json.dumps(again.recall("step", lambda: None, list))


def test_digests_tell_values_apart():
    values = [1, 1.0, "1", True, None, (1,), [1], [[1]], {"a": 1}, {"b": 1}, np.arange(2)]
    values += [
        np.arange(2.0),
        np.arange(2)[None],
        -0.0,
        0.0,
        float("nan"),
        ("a", "bc"),
        ("ab", "c"),
    ]
    assert len({digest(each) for each in values}) == len(values)
