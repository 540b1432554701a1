"""Tables on a cluster of two worker processes: the same models, predictions and errors."""

import importlib.metadata
import os
import signal
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from kernelmill import fit_table
from kernelmill.errors import ArgumentError
from kernelmill.workflows import spread_table

distributed = pytest.importorskip("distributed")
import dask  # noqa: E402
import psutil  # noqa: E402 # which Dask requires

from kernelmill.scale import ClusterError, PieceError  # noqa: E402
from kernelmill.scale.connection import connect  # noqa: E402

RIDGE = {"target": "y", "n_components": 64, "tune": False, "alpha": 1e-3}
LBFGS = {"target": "place", "n_components": 32, "tune": False, "solver": "lbfgs", "alpha": 1e-3}


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(spread_table, "_SMALLEST_PIECE", 5000)


@pytest.fixture(scope="module")
def ridge(waves_csv):
    return fit_table(waves_csv, **RIDGE)


@pytest.fixture(scope="module")
def ridge_on_cluster(waves_csv, client):
    size = spread_table._SMALLEST_PIECE
    spread_table._SMALLEST_PIECE = 5000
    try:
        return fit_table(waves_csv, **RIDGE, cluster=client)
    finally:
        spread_table._SMALLEST_PIECE = size


def assert_same_summary(one, other):
    """All that does not depend on time and rounding."""
    names = ("task", "source", "target", "n_rows", "n_held_out", "columns", "n_inputs", "map_name")
    names += ("kernel", "n_components", "solver", "classes", "notes", "seed", "loss")
    for name in names:
        assert getattr(other.summary, name) == getattr(one.summary, name), name
    assert other.summary.length_scale == pytest.approx(one.summary.length_scale, rel=1e-6)


def test_ridge_is_that_of_one_machine(ridge, ridge_on_cluster):
    assert_same_summary(ridge, ridge_on_cluster)
    scale = np.abs(ridge.learner.coef_).max()
    np.testing.assert_allclose(
        ridge_on_cluster.learner.coef_, ridge.learner.coef_, rtol=0, atol=1e-6 * scale
    )
    one, other = ridge.summary.held_out, ridge_on_cluster.summary.held_out
    assert other.metrics == pytest.approx(one.metrics, rel=1e-5)
    assert other.coverage.nominal == one.coverage.nominal
    assert other.n_rows == one.n_rows


def test_predictions_of_a_cluster(ridge, waves_csv, client, tmp_path):
    for options, name in (({"std": True, "keep_columns": True}, "p.csv"), ({}, "p.parquet")):
        one, other = tmp_path / f"one-{name}", tmp_path / f"other-{name}"
        assert ridge.predict_table(waves_csv, out=one, **options) == 1200
        assert ridge.predict_table(waves_csv, out=other, cluster=client, **options) == 1200
        if name == "p.csv":  # in other blocks, the last bit of features may differ
            found, expected = (np.loadtxt(path, delimiter=",", skiprows=1) for path in (other, one))
            np.testing.assert_array_equal(found[:, :2], expected[:, :2])
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    frame = ridge.predict_table(waves_csv, cluster=client)
    np.testing.assert_allclose(frame["prediction"], ridge.predict(waves_csv), atol=1e-6)


def test_classification_with_everything(tmp_path, client):
    """Categories, missing values, weights and rows without a target, by L-BFGS."""
    rng = np.random.default_rng(0)
    lines = ["a,color,w,place"]
    for i in range(700):
        a, color = rng.normal(), rng.choice(["red", "blue", ""])
        place = "" if i % 97 == 5 else "in" if a * a < 1 else "out"
        lines.append(f"{'' if i % 31 == 4 else f'{a:.4f}'},{color},{1 + i % 3},{place}")
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(lines) + "\n")
    options = {**LBFGS, "missing": "impute", "weights": "w", "epochs": 20}
    one = fit_table(path, **options)
    other = fit_table(path, **options, cluster=client)
    assert_same_summary(one, other)
    found, expected = other.summary.held_out, one.summary.held_out
    assert found.n_rows == expected.n_rows
    assert found.metrics["log_loss"] == pytest.approx(expected.metrics["log_loss"], rel=1e-3)
    new = tmp_path / "new.csv"
    new.write_text("\n".join(lines).replace("blue", "green") + "\n")
    here, there = (one.evaluate_table(new, cluster=each) for each in (None, client))
    assert there.confusion == here.confusion
    assert there.notes == here.notes
    assert any("did not occur in training" in note for note in here.notes)
    assert there.metrics == pytest.approx(here.metrics, rel=1e-6)


