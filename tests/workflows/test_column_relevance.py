"""The columns that matter are found, and partial dependence is what predictions of files give."""

import csv
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import dump_svmlight_file

import kernelmill
from kernelmill import RandomFourier, fit_table
from kernelmill.encoding.inputs import choose_inputs
from kernelmill.random import Stream
from kernelmill.runtime.progress import SilentProgress
from kernelmill.workflows.records import ColumnRelevance, FitSummary
from kernelmill.workflows.training.relevance import _quantiles, measure_relevance
from kernelmill.workflows.training.survey import open_source, survey_table
from kernelmill.workflows.tuning.kernel_search import KernelSearch

GOLDEN = Path(__file__).parents[1] / "files" / "golden" / "table-1.kmill"
MATTER = {"b", "town"}


def write_table(path, n_rows=520, seed=0):
    """A number and a category that matter, of five columns; some numbers are missing."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n_rows, 4)).round(4)
    town = rng.choice(["Rome", "Oslo", "Lima"], n_rows, p=[0.5, 0.3, 0.2])
    effect = {"Rome": 0.0, "Oslo": 1.0, "Lima": -1.5}
    target = np.sin(2 * numbers[:, 1]) + [effect[each] for each in town]
    target += 0.1 * rng.standard_normal(n_rows)
    cells = numbers.astype(str)
    cells[rng.random(n_rows) < 0.1, 1] = ""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "c", "town", "d", "y", "size"])
        for row, place, value in zip(cells, town, target, strict=True):
            size = "small" if value < -0.7 else "large" if value > 0.7 else "medium"
            writer.writerow([*row[:3], place, row[3], f"{value:.6f}", size])
    return path


@pytest.fixture(scope="module", autouse=True)
def short_tuning():
    """Instead of that of other modules: length scales are searched for as by default."""


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("relevance") / "five.csv")


def fit(table, target, other, **settings):
    return fit_table(
        table, target, drop=[other], missing="impute", n_components=256, kernel="gaussian",
        holdout=0, **settings,
    )  # fmt: skip


@pytest.fixture(scope="module")
def regressor(table):
    return fit(table, "y", "size", n_threads=2)


@pytest.fixture(scope="module")
def classifier(table, shorten_tuning):
    with pytest.MonkeyPatch.context() as patch:
        shorten_tuning(patch)
        return fit(table, "size", "y")


@pytest.mark.parametrize("name", ["regressor", "classifier"])
def test_the_columns_that_matter_come_first(request, name):
    columns = request.getfixturevalue(name).column_relevance_
    assert sorted(each.name for each in columns) == ["a", "b", "c", "d", "town"]
    assert {each.name for each in columns[:2]} == MATTER
    assert columns[0].relevance == 1
    relevance = [each.relevance for each in columns]
    assert relevance == sorted(relevance, reverse=True)
    assert all(0 <= each.low <= each.relevance <= each.high <= 1 for each in columns)
    assert min(each.low for each in columns[:2]) > max(each.high for each in columns[2:])


def with_value(table, folder, name, value):
    """The table with one value in all rows of a column."""
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    path = folder / "changed.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows({**row, name: value} for row in rows)
    return path


def first_rows(model, table, n_rows):
    """A mask of the rows that partial dependence averages over: the first ones of the sample."""
    summary = model.summary
    source, target = open_source(table, summary.target, "auto", {})
    dropped = "size" if summary.target == "y" else "y"
    survey = survey_table(
        source,
        choose_inputs(source, target, [dropped]),
        task="auto",
        missing="impute",
        holdout=0,
        stream=Stream.from_seed(0).substream("table"),
        progress=SilentProgress(),
    )
    encoded = np.concatenate([X for X, _, _ in model._encode(table, {})])
    chosen = {row.tobytes() for row in survey.sample[:n_rows]}
    mask = np.array([row.tobytes() in chosen for row in encoded])
    assert mask.sum() == n_rows
    return mask


def test_dependence_of_numbers_is_that_of_changed_files(regressor, table, tmp_path):
    found = {each.name: each for each in regressor.summary.partial_dependence}
    assert set(found) >= MATTER
    number, town = found["b"], found["town"]
    assert number.kind == "numeric"
    assert len(number.values) == 20
    assert number.values == sorted(number.values)
    assert town.values == ["Rome", "Oslo", "Lima"]
    rows = first_rows(regressor, table, number.n_rows)
    assert number.n_rows == 500
    for each in (number, town):
        assert (each.quantity, each.outputs) == ("prediction", ["y"])
        for place in {0, 1, len(each.values) - 1}:
            path = with_value(table, tmp_path, each.name, each.values[place])
            expected = regressor.predict(path)[rows].mean()
            # Rounded to six digits.
            assert each.means[0][place] == pytest.approx(expected, rel=1e-5, abs=1e-7)


def test_dependence_of_classes_is_that_of_changed_files(classifier, table, tmp_path):
    for each in classifier.summary.partial_dependence[:2]:
        assert (each.quantity, each.outputs) == ("probability", ["large", "medium", "small"])
        rows = first_rows(classifier, table, each.n_rows)
        path = with_value(table, tmp_path, each.name, each.values[1])
        classifier.predict_table(path, out=tmp_path / "p.parquet", probabilities=True)
        written = pq.read_table(tmp_path / "p.parquet")
        for name, curve in zip(each.outputs, each.means, strict=True):
            expected = written[f"probability of {name}"].to_numpy()[rows].mean()
            assert curve[1] == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_without_probabilities_predictions_are_counted(table, tmp_path):
    hinge = fit(table, "size", "y", loss="hinge", length_scale=[1.0] * 8, alpha=1e-4, epochs=5)
    each = hinge.summary.partial_dependence[0]
    assert each.quantity == "share"
    rows = first_rows(hinge, table, each.n_rows)
    labels = hinge.predict(with_value(table, tmp_path, each.name, each.values[0]))[rows]
    shares = [np.mean(labels == name) for name in each.outputs]
    assert [curve[0] for curve in each.means] == pytest.approx(shares, rel=1e-5)


def test_given_length_scales_have_no_intervals(table):
    model = fit(table, "y", "size", length_scale=[9, 1, 9, 9, 2, 2, 2, 9], alpha=0.1)
    assert {each.name for each in model.column_relevance_} == {"a", "b", "c", "d", "town"}
    assert model.column_relevance_[0].name == "b"
    assert all(each.low is None and each.high is None for each in model.column_relevance_)


def test_files_keep_them(regressor, tmp_path):
    regressor.save(tmp_path / "m.kmill")
    loaded = kernelmill.load(tmp_path / "m.kmill")
    assert loaded.column_relevance_ == regressor.column_relevance_
    assert loaded.summary.partial_dependence == regressor.summary.partial_dependence
    assert FitSummary.from_record(regressor.summary.to_record()) == regressor.summary


def test_models_with_one_length_scale_have_none(tmp_path):
    table = write_table(tmp_path / "few.csv", 200)
    model = kernelmill.load(GOLDEN)
    assert not hasattr(model, "column_relevance_")
    with pytest.raises(AttributeError, match="or fit with tune=True"):
        model.column_relevance_  # noqa: B018
    for settings in (
        {"column_scales": False},
        {"tune": False},
        {"length_scale": 2.0, "alpha": 0.1},
    ):
        summary = fit(table, "y", "size", **settings).summary
        assert (summary.column_relevance, summary.partial_dependence) == ([], [])
        assert "column_relevance" not in summary.to_record()  # as in older files


def test_columns_of_matrices_have_their_numbers_in_the_file(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)).round(4)
    X[:, 1] = X[:, 3] ** 2  # the target; column 0 is dropped
    np.save(tmp_path / "m.npy", X)
    feature_map = RandomFourier(n_components=64, length_scale=[50.0, 1.0], random_state=0)
    model = fit_table(tmp_path / "m.npy", 1, drop=[0], feature_map=feature_map, alpha=0.1)
    assert [each.name for each in model.column_relevance_] == ["3", "2"]
    dependence = model.summary.partial_dependence[0]
    assert dependence.name == "3"
    assert set(dependence.values) <= set(X[:, 3])

    sparse = np.where(rng.random((300, 3)) < 0.5, 0, X[:, :3])
    dump_svmlight_file(
        csr_array(sparse), sparse[:, 2] * 2, str(tmp_path / "s.txt"), zero_based=False
    )
    feature_map = RandomFourier(n_components=64, length_scale=[50.0, 50.0, 1.0], random_state=0)
    model = fit_table(
        tmp_path / "s.txt", feature_map=feature_map, alpha=0.1, format="svmlight", task="regression"
    )
    assert model.column_relevance_[0].name == "3"
    values = model.summary.partial_dependence[0].values
    assert values == sorted(values)
    assert set(values) <= set(sparse[:, 2])


def test_relevance_of_groups_and_of_ignored_columns():
    rng = np.random.default_rng(0)
    codes = rng.choice(3, 5000, p=[0.5, 0.3, 0.2])
    X = np.c_[rng.normal(size=5000), np.eye(3)[codes], np.zeros(5000)]
    shares = np.bincount(codes) / 5000
    spread = np.sqrt(1 - (shares**2).sum())
    for rows in (X, csr_array(X)):
        found = measure_relevance([2.0, 0.5, 0.5, 0.5, 1.0], rows, [0, 1, 1, 1, 2])
        np.testing.assert_allclose(found, [X[:, 0].std() / 2 / (spread / 0.5), 1, 0], rtol=1e-9)
    assert measure_relevance([np.inf, 1.0, 1.0, 1.0, 1.0], X)[0] == 0
    assert measure_relevance([1.0], np.zeros((5, 1))).tolist() == [0.0]


def test_values_of_columns_with_ties():
    numbers = np.r_[np.zeros(950), np.arange(1.0, 51.0), np.nan]
    values, rows = _quantiles(numbers)  # quantiles of the rows would nearly all be 0
    assert len(values) == 21
    assert values[0] == 0.0
    assert values == sorted(set(values))
    assert numbers[rows].tolist() == values
    often = np.r_[np.arange(400.0), np.full(40, 137.5)]
    values, rows = _quantiles(often)
    assert 137.5 in values  # the commonest
    assert often[rows].tolist() == values == sorted(values)
    assert _quantiles(np.array([2.0, np.nan, 1.0, 2.0]))[0] == [1.0, 2.0]


def test_same_intervals_for_any_number_of_threads(tmp_path, monkeypatch, shorten_tuning):
    shorten_tuning(monkeypatch)
    table = write_table(tmp_path / "few.csv", 200)
    one, two = (fit(table, "y", "size", n_threads=n).column_relevance_ for n in (1, 2))
    assert one == two
    assert isinstance(one[0], ColumnRelevance)
    assert one[0].low is not None


@pytest.mark.parametrize(("gain", "pays"), [(0.0, False), (2e-16, False), (1e-3, True)])
def test_length_scales_of_columns_need_more_than_rounding(gain, pays):
    learned, shared = SimpleNamespace(error=1 - gain), SimpleNamespace(error=1.0)
    notes = []
    chosen = KernelSearch._better_scales(None, learned, shared, notes)
    assert chosen is (learned if pays else shared)
    assert notes[0].startswith(
        "Learned a length scale" if pays else "All columns have the same length scale"
    )
