"""Passes over pieces of a table, merged in order, find what one pass finds."""

import copy
import pickle
from dataclasses import asdict, replace

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest

from kernelmill.encoding.column_statistics import CategoryCounts, NumericMoments
from kernelmill.encoding.dates import DateFormats
from kernelmill.encoding.inputs import choose_inputs
from kernelmill.encoding.row_keys import InputKeys
from kernelmill.encoding.targets import TargetLearner
from kernelmill.io import TableError, open_table
from kernelmill.io.pieces import cut_table
from kernelmill.io.row_sample import RowSample, find_limit
from kernelmill.random import Stream
from kernelmill.random.row_hashes import rank_keys
from kernelmill.runtime.progress import SilentProgress
from kernelmill.workflows.evaluation import make_scores
from kernelmill.workflows.training.survey import SurveyPass, open_source, survey_table

STREAM = Stream.from_seed(3)


def survey_both(path, target, n_bytes, *, task="auto", missing="impute", **options):
    """The survey in one pass, and as one of pieces that are merged pair by pair."""
    table, target = open_source(path, target, task, options)
    inputs = choose_inputs(table, target, [])
    settings = {
        "task": task,
        "missing": missing,
        "holdout": None,
        "stream": STREAM,
        "progress": SilentProgress(),
        "sample_rows": 1000,
        "day_first": True,
    }
    n_pieces = 0

    def fold(plan):
        nonlocal n_pieces
        pieces = cut_table(table, n_bytes)
        n_pieces = len(pieces)
        plan = plan.limit_sample(sum(piece.n_rows for piece in pieces))
        passes = []
        for piece in pieces:
            found = SurveyPass(plan)
            for block in piece.blocks():
                found.update(block)
            passes.append(pickle.loads(pickle.dumps(found)))
        while len(passes) > 1:
            for first, second in zip(passes[::2], passes[1::2], strict=False):
                first.merge(second)
            passes = passes[::2]
        return passes[0]

    one = survey_table(table, inputs, **settings)
    merged = survey_table(table, inputs, **settings, fold=fold)
    assert n_pieces > 5
    return one, merged


