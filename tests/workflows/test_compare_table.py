"""Comparison of models."""

import json
import time
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import dump_svmlight_file

from kernelmill import compare_table
from kernelmill.encoding.columns import CategoryEncoding, NumericEncoding
from kernelmill.encoding.encoder import ColumnEncoder
from kernelmill.io import TableError
from kernelmill.runtime.progress import SilentProgress
from kernelmill.workflows.comparison.baselines import fit_in_time, make_trees, tree_columns
from kernelmill.workflows.comparison.benchmark import FitBenchmark
from kernelmill.workflows.records import ComparedModel, Comparison

from .conftest import write_rings


def test_classification(rings_csv, monkeypatch):
    monkeypatch.setattr("kernelmill.workflows.tuning.refinement._ROWS_TO_SEE", 6000)
    monkeypatch.setattr("kernelmill.learners.solvers.sgd._ROWS_TO_SEE", 30_000)
    monkeypatch.setattr("kernelmill.workflows.tuning.settings._FEW_ROWS", 1000)  # of 1500
    seconds, tune = [], FitBenchmark.tune

    def timed(*args, **options):
        begin = time.perf_counter()
        tuned = tune(*args, **options)
        seconds.append(time.perf_counter() - begin)
        return replace(tuned, solver="lbfgs")  # as for larger tables

    monkeypatch.setattr(FitBenchmark, "tune", timed)
    found = compare_table(
        rings_csv, "place", n_components=(16, 128), rows=600, exact_rows=300, kernel="gaussian"
    )
    default = found.models.pop(1)
    assert (default.name, default.family) == ("fit (defaults)", "features")
    assert default.detail == "fastfood, gaussian; time includes tuning"
    assert default.fit_seconds > seconds[0]
    assert default.error < 0.08
    assert [(m.name, m.n_components) for m in found.models] == [
        ("linear", None),
        ("fastfood", 16),
        ("fastfood", 128),
        ("random_fourier", 128),
        ("additive_fourier", 128),
        ("tensor_sketch", 128),
        ("nystroem", 128),
        ("boosted trees", None),
        ("random forest", None),
        ("exact kernel", None),
    ]
    errors = [model.error for model in found.models]
    assert max(errors[6:9]) < 0.08  # Nyström and trees
    details = {model.name: model.detail for model in found.models}
    assert details["boosted trees"].endswith("native categories")
    assert details["random forest"].endswith("categories as codes")
    assert errors[2] < 0.05
    assert errors[0] > 0.2
    assert errors[-1] < 0.08
    assert found.models[-1].n_train == 300
    assert found.models[0].n_train == found.n_train
    assert 0.2 < found.n_test / 1500 < 0.3
    assert all(m.fit_seconds > 0 and m.predict_seconds > 0 for m in found.models)
    best = min(found.models[1:7], key=lambda m: (m.error, m.n_components))
    if best.error < default.error:
        assert found.settings["n_components"] == best.n_components
        assert found.settings["feature_map"] == best.name
        assert ("kernel" in found.settings) == (best.name != "tensor_sketch")
    else:
        assert found.settings == {"kernel": "gaussian"}
    again = Comparison.from_record(json.loads(json.dumps(found.to_record(), allow_nan=False)))
    assert again == found


@pytest.mark.usefixtures("few_epochs")
def test_no_model_is_listed_twice(waves_csv):
    """The Laplacian kernel has random Fourier features in any case."""
    found = compare_table(waves_csv, "y", n_components=[16, 32], kernel="laplacian", rows=150)
    names = [(model.name, model.n_components) for model in found.models]
    assert ("random_fourier", 32) in names
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("kernel", [None, "matern"])
def test_regression(waves_csv, kernel):
    found = compare_table(waves_csv, "y", n_components=[128], kernel=kernel, rows=300)
    by_name = {model.name: model.error for model in found.models}
    assert found.error_name == "rmse"
    assert by_name["fastfood"] < 0.14 < by_name["linear"]  # the noise is 0.1
    assert by_name["exact kernel"] < 0.14


