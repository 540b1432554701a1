"""Values that NumPy or Arrow cannot hold: long integers, lone surrogates, NUL, mixed types."""

import json

import numpy as np
import pandas as pd
import pytest

import kernelmill
from kernelmill import fit_table
from kernelmill.io import TableError

N_ROWS = 40
NUMBERS = np.random.default_rng(0).normal(size=N_ROWS).tolist()
QUICK = {
    **{"feature_map": "random_fourier", "length_scale": 1.0, "n_components": 16, "epochs": 1},
    **{"tune": False, "holdout": 0},
}


def repeat(*values):
    return [values[row % len(values)] for row in range(N_ROWS)]


def as_frame(columns):
    return pd.DataFrame({name: pd.Series(v, dtype=object) for name, v in columns.items()})


def as_json_lines(columns, path):
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def fails(source, *words, **options):
    with pytest.raises(TableError) as raised:
        fit_table(source, **{"target": "t", **QUICK, **options})
    for word in words:
        assert word in str(raised.value)


BEYOND = "has integers beyond 2**53, such as {}, which float64 does not represent exactly"
HALF = r"the string '\udc80' in row 2, which is not valid Unicode; correct the encoding"
VALUES = {
    "65 bits": ([2**64, 1, 3], BEYOND.format(2**64)),
    "below int64": ([-(2**63) - 1, None, 3], BEYOND.format(-(2**63) - 1)),
    "beyond decimals": ([10**400, 1], "has an integer of 1329 bits in row 1; convert all values"),
    "long and float": ([0.5, 2**64], "has an integer of 65 bits in row 2; convert all values to"),
    "mixed": (["a", 1], "different types: str in row 1, int in row 2; convert them to numbers"),
    "surrogate": (["a", "\udc80"], HALF),
}


@pytest.mark.parametrize("make", [dict, as_frame], ids=["dict", "pandas"])
@pytest.mark.parametrize(("values", "problem"), VALUES.values(), ids=VALUES)
def test_columns_and_targets_in_memory(values, problem, make):
    labels = repeat("u", "v")
    as_input = make({"x": NUMBERS, "c": repeat(*values), "t": labels})
    fails(as_input, f"column 'c' {'has ' * (HALF in problem)}", problem, missing="impute")
    fails(make({"x": NUMBERS, "t": repeat(*values)}), "column 't' ", problem, missing="impute")
    assert fit_table(as_input, "t", drop=["c"], **QUICK).predict(as_input).shape == (N_ROWS,)


@pytest.mark.parametrize(
    "X", [np.c_[NUMBERS, NUMBERS], {"x": NUMBERS}, as_frame({"x": NUMBERS})], ids=type
)
@pytest.mark.parametrize("make", [list, lambda labels: np.array(labels, object)])
def test_labels_beside_a_table(X, make):
    for labels, problem in (
        (("a", 1), "y has values of different types: str in row 1, int in row 2; convert"),
        (("a", "\udc80"), f"y has {HALF}"),
        (("a", "a\0", "b"), r"the target 'labels' has the class 'a\x00', and NumPy drops NUL"),
        (("a", None, "b"), "row 2 has no value for the target 'labels'; fill it in"),
    ):
        fails((X, make(repeat(*labels))), problem, target=None)
    model = fit_table((X, make(repeat(1, 2))), **QUICK)
    assert model.learner.classes_.tolist() == [1, 2], "integers are no strings"
    model = fit_table((X, make(repeat("a", None, "b"))), missing="impute", **QUICK)
    assert model.learner.classes_.tolist() == ["a", "b"], "None is no class"


def test_long_integers_as_labels_of_a_matrix_are_categories():
    model = fit_table((np.c_[NUMBERS, NUMBERS], repeat(2**64, 2**64 + 1)), **QUICK)
    assert model.learner.classes_.tolist() == [str(2**64), str(2**64 + 1)]


def test_labels_that_differ_by_a_final_nul(tmp_path):
    columns = {"x": NUMBERS, "t": repeat("a", "a\0", "b")}
    problem = r"the target 't' has the class 'a\x00', and NumPy drops NUL characters at the end"
    for source in (columns, as_frame(columns), as_json_lines(columns, tmp_path / "t.jsonl")):
        fails(source, problem, "remove them")


