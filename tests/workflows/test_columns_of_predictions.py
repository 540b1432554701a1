"""Columns that a model does not use, columns that are kept, and values written otherwise."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import kernelmill
from kernelmill.errors import ArgumentError
from kernelmill.io import TableError, open_table

N_ROWS = 60
RATE = np.linspace(1.0, 90.0, N_ROWS).round(1)


def frame():
    return pd.DataFrame(
        {
            "id": 2**60 + np.arange(N_ROWS),
            "rate": RATE,
            "kind": ["a", "b", "c"] * (N_ROWS // 3),
            "note": [" two words "] * N_ROWS,
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(N_ROWS), "h"),
            "count": np.arange(N_ROWS) % 7,
            "y": 2 * RATE,
        }
    )


UNUSED = ["id", "note", "when"]


def write(table, path):
    if path.suffix == ".parquet":
        table.to_parquet(path)
    elif path.suffix == ".jsonl":
        table.to_json(path, orient="records", lines=True, date_format="iso")
    else:
        table.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def model():
    return kernelmill.fit_table(frame(), "y", drop=UNUSED, tune=False, holdout=0, n_components=64)


@pytest.mark.parametrize("name", ["rows.parquet", "rows.jsonl", "rows.csv"])
def test_values_of_unused_columns_do_not_matter(tmp_path, model, name):
    path = write(frame(), tmp_path / name)
    fitted = kernelmill.fit_table(path, "y", drop=UNUSED, tune=False, holdout=0, n_components=64)
    expected = model.predict(frame())
    assert np.allclose(fitted.predict(path), expected)
    assert np.allclose(model.predict(path), expected)
    assert model.evaluate_table(path).notes == []
    assert "trained on rows of this table" in fitted.evaluate_table(path).notes[-1]


def test_dropped_columns_of_matrices_do_not_matter(tmp_path):
    rows = np.c_[2**60 + np.arange(N_ROWS), np.arange(N_ROWS) % 7, np.arange(N_ROWS) % 5]
    np.save(tmp_path / "rows.npy", rows)
    for source in (rows, tmp_path / "rows.npy"):
        fitted = kernelmill.fit_table(source, 2, drop=[0], tune=False, holdout=0, n_components=64)
        assert len(fitted.predict(source)) == N_ROWS
    with pytest.raises(TableError, match="column 0 has integers beyond"):
        kernelmill.fit_table(rows, 2, tune=False, holdout=0, n_components=64)


def test_text_in_an_unused_column_of_numbers(tmp_path):
    path = tmp_path / "rows.csv"
    lines = [f"{i},{i % 7},{2 * i}" for i in range(50)]
    path.write_text("\n".join(["a,b,c", *lines[:30], "x,1,2", *lines[30:]]))
    with pytest.raises(TableError, match="line 32, column 'a'"):
        list(open_table(path).blocks())
    (block,) = open_table(path).with_unused(["a"]).blocks()
    assert block.data["a"].null_count == len(block.data["b"]) == 51


def test_the_decimal_point_is_that_of_used_columns(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a;b\n1,5;2.5\n2,5;3.5\n")
    (block,) = open_table(path).with_unused(["b"]).blocks()
    assert block.data["a"].to_pylist() == [1.5, 2.5]


@pytest.mark.parametrize("name", ["rows.parquet", "rows.feather", "memory"])
def test_kept_columns_have_their_types_and_values(tmp_path, model, name):
    original = pa.Table.from_pandas(frame(), preserve_index=False)
    source = frame() if name == "memory" else tmp_path / name
    if name.endswith("parquet"):
        pq.write_table(original, source)
    elif name != "memory":
        pa.feather.write_feather(original, source)
    model.predict_table(source, out=tmp_path / "out.parquet", keep_columns=True)
    found = pq.read_table(tmp_path / "out.parquet")
    assert found.drop_columns("prediction").equals(original.cast(found.schema.remove(7)))
    assert found.schema.field("id").type == found.schema.field("count").type == pa.int64()
    assert pa.types.is_timestamp(found.schema.field("when").type)


def test_kept_columns_as_json_lines(tmp_path, model):
    model.predict_table(frame(), out=tmp_path / "out.jsonl", keep_columns=True)
    first = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
    prediction = first.pop("prediction")
    assert first == {
        **{"id": 2**60, "rate": 1.0, "kind": "a", "note": " two words "},
        **{"when": "2024-01-01T00:00:00", "count": 0, "y": 2.0},
    }
    assert prediction == model.predict(frame())[0]
    exact = frame().assign(when=pd.Timestamp("2024-01-01T00:00:00.000000001"))
    model.predict_table(exact, out=tmp_path / "out.jsonl", keep_columns=True)
    assert '"when": "2024-01-01T00:00:00.000000001"' in (tmp_path / "out.jsonl").read_text()


def test_kept_columns_of_text_have_types(tmp_path, model):
    rows = frame().assign(zip="00123", size=np.arange(N_ROWS) - 5, share=0.25)
    path = write(rows, tmp_path / "rows.csv")
    kept = model.predict_table(path, keep_columns=True)
    model.predict_table(path, out=tmp_path / "out.parquet", keep_columns=True)
    assert pq.read_schema(tmp_path / "out.parquet").types == kept.schema.types
    types = dict(zip(kept.schema.names, map(str, kept.schema.types), strict=True))
    assert types == {
        **{"id": "string", "rate": "double", "kind": "string", "note": "string"},
        **{"when": "string", "count": "int64", "y": "double", "zip": "string"},
        **{"size": "int64", "share": "double", "prediction": "double"},
    }
    assert kept["id"][1].as_py() == str(2**60 + 1)  # which float64 does not represent
    assert kept["size"].to_pylist() == rows["size"].tolist()
    # All rows of one file are inspected; another file may have other values.
    kept = model.predict_table([path, write(rows, tmp_path / "more.csv")], keep_columns=True)
    assert [str(kept.schema.field(name).type) for name in ("count", "size")] == ["double", "string"]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("001", "1.5", "0042"), "string"),
        (("001", "1E5", "12"), "string"),
        (("+49170", "-7"), "string"),
        (("-007", "1"), "string"),
        (("1E400", "2"), "string"),
        (("inf", "2"), "string"),
        (("12345678901234567.5", "2"), "string"),
        (("0.1234567890123456", "2"), "string"),
        (("9007199254740993", "0.5"), "string"),
        (("0." + "0" * 330 + "1", "2"), "string"),
        (("-0", "2"), "double"),
        (("-12", "0", "", "123456789012345"), "int64"),
        (("-0.5", "10", ".25", "0.000000123456789012345"), "double"),
    ],
)
def test_kept_text_becomes_numbers_if_nothing_is_lost(tmp_path, model, words, kind):
    rows = frame()[["rate", "kind", "count"]][: len(words)].assign(code=words)
    model.predict_table(
        write(rows, tmp_path / "rows.csv"), out=tmp_path / "out.parquet", keep_columns=True
    )
    kept = pq.read_table(tmp_path / "out.parquet")["code"]
    assert str(kept.type) == kind
    read = {"string": str, "int64": int, "double": float}[kind]
    assert kept.to_pylist() == [read(word) if word else None for word in words]


def test_lists_are_not_kept_silently(tmp_path, model):
    table = pa.table({"rate": [1.0], "kind": ["a"], "count": [1], "list": [[1, 2]]})
    pq.write_table(table, tmp_path / "rows.parquet")
    assert len(model.predict(tmp_path / "rows.parquet")) == 1
    with pytest.raises(TableError, match=r"column 'list' of type list.* cannot be copied"):
        model.predict_table(
            tmp_path / "rows.parquet", out=tmp_path / "out.parquet", keep_columns=True
        )


@pytest.mark.parametrize("name", ["rows.parquet", "rows.jsonl", "rows.csv"])
def test_numbers_of_a_model_may_lack_signs_and_groups(tmp_path, model, name):
    rows = {"kind": ["a"] * 4, "count": [1] * 4}
    given = pd.DataFrame({"rate": ["12.5%", "12.5", "1,234.5 %", "0"], **rows})
    expected = model.predict({"rate": [12.5, 12.5, 1234.5, 0.0], **rows})
    assert (model.predict(write(given, tmp_path / name)) == expected).all()
    given["rate"] = ["12.5%", "12.5", "1", "$2"]
    with pytest.raises(TableError, match=r"'\$2' is not a number, since .* symbol %") as e:
        model.predict(write(given, tmp_path / name))
    assert ("line 5" if name.endswith("csv") else "row 4") in str(e.value)
    given["rate"] = ["12.5%", "12.5", "1,2,3", "2"]
    with pytest.raises(TableError, match=r"column 'rate'.*'1,2,3' is not a number"):
        model.predict(write(given, tmp_path / name))


def test_numbers_without_the_symbol_of_training_are_reported(tmp_path):
    def predict(*words):
        path = tmp_path / "rows.csv"
        path.write_text("\n".join(["p", *words]))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.predict_table(path)
        return "".join(str(each.message) for each in caught)

    table = {"p": [f"{i} %" for i in range(30)], "y": np.arange(30) + 0.5}
    model = kernelmill.fit_table(table, "y", tune=False, holdout=0, n_components=8)
    model.save(tmp_path / "model.kmill")
    model = kernelmill.load(tmp_path / "model.kmill")
    assert predict("12 %", "0") == ""
    assert "'p' has numbers with and without %: '0.12' is read as 0.12 %" in predict("1 %", "0.12")
    assert "'p' had numbers with % in training: numbers without it are read as %;" in predict("3.5")
    assert "with % in training, but this table has numbers with $, and are read as %;" in predict(
        "7 $"
    )


def test_a_marker_that_was_a_category_of_an_older_model_stays_one(tmp_path):
    rows = {"a": ["x", "n.a."] * 20, "y": [0.0, 1.0] * 20}
    model = kernelmill.fit_table(rows, "y", tune=False, holdout=0, n_components=8)
    (column,) = model.encoder.columns
    older = [replace(column, categories=[c.replace("n.a.", "n/a") for c in column.categories])]
    older = replace(model, encoder=replace(model.encoder, columns=older))
    rows["a"] = ["x", "n/a"] * 20
    pd.DataFrame(rows).to_csv(tmp_path / "rows.csv")
    pd.DataFrame(rows).to_parquet(tmp_path / "rows.parquet")
    for path in tmp_path.iterdir():
        assert np.allclose(older.predict(path)[:2], [0.0, 1.0], atol=0.1)


def test_signs_after_the_inspected_rows(tmp_path, model):
    path = tmp_path / "rows.csv"
    line = "12.5,a,1\n"
    n_lines = (4 << 20) // len(line) + 100
    path.write_text("rate,kind,count\n" + line * n_lines + "12.5%,a,1\n")
    last = list(open_table(path, numeric=["rate"]).blocks())[-1]
    assert last.data["rate"][-1].as_py() == 12.5


def test_absent_columns_with_similar_names(model):
    with pytest.raises(TableError, match="similar name: 'Rate' for 'rate', 'cuont' for 'count'"):
        model.predict({"Rate": [1.0], "kind": ["a"], "cuont": [1]})


def test_columns_of_several_types():
    mixed = frame().assign(mixed=[1, "a", None] * (N_ROWS // 3))
    with pytest.raises(TableError, match=r"'mixed' has .*: int in row 1, str in row 2.*drop="):
        kernelmill.fit_table(mixed, "y", drop=UNUSED, tune=False)
    with pytest.raises(TableError, match=r"'mixed' has .*: int in row 1, str in row 2"):
        kernelmill.fit_table(mixed, "mixed", drop=UNUSED, tune=False)
    (block,) = open_table(mixed).with_unused([*UNUSED, "mixed"]).blocks()
    assert block.data["y"].to_pylist() == (2 * RATE).tolist()
    with pytest.raises(TableError, match=r"'a' has .*: int in row 1, str in row 2"):
        kernelmill.fit_table({"a": [1, "b"], "y": [1, 2]}, "y")


def test_pairs_of_a_frame_and_labels(model):
    X, y = frame()[["rate", "kind", "count"]], frame()["y"]
    fitted = kernelmill.fit_table((X, y), tune=False, holdout=0, n_components=64)
    assert (fitted.predict(X) == model.predict(frame())).all()
    assert fitted.evaluate_table((X, y.tolist())).n_rows == N_ROWS
    assert list(fitted.predict_table((X, y)).columns) == ["prediction"]
    with pytest.raises(TableError, match="y has 3 labels for 60 rows"):
        kernelmill.fit_table((X, y[:3]))
    with pytest.raises(TableError, match="contains labels, which are the target"):
        kernelmill.fit_table((X, y), "rate")


def test_one_row(model):
    expected, predictions = model.predict_table(frame(), std=True), model.predict(frame())
    for row in (frame().iloc[4], {"rate": RATE[4], "kind": "b", "count": 4}):
        assert model.predict_row(row) == predictions[4]
        assert model.predict_row(row, std=True) == pytest.approx(tuple(expected.iloc[4]), rel=1e-9)
    with pytest.raises(ArgumentError, match="probabilities needs a classifier"):
        model.predict_row(frame().iloc[4], probabilities=True)
    X, y = frame()[["rate", "count"]], RATE > 40
    classifier = kernelmill.fit_table((X, y), tune=False, holdout=0, n_components=64)
    label, shares = classifier.predict_row(X.iloc[0], probabilities=True)
    assert label is classifier.predict_row(X.iloc[0]) is False
    expected = classifier.predict_table(X, probabilities=True).iloc[0]
    assert shares == {False: expected.iloc[1], True: expected.iloc[2]}


def make_amounts(path, *, commas):
    """Write a table with groups of digits, and fit a model to it."""
    rng = np.random.default_rng(0)
    swap = str.maketrans(",.", ".,") if commas else {}
    lines = [
        f"{size:,.2f};{share:.3f};{size / 1000 + share:.3f}".translate(swap)
        for size, share in zip(rng.uniform(10, 9999, 60), rng.random(60), strict=True)
    ]
    path.write_text("\n".join(["size;share;y", *lines]))
    return kernelmill.fit_table(path, "y", tune=False, holdout=0, n_components=32)


def test_numbers_are_read_as_in_training(tmp_path):
    path = tmp_path / "rows.csv"
    model = make_amounts(path, commas=False)
    assert ("size", ".", ",") in model.inputs.marks
    model.save(tmp_path / "model.kmill")
    model = kernelmill.load(tmp_path / "model.kmill")
    expected = model.predict_row({"size": 1691, "share": 1})
    assert model.predict_row({"size": "1,691", "share": "1"}) == expected
    path.write_text("size;share\n1,691;1\n")  # one group of digits, as in training
    assert model.predict(path).item() == expected
    path.write_text("size;share\n1691,0;1,0\n")
    with pytest.warns(
        UserWarning, match="have decimal commas in this table, but had decimal points in training"
    ):
        assert model.predict_table(path)["prediction"].to_pylist() == [expected]
    path.write_text("size;share\n1,691;1,5\n")
    with pytest.raises(TableError, match=r"digit groups in training, .* '1,691' is ambiguous"):
        model.predict(path)
    assert model.predict(path, decimal=",") == model.predict_row({"size": 1.691, "share": 1.5})
    path.write_text('size,share\n"691,17",1\n')
    for source in (path, {"size": ["691,17"], "share": [1]}):
        with pytest.raises(TableError, match="'691,17' is not a number with a decimal point"):
            model.predict(source)
    with pytest.raises(TableError, match="'691,17' is not a number with a decimal point"):
        model.predict_row({"size": "691,17", "share": 1})


def test_decimal_commas_are_those_of_training(tmp_path):
    path = tmp_path / "rows.csv"
    model = make_amounts(path, commas=True)
    expected = model.predict_row({"size": 1691, "share": 1})
    assert model.predict_row({"size": "1.691", "share": "1,0"}) == expected
    for text in ("size;share\n1.691;1\n", "size;share\n1.691;1,0\n", "size;share\n1691;1.0\n"):
        path.write_text(text)
        assert model.predict(path).item() == expected
    path.write_text("size;share;y\n1.691;0.5;1\n")
    for read in (model.predict, model.evaluate_table):
        with pytest.raises(TableError, match=r"'1\.691' is ambiguous"):
            read(path)
    with pytest.raises(TableError, match=r"'1\.5' is not a number with a decimal comma"):
        model.predict_row({"size": "1.5", "share": 1})


def test_marks_of_older_files_are_not_known(tmp_path):
    model = make_amounts(tmp_path / "rows.csv", commas=True)
    model = replace(model, inputs=replace(model.inputs, marks=None))
    row = model.predict_row({"size": 1.691, "share": 0.5})
    assert model.predict_row({"size": "1.691", "share": "0,5"}) == row


def test_strings_of_data_in_memory_are_read_as_in_training():
    data = {"a": ["377,19", "(396,31) €", "1.921,27"] * 20, "y": [1.0, 2.0, 3.0] * 20}
    options = {"numeric": ["a"], "tune": False, "holdout": 0, "n_components": 8}
    model = kernelmill.fit_table(data, "y", **options)
    assert model.inputs.marks == (("a", ",", "."),)
    assert model.predict_row({"a": "1.691"}) == model.predict_row({"a": 1691})
