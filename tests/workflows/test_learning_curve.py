"""Losses of held-out rows during training."""

import numpy as np
import pytest

from kernelmill import fit_table
from kernelmill.report.plots.fit import judge_learning, learning_curve_plot
from kernelmill.workflows.records import LearningPoint

QUICK = {"tune": False, "length_scale": 1.0, "alpha": 1e-4, "n_components": 64}


@pytest.fixture(scope="module")
def columns():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 900))
    label = np.where(a * a + b * b + 0.3 * rng.normal(size=900) < 1.4, "in", "out")
    return {"a": a, "b": b, "label": label}


def test_the_last_point_is_the_evaluation(columns):
    summary = fit_table(columns, "label", epochs=6, **QUICK).summary
    curve = summary.learning_curve
    assert 10 <= len(curve) <= 13
    assert [p.rows for p in curve] == sorted({p.rows for p in curve})
    assert curve[-1].rows == 6 * summary.n_rows
    metrics = summary.held_out.metrics
    assert curve[-1].held_out_loss == pytest.approx(metrics["log_loss"], rel=1e-4)
    assert curve[-1].error == pytest.approx(metrics["error"])
    assert curve[0].loss > curve[-1].loss


def test_watching_changes_nothing(columns):
    watched = fit_table(columns, "label", epochs=2, **QUICK)
    unseen = fit_table(columns, "label", epochs=2, memory=0, **QUICK)
    assert [p.held_out_loss for p in unseen.summary.learning_curve] == [None, None]
    refitted = fit_table(columns, "label", epochs=2, refit=True, folds=2, **QUICK)
    assert refitted.summary.learning_curve == watched.summary.learning_curve
    for solver, loss in (("lbfgs", "log_loss"), ("exact", "squared")):
        curve = fit_table(
            columns, "label", solver=solver, loss=loss, **QUICK
        ).summary.learning_curve
        assert all(point.held_out_loss is None for point in curve)


def points(losses):
    return [LearningPoint(100 * i, 0.1, 0.2, loss) for i, loss in enumerate(losses, 1)]


@pytest.mark.parametrize(
    ("losses", "advice"),
    [
        ([0.9, 0.7, 0.6, 0.5, 0.4, 0.3, 0.25, 0.2], "more epochs would help"),
        ([0.9, 0.5, 0.41, 0.4, 0.4, 0.4, 0.4, 0.4], "more epochs would not help"),
        ([0.9, 0.5, 0.3, 0.31, 0.35, 0.4, 0.45, 0.5], "smallest after 300 rows and has increased"),
    ],
)
def test_advice_follows_from_the_curve(losses, advice):
    assert advice in judge_learning(points(losses))
    assert judge_learning(points(losses)[:3]) == ""
    assert judge_learning([LearningPoint(1, 0.5)] * 9) == ""


def test_both_losses_are_drawn():
    figure = learning_curve_plot(points([0.9, 0.5, 0.4, 0.4]))
    assert [axes.get_ylabel() for axes in figure.axes] == ["loss", "held-out error, %"]
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert labels == ["training rows", "held-out rows"]