def test_categories_that_differ_by_a_final_nul(tmp_path):
    """They stay different categories, also in a saved model."""
    columns = {"x": NUMBERS, "c": repeat("a", "a\0", "b"), "t": repeat("u", "v", "v")}
    for source in (columns, as_frame(columns), as_json_lines(columns, tmp_path / "t.jsonl")):
        model = fit_table(source, "t", loss="log_loss", **QUICK)
        model.save(tmp_path / "m.kmill")
        for each in (model, kernelmill.load(tmp_path / "m.kmill")):
            (encoding,) = (column for column in each.encoder.columns if column.name == "c")
            assert sorted(encoding.categories) == ["a", "a\0", "b"]
            rows = ({"x": 0.0, "c": category} for category in ("a", "a\0"))
            shares = [each.predict_row(row, probabilities=True)[1]["u"] for row in rows]
            assert shares[0] != shares[1]


def test_names_with_surrogates(tmp_path):
    columns = {"x": NUMBERS, "\udc80": NUMBERS, "t": repeat("u", "v")}
    fails(columns, r"dictionary of columns: the name '\udc80' of a column is not valid Unicode")
    fails(as_json_lines(columns, tmp_path / "t.jsonl"), r"a string with \udc80, half of a surr")


@pytest.mark.parametrize("code", [0xDC80, 0xD83D, 0xDE00])
@pytest.mark.parametrize("before", ["", "\U0001f600", "\ude00"])
def test_half_of_a_surrogate_pair_in_json_lines(code, before, tmp_path):
    half = before + chr(code)
    columns = {"x": NUMBERS, "c": repeat("a", f"b{half}"), "t": repeat("u", "\U0001f600")}
    found = ascii(half[-1] if before != "\ude00" else before)[1:-1]
    problem = f"a string with {found}, half of a surrogate pair, which is not valid Unicode; write"
    fails(as_json_lines(columns, tmp_path / "t.jsonl"), problem)


@pytest.mark.parametrize("first", [2**64, -(2**63) - 1])
def test_long_integers_can_be_categories_or_rounded(first, tmp_path):
    values = [first, first + 1, 7]
    columns = {"x": NUMBERS, "c": repeat(*values), "t": repeat("u", "v", "v")}
    csv = tmp_path / "t.csv"
    pd.DataFrame(columns).to_csv(csv, index=False)
    lines = as_json_lines(columns, tmp_path / "t.jsonl")
    strings = "write the integers as strings if they are categories"
    for source in (columns, as_frame(columns), csv):
        model = fit_table(source, "t", categorical=["c"], **QUICK)
        (encoding,) = (column for column in model.encoder.columns if column.name == "c")
        assert sorted(encoding.categories) == sorted(map(str, values)), "none are merged"
        assert model.predict_row({"x": 0.5, "c": first}) in ("u", "v")
    fails(lines, BEYOND.format(first), strings)
    fails(lines, strings, categorical=["c"])
    weights = []
    for source in (columns, as_frame(columns), csv, lines):
        model = fit_table(source, "t", numeric=["c"], **QUICK)
        weights.append(model.learner.coef_)
        assert model.predict_row({"x": 0.5, "c": first}) in ("u", "v")
        assert len(model.predict(source)) == N_ROWS
    for each in weights[1:]:
        np.testing.assert_array_equal(each, weights[0])


def test_rows_with_long_integers():
    """They are rounded in columns of numbers, as in tables."""
    numbers = [1e19 * each for each in NUMBERS]
    model = fit_table({"c": numbers, "t": repeat("u", "v")}, "t", loss="log_loss", **QUICK)
    for value in (2**53 + 1, 2**63, 2**64 + 1, -(2**64)):
        found = [
            model.predict_row({"c": value}, probabilities=True)[1]["v"],
            *(
                model.predict_table({"c": [each]}, probabilities=True)["probability of v"][0]
                for each in (value, float(value))
            ),
        ]
        assert found == [found[0]] * 3
    with pytest.raises(TableError, match=r"^column 'c' has an integer of 1329 bits; convert all"):
        model.predict_row({"c": 10**400})


def test_decimals_without_places_are_integers():
    import pyarrow as pa

    c = pa.array(repeat(2**64, 3), pa.decimal128(38, 0))
    table = pa.table({"x": NUMBERS, "c": c, "t": repeat("u", "v")})
    fails(table, BEYOND.format(2**64))
    small = table.set_column(1, "c", pa.array(repeat(2**53, 3), pa.decimal128(38, 0)))
    assert fit_table(small, "t", **QUICK).predict(small).shape == (N_ROWS,)
