"""Categories that have an order, by the file or by the numbers that they name."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelmill
from kernelmill.encoding.column_statistics import CategoryCounts
from kernelmill.encoding.columns import CategoryEncoding, OrdinalEncoding
from kernelmill.encoding.encoder import ColumnEncoder, ColumnLearner
from kernelmill.encoding.levels import find_number, sort_levels
from kernelmill.files import ModelFileError

AGES = ["<18", "18-24", "25-64", "65+"]


@pytest.mark.representative
@pytest.mark.parametrize(
    "levels",
    [
        AGES,
        ["-1 year", "1-3 years", "4-6 years", "7-10 years", "10+ years"],
        ["<12 yrs", "12 yrs", "13-15 yrs", "16 yrs", ">16 yrs"],
        ["1st", "2nd", "3rd", "10th"],
        ["1st-4th", "5th-6th", "7th-8th"],
        ["Level 1", "Level 2", "Level 10"],
        ["under 5", "5 to 10", "over 10"],
        ["0 to 17", "18 to 64", "65 and over"],
        ["$0-$10,000", "$10,000-$20,000", "$20,000+"],
        ["1 room", "2 rooms", "3+ rooms"],
        ["5%", "10%", "20%"],
        ["1.5\u20132", "2\u20132.5", "2.5\u20133.0"],
    ],
    ids=lambda levels: levels[0],
)
def test_levels_that_name_numbers_are_sorted(levels):
    found = sort_levels(sorted(levels))
    assert found is not None
    assert found[0] == tuple(levels)
    assert list(found[1]) == sorted(set(found[1]))


@pytest.mark.parametrize(
    "levels",
    [
        ["10115", "20095", "80331"],
        ["1978", "1982", "1984"],
        ["area_code_408", "area_code_415", "area_code_510"],
        ["shop 1", "shop 2", "shop 3"],
        ["1A", "2A", "3A"],
        ["1 km", "2 miles", "3 feet"],
        ["1: employed", "2: retired", "3: student"],
        ["1 - low", "2 - mid", "3 - high"],
        ["01-02", "03-04", "05-06"],
        ["2020-01", "2020-02", "2020-03"],
        ["2020-01-05", "2020-02-05", "2020-03-05"],
        ["0-10", "5-15", "15-20"],
        ["10-19", "10 - 19", "20-29"],
        ["10-19", "20-29"],
        ["10-19", "20-29", "unknown"],
        ["192.168.1.1", "10.0.0.1", "8.8.8.8"],
        ["<5-10", "10-20", "20-30"],
        ["9" * 400, "1+", "2+"],
        ["low", "mid", "high"],
        [f"{i}-{i + 1}" for i in range(65)],
    ],
    ids=lambda levels: levels[0][:20],
)
def test_in_doubt_there_is_no_order(levels):
    assert sort_levels(levels) is None


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text(alphabet="0123456789-+<>.,$% ktoandthsr", max_size=12), max_size=6))
def test_any_strings_are_read_or_not(strings):
    found = sort_levels(set(strings))
    if found is not None:
        assert sorted(found[0]) == sorted(set(strings))
        numbers = [find_number(each) for each in found[0]]
        places = np.searchsorted(found[1], numbers, side="right") - 1
        assert places.tolist() == list(range(len(numbers)))
        assert (np.diff(found[1]) > 0).all()


def fit_encoder(levels, missing="error", transform="auto", size=None, ordered=()):
    array = pa.array(levels, pa.string()) if isinstance(levels, list) else levels
    learner = ColumnLearner([("x", "category")], missing, transform, ordered)
    size = size or len(array)
    for begin in range(0, len(array), size):
        part = array.slice(begin, size)
        part = part if isinstance(part, pa.DictionaryArray) else part.dictionary_encode()
        learner.update(pa.record_batch({"x": part}), file="t.csv", first_row=begin)
    return learner.finish()


def encode(encoder, *strings):
    return encoder.encode(pa.record_batch({"x": pa.array(strings, pa.string())}))


@pytest.mark.parametrize("size", [3, 1000])
def test_levels_become_standardized_ranks(size):
    levels = np.random.default_rng(0).choice(AGES, 400, p=[0.1, 0.2, 0.6, 0.1]).tolist()
    encoder, summary, notes = fit_encoder(levels, size=size)
    encoded = encode(encoder, *levels)
    assert encoded.shape == (400, 1)
    ranks = np.array([AGES.index(each) for each in levels])
    np.testing.assert_allclose(encoded[:, 0], (ranks - ranks.mean()) / ranks.std(), rtol=1e-6)
    assert encoder.group_names() == ["x"]
    assert (summary[0].kind, summary[0].detail) == ("ordinal", "4 categories in order, <18 to 65+")
    assert notes[0].remedies[0].settings == {"transform": "none"}


def test_unseen_levels_get_the_one_around_them_or_the_mean():
    encoder, _, _ = fit_encoder(AGES * 10)
    found = encode(
        encoder, "18-24", "20", "under 18", "25-64", "60", "70 to 80", "65+", "no answer"
    )
    assert found[1] == found[0]
    assert found[2] < found[0]
    assert found[4] == found[3]
    assert found[5] == found[6]
    assert found[7] == 0


def test_missing_levels_are_at_the_mean_and_marked():
    encoder, _, _ = fit_encoder([*AGES * 10, None], "impute")
    assert encoder.input_names() == ["x", "x is missing"]
    assert encoder.groups().tolist() == [0, 1]
    np.testing.assert_array_equal(encode(encoder, None), [[0, 1]])
    assert encode(encoder, "65+")[0, 1] == 0
    plain, _, _ = fit_encoder(AGES * 10, "impute")
    np.testing.assert_array_equal(encode(plain, None), [[0]])


def test_no_transform_encodes_each_category():
    encoder, _, _ = fit_encoder(AGES * 10, transform="none")
    assert isinstance(encoder.columns[0], CategoryEncoding)
    assert encoder.n_inputs == 4


def dictionary(levels, strings, ordered=True):
    indices = pa.array([levels.index(each) for each in strings], pa.int32())
    return pa.DictionaryArray.from_arrays(indices, pa.array(levels), ordered=ordered)


def test_blocks_with_parts_of_an_order():
    counts = CategoryCounts("x", ordered=True)
    counts.update(dictionary(["low", "high"], ["high", "low"]))
    counts.update(dictionary(["low", "mid", "high", "top"], ["mid", "low"]))
    counts.update(dictionary(["mid", "top"], ["top"]))
    found = counts.encoding(marks=False, ordinal=True)
    assert isinstance(found, OrdinalEncoding)
    assert found.levels == ("low", "mid", "high", "top")
    assert found.starts is None


@pytest.mark.parametrize(
    "second", [["high", "low"], ["low", "new"], ["mid", "low", "high", "top", "other"]], ids=str
)
def test_blocks_with_different_orders_have_none(second):
    counts = CategoryCounts("x", ordered=True)
    counts.update(dictionary(["low", "mid", "high", "top"], ["low", "mid", "high"] * 5))
    counts.update(dictionary(second, second[:2] * 3))
    assert isinstance(counts.encoding(marks=False, ordinal=True), CategoryEncoding)


@pytest.mark.parametrize("format", ["parquet", "feather"])
def test_ordered_categories_of_files(tmp_path, format):  # noqa: A002
    rng = np.random.default_rng(0)
    sizes = ["small", "medium", "large", "huge"]
    codes = rng.integers(0, 3, 300)
    frame = pd.DataFrame(
        {
            "size": pd.Categorical.from_codes(codes, sizes, ordered=True),
            "town": pd.Categorical.from_codes(codes, sizes),
            "y": codes + rng.normal(size=300),
        }
    )
    path = tmp_path / f"t.{format}"
    getattr(frame, f"to_{format}")(path, **({"row_group_size": 70} if format == "parquet" else {}))
    quick = {"n_components": 64, "tune": False}
    model = kernelmill.fit_table(path, "y", **quick)
    first, second = model.encoder.columns
    assert first.levels == tuple(sizes)
    assert isinstance(second, CategoryEncoding)
    assert [each.kind for each in model.summary.columns] == ["ordinal", "category"]
    model.save(tmp_path / "m.kmill")
    loaded = kernelmill.load(tmp_path / "m.kmill")
    assert loaded.encoder == model.encoder
    np.testing.assert_allclose(loaded.predict(path), model.predict(path), rtol=1e-4)
    given = kernelmill.fit_table(path, "y", categorical=["size"], **quick)
    assert isinstance(given.encoder.columns[0], CategoryEncoding)


def test_files_with_and_without_an_order_are_one_table(tmp_path):
    levels = ["low", "mid", "high"]
    for name, ordered in (("a", True), ("b", False)):
        frame = pd.DataFrame({"x": pd.Categorical(levels * 50, levels, ordered=ordered)})
        frame["y"] = np.arange(150.0) % 7
        frame.to_parquet(tmp_path / f"{name}.parquet")
    model = kernelmill.fit_table(
        sorted(tmp_path.glob("*.parquet")), "y", n_components=32, tune=False
    )
    assert isinstance(model.encoder.columns[0], CategoryEncoding)


RECORD = {
    "kind": "ordinal",
    "name": "x",
    "levels": ["<5", "5-9", "10+"],
    "mean": 1.0,
    "scale": 0.5,
    "marks": False,
    "starts": [4.0, 5.0, 10.0],
}


def test_comes_back_from_a_record():
    encoder = ColumnEncoder.from_record({"missing": "error", "columns": [RECORD]})
    assert encoder.to_record() == {"missing": "error", "columns": [RECORD]}
    assert encode(encoder, "<5", "5-9", "12").tolist() == [[-2.0], [0.0], [2.0]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"levels": ["<5", "5-9", "5-9"]}, "got one of them twice"),
        ({"levels": ["<5", "5-9"]}, r"levels must be a list of at least 3"),
        ({"starts": [4.0, 7.0]}, "a start for each of 3 levels"),
        ({"starts": [4.0, 7.0, 7.0]}, "starts of levels must be increasing"),
        ({"starts": [4.0, 7.0, float("inf")]}, r"starts must be a list"),
        ({"scale": 0.0}, r"scale must be a number above 0"),
        ({"mean": float("nan")}, r"mean must be a number"),
    ],
    ids=str,
)
def test_wrong_records_are_rejected(change, message):
    with pytest.raises(ModelFileError, match=message):
        ColumnEncoder.from_record({"missing": "error", "columns": [{**RECORD, **change}]})