def assert_same_survey(one, merged):
    """Means and scales to rounding, all the rest exactly."""
    assert merged.columns == one.columns
    assert list(map(str, merged.notes)) == list(map(str, one.notes))
    assert merged.n_rows == one.n_rows
    assert merged.held_out == one.held_out
    assert asdict(merged.reader)["task"] == one.reader.task
    np.testing.assert_array_equal(merged.reader.classes, one.reader.classes)
    np.testing.assert_array_equal(merged.sample_target, one.sample_target)
    np.testing.assert_allclose(merged.sample, one.sample, rtol=1e-6, atol=1e-6)
    if one.inputs.columns is None:
        np.testing.assert_allclose(merged.encoder.mean, one.encoder.mean, rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(merged.encoder.scale, one.encoder.scale, rtol=1e-12)
        assert merged.encoder.transforms == one.encoder.transforms
        return
    for mine, other in zip(merged.encoder.columns, one.encoder.columns, strict=True):
        numbers = {name: getattr(other, name) for name in ("mean", "scale") if hasattr(other, name)}
        for name, value in numbers.items():
            assert getattr(mine, name) == pytest.approx(value, rel=1e-13, abs=1e-13)
        assert replace(mine, **numbers) == other


def write_mixed(path, n_rows=3000, target="word"):
    """Columns of every kind, with a rare class whose rows would all be held out."""
    rng = np.random.default_rng(1)
    targets = [f"class {i % 3}" for i in range(n_rows)]
    if target == "number":
        targets = [f"{x:.3f}" for x in rng.normal(size=n_rows)]
    lines = ["row,flat,bit,skewed,town,age,day,y"]
    for i in range(n_rows):
        skewed = "" if i % 50 == 7 else f"{np.exp(2 * rng.normal()):.4f}"
        town = rng.choice(["Rome", "Oslo", "Bonn", ""], p=[0.6, 0.3, 0.05, 0.05])
        age = rng.choice(["<18", "18-64", "65+"])
        day = f"{1 + i % 12}/{1 + i % 28}/2023"
        flat = "2" if i < n_rows - 3 else "2.7"
        lines.append(f"{i + 1},{flat},{i % 2},{skewed},{town},{age},{day},")
    path.write_text(f"{lines[0]}\n" + "".join(f"{line}0\n" for line in lines[1:]))
    keys = keys_of(path)
    first = int(np.argmin(rank_keys(keys, STREAM.substream("held out"))))
    targets[first] = "99" if target == "number" else "rare"
    rows = "".join(f"{a}{b}\n" for a, b in zip(lines[1:], targets, strict=True))
    path.write_text(f"{lines[0]}\n{rows}")
    return path, int(keys[first])


def keys_of(path):
    table = open_table(path)
    row_keys = InputKeys(choose_inputs(table, "y", []))
    return np.concatenate([row_keys.of(block) for block in table.blocks()])


@pytest.mark.parametrize("target", ["word", "number"])
def test_columns_of_all_kinds(tmp_path, target):
    path, rare_key = write_mixed(tmp_path / "rows.csv", target=target)
    one, merged = survey_both(path, "y", 9_000)
    assert_same_survey(one, merged)
    assert any("increases by one" in str(note) for note in one.notes)
    if target == "word":
        assert one.held_out.kept == (rare_key,)
        assert any("is a training row" in str(note) for note in one.notes)


def test_matrix_with_missing_values(tmp_path):
    X = np.random.default_rng(0).normal(size=(2000, 4)) * [1, 1e8, 1e-3, 1] + [0, 1e9, 3, 5]
    X[::17, 1] = np.nan
    np.save(tmp_path / "rows.npy", X)
    one, merged = survey_both(tmp_path / "rows.npy", 3, 8000)
    assert_same_survey(one, merged)


def test_sparse_rows(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{i % 2} {1 + i % 30}:{rng.normal():.3f} 31:{rng.normal():.3f}" for i in range(900)]
    (tmp_path / "rows.svm").write_text("\n".join(lines))
    one, merged = survey_both(tmp_path / "rows.svm", None, 2000)
    one, merged = (replace(each, sample=each.sample.toarray()) for each in (one, merged))
    assert_same_survey(one, merged)


def test_bytes(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (600, 5)).astype(np.uint8)
    np.savez(tmp_path / "rows.npz", X=images, y=np.arange(600) % 3)
    assert_same_survey(*survey_both(tmp_path / "rows.npz", None, 400))


def test_levels_in_the_order_of_the_file(tmp_path):
    levels = ["low", "middle", "high"]
    words = pa.array([levels[i * 7 % 3] for i in range(500)])
    index = pa.array([levels.index(each) for each in words.to_pylist()], pa.int8())
    ordered = pa.DictionaryArray.from_arrays(index, levels, ordered=True)
    table = pa.table({"a": ordered, "y": np.arange(500) % 2})
    pa.feather.write_feather(table, tmp_path / "rows.arrow", chunksize=30)
    one, merged = survey_both(tmp_path / "rows.arrow", "y", 400)
    assert_same_survey(one, merged)
    assert one.encoder.columns[0].levels == tuple(levels)


def test_moments_of_numbers_of_any_size():
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=9) * 10.0**e for e in (-300, 5, 150, -2)]
    parts.insert(1, np.full(3, np.nan))
    parts.insert(2, np.empty(0))
    whole = NumericMoments("x")
    merged = NumericMoments("x")
    for part in parts:
        whole.update(part)
        later = NumericMoments("x")
        later.update(part)
        merged.merge(later)
    one, other = (each.encoding(marks=True) for each in (whole, merged))
    assert other.mean == pytest.approx(one.mean, rel=1e-13)
    assert other.scale == pytest.approx(one.scale, rel=1e-13)
    assert (merged.missing, merged.least, merged.most) == (3, whole.least, whole.most)