def test_descent_is_as_good_as_that_of_one_machine(rings_csv, client):
    """Two of 150 held-out rows more or less; errors are 0 to 4 of 150."""
    options = {"n_components": 64, "tune": False, "alpha": 1e-5, "epochs": 6}
    models = [fit_table(rings_csv, "place", **options, cluster=each) for each in (None, client)]
    errors = [model.summary.held_out.metrics["error"] for model in models]
    assert max(errors) < 0.06
    assert models[1].summary.n_held_out == models[0].summary.n_held_out


def test_folds_refit_and_validation(tmp_path, waves_csv, client):
    options = {**RIDGE, "folds": 2, "refit": True}
    one, other = (fit_table(waves_csv, **options, cluster=each) for each in (None, client))
    folds = [model.summary.cross_validation.errors for model in (one, other)]
    assert np.allclose(np.mean(folds[1]), np.mean(folds[0]), rtol=0.1)
    scale = np.abs(one.learner.coef_).max()
    assert np.abs(other.learner.coef_ - one.learner.coef_).max() < 1e-6 * scale
    test = tmp_path / "test.csv"
    test.write_text("".join(waves_csv.read_text().splitlines(keepends=True)[:301]))
    tested = fit_table(waves_csv, **RIDGE, validation=test, cluster=client)
    assert tested.summary.held_out.n_rows == 300


@pytest.mark.parametrize("division", [{"groups": "g"}, {"holdout_last": "day", "drop": ["g"]}])
def test_groups_and_times(tmp_path, client, division):
    rng = np.random.default_rng(0)
    x, g = rng.normal(size=700).round(3), rng.integers(0, 9, 700)
    day, month = rng.integers(1, 29, 700), rng.integers(1, 13, 700)
    lines = (
        f"{a},{b},{c}.{d}.2024,{a * b + c}" for a, b, c, d in zip(x, g, day, month, strict=True)
    )
    path = tmp_path / "rows.csv"
    path.write_text("x,g,day,y\n" + "\n".join(lines) + "\n")
    options = {**RIDGE, **division, "folds": 3, "day_first": True, "holdout": 0.2}
    one, other = (fit_table(path, **options, cluster=each) for each in (None, client))
    assert_same_summary(one, other)
    assert other.summary.division == one.summary.division
    assert other.summary.held_out.metrics == pytest.approx(one.summary.held_out.metrics, rel=1e-4)
    folds = [model.summary.cross_validation.errors for model in (one, other)]
    is_in_order = "holdout_last" in division  # groups in memory are balanced by rows
    assert folds[1] == pytest.approx(folds[0], rel=1e-4 if is_in_order else 0.5)


SGD = {"target": "place", "n_components": 32, "tune": False, "alpha": 1e-4, "epochs": 2}
KILLED = {
    "survey": (RIDGE, "kernelmill.workflows.training.survey:SurveyPass.update", 2),
    "lbfgs": ({**LBFGS, "epochs": 2}, "kernelmill.learners.solvers.lbfgs:_add_losses", 5),
    "sgd": (SGD, "kernelmill.learners.solvers.averaging:_visit", 5),
    "predict": (RIDGE, "kernelmill.workflows.model.prediction:Prediction.__call__", 2),
}


def kill_at(place, marker, n_calls):
    """Patch a function on a worker: its nth call on any worker kills the process, once."""
    import importlib
    import operator

    module, _, path = place.partition(":")
    *parents, name = path.split(".")
    owner = importlib.import_module(module)
    owner = operator.attrgetter(".".join(parents))(owner) if parents else owner
    original = getattr(owner, name)

    def patched(*args, **options):
        with Path(marker).open("ab") as file:
            file.write(b".")
            file.flush()
            if file.tell() == n_calls:
                os.kill(os.getpid(), signal.SIGKILL)
        return original(*args, **options)

    setattr(owner, name, patched)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("stage", KILLED)
def test_killed_worker_changes_nothing(
    stage, waves_csv, rings_csv, client, ridge_on_cluster, tmp_path
):
    options, place, n_calls = KILLED[stage]
    source = waves_csv if options is RIDGE else rings_csv
    expected = (
        ridge_on_cluster if options is RIDGE else fit_table(source, **options, cluster=client)
    )
    client.wait_for_workers(2)
    marker = tmp_path / "calls"
    client.run(kill_at, place, str(marker), n_calls)
    if stage == "predict":
        here = expected.predict_table(source)["prediction"].to_numpy()
        there = expected.predict_table(source, cluster=client)["prediction"]
        np.testing.assert_allclose(there.to_numpy(), here, rtol=1e-6, atol=1e-6)
    else:
        model = fit_table(source, **options, cluster=client)
        np.testing.assert_array_equal(model.learner.coef_, expected.learner.coef_)
        one, other = (
            asdict(replace(each.summary.held_out, seconds=0.0)) for each in (expected, model)
        )
        assert one == other
    assert marker.stat().st_size >= n_calls


