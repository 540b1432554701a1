"""Without tuning, the penalty is the best of a few on validation rows."""

import numpy as np
import pytest

from kernelmill import fit_table
from kernelmill.learners import default_alpha

SETTINGS = {"tune": False, "n_components": 128, "holdout": 0.3}


def noisy(n_rows=600, seed=0):
    """A quarter of the rows is rare; one of ten columns says a little about it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 10))
    rare = rng.random(n_rows) < np.clip(0.25 + 0.13 * X[:, 0], 0, 1)
    table = {f"x{k}": column for k, column in enumerate(X.T)}
    return table | {"y": np.where(rare, "rare", "usual")}


def alike(n_groups=150, seed=0):
    """One of four rows that are nearly equal is rare: what is learned from others is wrong."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.normal(size=(n_groups, 3)), 4, axis=0)
    X += 1e-3 * rng.normal(size=X.shape)
    order = rng.permutation(4 * n_groups)
    table = {f"x{k}": column[order] for k, column in enumerate(X.T)}
    return table | {"y": np.tile(["rare", "usual", "usual", "usual"], n_groups)[order]}


def measure(model):
    """Return the error beyond that of a constant, and the log loss."""
    metrics = model.summary.held_out.metrics
    return metrics["error"] - metrics["baseline_error"], metrics.get("log_loss")


def chosen_power(summary, default):
    """Return the power of ten of the penalty, relative to the default."""
    (chosen,) = (point.alpha for point in summary.tuning if point.chosen)
    assert summary.alpha == chosen
    return round(np.log10(chosen / default))


@pytest.mark.parametrize("seed", [3, 4])
def test_noise_is_not_learned(full_tuning, seed):
    """With the default penalty, the error is clearly larger than that of a constant."""
    table, default = noisy(1000, seed), default_alpha(1000)
    settings = SETTINGS | {"n_components": 256, "holdout": 0.4}
    excess, log_loss = measure(fit_table(table, "y", alpha=default, **settings))
    assert excess > 0.03
    model = fit_table(table, "y", **settings)
    found, better = measure(model)
    assert found < 0.015
    assert better < log_loss - 0.05
    assert chosen_power(model.summary, default) in (1, 2)
    assert {point.criterion for point in model.summary.tuning} == {"log loss"}


def test_streamed_rows_have_the_same_penalty(few_epochs):
    models = [fit_table(noisy(), "y", memory=memory, **SETTINGS) for memory in (0, 1 << 28)]
    assert models[0].summary.tuning == models[1].summary.tuning != []


@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
def test_no_penalty_is_better_than_a_constant(loss):
    """The strongest penalty leaves the constant, and a note says so."""
    model = fit_table(alike(), "y", loss=loss, **SETTINGS)
    assert chosen_power(model.summary, default_alpha(600, loss)) == 5
    assert any("than a constant prediction" in note for note in model.summary.notes)
    assert measure(model)[0] == pytest.approx(0)
    assert set(model.predict_table(alike(seed=1))["prediction"]) == {"usual"}


@pytest.mark.parametrize("loss", ["squared", "squared_hinge"])
def test_other_losses(few_epochs, loss):
    summary = fit_table(noisy(), "y", loss=loss, **SETTINGS).summary
    assert chosen_power(summary, default_alpha(600, loss)) > 0
    assert summary.held_out.metrics["error"] <= summary.held_out.metrics["baseline_error"]


def test_regression_of_noise_and_of_a_smooth_function():
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, (400, 2))
    smooth = {"a": X[:, 0], "b": X[:, 1], "y": np.sin(2 * X[:, 0]) + X[:, 1] ** 2}
    model = fit_table(smooth, "y", **SETTINGS)
    given = fit_table(smooth, "y", alpha=1.0, **SETTINGS)
    assert chosen_power(model.summary, 1.0) == -2
    rmse = [each.summary.held_out.metrics["rmse"] for each in (model, given)]
    assert rmse[0] < 0.7 * rmse[1]
    noise = smooth | {"y": rng.normal(size=400)}
    model = fit_table(noise, "y", **SETTINGS)
    assert model.summary.alpha >= 100
    metrics = model.summary.held_out.metrics
    assert metrics["rmse"] < 1.02 * metrics["target_std"]


@pytest.mark.parametrize("target", ["y", "x1"])
def test_a_given_penalty_is_not_checked(few_epochs, monkeypatch, target):
    monkeypatch.delattr("kernelmill.workflows.tuning.kernel_search.Sample.of")
    summary = fit_table(noisy(), target, alpha=0.3, **SETTINGS).summary
    assert (summary.alpha, summary.tuning) == (0.3, [])


def test_few_rows(few_epochs):
    rows = noisy(19)
    assert fit_table(rows, "y", tune=False, n_components=16).summary.alpha == default_alpha(19)
    regression = fit_table(rows, "x1", tune=False, n_components=16).summary
    assert (regression.alpha, regression.tuning) == (1.0, [])


@pytest.mark.parametrize(
    "feature_map", ["nystroem", "additive_fourier", "tensor_sketch", "taylor_sketch"]
)
def test_other_maps(few_epochs, feature_map):
    model = fit_table(noisy(200), "y", feature_map=feature_map, **SETTINGS)
    assert model.summary.tuning
    assert all(point.n_components <= 64 for point in model.summary.tuning)


def test_copies_of_rows_are_not_validated(few_epochs):
    """Their targets could be learned by heart."""
    table = {name: np.tile(column, 4) for name, column in alike(75).items()}
    summary = fit_table(table, "y", **SETTINGS).summary
    assert chosen_power(summary, default_alpha(1200)) == 5


def test_weights_count(few_epochs):
    """Rows of weight zero, whose targets contradict the others, change nothing."""
    clean = noisy(400, 2)
    doubled = {name: np.r_[column, column] for name, column in clean.items()}
    doubled["y"] = np.r_[clean["y"], np.where(clean["y"] == "rare", "usual", "rare")]
    order = np.random.default_rng(0).permutation(800)
    doubled = {name: column[order] for name, column in doubled.items()}
    doubled["w"] = np.r_[np.ones(400), np.zeros(400)][order]
    weighted = fit_table(doubled, "y", weights="w", **SETTINGS).summary
    ignored = fit_table(doubled, "y", drop=["w"], **SETTINGS).summary
    assert chosen_power(ignored, default_alpha(800)) == 5
    assert chosen_power(weighted, default_alpha(800)) < 5
