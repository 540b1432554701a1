"""Diagnoses of tables: samples, kinds of data, targets, errors."""

import json

import numpy as np
import pytest

import kernelmill
from kernelmill.errors import ArgumentError
from kernelmill.io import TableError
from kernelmill.workflows import diagnosis as module
from kernelmill.workflows.diagnosis import Diagnosis

pytestmark = pytest.mark.usefixtures("few_maps")


@pytest.fixture
def few_maps(monkeypatch):
    """Measure only the first two maps of a kernel, with small numbers of features."""
    real = module.list_maps
    monkeypatch.setattr(module, "list_maps", lambda *args, **given: real(*args, **given)[:2])
    monkeypatch.setattr(module, "_MAX_FEATURES", 512)
    monkeypatch.setattr(module, "_GRAM_ROWS", 60)


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["a,b,colour,y"]
    for a, b in rng.normal(size=(300, 2)):
        lines.append(f"{a:.4f},{b:.4f},{'red' if a > b else 'green'},{a * b:.3f}")
    path = tmp_path / "data.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_all_columns_are_inputs_without_a_target(table):
    found = kernelmill.diagnose_table(table, tolerance=0.1, rows=100)
    assert (found.n_rows, found.n_sample, found.n_inputs, found.target) == (300, 100, 5, "")
    assert found.recommended is not None
    assert found.recommendation.startswith("Use fastfood")
    assert found.gram[-1].fit_change is None
    assert found.errors["quantile"].value < 0.15
    assert sum(each.n_pairs for each in found.ranges) == 8 * 1000
    record = found.to_record()  # in which NaN is null
    assert record["gram"][-1]["effective_dimension"]["low"] is None
    assert Diagnosis.from_record(json.loads(json.dumps(record))).to_record() == record


def test_target(table):
    found = kernelmill.diagnose_table(table, "y", tolerance=0.1, drop=["b"], alpha=3.0)
    assert (found.n_inputs, found.target) == (3, "y")
    assert 0 < found.gram[-1].fit_change.value < 1
    assert found.gram[-1].alpha == pytest.approx(3.0 * 60 / 300)
    assert found.settings["drop"] == ["b"]
    assert found.settings["feature_map"] == "fastfood"
    kernelmill.fit_table(table, "y", **{**found.settings, "n_components": 16}, tune=False)


def test_classes_and_the_seed(table):
    first, second = (
        kernelmill.diagnose_table(table, "colour", tolerance=0.3, rows=50, random_state=seed)
        for seed in (0, 1)
    )
    assert first.gram[-1].fit_change is not None
    assert first.requirements[0].errors != second.requirements[0].errors


def test_polynomial_kernels_and_data_in_memory():
    X = 100 * np.random.default_rng(0).normal(size=(50, 3))
    found = kernelmill.diagnose_table(X, kernel="poly:degree=2,coef0=1", tolerance=0.1)
    assert [each.map_name for each in found.requirements] == ["tensor_sketch", "random_maclaurin"]
    assert any("Rows are divided" in note for note in found.notes)
    assert found.in_memory
    assert found.length_scale is None


def test_bad_input(table, tmp_path):
    with pytest.raises(ArgumentError, match="tolerance must be a positive"):
        kernelmill.diagnose_table(table, tolerance=-1.0)
    with pytest.raises(ArgumentError, match="rows must be at least 2"):
        kernelmill.diagnose_table(table, rows=1)
    with pytest.raises(ArgumentError, match="kernel must be one of"):
        kernelmill.diagnose_table(table, kernel="gausian")
    with pytest.raises(TableError, match="no columns left"):
        kernelmill.diagnose_table(table, drop=["a", "b", "colour", "y"])
    short = tmp_path / "one.csv"
    short.write_text("a,b\n1,2\n")
    with pytest.raises(TableError, match="all input columns are constant"):
        kernelmill.diagnose_table(short)
    holes = tmp_path / "holes.csv"
    holes.write_text("a,b\n1,2\n3,\n4,5\n")
    with pytest.raises(TableError, match="missing"):
        kernelmill.diagnose_table(holes)
    assert kernelmill.diagnose_table(holes, missing="impute", tolerance=0.2).n_inputs == 3


def test_fit_of_a_map_without_a_known_kernel():
    rng = np.random.default_rng(0)
    given = kernelmill.Fastfood.from_factors(
        np.ones(4), [2, 0, 1, 3], rng.normal(size=4), np.ones(4), n_features=3
    )
    model = kernelmill.fit_table(rng.normal(size=(120, 4)), 3, feature_map=given, tune=False)
    assert model.summary.kernel_check is None


def test_dates_as_fit_reads_them(tmp_path):
    path = tmp_path / "dates.csv"
    lines = [f"0{1 + k % 9}/0{1 + k // 5}/2020,{k}" for k in range(40)]
    path.write_text("\n".join(["when,a", *lines]) + "\n")
    found = kernelmill.diagnose_table(path, tolerance=0.3, day_first=False)
    assert any("month first" in note for note in found.notes)
    assert found.settings["day_first"] is False
