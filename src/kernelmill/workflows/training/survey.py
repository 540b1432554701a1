"""The first pass over a table: its encoding, its target, and a sample of its rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from difflib import get_close_matches
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.encoding.encoder import ColumnLearner, EncodedColumn, Encoder, RowScaling
from kernelmill.encoding.inputs import (
    Inputs,
    choose_inputs,
    count_inputs,
    find_target,
    find_weights,
    name_markers,
    note_missing_targets,
    read_weights,
)
from kernelmill.encoding.matrix import MatrixLearner
from kernelmill.encoding.row_keys import Division, InputKeys, RowKeys, find_division
from kernelmill.encoding.targets import TargetLearner, TargetReader
from kernelmill.errors import ArgumentTypeError, Doubt, Message, Remedy
from kernelmill.formatting import plain
from kernelmill.io import Table, TableBlock, TableError, open_table
from kernelmill.io.errors import NotANumberError
from kernelmill.io.row_sample import RowSample, find_limit, take_rows
from kernelmill.io.table import check_columns
from kernelmill.kernels import Gaussian
from kernelmill.learners.tuning.copies import merge_copies
from kernelmill.learners.tuning.length_scales import (
    MOST_COLUMNS,
    learn_length_scales,
    leave_one_out_errors,
)
from kernelmill.maps import Nystroem
from kernelmill.random import Stream
from kernelmill.random.row_hashes import Keys
from kernelmill.runtime.progress import Progress
from kernelmill.runtime.threads import one_blas_thread
from kernelmill.workflows.records import InputColumn, RowDivision
from kernelmill.workflows.splits import HeldOut, KeyCounts, divide_sample
from kernelmill.workflows.training.division import TimeSample, divide_rows, list_classes
from kernelmill.workflows.tuning.kernel_search import Sample

__all__ = [
    "Survey",
    "SurveyPass",
    "SurveyPlan",
    "choose_unit",
    "explain_target",
    "make_input_learner",
    "open_inputs",
    "open_source",
    "scale_survey_rows",
    "survey_table",
]

_TABLE_OPTIONS = [name for name in signature(open_table).parameters if name != "source"]
_SAMPLE_ROWS = 80_000
_SAMPLE_BYTES = 64 << 20  # of encoded rows
_UNENCODED_ROWS = 2000
_MOST_HELD_OUT = 10_000
_FEWEST_ROWS = 100
_FEW_OF_CLASS = 5
_FEW_FOLDS = 5
_FEW_REPEATED = 0.01  # of all rows
_ROWS_OF_UNIT, _LANDMARKS_OF_UNIT = 1000, 256
_WORTH_UNIT = 0.05  # one unit for all columns must lower the squared error by more than that


def open_source(
    source: Any,
    target: str | int | None,
    task: str,
    options: Mapping[str, Any],
    parameters: Collection[str] = (),
) -> tuple[Table, str | int]:
    """Open a table to learn from, and return it with the target as the table names it.

    For regression, the target is read as numbers. `parameters` are those of the function that is
    called, for a message about an unknown one.
    """
    for name in options:
        if name not in _TABLE_OPTIONS:
            known = [*parameters, *_TABLE_OPTIONS]
            near = [each for each in known if name in each.split("_")]
            near = near or get_close_matches(name, known, n=1)
            remedies = [f"use {near[0]!r}"] if near else []
            raise ArgumentTypeError(f"there is no argument {name!r}", *remedies)
    table = open_table(source, **options)
    target = find_target(table, target)
    kinds = {column.name: column.kind for column in table.columns or ()}
    given = options.get("categorical", ())
    if task == "regression" and kinds.get(str(target)) == "category" and not given:
        # So that the error for a value that is not a number gives its line.
        table = table.with_kinds(numeric=[target])
    return table, target


def open_inputs(
    source: Any,
    target: str | int | None,
    task: str,
    options: Mapping[str, Any],
    drop: Any,
    *,
    weights: str | int | None = None,
    groups: Any = None,
    holdout_last: str | int | None = None,
    parameters: Collection[str] = (),
) -> tuple[Table, Inputs, str | int | None, Division]:
    """Open a table to learn from, of which only inputs and the given columns are read.

    The weights are those of the table.
    """
    table, target = open_source(source, target, task, options, parameters)
    weights = find_weights(table, weights, target)
    division = find_division(table, groups, holdout_last, target)
    no_inputs = [weights, division.column if division.by == "groups" else None]
    left_out = [*check_columns("drop", drop), *(each for each in no_inputs if each is not None)]
    inputs = choose_inputs(table, target, left_out)
    used = target, weights, division.column
    return inputs.ignore_others(table, *used), inputs, weights, division


def explain_target(blocks: Iterable[Any], target: str | int) -> Iterator[Any]:
    """The blocks, with remedies for a target whose values are not numbers."""
    try:
        yield from blocks
    except NotANumberError as error:
        others = [r for r in error.message.remedies if r.settings != {"categorical": [target]}]
        if len(others) == len(error.message.remedies):
            raise
        classes = Remedy("if the target is a class label, set the task", task="classification")
        raise TableError(error.message.problem, classes, *others) from None


@dataclass(frozen=True)
class Survey:
    """The results of the first pass."""

    inputs: Inputs
    encoder: Encoder
    columns: list[InputColumn]
    reader: TargetReader
    n_rows: int  # with a target
    division: RowDivision
    keys: RowKeys
    counts: KeyCounts  # of rows with a target; of times, those of a sample
    held_out: HeldOut
    sample: Any  # encoded rows that are not held out, in random order
    sample_target: NDArray[Any]
    sample_keys: Keys
    notes: list[Message | str]
    unencoded: Any = None  # the first rows of the sample, as they were read
    weights: str | int | None = None  # the column of row weights
    mean_weight: float = 1.0  # of all rows
    sample_weight: NDArray[np.float64] | None = None  # divided by that
    # Another encoding, if columns may share a unit, with the sample in it: see `choose_unit`.
    in_one_unit: tuple[Encoder, list[EncodedColumn], Any] | None = None

    @property
    def n_classes(self) -> int | None:
        """The number of classes; None for regression."""
        return None if self.reader.classes is None else len(self.reader.classes)

    @property
    def in_order(self) -> bool:
        """Whether the latest rows are held out."""
        return self.division.by == "time"

    @property
    def has_independent_rows(self) -> bool:
        """Whether rows are divided one by one, but for a few copies."""
        few = self.counts.n_repeated <= _FEW_REPEATED * self.n_rows
        return self.division.by == "inputs" and few


@dataclass(frozen=True)
class SurveyPlan:
    """The settings of the first pass.

    Attributes
    ----------
    inputs : Inputs
    division : Division
    keys : RowKeys or None
        None for times, which are read once the format of dates is known.
    learner, target
        The learners of the inputs and of the target, before the first row.
    missing : {"error", "impute"}
    stream : Stream
    sample_size : int
    sample_limit, time_limit : float
        As `limit` of `RowSample`, for the sample and for times.
    weights : str, int or None
        The column of row weights.
    """

    inputs: Inputs
    division: Division
    keys: RowKeys | None
    learner: MatrixLearner | ColumnLearner
    target: TargetLearner
    missing: str
    stream: Stream
    sample_size: int
    sample_limit: float = np.inf
    time_limit: float = np.inf
    weights: str | int | None = None

    @property
    def held_out_stream(self) -> Stream:
        """The random numbers that decide which rows are held out."""
        return self.stream.substream("held out")

    @property
    def sample_stream(self) -> Stream:
        """The random numbers that decide which rows are in the sample."""
        return self.stream.substream("sample")

    @property
    def time_stream(self) -> Stream:
        """The random numbers that decide which times are compared."""
        return self.stream.substream("times")

    def limit_sample(self, n_rows: int) -> SurveyPlan:
        """Return the plan for a table of `n_rows`, whose passes keep only rows of the sample."""
        limit = find_limit(self.sample_size, self.sample_stream, n_rows)
        time_limit = find_limit(TimeSample.size, self.time_stream, n_rows)
        return replace(self, sample_limit=limit, time_limit=time_limit)


class _NoTargetError(TableError):
    """A row has no target."""


class SurveyPass:
    """The results of a pass over consecutive rows so far.

    Passes over the pieces of a table, merged in the order of their rows, find what one pass over
    the table does: means and deviations to rounding, everything else exactly.
    """

    def __init__(self, plan: SurveyPlan) -> None:
        self._inputs = plan.inputs
        self._missing, self._weights = plan.missing, plan.weights
        self._keys, self._held_out = plan.keys, HeldOut(plan.held_out_stream)
        self.counts = KeyCounts()
        self.times: TimeSample | None = None
        if plan.keys is None:
            self.times = TimeSample(plan.division, plan.missing, plan.time_stream, plan.time_limit)
        self.learner: Any = deepcopy(plan.learner)
        self.target = deepcopy(plan.target)
        self.sample = RowSample(plan.sample_size, plan.sample_stream, plan.sample_limit)
        self.n_rows, self.total_weight = 0, 0.0

    def update(self, block: TableBlock) -> None:
        """Add the rows of a block."""
        data = self._inputs.data(block.data)
        self.learner.update(data, file=block.file, first_row=block.row_in_file)
        if self._keys is not None:
            keys = self._keys.of(block)
            present = self.target.update(block, keys, self._held_out.ranks(keys))
            self.counts.update(keys[present])
        else:
            assert self.times is not None
            self.target.update(block)
            self.times.update(block)
        if self._missing == "error" and self.target.missing:
            raise _NoTargetError(
                f"{self.target.first_missing} has no value for the target {self._inputs.target!r}",
                "fill it in",
                Remedy("leave out rows without a target", missing="impute"),
            )
        if self._weights is not None:
            self.total_weight += float(read_weights(block, self._weights).sum())
        self.sample.update(block)
        self.n_rows += block.n_rows

    def merge(self, later: SurveyPass) -> None:
        """Add a pass over the rows that follow; `later` is changed."""
        self.learner.merge(later.learner)
        self.target.merge(later.target)
        self.counts.merge(later.counts)
        if self.times is not None and later.times is not None:
            self.times.merge(later.times)
        self.sample.merge(later.sample)
        self.n_rows += later.n_rows
        self.total_weight += later.total_weight


def survey_table(
    table: Table,
    inputs: Inputs,
    *,
    task: str,
    missing: str,
    transform: str = "auto",
    holdout: float | None,
    stream: Stream,
    progress: Progress,
    sample_rows: int = _SAMPLE_ROWS,
    default_holdout: float = 0.1,
    requires_holdout: bool = False,
    weights: str | int | None = None,
    day_first: bool | None = None,
    division: Division = Division(),  # noqa: B008 # which is frozen
    fold: Callable[[SurveyPlan], SurveyPass] | None = None,
    tune: bool = True,
    suggests_folds: bool = False,
) -> Survey:
    """Pass over the table once, and report the notes about it.

    Parameters
    ----------
    table : Table
    inputs : Inputs
    task, missing, transform, holdout
        As in `fit_table`.
    stream : Stream
        Decides which rows are held out and which are in the sample.
    progress : Progress
    sample_rows : int
        The largest number of rows in the sample.
    default_holdout : float
        The fraction of rows held out if `holdout` is None, at most 10,000 rows.
    requires_holdout : bool
        Raise an error if there are too few rows to hold some out.
    weights : str or int, optional
        The column of row weights, as the table names it.
    day_first : bool, optional
        As in `fit_table`.
    division : Division
        Which rows stay together, or are in order.
    tune : bool, default=True
        Whether to prepare for `choose_unit`.
    suggests_folds : bool, default=False
        Whether a note that no rows are held out suggests cross-validation.
    fold : callable, optional
        Makes the pass in another way, such as on a cluster: the result is that of passes over
        pieces of the table, merged in order.
    """
    row_bytes = 4 * max(1, count_inputs(table, inputs))
    plan = SurveyPlan(
        inputs,
        division,
        {"inputs": InputKeys(inputs), "groups": division.groups}.get(division.by),
        make_input_learner(table, inputs, missing, transform, day_first),
        TargetLearner(inputs.target, task),
        missing,
        stream,
        int(np.clip(_SAMPLE_BYTES // row_bytes, 1000, sample_rows)),
        weights=weights,
    )
    progress.start("Reading", table.n_rows)
    found = _make_pass(plan, table, progress, fold)
    if found.n_rows == 0:
        raise TableError(f"{table.files[0]} has no rows", "use a table with rows")
    learner, target = found.learner, found.target
    n_rows = found.n_rows - target.missing
    mean_weight = found.total_weight / found.n_rows if weights is not None else 1.0
    if mean_weight == 0:
        raise TableError(f"all weights in column {weights!r} are 0", "correct them")
    reader, target_notes = target.finish()
    is_boolean = reader.classes is not None and inputs.target in table.booleans
    reader = replace(reader, boolean=is_boolean)
    share = 0.0 if n_rows < _FEWEST_ROWS else min(default_holdout, _MOST_HELD_OUT / n_rows)
    share = share if holdout is None else float(holdout)
    sampled, positions = found.sample.rows()
    divided = divide_rows(
        division,
        inputs,
        plan.keys if found.times is None else found.times,
        found.counts,
        target,
        (sampled, positions),
        share=share,
        is_classification=reader.classes is not None,
        stream=plan.held_out_stream,
        day_first=day_first,
    )
    if requires_holdout and divided.held_out.share == 0:
        raise TableError(
            f"{', '.join(map(str, table.files))} has {n_rows} rows with a target, but at least "
            f"{_FEWEST_ROWS} rows with different inputs are needed to hold out rows",
            "use a larger table",
        )
    keys = divided.keys.of(sampled, positions)
    data = inputs.data(sampled.data)
    numbers, present = reader.numbers(sampled)
    out = divided.held_out.rows(keys)
    chosen = np.flatnonzero(present & ~out)
    if len(chosen) < 2 and n_rows >= _FEWEST_ROWS and np.any(out & present):
        raise TableError(
            f"{plain.count(len(chosen), 'row')} of {plain.count(n_rows)} would be left for "
            "training: most rows have the same inputs, group or time",
            Remedy("hold out no rows", holdout=0),
            "divide the table in another way",
        )
    if len(chosen) < 2:
        chosen = np.flatnonzero(present)  # of a table with hardly any rows
    known = None
    if reader.classes is None:
        known = np.full(len(numbers), np.nan)
        known[chosen] = numbers[chosen]
    encoder, columns, column_notes = learner.finish(data, known)
    notes = [*inputs.select_notes(table.notes), *inputs.compare_signs(table), *target_notes]
    notes += [*_note_rare_classes(target, reader, n_rows), *column_notes]
    if target.missing:
        notes.append(note_missing_targets(target.missing, table, inputs.target, in_training=True))
    if holdout is None and share == 0:
        can_fold = suggests_folds and divided.counts.n_keys >= 2 * _FEW_FOLDS
        remedy = Remedy("estimate it by cross-validation", folds=_FEW_FOLDS)
        notes.append(
            Message(
                "No rows are held out to measure the error: the table has fewer than "
                f"{_FEWEST_ROWS} rows",
                *([remedy] if can_fold else []),
            )
        )
    notes += divided.notes
    for note in notes:
        progress.note(note)
    survey = Survey(
        inputs,
        encoder,
        _list_columns(columns),
        reader,
        n_rows,
        divided.record,
        divided.keys,
        divided.counts,
        divided.held_out,
        encoder.encode(data)[chosen],
        numbers[chosen],
        keys[chosen],
        notes,
        take_rows(data, chosen[:_UNENCODED_ROWS]),
        weights,
        mean_weight,
        None if weights is None else read_weights(sampled, weights)[chosen] / mean_weight,
    )
    if not tune or len(chosen) < _FEWEST_ROWS or encoder.n_inputs > MOST_COLUMNS:
        return survey
    other = learner.in_one_unit(encoder, columns)
    if other is None:
        return survey
    return replace(survey, in_one_unit=(*other, other[0].encode(take_rows(data, chosen))))


def _list_columns(columns: Iterable[EncodedColumn]) -> list[InputColumn]:
    return [InputColumn(c.name, c.kind, c.n_columns, c.missing, c.detail) for c in columns]


def choose_unit(survey: Survey, stream: Stream, progress: Progress) -> Survey:
    """Return the survey with columns of one unit divided by one number, if that is worth it."""
    if survey.in_one_unit is None:
        return survey
    progress.start("Choosing the encoding", None)
    encoder, columns, rows = survey.in_one_unit
    sample = Sample.of(survey.sample, survey.sample_target, survey.n_classes, survey.sample_weight)
    gain = _measure_gain(
        sample, rows, survey.sample_keys, stream.substream("unit"), in_order=survey.in_order
    )
    if gain < _WORTH_UNIT + min(len(sample.Y), _ROWS_OF_UNIT) ** -0.5:  # chance, with few rows
        return replace(survey, in_one_unit=None)
    note = (
        "Columns that appear to share a unit are divided by the same number: the squared error of "
        f"ridge regression is {plain.number(100 * gain, 2)} % lower than with each of them "
        "standardized."
    )
    progress.note(note)
    return replace(
        survey,
        encoder=encoder,
        columns=_list_columns(columns),
        sample=rows,
        notes=[*survey.notes, note],
        in_one_unit=None,
    )


def _measure_gain(
    sample: Sample, rows: Any, keys: Keys, stream: Stream, *, in_order: bool
) -> float:
    """Return by which share other encodings of the rows of a sample lower the squared error.

    That is the leave-one-out error of ridge regression with a Gaussian kernel, whose length scale
    is chosen for each of the encodings. Rows with equal keys are left out together; with `in_order`
    the latest rows are.
    """
    n = min(len(sample.Y), _ROWS_OF_UNIT)
    used, first, keys = np.arange(n), 0, keys[:n]
    if in_order:
        order, ends = divide_sample(keys, None, n, in_order=True)
        used, first, keys = used if order is None else order, ends[-2], np.zeros_like(keys)
    Y, weights = sample.Y[used], sample.weights_of(used)
    errors = []
    for X in (sample.X[used], rows[used]):
        distinct, means, mean_weights = merge_copies(X, Y, weights)
        learned = learn_length_scales(
            Gaussian(),
            distinct,
            means,
            groups=np.zeros(X.shape[1], np.int64),
            stream=stream,
            n_frequencies=int(np.clip(n // 8, 32, 256)),
            max_evaluations=1,
            sample_weight=mean_weights,
        )
        landmarks = Nystroem(
            n_components=min(n, _LANDMARKS_OF_UNIT),
            length_scale=learned.isotropic,
            random_state=0,
        )
        with one_blas_thread():
            found = leave_one_out_errors(
                landmarks.fit(X), X, Y, first, sample_weight=weights, keys=keys
            )
        errors.append(min(found.values()))
    gain = 1 - errors[1] / errors[0] if errors[0] > 0 else 0.0
    return gain if math.isfinite(gain) else 0.0


def make_input_learner(
    table: Table, inputs: Inputs, missing: str, transform: str, day_first: bool | None
) -> MatrixLearner | ColumnLearner:
    """Return the learner of the encoding of a table's inputs; parameters as in `fit_table`."""
    if inputs.columns is None:
        return MatrixLearner(missing, transform)
    return ColumnLearner(inputs.columns, missing, transform, table.ordered, day_first)