def test_bad_row_names_file_and_rows(tmp_path, client):
    path = tmp_path / "rows.csv"
    lines = [f"{i % 7},{i % 5}.5" for i in range(5000)]
    lines[4321] = "oops,1.5"
    path.write_text("x,y\n" + "\n".join(lines) + "\n")
    words = rf"{path}, rows \d+ to \d+: {path}, line 4323, column 'x'.*'oops' is not a number"
    with pytest.raises(PieceError, match=words):
        fit_table(path, "y", numeric=["x"], tune=False, cluster=client)


def test_a_target_of_strings_suggests_classification(rings_csv, client):
    settings = LBFGS | {"solver": "auto", "task": "regression"}
    with pytest.raises(PieceError, match="is not a number") as found:
        fit_table(rings_csv, **settings, cluster=client)
    assert "if the target is a class label, set the task (task='classification')" in str(
        found.value
    )
    assert "categorical" not in str(found.value)


def test_unexpected_errors_name_file_and_rows(waves_csv, client, ridge, monkeypatch):
    def broken(*args):
        raise ZeroDivisionError("no luck")

    client.run(lambda: None)
    place = "kernelmill.workflows.model.prediction.Prediction.slim"
    monkeypatch.setattr(place, lambda self: broken)
    with pytest.raises(PieceError, match=r"waves\.csv, rows 1 to \d+: ZeroDivisionError: no luck"):
        ridge.predict_table(waves_csv, cluster=client)


def test_worker_with_another_version_is_refused(waves_csv, client, monkeypatch):
    real = importlib.metadata.version("kernelmill")
    for place in ("cluster", "connection"):
        monkeypatch.setattr(f"kernelmill.scale.{place}.installed_version", lambda: "0.0.1")
    with pytest.raises(
        ClusterError, match=f"must have the same kernelmill version .*, 0.0.1, got {real}"
    ):
        fit_table(waves_csv, **RIDGE, cluster=client)


def test_scheduler_that_goes_away(tmp_path, rings_csv, client):
    """A clear error after the first epoch, and --resume finishes on another cluster."""
    from kernelmill import load
    from kernelmill.cli import main
    from kernelmill.runtime.progress import SilentProgress

    expected = fit_table(rings_csv, **{**SGD, "epochs": 3}, cluster=client)
    out = tmp_path / "rings.kmill"
    checkpoint = tmp_path / "rings.kmill.checkpoint"
    local = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=":0", processes=False, silence_logs=50
    )
    passes = []

    class Closing(SilentProgress):
        def end_pass(self, text):
            passes.append(text)
            if len(passes) == 2:  # the state after the first pass is saved
                local.close()

    options = {"checkpoint": checkpoint, "checkpoint_seconds": 0.0, "cluster": local}
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        pytest.raises(ClusterError, match=r"the connection to the scheduler .* is lost"),
    ):
        fit_table(rings_csv, **{**SGD, "epochs": 3}, **options, progress=Closing())
    assert len(passes) == 2
    assert checkpoint.exists()
    settings = ("-t", "place", "-n", "32", "--no-tune", "--alpha", "1e-4", "--epochs", "3")
    place = ("--out", out, "--cluster", client.scheduler.address, "--precision", "float64")
    assert main(["fit", str(rings_csv), *settings, "--resume", *map(str, place)]) == 0
    np.testing.assert_array_equal(load(out).learner.coef_, expected.learner.coef_)
    assert not checkpoint.exists()


@pytest.mark.parametrize("name", ["rings", "waves"])
def test_the_last_state_is_kept_until_the_model_is_saved(
    tmp_path, rings_csv, waves_csv, client, monkeypatch, name
):
    source, settings = (rings_csv, SGD) if name == "rings" else (waves_csv, RIDGE)
    settings = {**settings, "checkpoint": tmp_path / "state", "cluster": client}
    expected = fit_table(source, **settings)

    def train(*_, **__):
        raise AssertionError("it trains again")

    for work in ("averaging._visit", "exact._fold_statistics"):
        monkeypatch.setattr(f"kernelmill.learners.solvers.{work}", train)
    resumed = fit_table(source, **settings)
    np.testing.assert_array_equal(resumed.learner.coef_, expected.learner.coef_)
    resumed.save(tmp_path / "model.kmill")
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ("somewhere", ArgumentError, "must be the address of a scheduler such as tcp://"),
        ("local:0", ArgumentError, "must be the address of a scheduler such as tcp://"),
        (3, ArgumentError, "must be an address, a distributed.Client or a Dask cluster"),
    ],
)
def test_wrong_clusters(waves_csv, given, error, words):
    with pytest.raises(error, match=words):
        fit_table(waves_csv, **RIDGE, cluster=given)


