"""Booleans of text, files with types and data frames are the same; so are their predictions."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import kernelmill
from kernelmill import fit_table
from kernelmill.errors import ArgumentError

QUICK = {"tune": False, "length_scale": 1.0, "alpha": 1e-4, "epochs": 20, "n_components": 64}


@pytest.fixture(scope="module")
def columns():
    rng = np.random.default_rng(0)
    a, flag = rng.normal(size=200), rng.random(200) > 0.5
    return {"a": a, "flag": flag, "won": (a > 0) == flag}


@pytest.fixture(scope="module")
def sources(columns, tmp_path_factory):
    """The same rows in memory, in text and in a Parquet file."""
    folder = tmp_path_factory.mktemp("booleans")
    pa.parquet.write_table(pa.table(columns), folder / "rows.parquet")
    rows = zip(*columns.values(), strict=True)
    text = "a,flag,won\n" + "\n".join(",".join(map(str, row)) for row in rows)
    (folder / "rows.csv").write_text(text)
    (folder / "upper.csv").write_text(text.replace("True", "TRUE").replace("False", "FALSE"))
    return {"memory": columns, **{path.name: path for path in folder.iterdir()}}


@pytest.mark.parametrize("trained", ["memory", "rows.csv", "rows.parquet", "upper.csv"])
def test_spellings_of_booleans_agree(columns, sources, trained, tmp_path):
    model = fit_table(sources[trained], "won", **QUICK)
    model.save(tmp_path / "model.kmill")
    model = kernelmill.load(tmp_path / "model.kmill")
    assert model.reader.boolean == (trained in ("memory", "rows.parquet"))
    found = {}
    for name, source in sources.items():
        predicted = model.predict(source)
        if model.reader.boolean:
            assert predicted.dtype == bool
        found[name] = [str(each).lower() for each in predicted]
        evaluation = model.evaluate_table(source)
        assert evaluation.metrics["error"] < 0.05
        seen = name == trained and name != "memory"
        assert ["trained on rows of this" in note for note in evaluation.notes] == [True] * seen
    assert all(each == found["memory"] for each in found.values())
    assert np.mean(np.array(found["memory"]) == np.char.lower(columns["won"].astype(str))) > 0.95


def test_predictions_of_a_boolean_target(columns, tmp_path):
    polars, pandas = pytest.importorskip("polars"), pytest.importorskip("pandas")
    for frame in (pandas.DataFrame(columns), polars.DataFrame(columns)):
        model = fit_table(frame, "won", **QUICK)
        predicted = model.predict_table(frame, probabilities=True)
        assert np.asarray(predicted["prediction"]).dtype == bool
        np.testing.assert_array_equal(predicted["prediction"], model.predict(frame))
        assert list(predicted.columns)[1:] == ["probability of false", "probability of true"]
    model.predict_table(frame, out=tmp_path / "out.parquet")
    assert pa.parquet.read_table(tmp_path / "out.parquet").schema.types == [pa.bool_()]
    model.predict_table(frame, out=tmp_path / "out.csv")
    assert set((tmp_path / "out.csv").read_text().split()) == {"prediction", "true", "false"}
    strings = fit_table(frame, "won", categorical=["won"], **QUICK)
    assert set(strings.predict(frame)) == {"true", "false"}


def test_boolean_labels_of_a_matrix(columns):
    X = np.c_[columns["a"], columns["flag"]]
    model = fit_table((X, columns["won"]), **QUICK)
    assert model.predict(X).dtype == bool
    assert np.mean(model.predict(X) == columns["won"]) > 0.95
    assert model.evaluate_table((X, columns["won"].astype(int))).metrics["error"] < 0.05


def test_a_boolean_target_written_as_numbers(columns):
    model = fit_table(columns, "won", **QUICK)
    numbers = columns | {"won": columns["won"].astype(int)}
    assert model.evaluate_table(numbers).metrics["error"] < 0.05


def test_the_table_itself_is_no_validation(columns, sources):
    for table in (columns, str(sources["rows.csv"]), "-"):
        with pytest.raises(ArgumentError, match="validation must not be the training table"):
            fit_table(table, "won", validation=table, **QUICK)