def scale_survey_rows(survey: Survey, progress: Progress) -> Survey:
    """Return the survey with rows scaled to similar lengths, as polynomial kernels need them."""
    scaling = RowScaling.of_rows(survey.sample)
    note = (
        "Rows are divided by √(r² + |x|²/9), r = "
        f"{plain.number(scaling.radius)}, for a kernel of inner products."
    )
    progress.note(note)
    encoder: Any = survey.encoder
    return replace(
        survey,
        encoder=replace(encoder, rows=scaling),
        sample=scaling.apply(survey.sample),
        notes=[*survey.notes, note],
    )


def _note_rare_classes(target: TargetLearner, reader: TargetReader, n_rows: int) -> list[Doubt]:
    """Return a note about classes with too few rows to learn from, which may be typos."""
    labels = [] if reader.classes is None else reader.classes.tolist()
    counts = {label: target.counts[label] for label in labels}
    rare = {each: n for each, n in counts.items() if n < _FEW_OF_CLASS and 100 * n < n_rows}
    if not rare:
        return []
    return [
        Doubt(
            f"Some classes have too few rows to learn from: {list_classes(rare)} of "
            f"{plain.count(n_rows, 'row')}",
            "correct the labels if they are typos",
            "add rows of these classes",
        )
    ]


def _make_pass(
    plan: SurveyPlan,
    table: Table,
    progress: Progress,
    fold: Callable[[SurveyPlan], SurveyPass] | None,
) -> SurveyPass:
    """Pass over the table; an error about a missing target names words read as missing."""
    target = plan.inputs.target
    try:
        if fold is not None:
            return fold(plan)
        found = SurveyPass(plan)
        for block in explain_target(table.blocks(), target):
            found.update(block)
            progress.advance(block.n_rows)
        return found
    except _NoTargetError as error:
        words, remedies = name_markers(table, target)
        problem = error.message.problem + words
        raise TableError(problem, *remedies, *error.message.remedies) from None
