"""Rows with equal keys are never divided: in holding out, folds, tuning and comparisons."""

import copy

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.sparse import issparse
from sklearn.linear_model import Ridge

from kernelmill import RandomFourier, compare_table, fit_table
from kernelmill.errors import ArgumentError
from kernelmill.learners.tuning.length_scales import leave_one_out
from kernelmill.random import Stream
from kernelmill.runtime.progress import SilentProgress
from kernelmill.workflows import splits
from kernelmill.workflows.splits import (
    HeldOut,
    KeyCounts,
    assign_parts,
    choose_held_out,
    cut_folds,
    divide_sample,
)
from kernelmill.workflows.training.encoded_rows import encode_table
from kernelmill.workflows.training.survey import open_inputs, survey_table

STREAM = Stream.from_seed(0)


def count_keys(keys):
    counts = KeyCounts()
    counts.update(keys)
    return counts


def keys_with(sizes, seed=0):
    """Random keys, each as often as `sizes` say, in random order."""
    rng = np.random.default_rng(seed)
    keys = rng.integers(0, 2**63, len(sizes), dtype=np.uint64) * np.uint64(2)
    return rng.permutation(np.repeat(keys, sizes))


def sizes_of(keys, mask):
    return np.unique(keys[mask], return_counts=True)[1].tolist()


def assert_not_divided(keys, parts):
    for key in np.unique(keys):
        assert len(np.unique(parts[keys == key])) == 1


@pytest.mark.parametrize(
    ("sizes", "share", "expected"),
    [
        ([1] * 1000, 0.1, 100),
        ([1] * 1000, 0.9, 900),
        ([3] * 400, 0.1, 120),
        ([500] + [1] * 500, 0.1, 100),  # half of the rows are equal: they stay in training
        ([980] * 6, 0.1, 980),  # six patients: one of them
        ([980] * 6, 0.5, 2940),
        ([900, 100], 0.1, 100),
        ([900, 100], 0.5, 100),
        ([500, 500], 0.1, 500),
        ([1000], 0.1, 0),
        ([1, 1], 0.9, 1),  # one row has to be a training row
    ],
)
def test_held_out_keys(sizes, share, expected):
    keys = keys_with(sizes)
    held_out, _ = choose_held_out(count_keys(keys), share, STREAM, {}, keys)
    out = held_out.rows(keys)
    assert_not_divided(keys, out)
    assert out.sum() == expected
    assert held_out.share == pytest.approx(expected / len(keys))


def test_held_out_keys_are_random():
    """Each of six keys is held out for 50 of 300 seeds: 20 to 85 but with probability 1e-6."""
    keys = keys_with([10] * 6)
    counts = count_keys(keys)
    found = [
        choose_held_out(counts, 0.1, Stream.from_seed(seed), {}, keys)[0].rows(keys)
        for seed in range(300)
    ]
    of_key = [sum(out[keys == key][0] for out in found) for key in np.unique(keys)]
    assert sum(of_key) == 300
    assert 20 < min(of_key) <= max(of_key) < 85


def test_a_class_with_one_key_stays_in_training():
    keys = keys_with([1] * 200)
    ranks = HeldOut(STREAM).ranks(keys)
    first, second = np.argsort(ranks)[:2]
    lasts = {"a": (int(ranks.max()), 1), "b": (int(ranks[first]), int(keys[first]))}
    held_out, kept = choose_held_out(count_keys(keys), 0.1, STREAM, lasts, keys)
    assert kept == ["b"]
    out = held_out.rows(keys)
    assert (out[first], out[second], out.sum()) == (False, True, 20)
    # Each class has one key: none can be held out.
    lasts = {place: (int(ranks[place]), int(keys[place])) for place in range(200)}
    held_out, kept = choose_held_out(count_keys(keys), 0.1, STREAM, lasts, keys)
    assert held_out.share == 0
    assert not held_out.rows(keys).any()


