"""Without tuning, the penalty is the best of a few on validation rows."""

import numpy as np
import pytest

from kernelmill import fit_table
from kernelmill.learners import default_alpha

SETTINGS = {"tune": False, "n_components": 128, "holdout": 0.3}


def noisy(n_rows=600, *, is_noise=False, seed=0):
    """A quarter of the rows is rare; one of ten columns says a little about it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 10))
    chance = 0.25 if is_noise else np.clip(0.25 + 0.13 * X[:, 0], 0, 1)
    rare = rng.random(n_rows) < chance
    table = {f"x{k}": column for k, column in enumerate(X.T)}
    return table | {"y": np.where(rare, "rare", "usual")}


def measure(model):
    """Return the error beyond that of a constant, and the log loss."""
    metrics = model.summary.held_out.metrics
    return metrics["error"] - metrics["baseline_error"], metrics.get("log_loss")


def chosen_power(summary, default):
    """Return the power of ten of the penalty, relative to the default."""
    (chosen,) = (point.alpha for point in summary.tuning if point.chosen)
    assert summary.alpha == chosen
    return round(np.log10(chosen / default))


def test_noise_is_not_learned(full_tuning):
    """With the default penalty, the error is larger than that of a constant."""
    table, default = noisy(), default_alpha(600)
    excess, log_loss = measure(fit_table(table, "y", alpha=default, **SETTINGS))
    assert excess > 0.02
    model = fit_table(table, "y", **SETTINGS)
    better = measure(model)
    assert better[0] <= 0
    assert better[1] < log_loss - 0.04
    assert chosen_power(model.summary, default) == 2
    assert {point.criterion for point in model.summary.tuning} == {"log loss"}
    streamed = fit_table(table, "y", memory=0, **SETTINGS)
    assert streamed.summary.tuning == model.summary.tuning


@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
def test_no_penalty_is_better_than_a_constant(loss):
    """Of pure noise, the strongest penalty leaves the constant."""
    model = fit_table(noisy(is_noise=True), "y", loss=loss, **SETTINGS)
    assert chosen_power(model.summary, default_alpha(600, loss)) == 5
    assert any("than a constant prediction" in note for note in model.summary.notes)
    assert measure(model)[0] == pytest.approx(0)
    assert set(model.predict_table(noisy())["prediction"]) == {"usual"}


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


def test_weights_count(few_epochs):
    """Rows of weight zero, whose targets contradict the others, change nothing."""
    clean = noisy(400, seed=2)
    doubled = {name: np.r_[column, column] for name, column in clean.items()}
    doubled["y"] = np.r_[clean["y"], np.where(clean["y"] == "rare", "usual", "rare")]
    order = np.random.default_rng(0).permutation(800)
    doubled = {name: column[order] for name, column in doubled.items()}
    doubled["w"] = np.r_[np.ones(400), np.zeros(400)][order]
    weighted = fit_table(doubled, "y", weights="w", **SETTINGS).summary
    ignored = fit_table(doubled, "y", drop=["w"], **SETTINGS).summary
    assert chosen_power(ignored, default_alpha(800)) == 5
    assert chosen_power(weighted, default_alpha(800)) < 5
