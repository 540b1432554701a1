"""What a classifier minimizes: the loss of labelled rows on the features of a map."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelmill.learners.losses import Loss

__all__ = ["Blocks", "LabelledRows", "Problem", "RowSource", "codes_of_scores"]


class LabelledRows(NamedTuple):
    """Checked rows with the codes of their classes, and weights unless all are 1."""

    X: Any
    codes: NDArray[np.intp]
    weights: NDArray[np.float64] | None


Blocks = Callable[[], Iterable[LabelledRows]]


@dataclass(frozen=True)
class RowSource:
    """Where the rows come from.

    Attributes
    ----------
    blocks : callable
        Gives the same blocks of rows each time it is called.
    n_rows : int or None
        How many rows they have in all, if known.
    repeatable : bool
        Whether it can be called more than once.
    one_block : bool
        Whether there is but one block.
    """

    blocks: Blocks
    n_rows: int | None
    repeatable: bool = True
    one_block: bool = False


@dataclass(frozen=True)
class Problem:
    """The mean loss plus alpha / 2 times the squared norm of the weights, but for the intercept."""

    features: Callable[[Any], NDArray[Any]]
    loss: Loss
    alpha: float
    n_classes: int

    @property
    def n_outputs(self) -> int:
        """One score for two classes, otherwise one for each."""
        return self.n_classes if self.n_classes > 2 else 1

    @property
    def curvature(self) -> float:
        """That of the loss."""
        return self.loss.curvature(self.n_classes)

    def first_scores(self, rows: LabelledRows) -> NDArray[np.float64]:
        """Constant scores to start from, as the classes of these rows suggest them."""
        counts = np.bincount(rows.codes, rows.weights, self.n_classes).astype(np.float64)
        total = float(counts.sum())
        typical = total / len(rows.codes)  # one more row of each class: none is impossible
        if not typical > 0:
            counts, total, typical = np.ones(self.n_classes), float(self.n_classes), 1.0
        return self.loss.first_scores((counts + typical) / (total + self.n_classes * typical))


def codes_of_scores(scores: NDArray[Any]) -> NDArray[np.intp]:
    """The class of the largest score; of the sign where there are two classes."""
    if scores.shape[1] == 1:
        return (scores[:, 0] > 0).astype(np.intp)
    return np.asarray(scores.argmax(axis=1))