def test_counts_of_blocks_are_those_of_all_rows(monkeypatch):
    monkeypatch.setattr(splits, "_MOST_KEYS", 500)
    for n_keys in (400, 5000):
        keys = keys_with([1] * (n_keys // 2) + [3] * (n_keys // 2))
        whole = count_keys(keys)
        parts = [KeyCounts() for _ in range(3)]
        for part, rows in zip(parts, np.array_split(keys[::-1], 3), strict=True):
            for block in np.array_split(rows, 7):
                part.update(block)
        merged = copy.deepcopy(parts[2])
        for part in parts[:2]:
            merged.merge(part)
        assert (merged.n_rows, merged.level) == (whole.n_rows, whole.level)
        for one, other in zip(merged.list(), whole.list(), strict=True):
            np.testing.assert_array_equal(one, other)
        assert len(whole.list()[0]) <= 500
        assert whole.is_exact == (n_keys == 400)
        # About 250 to 500 keys are counted, half of them with two more rows: six deviations.
        tolerance = 0 if whole.is_exact else 6 * n_keys / 250**0.5
        assert abs(whole.n_keys - n_keys) <= tolerance
        assert abs(whole.n_repeated - n_keys) <= 2 * tolerance


def test_of_many_keys_about_the_share_is_held_out(monkeypatch):
    """20,000 keys of one row, and one of 20,000: within six deviations of 2,000 are held out."""
    monkeypatch.setattr(splits, "_MOST_KEYS", 500)
    keys = keys_with([20_000] + [1] * 20_000)
    held_out, _ = choose_held_out(count_keys(keys), 0.1, STREAM, {}, keys[:1000])
    assert abs(held_out.rows(keys).sum() - 2000) < 6 * 1800**0.5


@pytest.mark.parametrize("sizes", [[1] * 1000, [980] * 6, [500] + [1] * 500, [7] * 90 + [1] * 90])
def test_folds_without_rows_in_memory(sizes):
    keys = keys_with(sizes)
    folds = [each.rows(keys) for each in cut_folds(HeldOut(STREAM), count_keys(keys), 3, STREAM)]
    assert (np.sum(folds, axis=0) == 1).all()
    assert_not_divided(keys, np.argmax(folds, axis=0))
    tested = [int(out.sum()) for out in folds]
    assert min(tested) > 0
    if max(sizes) < 500 or len(set(sizes)) == 1:
        assert max(tested) - min(tested) <= max(sizes)


@pytest.mark.parametrize("sizes", [[1] * 400, [3] * 300, [100] * 6 + [1] * 50, [200, 5, 5, 5]])
def test_parts_are_balanced(sizes):
    keys = keys_with(sizes)
    classes = np.random.default_rng(2).integers(0, 3, len(keys))
    if len(sizes) == 300:
        classes = (keys % np.uint64(3)).astype(int)  # copies with equal targets
    for codes in (None, classes):
        parts = assign_parts(keys, 4, codes)
        assert_not_divided(keys, parts)
        assert set(parts) == {0, 1, 2, 3}
        found = np.bincount(parts)
        if max(sizes) < len(keys) / 4:
            assert found.max() - found.min() <= max(sizes)
    if max(sizes) <= 3:
        for code in range(3):
            found = np.bincount(parts[classes == code], minlength=4)
            assert found.max() - found.min() <= max(sizes)


def test_division_of_a_sample():
    order, ends = divide_sample(keys_with([1] * 103), None, 103)
    assert (order, ends) == (None, [25, 51, 77, 103])  # in the order that it has
    assert divide_sample(None, None, 103) == (order, ends)
    assert divide_sample(keys_with([103]), None, 103) == (order, ends)
    for sizes, n_parts in (([3] * 60, 4), ([50, 40, 30], 3), ([90, 10], 2), ([4, 4, 4, 4, 1], 4)):
        keys = keys_with(sizes)
        order, ends = divide_sample(keys, None, len(keys))
        assert sorted(order) == list(range(len(keys)))
        assert len(ends) == n_parts
        assert ends[-1] == len(keys)
        assert_not_divided(keys[order], np.searchsorted(ends, np.arange(len(keys)), side="right"))
    assert ends[-1] - ends[-2] == 4  # as close to a quarter as a part is


@pytest.mark.parametrize("weighted", [False, True])
def test_left_out_with_all_copies(weighted):
    """The errors are those of models fitted without the rows of a key, to rounding."""
    rng = np.random.default_rng(0)
    keys = keys_with([1] * 15 + [2] * 8 + [5] * 2 + [12])
    of_key = {key: rng.normal(size=3) for key in keys.tolist()}
    X = np.array([of_key[key] for key in keys.tolist()]) + np.where(
        weighted, 0.1, 0.0
    ) * rng.normal(size=(len(keys), 3))
    Y = rng.normal(size=(len(keys), 2))
    weights = rng.uniform(0.5, 2.0, len(keys)) if weighted else np.ones(len(keys))
    weights /= weights.mean()
    first = 20
    judged = ~np.isin(keys, keys[:first]) | (np.arange(len(keys)) < first)
    keys, X, Y, weights = (
        keys[judged],
        X[judged],
        Y[judged],
        weights[judged] / weights[judged].mean(),
    )
    fitted = RandomFourier(n_components=16, length_scale=1.0, random_state=0).fit(X)
    Z = fitted.transform(X)
    given = weights if weighted else None
    for ridge in (1e-3, 1.0):
        found = leave_one_out(fitted, X, Y, first, given, keys)(ridge)
        squares = 0.0
        for key in np.unique(keys[first:]):
            out = keys == key
            model = Ridge(ridge).fit(Z[~out], Y[~out], weights[~out])
            residuals = Y[out] - model.predict(Z[out])
            squares += (weights[out][:, None] * residuals**2).sum()
        assert found == pytest.approx(squares / (2 * weights[first:].sum()), rel=1e-6)
        assert found != pytest.approx(leave_one_out(fitted, X, Y, first, given)(ridge), rel=1e-3)


def make_noise(n_distinct=300, n_copies=3, n_classes=2):
    """Labels that are noise: only those who have seen a row can know its label."""
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(n_distinct, 2)), rng.integers(0, n_classes, n_distinct)
    rows = rng.permutation(np.repeat(np.arange(n_distinct), n_copies))
    return {"a": X[rows, 0], "b": X[rows, 1], "y": np.array(["no", "yes"])[y[rows]]}


@pytest.mark.representative
@pytest.mark.parametrize("memory", [0, 1 << 28])
def test_errors_on_copies_are_those_of_new_rows(memory):
    """With 150 distinct held-out rows, and 300 in all folds, errors are below 0.3 with 5e-7.

    A model that has seen copies of a row knows its label: with divided copies, errors were 0.14 and
    0.07.
    """
    options = {"length_scale": 0.05, "alpha": 1e-9, "n_components": 1024, "epochs": 30}
    model = fit_table(
        make_noise(), "y", holdout=0.5, folds=3, feature_map="fastfood", memory=memory, **options
    )
    summary = model.summary
    assert (summary.n_held_out, summary.n_rows) == (450, 450)
    assert summary.held_out.metrics["error"] > 0.3
    assert summary.cross_validation.mean > 0.3
    note = "600 of 900 rows repeat the inputs of another row; copies are never divided"
    assert any(each.startswith(note) for each in summary.notes)


def test_tuning_on_copies_is_that_of_new_rows():
    """The log loss of chance is 0.69, the squared error of signs 1.

    Settings that remember rows would have about 0. The best of some 50 points, each with at least
    60 distinct validation rows, is below 0.55 and 0.8 with probability 1e-4.
    """
    summary = fit_table(make_noise(), "y", n_components=256, budget=5.0).summary
    losses = [point.error for point in summary.tuning if point.criterion == "log loss"]
    errors = [point.error for point in summary.tuning if point.criterion == "squared error"]
    assert min(losses) > 0.55
    assert min(errors) > 0.8


@pytest.mark.usefixtures("few_epochs")
def test_comparisons_on_copies_are_those_of_new_rows():
    """75 distinct test rows: a model has an error below 0.25 with probability 3e-6."""
    found = compare_table(make_noise(), "y", n_components=[64])
    assert found.n_test == 225
    errors = {model.name: model.error for model in found.models}
    assert min(errors.values()) > 0.25, errors
    assert any("600 of 900 rows repeat" in note for note in found.notes)


def survey(source, target, **options):
    table, inputs, _, _ = open_inputs(source, target, "auto", options, [])
    progress = SilentProgress()
    found = survey_table(
        table, inputs, task="auto", missing="error", holdout=0.3, stream=STREAM, progress=progress
    )
    return found, encode_table(table, found, 1 << 30, progress)


def test_keys_are_on_one_side_in_every_format(tmp_path):
    """Dense, sparse, text and Arrow with dictionaries; the same rows wherever values are equal."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (900, 5)).astype(float)
    X[:, 4] += 1  # svmlight files end with their last value
    y = np.arange(900) % 2
    words = np.array(["red", "blue", "green"])[rng.integers(0, 3, 900)]
    columns = {f"x{i}": x for i, x in enumerate(X.T)} | {"word": words}
    frame = pa.table(columns | {"y": y})
    pq.write_table(frame, tmp_path / "rows.parquet", row_group_size=200)
    encoded = frame.set_column(5, "word", frame["word"].dictionary_encode())
    lines = [",".join(map(str, row)) for row in zip(*columns.values(), y, strict=True)]
    (tmp_path / "rows.csv").write_text(",".join([*columns, "y"]) + "\n" + "\n".join(lines) + "\n")
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    pairs = (" ".join(f"{i + 1}:{v}" for i, v in enumerate(row) if v) for row in X)
    (tmp_path / "rows.svm").write_text("".join(f"{t} {p}\n" for t, p in zip(y, pairs, strict=True)))
    held_out = {}
    for name, source, target in (
        ("parquet", tmp_path / "rows.parquet", "y"),
        ("csv", tmp_path / "rows.csv", "y"),
        ("arrow", encoded, "y"),
        ("npz", tmp_path / "rows.npz", None),
        ("svm", tmp_path / "rows.svm", None),
        ("pair", (X, y), None),
    ):
        found, rows = survey(source, target, **({} if target is None else {"block_bytes": 3000}))
        assert not np.isin(rows.held_out.keys, rows.training.keys).any()
        assert not np.isin(rows.held_out.keys, found.sample_keys).any()
        assert len(rows.held_out.target) == pytest.approx(270, abs=5)
        one, other = (
            {row.tobytes() for row in (X.toarray() if issparse(X) else X)}
            for X in (rows.held_out.X, rows.training.X)
        )
        assert not one & other
        held_out[name] = np.sort(rows.held_out.keys)
    for name in ("csv", "arrow"):
        np.testing.assert_array_equal(held_out[name], held_out["parquet"])
    for name in ("npz", "pair"):
        np.testing.assert_array_equal(held_out[name], held_out["svm"])


def test_too_few_different_rows_for_folds():
    rows = {"a": [1.0, 2.0, 3.0] * 50, "y": ["p", "q", "p"] * 50}
    options = {"n_components": 8, "tune": False, "holdout": 0}
    with pytest.raises(ArgumentError, match=r"folds must be at most 3, the number of rows with"):
        fit_table(rows, "y", folds=4, **options)
    with pytest.raises(ArgumentError, match=r"folds is 3, but there are rows for 2 folds only"):
        fit_table(rows, "y", folds=3, **options)
    assert fit_table(rows, "y", folds=2, **options).summary.cross_validation.errors
