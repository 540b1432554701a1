"""Rows given as mappings are encoded, and predicted, as tables are: bit for bit."""

import numpy as np
import pyarrow as pa
import pytest

import kernelmill
from kernelmill.encoding.columns import CategoryEncoding, NumericEncoding, OrdinalEncoding
from kernelmill.encoding.encoder import ColumnEncoder, RowScaling
from kernelmill.encoding.monotone import MonotoneTransform
from kernelmill.encoding.single_row import RowEncoder
from kernelmill.errors import ArgumentTypeError

TRANSFORM = MonotoneTransform((0.0, 1.0, 10.0), (-1.0, 0.0, 2.0))
COLUMNS = (
    NumericEncoding("plain", 3.0, 0.7),
    NumericEncoding("constant", 1.0, 0.0),
    NumericEncoding("marked", -1e300, 2e300, marks=True),
    NumericEncoding("skewed", 2.0, 3.0, transform=TRANSFORM),
    NumericEncoding("twice", 2.0, 3.0, marks=True, transform=TRANSFORM, both=True),
    CategoryEncoding("town", ("Pisa", "Rome"), others=True, marks=True),
    OrdinalEncoding("size", ("S", "M", "L"), 0.9, 0.8, marks=True),
)


def draw_row(rng):
    return {
        "plain": float(rng.normal()),
        "constant": 1.0,
        "marked": float(rng.normal() * 1e300),
        "skewed": float(rng.normal() * 6),
        "twice": int(rng.integers(-5, 50)),
        "town": str(rng.choice(["Pisa", "Rome"])),
        "size": str(rng.choice(["S", "M", "L"])),
    }


@pytest.mark.parametrize("rows", [None, RowScaling(2.0)])
def test_bits_are_those_of_tables(rows):
    encoder = ColumnEncoder(COLUMNS, "impute", rows)
    one = RowEncoder(encoder)
    rng = np.random.default_rng(0)
    for _ in range(100):
        row = draw_row(rng)
        batch = pa.record_batch({name: [value] for name, value in row.items()})
        found = one.encode(row)
        np.testing.assert_array_equal(found, encoder.encode(batch))
        assert found.dtype == np.float32


@pytest.mark.parametrize(
    "change",
    [
        {"plain": None},
        {"plain": "3"},
        {"plain": float("nan")},
        {"plain": float("inf")},
        {"plain": True},
        {"town": "Bari"},
        {"town": None},
        {"town": 3},
        {"size": "XL"},
        {"plain": 1e300},
    ],
)
def test_other_values_are_left_to_tables(change):
    one = RowEncoder(ColumnEncoder(COLUMNS, "impute"))
    row = draw_row(np.random.default_rng(0))
    assert one.encode(row) is not None
    assert one.encode({**row, **change}) is None
    assert one.encode({name: row[name] for name in list(row)[1:]}) is None


@pytest.mark.parametrize("target", ["place", "radius"])
def test_models_predict_rows_as_tables(target):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 300))
    colour = rng.choice(["red", "green"], 300)
    table = {"a": a, "b": b, "colour": colour}
    targets = {"place": np.where(a * b > 0, "in", "out"), "radius": np.hypot(a, b)}
    data = {**table, target: targets[target]}
    model = kernelmill.fit_table(data, target, tune=False, n_components=64, missing="impute")
    whole = model.predict(table)
    for place in range(20):
        row = {name: values[place] for name, values in table.items()}
        row["colour"] = str(row["colour"])
        assert model.predict_row(row) == whole[place]
        assert model.predict_row({**row, "other": 3}) == whole[place]
    for change in ({"a": None}, {"colour": "blue"}, {"b": "0.5"}):
        expected = model.predict({name: [value] for name, value in {**row, **change}.items()})[0]
        assert model.predict_row({**row, **change}) == expected
    with pytest.raises(ArgumentTypeError, match="mapping"):
        model.predict_row([1.0, 2.0, "red"])


def test_learners_predict_rows():
    X = np.random.default_rng(0).normal(size=(200, 3))
    classifier = kernelmill.KernelClassifier(random_state=0, epochs=2).fit(X, X[:, 0] > 0)
    regressor = kernelmill.KernelRegressor(random_state=0).fit(X, X[:, :2])
    for row in X[:5]:
        assert classifier.predict_row(row) == classifier.predict(row[None])[0]
        np.testing.assert_array_equal(
            regressor.predict_row(list(row)), regressor.predict(row[None])[0]
        )
    for wrong in ([1.0], [[1.0, 2.0, 3.0]], [1.0, np.nan, 2.0]):
        with pytest.raises(kernelmill.errors.ArgumentError):
            classifier.predict_row(wrong)


def test_errors_speak_of_the_row():
    rows = {"a": np.arange(40) / 2, "b": ["x", "y"] * 20, "y": np.arange(40) / 3}
    model = kernelmill.fit_table(rows, "y", tune=False, holdout=0, n_components=8)
    for row, words in [
        ({"a": 1.0}, "^row lacks columns that the model needs: 'b'; pass a value for each column"),
        ({"a": "k", "b": "x"}, r"^column 'a': 'k' is not a number; correct it.*column\.$"),
        ({"a": None, "b": "x"}, "^column 'a' has no value; fill it in"),
    ]:
        with pytest.raises(ValueError, match=words):
            model.predict_row(row)
    with pytest.raises(TypeError, match=r"row must be a mapping .* such as \{'a': \.\.\.\}"):
        model.predict_row([1.0, "x"])