@pytest.mark.parametrize(
    ("parts", "counts_up"),
    [
        ([[1, 2], [3, 4]], True),
        ([[], [1, 2], [], [3]], True),
        ([[1, 2], [4, 5]], False),
        ([[1, 2], [2, 3]], False),
        ([[1, 3], [4]], False),
        ([[1], [2, 2]], False),
    ],
)
def test_row_numbers_over_pieces(parts, counts_up):
    merged = NumericMoments("x")
    for part in parts:
        later = NumericMoments("x")
        later.update(np.array(part, float))
        merged.merge(later)
    assert merged._counts_up == counts_up


def test_too_many_categories_of_pieces_together(monkeypatch):
    monkeypatch.setattr("kernelmill.encoding.column_statistics.MOST_DISTINCT", 5)
    first, second = CategoryCounts("a"), CategoryCounts("a")
    first.update(pa.array(["a", "b", "c"]).dictionary_encode())
    second.update(pa.array(["d", "e", "f"]).dictionary_encode())
    with pytest.raises(TableError, match="appears to be an identifier"):
        first.merge(second)


def test_dates_of_different_forms_in_pieces():
    first, second = DateFormats("a"), DateFormats("a")
    first.update(pa.array(["5/31/2024"]), file="", first_row=0)
    second.update(pa.array(["31.12.2024"]), file="", first_row=1)
    with pytest.raises(TableError, match=r"formats, such as '5/31/2024' and '31\.12\.2024'"):
        first.merge(second)


def test_too_many_classes_of_pieces_together():
    def learn(names):
        learner = TargetLearner("y", "auto")
        table = open_table({"y": names})
        for block in table.blocks():
            learner.update(block)
        return learner

    first = learn([f"a {i}" for i in range(600)])
    with pytest.raises(TableError, match="more than 1000 different values"):
        first.merge(learn([f"b {i}" for i in range(600)]))


@pytest.mark.parametrize("n_rows", [5, 30, 31, 5000])
def test_samples_with_a_limit_are_those_without(n_rows):
    stream = Stream.from_seed(8)
    limit = find_limit(30, stream, n_rows)
    table = open_table(np.arange(n_rows, dtype=float)[:, None], block_bytes=8 * 13)
    samples = [RowSample(30, stream), RowSample(30, stream, limit)]
    for block in table.blocks():
        samples[0].update(block)
        samples[1].update(block)
    assert samples[1]._held == min(30, n_rows)
    one, limited = (sample.rows() for sample in samples)
    np.testing.assert_array_equal(one[1], limited[1])
    np.testing.assert_array_equal(one[0].data, limited[0].data)


def assert_same_scores(model, X, target, classes):
    whole = make_scores(model.learner, classes)
    merged = make_scores(model.learner, classes)
    for begin in range(0, len(X), 90):
        rows = X[begin : begin + 90], target[begin : begin + 90]
        whole.update(*rows)
        later = make_scores(model.learner, classes, begin)
        later.update(*rows)
        later = pickle.loads(pickle.dumps(later))
        merged.merge(copy.deepcopy(later))
    merged.merge(make_scores(model.learner, classes, len(X)))
    one, other = (asdict(replace(s.finish("", []), seconds=0.0)) for s in (whole, merged))
    metrics = one.pop("metrics"), other.pop("metrics")
    assert metrics[1] == pytest.approx(metrics[0], rel=1e-12)
    calibrations = one.pop("calibration"), other.pop("calibration")
    if classes is not None:
        assert calibrations[1]["counts"] == calibrations[0]["counts"]
    assert one == other


def test_scores_of_a_classifier(classifier):
    X = np.random.default_rng(0).normal(size=(500, classifier.encoder.n_inputs)).astype("f4")
    target = np.arange(500) % 2
    assert_same_scores(classifier, X, target, classifier.reader.classes)


def test_scores_of_a_regressor(regressor):
    X = np.random.default_rng(0).normal(size=(500, regressor.encoder.n_inputs)).astype("f4")
    assert_same_scores(regressor, X, np.sin(2 * X[:, 0]).astype(float), None)
