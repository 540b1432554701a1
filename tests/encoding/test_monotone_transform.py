"""Monotone transforms of skewed and heavy-tailed columns."""

import json
import warnings

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import norm, rankdata

import kernelmill
from kernelmill.encoding.columns import NumericEncoding
from kernelmill.encoding.encoder import ColumnEncoder, ColumnLearner
from kernelmill.encoding.matrix import MatrixEncoder, MatrixLearner
from kernelmill.encoding.monotone import MonotoneTransform, choose_transform, most_knots
from kernelmill.files import ModelFileError
from kernelmill.workflows.model.table_model import TableModel

VALUES = st.floats(allow_nan=False, allow_infinity=False)


def choose(values, kind="auto", **options):
    values = np.asarray(values, dtype=float)
    return choose_transform(values, kind, least=values.min(), most=values.max(), **options)


def fit_encoder(missing="error", transform="auto", **columns):
    data = pa.record_batch({name: pa.array(v, pa.float64()) for name, v in columns.items()})
    learner = ColumnLearner([(name, "numeric") for name in columns], missing, transform)
    learner.update(data, file="t.csv", first_row=0)
    encoder, summary, _ = learner.finish(data)
    return encoder, data, summary


@settings(max_examples=200, deadline=None)
@given(st.lists(VALUES, min_size=3, max_size=200), st.lists(VALUES, max_size=50))
@example([0.0, 1.0000000000000002e300, 5e-324], [])
@example([0.0, 5e-324, -1.7e308, 1.7e308], [])
def test_monotone_bounded_and_without_warnings(values, others):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        transform = choose(values, "rank")
        if transform is None:
            assert len(set(values)) <= 2
            return
        found = transform.apply(np.sort(np.array(values + others)))
    assert (np.diff(found) >= 0).all()
    assert (np.diff(found.astype(np.float32)) >= 0).all()
    assert found[0] >= transform.scores[0]
    assert found[-1] <= transform.scores[-1]
    on_knots = transform.apply(np.array(transform.knots))
    np.testing.assert_array_equal(on_knots, transform.scores)


@pytest.mark.representative
@pytest.mark.parametrize("n", [3, 64, 65, 5000])
def test_standardized_normal_scores(n):
    values = np.exp(2 * np.random.default_rng(0).normal(size=n))
    transform = choose(values, "rank")
    assert len(transform.knots) <= 64
    assert transform.knots[0] == values.min()
    assert transform.knots[-1] == values.max()
    found = transform.apply(values)
    # Scores are rounded to 7 decimals.
    assert abs(found.mean()) < 1e-6
    assert abs(found.std() - 1) < 1e-6
    exact = norm.ppf((rankdata(values) - 0.5) / n)
    # Knots are at most one step of the grid apart, and the scale is at most that of the scores.
    step = np.ptp(exact) / 63
    assert abs(found * exact.std() - exact).max() < (1.5 * step if n > 64 else 1e-6)


def test_a_frequent_value_is_one_knot_at_its_middle_rank():
    values = np.r_[np.zeros(900), np.random.default_rng(0).exponential(100, 100) + 5]
    transform = choose(values)
    assert transform.knots[0] == 0
    # The next value is a knot, too, so that no value between is closer to the spike.
    assert transform.knots[1] == np.sort(values)[900]
    exact = norm.ppf((rankdata(values) - 0.5) / 1000)
    gap = np.diff(transform.scores[:2])[0]
    spread = exact.std()
    assert gap == pytest.approx((norm.ppf(0.9005) - norm.ppf(0.45)) / spread, rel=0.01)


def test_which_columns_are_transformed():
    rng = np.random.default_rng(0)
    normal = rng.normal(size=2000)
    assert choose(normal) is None
    assert choose(rng.uniform(size=2000)) is None
    assert choose(np.exp(normal)) is not None
    assert choose(-np.exp(normal)) is not None
    assert choose(np.r_[normal, 1e12]) is not None
    assert choose(rng.integers(0, 5, 2000)) is None
    assert choose(normal, "rank") is not None
    assert choose(np.exp(normal), "none") is None
    for kind in ("auto", "rank"):
        assert choose(np.r_[np.zeros(1000), 1.0], kind) is None
        assert choose(np.r_[np.zeros(1000), 7.0], kind) is None
        assert choose(np.ones(10), kind) is None


