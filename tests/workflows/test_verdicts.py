"""Whether a model is called good or bad: AUC, log loss and the verdict on a constant's error."""

import pickle
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm, rankdata
from sklearn.metrics import roc_auc_score

from kernelmill import fit_table
from kernelmill.workflows.evaluation import ClassifierScores, auc_interval
from kernelmill.workflows.records import Evaluation

RARE = [[752, 0], [248, 0]]  # the most frequent class is always predicted
LOSSES = {"log_loss": 0.5, "baseline_log_loss": 0.56}
AREA = {"auc": 0.72, "auc_low": 0.68, "auc_high": 0.76}


def evaluated(metrics, confusion=None, **changes):
    usual = {"error": 0.248, "baseline_error": 0.248}
    return Evaluation("classification", "a.csv", 1000, usual | metrics, 0.1, confusion=confusion)


@pytest.mark.parametrize(
    ("metrics", "confusion", "words"),
    [
        ({}, None, "^The model is no better than always predicting the most frequent class.$"),
        ({"auc": 0.53, "auc_low": 0.48}, RARE, "^The model is no better"),
        ({"auc": float("nan"), "auc_low": None}, RARE, "^The model is no better"),
        ({"log_loss": 0.57, "baseline_log_loss": 0.56}, RARE, "^The model is no better"),
        ({"balanced_error": 0.5}, RARE, "^The model is no better"),
        ({"balanced_error": 0.45}, [[7, 1], [2, 1]], "^The model is no better"),  # by chance
        (AREA | LOSSES, RARE, r"but the probabilities rank rows \(AUC 0.72\): the classes are imb"),
        (AREA, RARE, r"but the scores rank rows .*='balanced'\), or .* a threshold other than 0\."),
        (LOSSES, None, r"are better than the shares \(log loss 0.5; 0.56 for the shares\): the cl"),
        ({"balanced_error": 0.3}, [[552, 200], [100, 148]], "30.0 % rather than 50.0 %: the"),
        (AREA | LOSSES | {"log_loss": 0.7}, RARE, "rank rows .* and the probabilities are worse"),
        ({"error": 0.2} | LOSSES | {"log_loss": 0.7}, None, "^The probabilities are worse than th"),
        ({"error": 0.2} | LOSSES | {"auc": 0.4}, RARE, "^None$"),
        ({"error": 0.2}, None, "^None$"),
        ({"error": 0.3, "baseline_error": 0.0}, None, "^None$"),  # rows of one class
        ({"error": 0.0, "baseline_error": 0.5}, None, "^None$"),
        ({"error": None}, None, "^None$"),
    ],
)
def test_what_is_said(metrics, confusion, words):
    found = str(evaluated(metrics, confusion).verdict)
    assert re.search(words, found), found


def test_remedies_are_for_classes_that_are_predicted_too_rarely():
    found = evaluated(AREA, RARE).verdict
    assert found.remedies[0].settings == {"class_weight": "balanced"}
    often = [[552, 200], [148, 100]]
    assert evaluated(AREA | {"error": 0.348}, often).verdict.remedies == ()
    weighted = replace(evaluated(AREA, RARE), weighted_confusion=[[1.0, 2.0], [0.0, 3.0]])
    assert weighted.verdict.remedies == ()
    even = {"error": 0.51, "baseline_error": 0.49}
    found = evaluated(AREA | even, [[400, 110], [400, 90]]).verdict
    assert found.remedies == ()
    assert "imbalanced" not in found.problem


@pytest.mark.parametrize(("rmse", "is_good"), [(0.9, True), (1.0, False), (1.2, False)])
def test_regression(rmse, is_good):
    metrics = {"rmse": rmse, "target_std": 1.0}
    assert (Evaluation("regression", "a.csv", 9, metrics, 0.1).verdict is None) == is_good


