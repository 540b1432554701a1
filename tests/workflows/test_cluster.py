"""Tables on a cluster of two worker processes: the same models, predictions and errors."""

import importlib.metadata
import os
import signal
from dataclasses import asdict, replace

import numpy as np
import pytest

from kernelmill import fit_table
from kernelmill.errors import ArgumentError
from kernelmill.workflows import spread_table

distributed = pytest.importorskip("distributed")
from kernelmill.scale import ClusterError, PieceError  # noqa: E402

RIDGE = {"target": "y", "n_components": 64, "tune": False, "alpha": 1e-3}
LBFGS = {"target": "place", "n_components": 32, "tune": False, "solver": "lbfgs", "alpha": 1e-3}


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


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
    options = {**LBFGS, "missing": "impute", "weights": "w", "epochs": 8}
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


KILLED = {
    "survey": "kernelmill.workflows.survey:SurveyPass.update",
    "train": "kernelmill.workflows.spread_table:_ReadTraining.__call__",
    "predict": "kernelmill.workflows.prediction:Prediction.__call__",
}


def kill_once(place, marker):
    """Patch a method on a worker: the first call of it anywhere kills its process."""
    from importlib import import_module

    module, _, path = place.partition(":")
    name, _, method = path.partition(".")
    cls = getattr(import_module(module), name)
    original = getattr(cls, method)

    def patched(*args, **options):
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return original(*args, **options)
        return os.kill(os.getpid(), signal.SIGKILL)

    setattr(cls, method, patched)


@pytest.mark.parametrize("stage", KILLED)
def test_killed_worker_changes_nothing(stage, waves_csv, client, ridge_on_cluster, tmp_path):
    client.wait_for_workers(2)
    marker = tmp_path / "killed"
    client.run(kill_once, KILLED[stage], str(marker))
    if stage == "predict":
        expected = ridge_on_cluster.predict_table(waves_csv)["prediction"].to_numpy()
        found = ridge_on_cluster.predict_table(waves_csv, cluster=client)["prediction"]
        np.testing.assert_allclose(found.to_numpy(), expected, rtol=1e-6, atol=1e-6)
    else:
        model = fit_table(waves_csv, **RIDGE, cluster=client)
        np.testing.assert_array_equal(model.learner.coef_, ridge_on_cluster.learner.coef_)
        one, other = (
            asdict(replace(each.summary.held_out, seconds=0.0))
            for each in (ridge_on_cluster, model)
        )
        assert one == other
    assert marker.exists()


def test_bad_row_names_file_and_rows(tmp_path, client):
    path = tmp_path / "rows.csv"
    lines = [f"{i % 7},{i % 5}.5" for i in range(5000)]
    lines[4321] = "oops,1.5"
    path.write_text("x,y\n" + "\n".join(lines) + "\n")
    words = rf"{path}, rows \d+ to \d+: {path}, line 4323, column 'x'.*'oops' is not a number"
    with pytest.raises(PieceError, match=words):
        fit_table(path, "y", numeric=["x"], tune=False, cluster=client)


def test_unexpected_errors_name_file_and_rows(waves_csv, client, ridge, monkeypatch):
    def broken(*args):
        raise ZeroDivisionError("no luck")

    client.run(lambda: None)
    monkeypatch.setattr("kernelmill.workflows.prediction.Prediction.slim", lambda self: broken)
    with pytest.raises(PieceError, match=r"waves\.csv, rows 1 to \d+: ZeroDivisionError: no luck"):
        ridge.predict_table(waves_csv, cluster=client)


def test_worker_with_another_version_is_refused(waves_csv, client, monkeypatch):
    real = importlib.metadata.version("kernelmill")
    for place in ("cluster", "connection"):
        monkeypatch.setattr(f"kernelmill.scale.{place}.installed_version", lambda: "0.0.1")
    with pytest.raises(ClusterError, match=f"must have kernelmill 0.0.1 .*, got {real}"):
        fit_table(waves_csv, **RIDGE, cluster=client)


def test_scheduler_that_goes_away(tmp_path, waves_csv, ridge):
    """A clear error, and a checkpoint with which the same call finishes elsewhere."""
    from kernelmill.runtime.progress import SilentProgress

    checkpoint = tmp_path / "fit.checkpoint"
    options = {"target": "y", "n_components": 64, "checkpoint": checkpoint, "kernel": "gaussian"}
    options |= {"checkpoint_seconds": 0.0, "column_scales": False}
    local = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=":0", processes=False, silence_logs=50
    )

    class Closing(SilentProgress):
        def start(self, stage, total=None, unit="rows"):
            if stage == "Training":
                local.close()

    with pytest.raises(ClusterError, match=r"the connection to the scheduler .* is lost"):
        fit_table(waves_csv, **options, cluster=local, progress=Closing())
    assert checkpoint.exists()
    model = fit_table(waves_csv, **options)
    assert model.summary.held_out.metrics["r2"] > 0.9


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ("somewhere", ArgumentError, "must be the address of a scheduler such as tcp://"),
        ("local:0", ArgumentError, "must be the address of a scheduler such as tcp://"),
        (3, ArgumentError, "must be an address, a distributed.Client or a cluster of Dask"),
    ],
)
def test_wrong_clusters(waves_csv, given, error, words):
    with pytest.raises(error, match=words):
        fit_table(waves_csv, **RIDGE, cluster=given)


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
    assert main(["predict", str(model), str(waves_csv), "-o", str(out), "--cluster", "x"]) == 1
    assert "--cluster must be the address of a scheduler" in capfd.readouterr().err


def test_solver_that_needs_one_machine(waves_csv, client):
    with pytest.raises(ArgumentError, match="solver does not run on a cluster, got 'cg'"):
        fit_table(waves_csv, **RIDGE, solver="cg", cluster=client)


@pytest.mark.parametrize("name", ["rows.npz", "rows.svm"])
def test_labels_and_sparse_rows(tmp_path, client, name):
    """By least squares on the classes, whose solution is the same to rounding."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5)).round(3)
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