def test_a_value_outside_the_sample_counts():
    """Of a large table, the sample may lack the one value that ruins the scale."""
    normal = np.random.default_rng(0).normal(size=2000)
    assert choose_transform(normal, "auto", least=-6.0, most=6.0) is None
    assert choose_transform(normal, "auto", least=-4.0, most=1e300) is not None


@pytest.mark.representative
def test_one_huge_value_does_not_ruin_the_column():
    values = np.random.default_rng(0).normal(size=2000)
    values[77] = 1e12
    encoder, data, summary = fit_encoder(x=values)
    encoded = encoder.encode(data)[:, 0]
    # The standard deviation of the quantile of 2000 rows at 2 is 0.06.
    central = abs(values) < 2
    np.testing.assert_allclose(encoded[central], values[central], atol=0.3)
    assert encoded[77] == encoded.max() < 4
    detail = "normal scores of ranks, median -0.03353, 95 % from -1.936 to 1.921; also linear"
    assert summary[0].detail == detail
    later = encoder.encode(pa.record_batch({"x": [1e308, -1e308]}))
    np.testing.assert_array_equal(later[:, 0], [encoded.max(), encoded.min()])
    np.testing.assert_array_equal(later[:, 1], [10, -10])


def test_skewed_columns_are_encoded_twice():
    """Learned length scales then choose between ranks and values."""
    values = np.exp(np.random.default_rng(0).normal(size=800))
    encoder, data, _ = fit_encoder(x=values, y=np.arange(800.0))
    assert encoder.input_names() == ["x", "x (linear)", "y"]
    assert encoder.groups().tolist() == [0, 1, 2]
    standardized = (values - values.mean()) / values.std()
    np.testing.assert_allclose(
        encoder.encode(data)[:, 1], np.clip(standardized, -10, 10), rtol=1e-5, atol=1e-6
    )
    assert fit_encoder(transform="rank", x=values)[0].input_names() == ["x"]


def test_missing_values_are_at_the_mean_and_marked():
    values = np.exp(2 * np.random.default_rng(0).normal(size=500))
    encoder, data, _ = fit_encoder("impute", x=[None, *values])
    encoded = encoder.encode(data)
    np.testing.assert_array_equal(encoded[0], [0, 0, 1])
    assert (encoded[1:, 2] == 0).all()
    assert abs(encoded[:, 0].mean()) < 1e-6


def test_float64_before_float32():
    """Values that float32 cannot tell apart become different scores."""
    values = 1.6e9 + np.arange(300.0) ** 2 / 1000
    encoder, data, _ = fit_encoder(transform="rank", t=values)
    assert len(np.unique(encoder.encode(data))) == 300


def test_details_show_the_middle_of_the_column():
    values = np.r_[np.zeros(940), np.full(30, 100.0), np.full(30, 5013.0)]
    _, _, summary = fit_encoder(gain=values, x=np.arange(1000.0))
    assert (
        summary[0].detail == "normal scores of ranks, median 0, 95 % from 0 to 5,013; also linear"
    )
    assert summary[1].detail.startswith("mean")


def skewed_csv(folder, n=1500):
    rng = np.random.default_rng(3)
    gain = np.where(rng.random(n) < 0.8, 0.0, np.round(np.exp(rng.normal(7, 1, n))))
    age = rng.normal(40, 10, n)
    label = np.where(np.log1p(gain) + age / 10 + rng.normal(size=n) > 6, "yes", "no")
    path = folder / "skewed.csv"
    lines = [f"{g},{a:.3f},{y}" for g, a, y in zip(gain, age, label, strict=True)]
    path.write_text("gain,age,label\n" + "\n".join(lines) + "\n")
    return path