def test_all_models_can_learn():
    """An odd function of one column, far from zero: each can learn it."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 2))
    columns = {"a": x[:, 0], "b": x[:, 1], "y": 100 + 3 * x[:, 0] + 0.1 * x[:, 1]}
    found = compare_table(
        columns, "y", task="regression", drop=(), n_components=[128], kernel="gaussian"
    )
    # Trees are piecewise constant.
    limits = {"trees": 0.6}
    assert all(m.error < limits.get(m.family, 0.3) for m in found.models), found.models
    best = min(found.models[1:7], key=lambda m: m.error)
    assert found.settings["task"] == "regression"
    assert ("n_components" in found.settings) == (best.name != "fit (defaults)")


@pytest.mark.usefixtures("few_epochs")
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_weights_of_rows(task):
    """Rows with wrong targets count little or nothing, in training and in the errors."""
    rng = np.random.default_rng(0)
    x, wrong = rng.normal(size=(300, 2)), rng.random(300) < 0.5
    y = np.where(wrong, -1, 1) * np.sign(x[:, 0])
    weights = np.where(wrong, rng.choice([0, 1e-9], 300), rng.uniform(1, 2, 300))
    columns = {"a": x[:, 0], "b": x[:, 1], "w": weights, "y": y}
    options = {"n_components": [32], "kernel": "gaussian", "task": task}
    found = compare_table(columns, "y", weights="w", **options)
    limit = 0.15 if task == "classification" else 0.85
    assert max(model.error for model in found.models) < limit, found.models
    assert found.settings["weights"] == "w"
    assert "Rows are weighted by column 'w'." in found.notes
    assert found.n_train + found.n_test < 300  # without the rows of weight zero
    columns["w"] = np.zeros(300)
    with pytest.raises(TableError, match="are 0"):
        compare_table(columns, "y", weights="w", **options)


@pytest.mark.usefixtures("few_epochs")
@pytest.mark.parametrize("target", ["y", "class"])
def test_sparse_rows(folder, target):
    """One-hot columns of many categories, and svmlight files."""
    rng = np.random.default_rng(0)
    n_rows, options = 200, {"n_components": [32], "kernel": "gaussian"}
    y = rng.integers(0, 2, n_rows)
    if target == "class":
        X = rng.random((n_rows, 10)) * (rng.random((n_rows, 10)) < 0.2)
        X[:, 0] = y
        path = folder / "sparse.svm"
        dump_svmlight_file(csr_array(X), y, str(path))
        found = compare_table(path, **options)
    else:
        names = [f"c{k}" for k in range(8)]
        codes = rng.integers(0, 200, (n_rows, 8))
        rows = (",".join(f"v{code}" for code in row) for row in codes)
        lines = (f"{row},{t}" for row, t in zip(rows, y, strict=True))
        path = folder / "wide.csv"
        path.write_text(",".join([*names, "y"]) + "\n" + "\n".join(lines))
        found = compare_table(path, "y", **options)
    assert [m.family for m in found.models].count("trees") == 2
    assert {m.n_train for m in found.models} == {found.n_train}


def test_trees_get_codes_of_categories():
    numeric = NumericEncoding("x", 0.0, 1.0)
    constant = CategoryEncoding("same", (), rare=("a",))
    encoder = ColumnEncoder([CategoryEncoding("c", ("a", "b")), constant, numeric], "error")
    X = np.array([[1, 0, 0.5], [0, 1, -1], [0, 0, 2]], np.float32)
    for rows in (X, csr_array(X)):
        columns = tree_columns(encoder, rows, rows[:1])
        assert columns.training.tolist() == [[0, 0.5], [1, -1], [2, 2]]
        assert columns.test.tolist() == [[0, 0.5]]
        assert columns.is_category.tolist() == [True, False]


def test_trees_get_fewer_rows_of_wide_tables():
    for columns, classes, least in ((10, 2, 10**6), (784, 10, 40_000), (784, None, 25_000)):
        trees = make_trees(classes, np.zeros(columns, bool), 0, None)
        assert min(each.most_rows for each in trees) >= least
    assert make_trees(10, np.zeros(10_000, bool), 0, None)[0].most_rows == 4000


@pytest.mark.parametrize(("power", "scale"), [(2.0, 1e-6), (1.0, 1e-9), (3.0, 1e-3)])
def test_as_many_rows_as_fit_into_the_time(power, scale):
    times = {}

    def measure(rows):
        times[rows] = scale * rows**power
        return ComparedModel("exact kernel", "exact", None, rows, 0.1, times[rows], 0.0, None)

    found = fit_in_time(measure, 50_000, power, seconds=60.0)
    assert found.n_train == max(times)
    if scale == 1e-3:  # the least that is tried
        assert list(times) == [2000]
    else:
        allowed = (60 / scale) ** (1 / power)
        assert found.n_train == 50_000 or allowed / 2 <= found.n_train <= allowed
        assert times[found.n_train] <= 60
        assert sum(times.values()) <= 2 * 60
    assert fit_in_time(measure, 300, power).n_train == 300


def test_bad_requests(folder, rings_csv):
    with pytest.raises(ValueError, match="at least one number"):
        compare_table(rings_csv, "place", n_components=[])
    with pytest.raises(ValueError, match="missing must be one of"):
        compare_table(rings_csv, "place", missing="drop")
    few = write_rings(folder / "fifty.csv", 50)
    notes = []
    progress = SilentProgress()
    progress.note = notes.append
    with pytest.raises(TableError, match="has 50 rows with a target, but at least 100"):
        compare_table(few, "place", progress=progress)
    assert notes == []  # none of a fit that does not take place