@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
def test_a_ranking_of_rare_rows_is_not_called_useless(few_epochs, loss):
    """No row of a class of 15 % is more probable than not, but x orders the rows."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 3000)
    y = np.where(rng.random(3000) < 0.15 + 0.13 * x, "yes", "no")
    settings = {"n_components": 16, "length_scale": 2.0, "alpha": 0.01, "loss": loss}
    found = fit_table({"x": x, "y": y}, "y", holdout=0.3, **settings).summary.held_out
    assert found.metrics["error"] >= found.metrics["baseline_error"]
    assert found.metrics["auc_low"] > 0.6
    assert "rank rows" in str(found.verdict)
    assert "class_weight='balanced'" in str(found.verdict)


def scored(scores, target, weight, loss):
    """Return merged scores of three parts, of which a cluster pickles some."""
    odds = {"hinge": scores, "log_loss": 5 * scores}[loss]
    learner = SimpleNamespace(
        loss=loss,
        decision_function=lambda X: odds[X],
        predict_proba=lambda X: np.column_stack(
            [1 / (1 + np.exp(odds[X])), 1 / (1 + np.exp(-odds[X]))]
        ),
    )
    found = None
    for rows in np.array_split(np.arange(len(target)), 3):
        part = ClassifierScores(learner, np.array(["no", "yes"]))
        part.update(rows, target[rows], None if weight is None else weight[rows])
        part = pickle.loads(pickle.dumps(part))
        if found is None:
            found = part
        else:
            found.merge(part)
    return found.finish("", []).metrics


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
def test_auc_of_weighted_rows_and_of_ties(loss, scale):
    """Bins are 0.1 % wide, so that a rank is off by at most that share of rows that are close."""
    rng = np.random.default_rng(1)
    target = (rng.random(900) < 0.2).astype(int)
    scores = rng.normal(size=900) + 0.8 * target
    if loss == "hinge":
        scores = scores * scale
    for values in (scores, np.round(scores / np.abs(scores).max(), 1)):
        for weight in (None, rng.integers(0, 4, 900).astype(float)):
            metrics = scored(values, target, weight, loss)
            exact = roc_auc_score(target, values, sample_weight=weight)
            assert metrics["auc"] == pytest.approx(exact, abs=5e-4)
            assert metrics["auc_low"] < metrics["auc"] < metrics["auc_high"]


def test_weights_widen_the_interval():
    rng = np.random.default_rng(2)
    target = (rng.random(600) < 0.3).astype(int)
    scores = rng.normal(size=600) + target
    even = scored(scores, target, np.full(600, 7.0), "hinge")
    plain = scored(scores, target, None, "hinge")
    assert even["auc_low"] == pytest.approx(plain["auc_low"])
    uneven = scored(scores, target, rng.exponential(size=600) ** 2, "hinge")
    assert uneven["auc_high"] - uneven["auc_low"] > 1.3 * (plain["auc_high"] - plain["auc_low"])


def test_no_auc_without_both_classes_or_with_three():
    metrics = scored(np.arange(9.0), np.zeros(9, int), None, "log_loss")
    assert all(np.isnan(metrics[name]) for name in ("auc", "auc_low", "auc_high"))
    assert metrics["baseline_log_loss"] == 0
    learner = SimpleNamespace(loss="log_loss", predict_proba=lambda X: np.full((len(X), 3), 1 / 3))
    three = ClassifierScores(learner, np.arange(3))
    three.update(np.zeros(4), np.array([0, 1, 2, 2]))
    metrics = three.finish("", []).metrics
    assert "auc" not in metrics
    assert metrics["baseline_log_loss"] == pytest.approx(1.5 * np.log(2))


@pytest.mark.parametrize(("m", "n", "shift"), [(40, 25, 1.0), (200, 15, 0.6), (30, 30, 0.0)])
def test_the_interval_contains_the_auc_of_the_population(m, n, shift):
    """In 95 % of 2000 samples: fewer than 93 % would have a probability below 1e-4."""
    rng = np.random.default_rng(3)
    exact = norm.cdf(shift / np.sqrt(2))
    ranks = rankdata(
        np.hstack([rng.normal(size=(2000, m)), shift + rng.normal(size=(2000, n))]), axis=1
    )
    areas = (ranks[:, m:].sum(axis=1) - n * (n + 1) / 2) / (m * n)
    ends = np.array([auc_interval(area, m, n) for area in areas])
    covered = ((ends[:, 0] <= exact) & (exact <= ends[:, 1])).mean()
    assert 0.93 < covered < 0.98
    assert auc_interval(1.0, m, n)[1] == 1 > auc_interval(1.0, m, n)[0] > 0.8
