"""ROC, precision and recall, and lift of two classes."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, precision_score, recall_score, roc_auc_score

from kernelmill import fit_table, report
from kernelmill.errors import ArgumentError
from kernelmill.report.plots.ranking import compute_points
from kernelmill.workflows.records import Evaluation, Ranking


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    x = rng.normal(size=1500)
    label = np.where(x + rng.normal(size=1500) > 1.5, "yes", "no")
    columns = {"x": x, "label": label}
    options = {"tune": False, "n_components": 32, "epochs": 2, "holdout": 0}
    model = fit_table(columns, "label", **options)
    return model.evaluate_table(columns), model.predict_table(columns, probabilities=True), label


def test_scores_are_those_of_scikit_learn(fitted):
    evaluation, predicted, label = fitted
    sure = predicted["probability of yes"]
    # Bins of log odds are 0.001 wide: few pairs of rows are in the same.
    assert evaluation.metrics["auc"] == pytest.approx(roc_auc_score(label == "yes", sure), abs=2e-3)
    assert evaluation.metrics["average_precision"] == pytest.approx(
        average_precision_score(label == "yes", sure), abs=5e-3
    )


def test_points_are_those_of_thresholds(fitted):
    evaluation, predicted, label = fitted
    ranking = evaluation.ranking
    assert ranking.positive == "yes"
    assert ranking.base_rate == pytest.approx(np.mean(label == "yes"))
    assert len(ranking.share) <= 200
    assert (ranking.share[-1], ranking.recall[-1]) == (1.0, 1.0)
    order = np.argsort(-predicted["probability of yes"])
    for share, recall, false_positive, precision in compute_points(ranking)[::20]:
        taken = np.zeros(1500, bool)
        taken[order[: round(share * 1500)]] = True
        truth = label == "yes"
        assert recall == pytest.approx(recall_score(truth, taken), abs=5e-3)
        assert precision == pytest.approx(precision_score(truth, taken), abs=2e-2)
        assert false_positive == pytest.approx(np.mean(taken[~truth]), abs=5e-3)


def test_the_page_has_the_plots(fitted):
    evaluation, _, _ = fitted
    page = report.render(evaluation=evaluation)
    for title in ("ROC curve", "Precision and recall", "Lift", "average precision"):
        assert title in page
    other = Evaluation("classification", "a.csv", 5, {"error": 0.2}, 0.1, classes=["a", "b", "c"])
    assert "ROC curve" not in report.render(evaluation=other)
    again = Evaluation.from_record(evaluation.to_record())
    assert again.ranking == evaluation.ranking


@pytest.mark.parametrize("plot", [report.roc_plot, report.precision_recall_plot, report.lift_plot])
def test_plots_need_points(plot):
    for ranking in (Ranking("yes", 0.5, [], []), Ranking("yes", 1.0, [1.0], [1.0])):
        with pytest.raises(ArgumentError, match="ranking must hold at least one point"):
            plot(ranking)
    assert plot(Ranking("yes", 0.5, [0.5, 1.0], [0.9, 1.0])).axes