QUICK = {"n_components": 64, "tune": False, "epochs": 1}


@pytest.mark.parametrize("block_bytes", [1 << 12, 1 << 20])
def test_the_encoding_does_not_depend_on_the_blocks(tmp_path, block_bytes):
    path = skewed_csv(tmp_path)
    one = kernelmill.fit_table(path, "label", **QUICK).encoder.columns[0]
    other = kernelmill.fit_table(path, "label", block_bytes=block_bytes, **QUICK).encoder.columns[0]
    assert one.transform is not None
    assert one.transform == other.transform


def test_the_option_of_fit_table(tmp_path):
    path = skewed_csv(tmp_path)
    for kind, expected in (("auto", [True, False]), ("rank", [True, True]), ("none", [False] * 2)):
        model = kernelmill.fit_table(path, "label", transform=kind, **QUICK)
        assert [each.transform is not None for each in model.encoder.columns] == expected
    with pytest.raises(ValueError, match="transform must be one of"):
        kernelmill.fit_table(path, "label", transform="log")


def test_files_keep_the_bits(tmp_path):
    path = skewed_csv(tmp_path)
    model = kernelmill.fit_table(path, "label", **QUICK)
    model.save(tmp_path / "m.kmill")
    loaded = kernelmill.load(tmp_path / "m.kmill")
    assert loaded.encoder == model.encoder
    rows = np.random.default_rng(0).exponential(1000, (1000, 2))
    data = pa.record_batch({"gain": rows[:, 0], "age": rows[:, 1]})
    np.testing.assert_array_equal(loaded.encoder.encode(data), model.encoder.encode(data))
    assert loaded.summary.columns[0].detail.startswith("normal scores of ranks, median 0, ")
    assert isinstance(loaded, TableModel)


RECORD = {"kind": "numeric", "name": "x", "mean": 0.0, "scale": 1.0, "marks": False}


def column_of(**transform):
    given = {"knots": [0.0, 1.0, 5.0], "scores": [-1.0, 0.0, 2.0], **transform}
    return ColumnEncoder.from_record(
        {"missing": "error", "columns": [{**RECORD, "transform": given}]}
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"knots": [0.0, 1.0]}, "a score for each of 2 knots"),
        ({"knots": [0.0, 1.0, 1.0]}, "knots must be increasing"),
        ({"knots": [0.0, 5.0, 1.0]}, "knots must be increasing"),
        ({"scores": [-1.0, -2.0, 0.0]}, "scores must not be decreasing"),
        ({"scores": [-1.0, float("nan"), 0.0]}, r"transform\.scores must be a list"),
        ({"scores": [-1.0, float("inf"), 0.0]}, r"transform\.scores must be a list"),
        ({"knots": ["0", "1", "2"]}, r"transform\.knots must be a list"),
        ({"knots": [1.0], "scores": [1.0]}, r"transform\.knots must be a list"),
        ({"knots": [float(i) for i in range(65)]}, r"transform\.knots must be a list"),
        ({"more": 1}, "unknown field 'more'"),
    ],
    ids=str,
)
def test_wrong_records_are_rejected(change, message):
    assert column_of().columns[0].transform.knots == (0.0, 1.0, 5.0)
    with pytest.raises(ModelFileError, match=message):
        column_of(**change)


def test_constant_columns_have_no_transform():
    with pytest.raises(ModelFileError, match="constant column"):
        ColumnEncoder.from_record(
            {
                "missing": "error",
                "columns": [{**column_of().to_record()["columns"][0], "scale": 0.0}],
            }
        )


def test_columns_without_a_transform_are_stored_as_before():
    assert NumericEncoding("x", 0.0, 1.0).to_record() == {
        key: value for key, value in RECORD.items() if key != "kind"
    }