def test_local_clusters_listen_on_this_machine_only(client):  # whose workers start quickly
    """The dashboard was served to the network."""

    def listening(process):
        found = process.net_connections()
        return {each.laddr for each in found if each.status == psutil.CONN_LISTEN}

    before = listening(psutil.Process())
    with connect("local:1") as cluster:
        (worker,) = cluster.client.run(os.getpid).values()
        opened = listening(psutil.Process()) - before | listening(psutil.Process(worker))
    assert len(opened) > 2
    assert {each.ip for each in opened} == {"127.0.0.1"}


def test_no_scheduler(waves_csv, monkeypatch):
    monkeypatch.setattr("kernelmill.scale.connection._SECONDS", 1)
    with pytest.raises(ClusterError, match=r"there is no scheduler at tcp://127\.0\.0\.1:9"):
        fit_table(waves_csv, **RIDGE, cluster="tcp://127.0.0.1:9")


def test_data_in_memory(client):
    with pytest.raises(ArgumentError, match="cluster is for files, got data in memory"):
        fit_table({"a": [1.0, 2.0], "y": [1.0, 2.5]}, "y", cluster=client)


def test_command_line(tmp_path, waves_csv, client, ridge, capfd):
    from kernelmill.cli import main

    def run(*arguments):
        capfd.readouterr()
        assert main([*map(str, arguments), "--cluster", client.scheduler.address]) == 0
        return "".join(capfd.readouterr())

    model, out = tmp_path / "waves.kmill", tmp_path / "p.csv"
    settings = ("--target", "y", "--n-components", 64, "--no-tune", "--alpha", 1e-3)
    run("fit", waves_csv, *settings, "--out", model)
    assert "1,200 predictions" in run("predict", model, waves_csv, "--out", out)
    found = np.loadtxt(out, skiprows=1)
    np.testing.assert_allclose(found, ridge.predict(waves_csv), rtol=1e-3, atol=1e-3)
    assert "1,200 rows" in run("evaluate", model, waves_csv)
    assert main(["predict", str(model), str(waves_csv), "-o", str(out), "--cluster", "x"]) == 2
    assert "--cluster must be the address of a scheduler" in capfd.readouterr().err


def test_conjugate_gradients(waves_csv, client, ridge):
    model = fit_table(waves_csv, **RIDGE, solver="cg", cluster=client)
    assert model.summary.solver == "cg"
    scale = np.abs(ridge.learner.coef_).max()
    assert np.abs(model.learner.coef_ - ridge.learner.coef_).max() < 1e-3 * scale


@pytest.mark.parametrize("name", ["rows.npz", "rows.svm"])
def test_labels_and_sparse_rows(tmp_path, client, name):
    """By least squares on the classes, whose solution is the same to rounding. Rows have copies."""
    rng = np.random.default_rng(0)
    X = np.tile(rng.normal(size=(200, 5)).round(3), (3, 1))
    y = (X[:, 0] > 0).astype(int)
    if name == "rows.npz":
        np.savez(tmp_path / name, X=X, y=y)
    else:
        pairs = [" ".join(f"{i + 1}:{v}" for i, v in enumerate(row)) for row in X]
        (tmp_path / name).write_text("".join(f"{t} {p}\n" for t, p in zip(y, pairs, strict=True)))
    options = {"n_components": 32, "tune": False, "loss": "squared", "alpha": 1e-3}
    one, other = (fit_table(tmp_path / name, **options, cluster=c) for c in (None, client))
    scale = np.abs(one.learner.coef_).max()
    assert np.abs(other.learner.coef_ - one.learner.coef_).max() < 1e-6 * scale
    assert other.summary.held_out.confusion == one.summary.held_out.confusion
    assert other.summary.notes == one.summary.notes
    assert any(note.startswith("400 of 600 rows repeat") for note in one.summary.notes)


def test_progress_of_a_cluster(waves_csv, client):
    from kernelmill.runtime.progress import SilentProgress

    class Recorded(SilentProgress):
        def __init__(self):
            self.rows = {}

        def start(self, stage, total=None, unit="rows"):
            self.stage, self.total = stage, total
            self.rows[stage] = 0

        def advance(self, amount, status=""):
            self.rows[self.stage] += amount

    progress = Recorded()
    model = fit_table(waves_csv, **RIDGE, cluster=client, progress=progress)
    assert list(progress.rows)[:3] == ["Counting", "Reading", "Training"]
    assert sum(progress.rows.values()) > 1000  # reports of workers may come late
    model.predict_table(waves_csv, cluster=client, progress=progress)
    assert progress.rows["Predicting"] == 1200
