"""Errors on rows that a model was not fitted to: held-out rows, folds, another table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from kernelmill.errors import ArgumentError
from kernelmill.io import Table
from kernelmill.learners import Run
from kernelmill.random import Stream
from kernelmill.runtime.progress import Progress
from kernelmill.workflows.encoded_rows import (
    EncodedTable,
    TrainingRows,
    concatenate_rows,
    encode_held_out,
)
from kernelmill.workflows.evaluation import make_scores
from kernelmill.workflows.model import TableModel
from kernelmill.workflows.records import CrossValidation, Evaluation
from kernelmill.workflows.survey import HeldOut, Survey
from kernelmill.workflows.training import Settings, train
from kernelmill.workflows.tuning import TunedSettings

if TYPE_CHECKING:  # it imports Dask
    from kernelmill.workflows.spread_table import SpreadTable

__all__ = ["TrainingPlan"]


@dataclass(frozen=True)
class TrainingPlan:
    """Settings and rows: all that is needed to fit a learner, once or several times.

    Attributes
    ----------
    encoded : EncodedTable or None
        The rows in memory; None if the table is read in each pass.
    pieces : SpreadTable or None
        The table on a cluster.
    """

    settings: Settings
    tuned: TunedSettings
    survey: Survey
    table: Table
    encoded: EncodedTable | None
    progress: Progress
    pieces: SpreadTable | None = None

    def fit(self, run: Run, *, watched: bool = False) -> Any:
        """Fit a learner to the rows that are not held out; see `train`."""
        settings, survey, rows = self.settings, self.survey, self.encoded
        blocks: Any = TrainingRows(self.table, survey, settings.seed)
        if self.pieces is not None:
            several = settings.needs_several_passes(survey.reader.task)
            blocks = self.pieces.training_rows(survey, several_passes=several)
        return train(settings, self.tuned, survey, blocks, rows, run, watched=watched)

    def evaluate(self, learner: Any, source: str) -> Evaluation | None:
        """Evaluate a learner on the held-out rows; None if there are none."""
        if self.survey.held_out.share <= 0:
            return None
        weights = self.survey.weights
        notes = [] if weights is None else [f"Rows are weighted by column {weights!r}."]
        if self.pieces is not None:
            scores = self.pieces.evaluate(learner, self.survey)
            return scores.finish(f"{source}: held-out rows", notes) if scores.n_rows else None
        scores = make_scores(learner, self.survey.reader.classes)
        self.progress.start("Evaluating", None)
        in_memory = None if self.encoded is None else [self.encoded.held_out]
        for block in in_memory or encode_held_out(self.table, self.survey):
            for rows in block.slices():
                scores.update(*rows)
            self.progress.advance(len(block.target))
        return scores.finish(f"{source}: held-out rows", notes) if scores.n_rows else None

    def evaluate_table(
        self, learner: Any, source: Any, table_options: Mapping[str, Any]
    ) -> Evaluation:
        """Evaluate a learner on another table, opened with the options of this one."""
        kinds = ("categorical", "numeric", "dates")  # which the model determines
        options = {name: value for name, value in table_options.items() if name not in kinds}
        survey = self.survey
        # An evaluation needs no summary of the fit, which is not known yet.
        model = TableModel(learner, survey.encoder, survey.inputs, survey.reader, None)  # type: ignore[arg-type]
        weights = False if survey.weights is None else survey.weights
        cluster = None if self.pieces is None else self.pieces.cluster
        options = {**options, "weights": weights, "cluster": cluster}
        return model.evaluate_table(source, progress=self.progress, **options)

    def cross_validate(self, n_folds: int) -> CrossValidation:
        """Fit to all folds but one, and test on that one, for each fold.

        Settings and encoding are not chosen again in each fold. The interval of the mean error is
        that of Nadeau and Bengio (2003), whose variance allows for training rows that the folds
        share.
        """
        survey = self.survey
        metric = "rmse" if survey.reader.classes is None else "error"
        stream = Stream.from_seed(self.settings.seed).substream("folds")
        rows, folds = None, None
        if self.encoded is not None:
            rows = concatenate_rows([self.encoded.training, self.encoded.held_out])
            n_classes = survey.n_classes
            if n_folds > len(rows.target):
                raise ArgumentError(
                    f"must be at most the number of rows, {len(rows.target)}, got {n_folds}",
                    parameter="folds",
                )
            folds = _assign_folds(rows.target, n_classes, n_folds, stream)
        errors = []
        for fold in range(n_folds):
            held_out = HeldOut(stream, 1 / n_folds, survey.held_out.kept, fold / n_folds)
            part = None
            if rows is not None:
                out = folds == fold
                part = EncodedTable(rows.select(~out), rows.select(out))
            plan = replace(self, survey=replace(survey, held_out=held_out), encoded=part)
            found = plan.evaluate(plan.fit(Run(progress=self.progress)), "")
            error = None if found is None else found.metrics[metric]
            errors.append(math.nan if error is None else error)
        mean, deviation = float(np.mean(errors)), float(np.std(errors, ddof=1))
        half = float(stdtrit(n_folds - 1, 0.975)) * deviation
        half *= math.sqrt(1 / n_folds + 1 / (n_folds - 1))
        most = 1.0 if metric == "error" else math.inf
        low, high = max(0.0, mean - half), min(most, mean + half)
        return CrossValidation(n_folds, metric, errors, mean, low, high)

    def fit_all_rows(self) -> Any:
        """Fit a learner with the same settings to all rows, also those that were held out."""
        survey = replace(self.survey, held_out=replace(self.survey.held_out, share=0.0))
        encoded = None
        if self.encoded is not None:
            rows = concatenate_rows([self.encoded.training, self.encoded.held_out])
            encoded = EncodedTable(rows, rows.select(slice(0)))
        return replace(self, survey=survey, encoded=encoded).fit(Run(progress=self.progress))


def _assign_folds(
    target: NDArray[Any], n_classes: int | None, n_folds: int, stream: Stream
) -> NDArray[np.int64]:
    """The fold of each row, about the same number of each class in each; -1 is in no fold.

    The only row of a class is in no fold: a model could not know the class otherwise.
    """
    n = len(target)
    order = np.argsort(stream.uniforms(n), kind="stable")
    folds = np.empty(n, np.int64)
    if n_classes is None:
        folds[order] = np.arange(n) % n_folds
        return folds
    by_class = order[np.argsort(target[order], kind="stable")]
    folds[by_class] = np.arange(n) % n_folds
    single = np.bincount(target, minlength=n_classes) == 1
    folds[single[target]] = -1
    return folds
