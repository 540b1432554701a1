"""Tables on a cluster: each worker reads pieces of the files and returns only its results."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from kernelmill.errors import ArgumentError
from kernelmill.io import Table, TableBlock, TableError
from kernelmill.io.pieces import TablePiece, cut_table
from kernelmill.runtime.progress import Progress
from kernelmill.scale.cluster import Cluster, PieceError
from kernelmill.scale.connection import delay, map_in_order, worker_memory
from kernelmill.scale.pieces import Piece, Pieces
from kernelmill.workflows.evaluation import Scores, make_scores
from kernelmill.workflows.model.prediction import (
    Prediction,
    ScoreFold,
    TableScores,
    UnseenCategories,
    slim,
)
from kernelmill.workflows.splits import KeyCounts
from kernelmill.workflows.training.encoded_rows import (
    EncodedBlock,
    EncodedRows,
    count_encoded_bytes,
    encode_blocks,
)
from kernelmill.workflows.training.survey import Survey, SurveyPass, SurveyPlan, explain_target

__all__ = ["SpreadTable"]

_MOST_PIECES = 256
_SMALLEST_PIECE, _LARGEST_PIECE = 1 << 20, 64 << 20
_KEPT_SHARE = 0.4  # of the memory of all workers, for encoded rows


class SpreadTable:
    """A table that the workers of a cluster read in pieces.

    The pieces depend on the files alone, so that results do not depend on the number of workers.

    Parameters
    ----------
    table : Table
        A table of files that are available to all workers under the same paths.
    cluster : Cluster
    progress : Progress
    """

    def __init__(self, table: Table, cluster: Cluster, progress: Progress) -> None:
        if table.format == "memory":
            raise ArgumentError(
                "is for files, got data in memory",
                "write the data to files, preferably Parquet",
                "leave it out",
                parameter="cluster",
            )
        self.table = table
        self.cluster = cluster
        self.progress = progress
        size = int(np.clip(table.n_bytes // _MOST_PIECES, _SMALLEST_PIECE, _LARGEST_PIECE))
        progress.start("Counting", None)
        self.pieces = cut_table(table, size, partial(map_in_order, cluster))
        if not self.pieces:
            raise TableError(f"{table.files[0]} has no rows", "use a table with rows")
        self._kept: list[Any] | None = None  # encoded pieces in the memory of workers

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return sum(piece.n_rows for piece in self.pieces)

    @contextmanager
    def _stage(self, name: str | None) -> Iterator[Progress | None]:
        """A pass over the files, during which they must not change."""
        if name is not None:
            self.progress.start(name, self.n_rows)
        yield self.progress if name is not None else None
        self.table.check_unchanged()

    def _spread(self, read: Callable[[Any], Any], first: Any = None) -> Pieces:
        sources = self.pieces if self._kept is None else self._kept
        pieces = [
            Piece(str(piece), source, piece.n_rows)
            for piece, source in zip(self.pieces, sources, strict=True)
        ]
        return Pieces(pieces, read, self.cluster, first=first)

    def survey(self, plan: SurveyPlan) -> SurveyPass:
        """Make the first pass, as `kernelmill.workflows.training.survey.survey_table` needs it."""
        fold = _SurveyFold(plan.limit_sample(self.n_rows))
        with self._stage("Reading") as progress:
            found: SurveyPass = self._spread(_read_blocks).fold(fold, _merge, progress=progress)
        return found

    def training_rows(self, survey: Survey, *, several_passes: bool) -> Pieces:
        """Return the rows that are not held out, as learners take them.

        If there are several passes, encoded rows stay in the memory of the workers, unless they
        take more than two fifths of it. Those of a worker that dies are read again.
        """
        light = _lighten(survey)
        memory = _KEPT_SHARE * worker_memory(self.cluster)
        if self._kept is None and several_passes and count_encoded_bytes(survey) <= memory:
            encode = _EncodePiece(light)
            self._kept = self.cluster.persist([delay(encode, piece) for piece in self.pieces])
        first = EncodedRows(survey.sample, survey.sample_target, survey.sample_weight).block()
        return self._spread(_ReadTraining(light), first=first)

    def evaluate(self, learner: Any, survey: Survey) -> Scores:
        """Compare the predictions of a learner for held-out rows with their targets."""
        share = survey.held_out.share
        before = [int(piece.first_row * share) for piece in self.pieces]
        fold = _EvaluateHeldOut(slim(learner, std=True), survey.reader.classes, before)
        scores = make_scores(learner, survey.reader.classes)
        with self._stage("Evaluating") as progress:
            read = _ReadHeldOut(_lighten(survey))
            scores.merge(self._spread(read).fold(fold, _merge, progress=progress))
        return scores

    def predict(self, request: Prediction, unseen: UnseenCategories) -> Iterator[dict[str, Any]]:
        """Yield predicted columns of all rows in order; count categories that are new."""
        places = [str(piece) for piece in self.pieces]
        with self._stage("Predicting"):
            found = map_in_order(self.cluster, request.slim(), self.pieces, places)
            for blocks, unknown in found:
                unseen.merge(unknown)
                yield from blocks

    def score(
        self, model: Any, names: dict[str, str] | None, weights: str | int | None
    ) -> TableScores:
        """Compare the predictions of a model for all rows with their targets."""
        light = replace(model, learner=slim(model.learner, std=True), summary=None)
        fold = ScoreFold(light, names, weights, [piece.first_row for piece in self.pieces])
        with self._stage("Evaluating") as progress:
            found: TableScores = self._spread(_read_blocks).fold(fold, _merge, progress=progress)
        return found


def _lighten(survey: Survey) -> Survey:
    """Return the part of a survey that workers need: the encoding, not the sample."""
    nothing = np.empty(0)
    return replace(
        survey,
        counts=KeyCounts(),
        sample=None,
        sample_target=nothing,
        sample_keys=np.empty(0, np.uint64),
        sample_weight=None,
        unencoded=None,
        notes=[],
    )


def _read_blocks(piece: TablePiece) -> Iterator[tuple[Any, TableBlock]]:
    return ((block.data, block) for block in piece.blocks())


def _merge(one: Any, later: Any) -> Any:
    one.merge(copy.deepcopy(later))  # which may be asked for again if a worker dies
    return one


@dataclass(frozen=True)
class _SurveyFold:
    plan: SurveyPlan

    def __call__(self, total: SurveyPass | None, blocks: Iterable[Any], _: int) -> SurveyPass:
        found = SurveyPass(self.plan)
        for _, block in explain_target(blocks, self.plan.inputs.target):
            found.update(block)
        return found if total is None else _merge(copy.deepcopy(total), found)


@dataclass(frozen=True)
class _EncodePiece:
    survey: Survey

    def __call__(self, piece: TablePiece) -> list[EncodedBlock]:
        try:
            return list(encode_blocks(piece.blocks(), self.survey))
        except Exception as error:
            raise PieceError.of(str(piece), error) from error


@dataclass(frozen=True)
class _ReadTraining:
    survey: Survey

    def __call__(self, source: TablePiece | list[EncodedBlock]) -> Iterator[tuple[Any, ...]]:
        for rows, out in _split(source, self.survey):
            yield rows.select(~out).block()


@dataclass(frozen=True)
class _ReadHeldOut:
    survey: Survey

    def __call__(self, source: TablePiece | list[EncodedBlock]) -> Iterator[tuple[Any, ...]]:
        for rows, out in _split(source, self.survey):
            yield rows.select(out).block()


def _split(source: TablePiece | list[EncodedBlock], survey: Survey) -> Iterator[Any]:
    blocks = iter(source) if isinstance(source, list) else encode_blocks(source.blocks(), survey)
    return (block.split(survey.held_out) for block in blocks)


@dataclass(frozen=True)
class _EvaluateHeldOut:
    learner: Any
    classes: Any
    before: list[int]  # about how many rows are evaluated before each piece

    def __call__(self, total: Scores | None, blocks: Iterable[Any], number: int) -> Scores:
        scores = make_scores(self.learner, self.classes, self.before[number])
        for rows in blocks:
            scores.update(*rows)
        return scores if total is None else _merge(copy.deepcopy(total), scores)
