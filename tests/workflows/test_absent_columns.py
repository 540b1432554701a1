"""Columns that were constant in training do not matter afterwards."""

import numpy as np
import pandas as pd
import pytest

import kernelmill
from kernelmill.io.errors import TableError

OTHERS = {"number": 7.0, "word": "x", "nothing": np.nan}


@pytest.fixture(scope="module")
def fitted():
    X = np.random.default_rng(0).normal(size=(80, 2))
    frame = pd.DataFrame(X, columns=["a", "b"])
    y = np.where(X[:, 0] > 0, "p", "q")
    table = frame.assign(**OTHERS, y=y)
    model = kernelmill.fit_table(table, "y", missing="impute", tune=False, n_components=64)
    return model, frame.assign(y=y)


def test_they_do_not_matter(fitted):
    model, rows = fitted
    assert model.encoder.n_inputs == 2
    expected = model.predict_table(rows.assign(**OTHERS))
    with pytest.warns(UserWarning, match="lacks 3 columns that the model does not use"):
        found = model.predict_table(rows)
    pd.testing.assert_frame_equal(found, expected)


def test_in_a_file(fitted, tmp_path):
    model, rows = fitted
    rows.to_csv(tmp_path / "rows.csv", index=False)
    evaluation = model.evaluate_table(tmp_path / "rows.csv")
    assert sum("'number', 'word', 'nothing'" in note for note in map(str, evaluation.notes)) == 1


def test_of_one_row(fitted):
    model, _ = fitted
    row = {"a": 1.0, "b": 0.0}
    assert model.predict_row(row) == model.predict_row({**row, **OTHERS, "nothing": None})


def test_other_values_do_not_matter(fitted, tmp_path):
    model, rows = fitted
    values = {"number": "some text", "word": 5.5, "nothing": "1,5"}
    others = rows.assign(**values)
    others.to_csv(tmp_path / "rows.csv", index=False)
    others.to_parquet(tmp_path / "rows.parquet")
    expected = model.predict(rows)
    lists = rows.assign(nothing=[[1]] * len(rows))
    for source in (others, lists, tmp_path / "rows.csv", tmp_path / "rows.parquet"):
        np.testing.assert_array_equal(model.predict(source), expected)
    row = {"a": rows["a"][0], "b": rows["b"][0]}
    assert model.predict_row({**row, **values}) == expected[0]
    assert model.predict_row({**row, "a": str(row["a"]), "number": [1]}) == expected[0]


def test_others_are_needed(fitted):
    model, rows = fitted
    with pytest.raises(TableError, match="lacks columns that the model needs: 'b'; it has"):
        model.predict_table(rows.drop(columns="b"))
