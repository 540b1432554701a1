"""The encoding of columns, against scikit-learn's encoders, in blocks of any size."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from kernelmill.encoding import column_statistics
from kernelmill.encoding.column_statistics import CategoryCounts, NumericMoments, fewest_rows
from kernelmill.encoding.columns import CategoryEncoding, NumericEncoding
from kernelmill.encoding.encoder import ColumnEncoder, ColumnLearner
from kernelmill.files import ModelFileError
from kernelmill.io import TableError


def batch(**columns):
    return pa.record_batch(
        {
            name: pa.array(values, pa.float64())
            if not any(isinstance(v, str) for v in values)
            else pa.array(values, pa.string()).dictionary_encode()
            for name, values in columns.items()
        }
    )


def fit_encoder(batches, kinds, missing="error"):
    learner = ColumnLearner(kinds, missing)
    first = 0
    for each in batches:
        learner.update(each, file="t.csv", first_row=first)
        first += each.num_rows
    return learner.finish()[:2]


@pytest.mark.representative
def test_same_as_scikit_learn():
    rng = np.random.default_rng(0)
    ages, town = rng.normal(40, 10, 500), rng.choice(["a", "b", "c"], 500).tolist()
    data = batch(age=ages, town=town)
    encoder, summary = fit_encoder([data], [("age", "numeric"), ("town", "category")])
    expected = np.hstack(
        [
            StandardScaler().fit_transform(ages[:, None]),
            OneHotEncoder(sparse_output=False).fit_transform(np.array(town)[:, None]),
        ]
    )
    np.testing.assert_allclose(encoder.encode(data), expected, atol=1e-6)
    assert encoder.encode(data).dtype == np.float32
    assert encoder.input_names() == ["age", "town = a", "town = b", "town = c"]
    assert [(c.name, c.kind, c.n_columns) for c in summary] == [
        ("age", "numeric", 1),
        ("town", "category", 3),
    ]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(-1e6, 1e6) | st.none(), min_size=3, max_size=40),
    st.integers(1, 7),
)
def test_moments_do_not_depend_on_the_blocks(values, size):
    present = np.array([v for v in values if v is not None])
    if len(present) < 2 or np.ptp(present) < 1e-3:
        return
    array = np.array([np.nan if v is None else v for v in values])
    whole, parts = NumericMoments("x"), NumericMoments("x")
    whole.update(array)
    for begin in range(0, len(array), size):
        parts.update(array[begin : begin + size])
    one, other = whole.encoding(marks=True), parts.encoding(marks=True)
    assert one.mean == pytest.approx(other.mean, rel=1e-9, abs=1e-9)
    assert one.scale == pytest.approx(other.scale, rel=1e-9)
    if not whole.only_zero_one:
        assert one.mean == pytest.approx(present.mean(), rel=1e-9, abs=1e-9)
        assert one.scale == pytest.approx(present.std(), rel=1e-9)


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_extreme_numbers_are_standardized(scale):
    rng = np.random.default_rng(0)
    data = batch(x=rng.normal(size=100) * scale)
    encoder, _ = fit_encoder([data], [("x", "numeric")])
    encoded = encoder.encode(data)
    assert abs(encoded.mean()) < 1e-5
    assert abs(encoded.std() - 1) < 1e-5


def test_timestamps_keep_their_differences():
    """Numbers far from zero: float32 before the subtraction would lose seconds."""
    seconds = 1.6e9 + np.arange(100.0)
    encoder, _ = fit_encoder([batch(t=seconds)], [("t", "numeric")])
    steps = np.diff(encoder.encode(batch(t=seconds))[:, 0])
    np.testing.assert_allclose(steps, steps[0], rtol=1e-4)


def test_zeros_and_ones_stay_and_constants_go():
    data = batch(flag=[0.0, 1.0, 0.0, 0.0], same=[5.0] * 4, x=[1.0, 2.0, 3.0, 4.0])
    encoder, summary = fit_encoder([data], [(n, "numeric") for n in ("flag", "same", "x")])
    assert encoder.input_names() == ["flag", "x"]
    np.testing.assert_array_equal(encoder.encode(data)[:, 0], [0, 1, 0, 0])
    assert summary[1].detail == "constant: left out"


def test_constant_strings_go_as_constant_numbers_do():
    data = batch(same=["a"] * 4, gaps=["a", None, "a", None], x=[1.0, 2.0, 3.0, 4.0])
    kinds = [("same", "category"), ("gaps", "category"), ("x", "numeric")]
    encoder, summary = fit_encoder([data], kinds, missing="impute")
    assert encoder.input_names() == ["gaps is missing", "x"]
    assert [each.detail for each in summary[:2]] == ["constant: left out"] * 2
    assert not any(encoder.count_unseen(data).values())
    assert encoder.encode(batch(same=["b"], gaps=["a"], x=[1.0])).shape == (1, 2)


def test_all_constant_is_an_error():
    with pytest.raises(TableError, match="constant"):
        fit_encoder([batch(x=[1.0, 1.0])], [("x", "numeric")])


def test_rare_categories_are_pooled_and_unknown_ones_join_them():
    town = ["a"] * 500 + ["b"] * 495 + ["c"] * 3 + ["d"] * 2
    assert fewest_rows(1000) == 5
    encoder, _ = fit_encoder([batch(town=town)], [("town", "category")])
    assert encoder.input_names() == ["town = a", "town = b", "town is other"]
    encoded = encoder.encode(batch(town=["a", "d", "new"]))
    np.testing.assert_array_equal(encoded, [[1, 0, 0], [0, 0, 1], [0, 0, 1]])


def test_unknown_category_without_a_pool_is_a_row_of_zeros():
    encoder, _ = fit_encoder([batch(town=["a", "b"] * 5)], [("town", "category")])
    np.testing.assert_array_equal(encoder.encode(batch(town=["new", "b"])), [[0, 0], [0, 1]])


def test_missing_values_are_an_error_by_default():
    data = batch(age=[1.0, None, 3.0])
    with pytest.raises(TableError, match=r"t.csv: column 'age' has no value in row 2.*impute"):
        fit_encoder([data], [("age", "numeric")])


def test_missing_values_in_later_blocks_name_their_row():
    blocks = [batch(age=[1.0, 2.0]), batch(age=[3.0, np.nan])]
    with pytest.raises(TableError, match="row 4"):
        fit_encoder(blocks, [("age", "numeric")])


def test_imputed_values_are_means_and_are_marked():
    data = batch(age=[1.0, None, 3.0], town=["a", "b", None])
    encoder, summary = fit_encoder([data], [("age", "numeric"), ("town", "category")], "impute")
    assert encoder.input_names() == ["age", "age is missing", "town is other", "town is missing"]
    np.testing.assert_allclose(
        encoder.encode(data), [[-1, 0, 1, 0], [0, 1, 1, 0], [1, 0, 0, 1]], atol=1e-6
    )
    assert [c.missing for c in summary] == [1, 1]


def test_columns_of_a_category_are_a_group():
    data = batch(
        same=[2.0] * 6,
        age=[1.0, None, 3.0] * 2,
        town=["a", "b", None] * 2,
        x=[1.0, 2.0, 3.0] * 2,
    )
    kinds = [("same", "numeric"), ("age", "numeric"), ("town", "category"), ("x", "numeric")]
    encoder, _ = fit_encoder([data], kinds, "impute")
    assert encoder.input_names()[2:5] == ["town = a", "town = b", "town is missing"]
    assert encoder.groups().tolist() == [0, 1, 2, 2, 2, 3]
    assert encoder.group_names() == ["age", "age is missing", "town", "x"]


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 40), st.integers(0, 5))
def test_a_category_moves_rows_no_further_apart_than_a_number(k, seed):
    """The mean squared distance of two rows is 2 for a number, 2 (1 - sum p^2) for a category."""
    rng = np.random.default_rng(seed)
    town = [f"v{v}" for v in (rng.pareto(1.0, 400) % k).astype(int)]
    encoder, _ = fit_encoder(
        [batch(town=town, x=rng.normal(size=400))], [("town", "category"), ("x", "numeric")]
    )
    encoded = encoder.encode(batch(town=town, x=rng.normal(size=400))).astype(float)
    one_hot = encoded[:, encoder.groups() == 0]
    distance = 2 * (one_hot**2).sum(axis=1).mean() - 2 * (one_hot.mean(axis=0) ** 2).sum()
    shares = one_hot.mean(axis=0)
    assert distance == pytest.approx(2 * (1 - (shares**2).sum()))
    assert distance <= 2


def test_missing_later_but_not_in_training():
    encoder, _ = fit_encoder([batch(x=[1.0, 3.0])], [("x", "numeric")], "impute")
    np.testing.assert_array_equal(encoder.encode(batch(x=[None])), [[0.0]])
    strict, _ = fit_encoder([batch(x=[1.0, 3.0])], [("x", "numeric")])
    with pytest.raises(TableError, match="row 11"):
        strict.encode(batch(x=[None]), file="new.csv", first_row=10)


def test_infinite_values_are_rejected():
    with pytest.raises(TableError, match="'x' is inf in row 2"):
        fit_encoder([batch(x=[1.0, np.inf])], [("x", "numeric")])


def test_identifiers_are_rejected_with_a_remedy():
    names = [f"id{i}" for i in range(3000)]
    with pytest.raises(TableError, match="identifier or free text") as caught:
        fit_encoder([batch(key=names)], [("key", "category")])
    assert [remedy.settings for remedy in caught.value.message.remedies] == [{"drop": ["key"]}]


def test_long_strings_are_no_categories(monkeypatch):
    """All different strings are in memory: a file of 60 kB took 4.6 GB."""
    monkeypatch.setattr(column_statistics, "MOST_TEXT_BYTES", 1000)
    texts = [letter * 300 for letter in "abcd"]
    problem = (
        r"4 different strings in 6 rows \('bbb.*\.\.\.\), of 1,200 characters together: it appears"
    )
    with pytest.raises(TableError, match=problem) as caught:
        fit_encoder([batch(key=texts[:3]), batch(key=texts[1:])], [("key", "category")])
    assert len(str(caught.value)) < 300
    fit_encoder([batch(key=texts[:3]), batch(key=texts[:3])], [("key", "category")])
    counts = [column_statistics.CategoryCounts("key") for _ in range(3)]
    for each, strings in zip(counts, (texts[:2], texts[1:3], texts[2:]), strict=True):
        each.update(pa.array(strings).dictionary_encode())
    counts[0].merge(counts[1])
    with pytest.raises(TableError, match="4 different strings"):
        counts[0].merge(counts[2])


def notes_of(data, kinds):
    learner = ColumnLearner(kinds, "error")
    for begin in range(0, data.num_rows, 40):
        learner.update(data.slice(begin, 40), file="t.csv", first_row=begin)
    return learner.finish()[2]


def test_doubtful_columns_are_noted():
    n = 120
    data = batch(
        id=np.arange(1000.0, 1000 + n),
        back=np.arange(n, 0.0, -1),
        same=np.ones(n),
        share=[f"{i % 40}%" for i in range(n - 70)] + ["0%"] * 50 + [f"x{i}" for i in range(20)],
        rare=[f"{i}%" for i in range(n)],
    )
    kinds = [("id", "numeric"), ("back", "numeric"), ("same", "numeric")]
    notes = notes_of(data, [*kinds, ("share", "category"), ("rare", "category")])
    assert [str(note).split("'")[1] for note in notes] == ["id", "rare", "same"]
    assert notes[0].remedies[0].settings == {"drop": ["id"]}
    assert "%" in notes[1].problem
    assert "constant" in notes[2]


def test_values_beyond_float32_are_named():
    encoder, _ = fit_encoder([batch(x=[1.0, 2.0, 3.0])], [("x", "numeric")])
    with pytest.raises(TableError, match=r"new.csv: 'x' in row 12 is too far"):
        encoder.encode(batch(x=[1.0, 1e300]), file="new.csv", first_row=10)


def test_many_columns_are_sparse_and_the_same():
    rng = np.random.default_rng(0)
    kinds = [("x", "numeric")] + [(f"c{i}", "category") for i in range(6)]
    texts = {f"c{i}": [f"v{v}" for v in rng.integers(0, 230, 20_000)] for i in range(6)}
    data = batch(x=rng.normal(size=20_000), **texts)
    encoder, _ = fit_encoder([data], kinds)
    assert encoder.n_inputs > 1024
    few = data.slice(0, 50)
    sparse = encoder.encode(few)
    dense = np.zeros((50, encoder.n_inputs), np.float32)
    begin = 0
    for each in encoder.columns:
        column = few.column(each.name)
        values = column.to_numpy() if isinstance(each, NumericEncoding) else column
        each.write(values, dense[:, begin : begin + each.n_columns])
        begin += each.n_columns
    np.testing.assert_array_equal(sparse.toarray(), dense)


def test_comes_back_from_a_record():
    data = batch(age=[1.0, None, 3.0], town=["a", "b", None])
    encoder, _ = fit_encoder([data], [("age", "numeric"), ("town", "category")], "impute")
    again = ColumnEncoder.from_record(encoder.to_record())
    np.testing.assert_array_equal(again.encode(data), encoder.encode(data))


NUMERIC = {"kind": "numeric", "name": "x", "mean": 0.0, "scale": 1.0, "marks": False}
CATEGORY = {"kind": "category", "name": "x", "categories": ["a"], "others": False, "marks": False}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mean": float("nan")}, r"columns\.mean must be a number, got nan"),
        ({"scale": -1.0}, r"columns\.scale must be a number of at least 0, got -1\.0"),
        ({"scale": "one"}, r"columns\.scale must be a number of at least 0, got 'one'"),
        ({"marks": 1}, r"columns\.marks must be true or false, got 1"),
        ({"name": 3}, r"columns\.name must be a string, got 3"),
        ({"kind": "other"}, 'kind is "numeric" or "category"'),
    ],
    ids=str,
)
def test_wrong_records_are_rejected(change, message):
    with pytest.raises(ModelFileError, match=message):
        ColumnEncoder.from_record({"missing": "error", "columns": [{**NUMERIC, **change}]})


def test_duplicate_categories_in_a_record_are_rejected():
    column = {**CATEGORY, "categories": ["a", "a"]}
    with pytest.raises(ModelFileError, match="got one of them twice"):
        ColumnEncoder.from_record({"missing": "error", "columns": [column]})


def test_records_have_a_kind_for_each_column():
    encoder = ColumnEncoder(
        [NumericEncoding("x", 0.0, 1.0), CategoryEncoding("x", ("a",))], "error"
    )
    assert encoder.to_record() == {"columns": [NUMERIC, CATEGORY], "missing": "error"}


def test_counts_of_a_category_do_not_depend_on_the_blocks():
    texts = ["a", "b", "a", "c"] * 30
    whole, parts = CategoryCounts("x"), CategoryCounts("x")
    whole.update(pa.array(texts).dictionary_encode())
    for begin in range(0, len(texts), 7):
        parts.update(pa.array(texts[begin : begin + 7]).dictionary_encode())
    assert whole.counts == parts.counts
    assert whole.encoding(marks=False) == parts.encoding(marks=False)
