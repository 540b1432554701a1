"""Weights of rows and classes, other ways to measure the error, fits to all rows."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn import metrics

import kernelmill
from kernelmill import fit_table
from kernelmill.errors import ArgumentError
from kernelmill.formatting import html
from kernelmill.io import TableError
from kernelmill.random import Stream
from kernelmill.report.plots.evaluation import class_table
from kernelmill.workflows.training.encoded_rows import EncodedRows
from kernelmill.workflows.training.fit_table import _tuning_weights
from kernelmill.workflows.training.plan import _assign_folds

QUICK = {"tune": False, "length_scale": 1.0, "alpha": 1e-4, "n_components": 64}


def make_columns(n_rows=500, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n_rows))
    near = np.where(a * a + b * b < 0.4, "near", "far")
    return {"a": a, "b": b, "place": near, "radius": np.hypot(a, b), "w": rng.uniform(0, 3, n_rows)}


@pytest.fixture(scope="module")
def columns():
    return make_columns()


@pytest.mark.parametrize("memory", [0, 1 << 24])
def test_weights_are_those_of_the_learner(columns, memory):
    """The same model as of the learner, with the encoded rows and their weights."""
    model = fit_table(
        columns, "radius", weights="w", drop=["place"], holdout=0, memory=memory, **QUICK
    )
    assert [column.name for column in model.summary.columns] == ["a", "b"]
    assert model.summary.weights == "w"
    (block,) = kernelmill.io.open_table(columns).blocks()
    X = model.encoder.encode(model.inputs.data(block.data))
    learner = kernelmill.KernelRegressor(model.learner.feature_map, alpha=1e-4, random_state=0).fit(
        X, columns["radius"], columns["w"] / columns["w"].mean()
    )
    np.testing.assert_allclose(model.learner.predict(X), learner.predict(X), rtol=1e-4, atol=1e-4)
    plain = fit_table(columns, "radius", drop=["place", "w"], holdout=0, **QUICK)
    assert not np.allclose(model.learner.predict(X), plain.learner.predict(X), rtol=1e-4)


def test_a_row_of_weight_zero_does_not_count(columns):
    weights = np.ones(500)
    weights[:100] = 0
    changed = dict(columns, w=weights, radius=columns["radius"].copy())
    changed["radius"][:100] = 1e6
    model = fit_table(changed, "radius", weights="w", drop=["place"], holdout=0, **QUICK)
    assert np.abs(model.predict(columns)).max() < 20


@pytest.mark.parametrize("memory", [0, 1 << 24])
def test_only_ratios_of_weights_count(columns, memory):
    options = {"weights": "w", "drop": ["place"], "memory": memory, **QUICK}
    model = fit_table(columns, "radius", **options)
    scaled = fit_table(dict(columns, w=2.0**10 * columns["w"]), "radius", **options)
    np.testing.assert_array_equal(model.learner.coef_, scaled.learner.coef_)
    assert model.summary.held_out.metrics == scaled.summary.held_out.metrics
    assert model.summary.held_out.notes == ["Rows are weighted by column 'w'."]
    with pytest.raises(TableError, match="all weights in column 'w' are 0"):
        fit_table(dict(columns, w=np.zeros(500)), "radius", **options)


def test_tuning_does_not_see_rows_of_weight_zero():
    """Labels of such rows are random: with other random labels, the same settings are chosen."""
    columns = make_columns(240)
    rng = np.random.default_rng(5)
    ignored = rng.random(240) < 0.5
    settings = {"weights": "w", "drop": ["radius"], "kernel": "gaussian", "n_components": 32}
    found = []
    for _ in range(2):
        labels = np.where(ignored, rng.choice(["near", "far"], 240), columns["place"])
        table = dict(columns, w=np.where(ignored, 0.0, columns["w"]), place=labels)
        fit = fit_table(table, "place", epochs=2, **settings).summary
        found.append((fit.alpha, fit.length_scale, fit.tuning, fit.held_out.metrics))
    assert found[0] == found[1]


def test_class_weights_count_in_tuning():
    reader = SimpleNamespace(classes=np.array(["far", "near"]))
    codes, weights = np.array([0, 0, 0, 1]), np.array([1.0, 1.0, 2.0, 4.0])
    for given, sampled, expected in (
        (None, None, None),
        (None, weights, weights),
        ("balanced", None, [4 / 6, 4 / 6, 4 / 6, 2]),
        ("balanced", weights, weights),  # the classes have the same total weight
        ({"near": 3}, weights, [1, 1, 2, 12]),
    ):
        survey = SimpleNamespace(reader=reader, sample_target=codes, sample_weight=sampled)
        found = _tuning_weights(survey, given)
        assert (found is None) == (expected is None)
        if expected is not None:
            np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("target", ["place", "radius"])
def test_errors_are_weighted_as_in_scikit_learn(columns, target, tmp_path):
    drop = ["radius" if target == "place" else "place"]
    model = fit_table(columns, target, weights="w", drop=drop, **QUICK)
    new = make_columns(300, seed=1)
    new["w"][:30] = 0
    found = model.evaluate_table(new)
    assert found.notes == ["Rows are weighted by column 'w', as in training."]
    predicted, y, w = (
        model.predict_table(new, probabilities=target == "place"),
        new[target],
        new["w"],
    )
    expected = {}
    if target == "radius":
        values = predicted["prediction"]
        expected["rmse"] = metrics.root_mean_squared_error(y, values, sample_weight=w)
        expected["mae"] = metrics.mean_absolute_error(y, values, sample_weight=w)
        expected["r2"] = metrics.r2_score(y, values, sample_weight=w)
    else:
        labels, p = predicted["prediction"], predicted["probability of near"]
        expected["error"] = 1 - metrics.accuracy_score(y, labels, sample_weight=w)
        expected["balanced_error"] = 1 - metrics.balanced_accuracy_score(y, labels, sample_weight=w)
        expected["log_loss"] = metrics.log_loss(y, p, labels=["far", "near"], sample_weight=w)
        # Evaluations rank rows by log odds in steps of a thousandth: nearer ones are ties.
        odds = np.floor((np.log(p) - np.log1p(-p) + 35) / 70 * ((1 << 16) - 1))
        expected["auc"] = metrics.roc_auc_score(y == "near", odds, sample_weight=w)
        ranked = metrics.average_precision_score(y == "near", odds, sample_weight=w)
        expected["average_precision"] = ranked
        assert np.sum(found.confusion) == 300  # of rows
    for name, value in expected.items():
        assert found.metrics[name] == pytest.approx(value, rel=2e-4), name
    plain = model.evaluate_table(new, weights=False)
    assert plain.metrics != found.metrics
    assert plain.metrics == model.evaluate_table({**new, "w": np.ones(300)}).metrics
    other = model.evaluate_table({**new, "v": w}, weights="v").metrics
    assert other == found.metrics
    without = {name: each for name, each in new.items() if name != "w"}
    notes = model.evaluate_table(without).notes
    assert notes[0].startswith("All rows have the same weight, since the table has")
    # As if rows of integer weights were repeated; the interval is then narrower.
    repeats = np.arange(300) % 3
    again = {name: np.repeat(each, repeats) for name, each in without.items()}
    weighed = model.evaluate_table({**without, "w": repeats.astype(float)}).metrics
    for name, value in model.evaluate_table(again).metrics.items():
        if not name.endswith(("_low", "_high")):
            assert weighed[name] == pytest.approx(value, rel=1e-6)
    validated = fit_table(columns, target, weights="w", drop=drop, validation=new, **QUICK)
    assert validated.summary.held_out.notes == []
    assert validated.summary.held_out.n_rows == 300


def test_weights_in_a_matrix(columns):
    matrix = np.c_[columns["a"], columns["w"], columns["b"], columns["radius"]]
    model = fit_table(matrix, 3, weights=1, **QUICK)
    assert model.summary.n_inputs == 2
    assert model.summary.held_out.metrics["r2"] > 0.8


def test_class_weights(columns, tmp_path):
    options = {"drop": ["radius", "w"], "holdout": 0, "epochs": 10, **QUICK}
    recall = {}
    for given in (None, "balanced", {"near": 20.0}, {"near": 20}):
        model = fit_table(columns, "place", class_weight=given, **options)
        predicted = model.predict(columns)
        recall[str(given)] = np.mean(predicted[columns["place"] == "near"] == "near")
        model.save(tmp_path / "model.kmill")
        loaded = kernelmill.load(tmp_path / "model.kmill")
        assert loaded.learner.class_weight == given
        assert loaded.summary.class_weight == {"None": "", "balanced": "balanced"}.get(
            str(given), "near: 20"
        )
    assert recall["{'near': 20.0}"] == recall["{'near': 20}"] >= recall["balanced"] > recall["None"]


def test_validation_table(columns, tmp_path):
    other = make_columns(200, seed=1)
    model = fit_table(columns, "place", validation=other, drop=["radius", "w"], **QUICK)
    assert (model.summary.n_rows, model.summary.n_held_out) == (500, 200)
    assert model.summary.held_out.metrics == model.evaluate_table(other).metrics


@pytest.mark.parametrize("memory", [0, 1 << 24])
@pytest.mark.parametrize("target", ["place", "radius"])
def test_folds(columns, tmp_path, target, memory):
    drop = ["w", "radius" if target == "place" else "place"]
    few = {"epochs": 2} if target == "place" else {}
    model = fit_table(columns, target, folds=4, drop=drop, memory=memory, **few, **QUICK)
    found = model.summary.cross_validation
    assert len(found.errors) == 4
    assert len(set(found.errors)) > 1
    assert found.mean == pytest.approx(np.mean(found.errors))
    if target == "radius":
        # The corrected variance: s² (1/K + 1/(K - 1)), and the quantile of 3 degrees of freedom.
        half = 3.182446305284263 * np.std(found.errors, ddof=1) * np.sqrt(1 / 4 + 1 / 3)
        assert found.high == pytest.approx(found.mean + half)
        assert found.low == pytest.approx(max(0.0, found.mean - half))
    else:
        # Each end of Wilson's interval is z of its own standard deviations from the mean.
        n_rows = 500 / (1 + 4 / 3)
        for end in (found.low, found.high):
            deviation = np.sqrt(end * (1 - end) / n_rows)
            assert abs(end - found.mean) == pytest.approx(1.959963984540054 * deviation)
    model.save(tmp_path / "model.kmill")
    assert kernelmill.load(tmp_path / "model.kmill").summary.cross_validation == found


def test_the_interval_of_folds_without_errors_has_a_width():
    x = np.r_[np.linspace(-3, -2, 30), np.linspace(2, 3, 30)]
    columns = {"x": x, "y": np.where(x > 0, "p", "n")}
    found = fit_table(columns, "y", folds=3, epochs=2, **QUICK).summary.cross_validation
    assert (found.errors, found.low) == ([0.0, 0.0, 0.0], 0.0)
    n_rows = 60 / (1 + 3 / 2)
    assert found.high == pytest.approx(1.959963984540054**2 / (n_rows + 1.959963984540054**2))


def test_folds_have_all_classes():
    """And rows with equal keys are in one fold: here the first 10 rows, and the next two."""
    target = np.array([0] * 50 + [1] * 3 + [2])
    keys = np.arange(54, dtype=np.uint64)
    keys[:10], keys[10:12] = 0, 10
    for distinct in (True, False):
        own = np.arange(54, dtype=np.uint64) if distinct else keys
        rows = EncodedRows(np.zeros((54, 1)), target, keys=own)
        folds = _assign_folds(rows, 3, Stream.from_seed(0))
        assert folds[-1] == -1
        assert sorted(folds[50:53]) == [0, 1, 2]
        assert sorted(np.bincount(folds[:50])) == [16, 17, 17]
        assert distinct or [len(set(folds[:10])), len(set(folds[10:12]))] == [1, 1]


@pytest.mark.parametrize("memory", [0, 1 << 24])
def test_refit(columns, memory):
    drop = ["place", "w"]
    options = {"drop": drop, "memory": memory, **QUICK}
    once = fit_table(columns, "radius", **options)
    again = fit_table(columns, "radius", refit=True, **options)
    whole = fit_table(columns, "radius", holdout=0, **options)
    assert again.summary.held_out.metrics == once.summary.held_out.metrics
    assert again.summary.refitted
    assert (again.summary.n_rows, once.summary.n_rows) == (500, 500 - once.summary.n_held_out)
    np.testing.assert_allclose(again.predict(columns), whole.predict(columns), rtol=1e-3, atol=1e-3)


def test_a_note_if_there_will_be_no_standard_deviations(columns, monkeypatch):
    monkeypatch.setattr("kernelmill.workflows.training.fit_table.MAX_UNCERTAIN_FEATURES", 32)
    notes = fit_table(columns, "radius", drop=["place", "w"], **QUICK).summary.notes
    assert any("will not support standard deviations, which would take" in note for note in notes)
    notes = fit_table(columns, "radius", drop=["place", "w"], solver="cg", **QUICK).summary.notes
    assert any("conjugate gradient solver" in note for note in notes)
    assert not fit_table(columns, "place", drop=["radius", "w"], **QUICK).summary.notes


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"weights": "place"}, TableError, "must be a column of numbers, got 'place'"),
        ({"weights": "radius"}, TableError, "must be a column other than the target"),
        ({"class_weight": "balanced"}, ArgumentError, "is for classification"),
        ({"folds": 1}, ArgumentError, "folds must be between 2 and 1000, got 1"),
    ],
)
def test_options_that_make_no_sense(columns, options, error, message):
    with pytest.raises(error, match=message):
        fit_table(columns, "radius", **options, **QUICK)


def test_bad_weights_and_labels_are_named(columns):
    for value in (-1.0, np.nan, np.inf):
        weights = np.ones(500)
        weights[3] = value
        with pytest.raises(TableError, match=r"the weight in column 'w' is \S+ in row 4"):
            fit_table(dict(columns, w=weights), "place", weights="w", missing="impute", **QUICK)
    with pytest.raises(ArgumentError, match="class_weight must be"):
        fit_table(columns, "place", class_weight="even", **QUICK)
    with pytest.raises(ArgumentError, match=r"'x', which is not one of the classes \(far, near\)"):
        fit_table(columns, "place", class_weight={"x": 1}, **QUICK)


def test_more_folds_than_rows():
    rows = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(
        ValueError, match="folds must be at most 20, the number of rows with different inputs"
    ):
        fit_table(rows, 2, folds=30, tune=False, n_components=8)


def test_confusion_has_rows_and_weights(columns):
    weights = np.where(columns["a"] > 0.3, 3.0, 0.5)
    table = dict(columns, w=weights)
    rough = QUICK | {"n_components": 8, "alpha": 0.003}
    model = fit_table(table, "place", weights="w", drop=["radius"], holdout=0, **rough)
    found = model.evaluate_table(table)
    rows, sums = np.array(found.confusion), np.array(found.weighted_confusion)
    assert rows.sum() == 500
    assert sums.sum() == pytest.approx(weights.sum())
    assert found.metrics["error"] == pytest.approx(1 - np.trace(sums) / sums.sum())
    assert found.to_record()["weighted_confusion"] == found.weighted_confusion
    assert model.evaluate_table(table, weights=False).weighted_confusion is None
    recall = sums[0, 0] / sums[0].sum()
    shown = class_table(found)
    assert shown.caption == "By class; recall and precision are weighted"
    assert shown.rows[0][2] == html.percent(recall) != html.percent(rows[0, 0] / rows[0].sum())


def test_options_of_the_map_are_checked_before_the_table_is_read():
    for options in ({"structure": "foo"}, {"features": "foo"}):
        with pytest.raises(ArgumentError, match=r"must be one of .* got 'foo'"):
            fit_table("none.csv", "y", feature_map="fastfood", map_options=options, tune=False)
