"""Models fitted to data in memory, and predictions for them."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest

import kernelmill
from kernelmill import KernelClassifier, KernelRegressor, fit_table
from kernelmill.errors import ArgumentTypeError
from kernelmill.io import TableError

from .conftest import rings

QUICK = {"length_scale": 1.0, "alpha": 1e-5, "epochs": 10, "n_components": 64}


@pytest.fixture(scope="module")
def columns(rings_csv):
    table = pyarrow.csv.read_csv(rings_csv).slice(0, 600)
    return {name: table[name].to_numpy() for name in table.column_names}


@pytest.fixture(scope="module")
def frames(columns):
    return {
        "pandas": pd.DataFrame(columns, index=np.arange(600) + 5),
        "polars": pl.DataFrame(columns),
        "arrow": pa.table(columns),
        "dict": columns,
    }


@pytest.fixture(scope="module")
def model(frames):
    return fit_table(frames["pandas"], "place", **QUICK)


def test_the_model_is_that_of_a_file(frames, model, folder):
    frames["pandas"].to_csv(folder / "memory.csv", index=False)
    from_file = fit_table(folder / "memory.csv", "place", **QUICK)
    np.testing.assert_array_equal(model.learner.coef_, from_file.learner.coef_)
    assert model.summary.source == "pandas DataFrame"
    assert model.summary.held_out.source == "pandas DataFrame: held-out rows"
    assert model.predict(folder / "memory.csv").tolist() == model.predict(frames["dict"]).tolist()
    model.save(folder / "memory.kmill")
    loaded = kernelmill.load(folder / "memory.kmill")
    assert loaded.predict(frames["polars"]).tolist() == model.predict(frames["pandas"]).tolist()


def test_blocks_read_again_give_the_same_model(frames, model):
    again = fit_table(frames["polars"], "place", memory=0, **QUICK)
    error = again.summary.held_out.metrics["error"]
    assert error == pytest.approx(model.summary.held_out.metrics["error"], abs=0.05)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "dict"])
def test_predictions_are_frames_of_the_kind_given(frames, model, folder, kind):
    frame = frames[kind]
    plain = model.predict_table(frame)
    full = model.predict_table(frame, probabilities=True, keep_columns=True)
    assert type(plain) is type(frame)
    assert type(full) is type(frame)
    names = list(full.column_names if kind == "arrow" else getattr(full, "columns", full))
    assert names == [*frames["dict"], "prediction", "probability of in", "probability of out"]
    assert list(plain["prediction"]) == list(full["prediction"])
    assert np.asarray(plain["prediction"]).tolist() == model.predict(frame).tolist()
    if kind == "pandas":
        assert plain.index.equals(frame.index)
    assert model.predict_table(frame, out=folder / f"{kind}.csv") == 600
    assert model.evaluate_table(frame).metrics == model.evaluate_table(frames["dict"]).metrics


def test_predictions_for_files_are_arrow_tables(model, rings_csv):
    table = model.predict_table(rings_csv, keep_columns=True)
    assert isinstance(table, pa.Table)
    assert table.column_names == ["a", "color", "b", "place", "prediction"]
    assert table["prediction"].to_pylist() == model.predict(rings_csv).tolist()


def test_features_in_memory(frames, model, folder):
    assert model.transform_table(frames["dict"], out=folder / "features.npy") == 600
    stored = np.load(folder / "features.npy")
    np.testing.assert_array_equal(model.transform_table(frames["arrow"]), stored)
    features = model.transform_table(frames["pandas"])
    np.testing.assert_array_equal(features.to_numpy(), stored)
    assert features.index.equals(frames["pandas"].index)
    assert model.transform_table(frames["polars"]).shape == (600, 64)


def test_arrays_and_labels():
    X, y = rings(400)
    model = fit_table((X, y), **QUICK)
    assert model.summary.target == "labels"
    assert model.predict_table(X)["prediction"].tolist() == model.predict(X).tolist()
    assert model.evaluate_table((X, y)).metrics["error"] < 0.2
    named = fit_table(np.c_[X, y == "in"], "inside", names=["a", "b", "inside"], **QUICK)
    assert [column.name for column in named.summary.columns] == ["a", "b"]
    assert named.predict_table({"b": X[:, 1], "a": X[:, 0]})["prediction"].dtype == np.int64


def test_errors_name_the_data(frames, model):
    with pytest.raises(ArgumentTypeError, match=r"of type Series; .* or add the values"):
        fit_table(frames["pandas"], frames["pandas"]["place"])
    with pytest.raises(TableError, match="polars DataFrame: column 'a' has no value in row 3"):
        model.predict_table(
            frames["polars"]
            .with_row_index()
            .with_columns(a=pl.when(pl.col("index") == 2).then(None).otherwise(pl.col("a")))
        )
    with pytest.raises(TableError, match="pandas DataFrame has no rows"):
        model.predict_table(frames["pandas"].iloc[:0])
    with pytest.raises(TableError, match=r"needs: 'b'.*; use a table with all columns"):
        model.predict_table({"a": [1.0], "color": ["red"]})


def test_pairs_of_a_frame_and_labels():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["a", "b"])
    y, quick = pd.Series(X["a"] + X["b"], name="price"), {"tune": False, "n_components": 8}
    model = fit_table((X, y), **quick)
    assert model.summary.target == "price"
    assert fit_table((X, y.to_numpy()), **quick).summary.target == "labels"
    # The labels of a pair are the target, whatever their name.
    sources = [(X, y), (X, y.to_numpy()), (X, y.rename("cost")), X.assign(price=y)]
    assert len({model.evaluate_table(each).metrics["rmse"] for each in sources}) == 1
    with pytest.raises(ArgumentTypeError, match=r"got an object of type Series; .*pair: \(X, y\)"):
        fit_table(X, y)
    for swapped in ((y, X), (y.to_numpy(), X.to_numpy())):
        with pytest.raises(TableError, match="first element is one column; swap the two"):
            fit_table(swapped)
    with pytest.raises(ArgumentTypeError, match="there is no argument 'map'; use 'feature_map'"):
        fit_table((X, y), map="fastfood")


def test_targets_of_polars():
    X = np.random.default_rng(0).normal(size=(80, 2))
    targets = X[:, 0] ** 2
    ours = KernelRegressor(random_state=0).fit(X, pl.Series(targets))
    theirs = KernelRegressor(random_state=0).fit(X, targets)
    np.testing.assert_array_equal(ours.coef_, theirs.coef_)
    labels = np.where(targets > 0.5, "far", "near")
    classifier = KernelClassifier(random_state=0).fit(pl.DataFrame(X), pl.Series(labels))
    assert classifier.classes_.tolist() == ["far", "near"]
    with pytest.raises(ArgumentTypeError, match="convert times to floats"):
        KernelRegressor().fit(
            X,
            pl.datetime_range(pl.datetime(2024, 1, 1), pl.datetime(2024, 3, 20), "1d", eager=True),
        )


def test_names_that_differ_in_type_only():
    x = np.arange(40.0)
    with pytest.raises(TableError, match="two columns have the same name"):
        kernelmill.fit_table({1: x, "1": x**2, "y": x}, "y", tune=False, n_components=8)


def test_integers_as_names_of_columns():
    pandas = pytest.importorskip("pandas")
    x = np.random.default_rng(0).normal(size=60)
    frame = pandas.DataFrame({2: x, 1: x**2, 0: 100 * x})
    model = kernelmill.fit_table(frame, 0, tune=False, **{**QUICK, "epochs": None})
    assert (model.summary.target, model.summary.task) == ("0", "regression")
    other = frame.set_axis([10, 20, 30], axis=1)
    assert kernelmill.fit_table(other, 30, tune=False, n_components=8).summary.target == "30"