def test_matrices_are_transformed_likewise():
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=500), np.exp(2 * rng.normal(size=500)), np.ones(500)]
    X[3, 1] = np.nan
    learner = MatrixLearner("impute")
    learner.update(X[:200], file="t.npy", first_row=0)
    learner.update(X[200:], file="t.npy", first_row=200)
    encoder, summary, _ = learner.finish(X)
    assert [each is not None for each in encoder.transforms] == [False, True, False]
    assert summary[0].detail == "standardized; 1 column replaced by normal scores of ranks"
    encoded = encoder.encode(X)
    assert encoded[3, 1] == 0
    of_table, data, _ = fit_encoder("impute", b=X[:, 1])
    np.testing.assert_array_equal(encoded[:, 1], of_table.encode(data)[:, 0])
    tensors = {}
    record = json.loads(json.dumps(encoder.to_record(tensors)))
    again = MatrixEncoder.from_record(record, tensors)
    np.testing.assert_array_equal(again.encode(X), encoded)
    record["transforms"].pop()
    with pytest.raises(ModelFileError, match="there must be 3 transforms"):
        MatrixEncoder.from_record(record, tensors)


def test_bytes_and_sparse_rows_are_not_transformed():
    X = np.zeros((300, 2), np.uint8)
    X[:3] = 255
    learner = MatrixLearner("error", "rank")
    learner.update(X, file="t.npy", first_row=0)
    assert learner.finish(X)[0].transforms is None


def test_wide_tables_have_fewer_knots():
    """A model file has room for some 16 MB of numbers of all columns."""
    assert [most_knots(n) for n in (1, 3000, 5000, 10**6)] == [64, 64, 40, 8]
    values = np.exp(np.random.default_rng(0).normal(size=300))
    assert len(choose(values, n_knots=8).knots) == 8


def test_transforms_are_compared_by_value():
    assert MonotoneTransform([0, 1], [0, 1]) == MonotoneTransform((0.0, 1.0), (0.0, 1.0))


def delays(n=2000):
    rng = np.random.default_rng(1)
    values = rng.normal(size=n) ** 3 * 10
    return values, values + rng.normal(size=n)


def test_what_the_target_is_linear_in_stays_linear():
    """As the delay of an arrival in that of the departure: ranks would have to be undone."""
    values, target = delays()
    transform = choose(values, target=target)
    assert transform.is_linear
    assert transform.knots == (values.min(), values.max())
    np.testing.assert_allclose(
        transform.apply(values), (values - values.mean()) / values.std(), atol=1e-6
    )
    later = transform.apply(np.array([-1e300, 1e300]))
    assert later.tolist() == list(transform.scores)
    assert not choose(values, "rank", target=target).is_linear
    assert not choose(values, target=np.argsort(np.argsort(values)) * 1.0).is_linear
    assert not choose(values, target=np.zeros(2000)).is_linear


def test_targets_of_rows_that_are_held_out_are_not_looked_at():
    values, target = delays()
    hidden = np.arange(2000) % 2 == 0
    other = np.where(hidden, np.random.default_rng(0).normal(size=2000) * 1e9, target)
    assert not choose(values, target=other).is_linear
    assert choose(values, target=np.where(hidden, np.nan, target)).is_linear
    assert not choose(values, target=np.full(2000, np.nan)).is_linear


def test_clipped_columns_in_the_summary(tmp_path):
    values, target = delays()
    path = tmp_path / "delays.csv"
    rows = zip(values, target, strict=True)
    path.write_text("out,back\n" + "\n".join(f"{a:.4f},{b:.4f}" for a, b in rows))
    model = kernelmill.fit_table(path, "back", n_components=64, tune=False)
    ends = [f"{each:,.4g}" for each in (values.min(), values.max())]
    assert model.summary.columns[0].detail == f"standardized, clipped to {' to '.join(ends)}"
    np.save(tmp_path / "delays.npy", np.c_[values, target])
    model = kernelmill.fit_table(tmp_path / "delays.npy", 1, n_components=64, tune=False)
    assert model.encoder.transforms[0].is_linear
    assert (
        "0 columns replaced by normal scores of ranks, 1 clipped" in model.summary.columns[0].detail
    )
