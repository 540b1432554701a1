"""Whether a model is better than a constant prediction, and what helps where it is not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kernelmill.errors import Message, Remedy
from kernelmill.formatting import is_number, plain

if TYPE_CHECKING:
    from kernelmill.workflows.records import Evaluation

__all__ = ["judge"]

_IMBALANCED = 0.8  # of the error of always predicting one of several classes of equal size


def judge(evaluation: Evaluation) -> Message | None:
    """Return what speaks against the predictions; None if nothing does.

    The error of a classifier is no lower than that of a constant where classes are imbalanced and
    hard to tell apart. The model may still rank rows, and its probabilities may be good: the AUC,
    the log loss and the balanced error show that.

    Examples
    --------
    >>> from kernelmill.workflows.records import Evaluation
    >>> metrics = {"error": 0.25, "baseline_error": 0.24, "auc": 0.51, "auc_low": 0.47}
    >>> print(judge(Evaluation("classification", "a.csv", 900, metrics, 0.1)))
    The model is no better than always predicting the most frequent class.
    >>> print(judge(Evaluation("regression", "a.csv", 9, {"rmse": 3, "target_std": 4}, 0.1)))
    None
    """
    known = {name: value for name, value in evaluation.metrics.items() if is_number(value)}
    if evaluation.task == "regression":
        error, constant = known.get("rmse", 0.0), known.get("target_std", math.inf)
        if error == 0 or error < constant:
            return None
        return Message("The model is no better than always predicting the mean")
    error, constant = known.get("error", 0.0), known.get("baseline_error", math.inf)
    if constant == 0:  # all rows are of one class
        return None
    found = _Findings(evaluation, known)
    worse = found.worse_probabilities()
    if error == 0 or error < constant:
        return Message(f"The {worse}") if worse else None
    better = found.ranking() or found.better_probabilities() or found.better_recall()
    if not better:
        return Message("The model is no better than always predicting the most frequent class")
    n_classes = len(evaluation.classes or "ab")
    is_imbalanced = constant < _IMBALANCED * (1 - 1 / n_classes)
    return Message(
        "The error is no lower than that of always predicting the most frequent class, but "
        + ", and the ".join(filter(None, [better, worse]))
        + (": the classes are imbalanced" if is_imbalanced else ""),
        *(found.remedies() if is_imbalanced else ()),
    )


@dataclass(frozen=True)
class _Findings:
    """What the metrics of a classifier show beyond its error, each as a clause or ""."""

    evaluation: Evaluation
    known: dict[str, float]

    @property
    def _scores(self) -> str:
        return "probabilities" if "log_loss" in self.known else "scores"

    def _log_losses(self) -> tuple[float, float, str]:
        """Return the log loss, that of the shares of the classes, and both as text."""
        ours = self.known.get("log_loss", math.nan)
        shares = self.known.get("baseline_log_loss", math.nan)
        return ours, shares, f"log loss {plain.number(ours)}; {plain.number(shares)} for the shares"

    def worse_probabilities(self) -> str:
        ours, shares, text = self._log_losses()
        if not ours > shares:
            return ""
        return (
            f"probabilities are worse than the shares of the classes ({text}), since they are too "
            "extreme or shifted by class weights"
        )

    def better_probabilities(self) -> str:
        ours, shares, text = self._log_losses()
        return f"the probabilities are better than the shares ({text})" if ours < shares else ""

    def ranking(self) -> str:
        if not self.known.get("auc_low", self.known.get("auc", 0.0)) > 0.5:
            return ""
        return f"the {self._scores} rank rows (AUC {plain.number(self.known['auc'], 3)})"

    def better_recall(self) -> str:
        """Say so if the balanced error is significantly below that of a constant."""
        error, confusion = self.known.get("balanced_error"), self._confusion()
        totals = confusion.sum(axis=1)
        n, right = totals[totals > 0], np.diag(confusion)[totals > 0]
        if error is None or not len(n):
            return ""
        shares = (right + 1) / (n + 2)
        deviation = math.sqrt(float(np.sum(shares * (1 - shares) / n))) / len(n)
        constant = 1 - 1 / len(n)
        if error + 2 * deviation >= constant:
            return ""
        return f"the balanced error is {plain.percent(error)} rather than {plain.percent(constant)}"

    def remedies(self) -> list[Remedy]:
        """Return how to predict rare classes more often, if they are predicted too rarely."""
        confusion = self._confusion(weighted=True)
        totals, predicted = confusion.sum(axis=1), confusion.sum(axis=0)
        most = int(totals.argmax()) if len(totals) else 0
        if not len(totals) or predicted[most] < totals[most]:
            return []
        remedies = [Remedy("give rare classes more weight", class_weight="balanced")]
        if len(totals) == 2:
            usual = "below 0.5" if self._scores == "probabilities" else "other than 0"
            remedies.append(Remedy(f"choose the rarer class by a threshold {usual}"))
        return remedies

    def _confusion(self, *, weighted: bool = False) -> NDArray[np.float64]:
        """Return the confusion matrix; an empty one if it is not known."""
        found = (self.evaluation.weighted_confusion if weighted else None) or (
            self.evaluation.confusion or []
        )
        n = len(found)
        if any(len(row) != n for row in found):
            return np.zeros((0, 0))
        return np.array(found, np.float64).reshape(n, n)
