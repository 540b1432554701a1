"""How the rows of a table are divided: copies and groups stay together, times are in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kernelmill.encoding.dates import DateFormats
from kernelmill.encoding.encoder import check_present
from kernelmill.encoding.inputs import Inputs
from kernelmill.encoding.row_keys import (
    NO_GROUP,
    NO_TIME,
    Division,
    RowKeys,
    TimeKeys,
    read_column,
    select_column,
)
from kernelmill.encoding.targets import TargetLearner, format_label
from kernelmill.errors import Doubt, Message, Remedy
from kernelmill.formatting import plain
from kernelmill.io import TableBlock, TableError
from kernelmill.io.row_sample import RowSample
from kernelmill.random import Stream
from kernelmill.workflows.records import RowDivision
from kernelmill.workflows.splits import HeldOut, KeyCounts, choose_held_out, choose_latest

__all__ = ["DividedRows", "TimeSample", "divide_rows", "list_classes"]

_AS_EARLIEST = Remedy("count rows without a value as the earliest", missing="impute")
_MOST_TIMES = 1 << 18  # that are compared: all of a table, or a random sample


class TimeSample:
    """A random sample of the times of rows, and the format of dates.

    Parameters
    ----------
    division : Division
    missing : {"error", "impute"}
    stream : Stream
    limit : float
        As in `RowSample`.
    """

    size = _MOST_TIMES

    def __init__(self, division: Division, missing: str, stream: Stream, limit: float) -> None:
        assert division.column is not None
        self._column, self._missing = division.column, missing
        self._sample = RowSample(self.size, stream, limit)
        self._formats = DateFormats(str(division.column)) if division.kind == "date" else None

    def update(self, block: TableBlock) -> None:
        """Add the times of a block."""
        block = select_column(block, self._column)
        column, place = read_column(block, self._column), (block.file, block.row_in_file)
        if self._missing == "error":
            check_present(column, str(self._column), *place, _AS_EARLIEST)
        if self._formats is not None:
            self._formats.update(column, file=place[0], first_row=place[1])
        self._sample.update(block)

    def merge(self, later: TimeSample) -> None:
        """Add the times of the rows that follow."""
        self._sample.merge(later._sample)
        if self._formats is not None and later._formats is not None:
            self._formats.merge(later._formats)

    def find(self, day_first: bool | None) -> tuple[TimeKeys, KeyCounts]:
        """Return how times are read, and how many rows of the sample have each."""
        form = "" if self._formats is None else self._formats.choose_format(day_first)
        keys = TimeKeys(self._column, form)
        counts = KeyCounts()
        counts.update(keys.of(self._sample.rows()[0]))
        return keys, counts


@dataclass(frozen=True)
class DividedRows:
    """Which rows are held out, and what there is to know about it.

    Attributes
    ----------
    keys : RowKeys
    counts : KeyCounts
        Of the keys of rows, or of a sample of their times.
    held_out : HeldOut
    record : RowDivision
    notes : list of Message or str
    """

    keys: RowKeys
    counts: KeyCounts
    held_out: HeldOut
    record: RowDivision
    notes: list[Message | str]


def divide_rows(
    division: Division,
    inputs: Inputs,
    found: RowKeys | TimeSample | None,
    counts: KeyCounts,
    target: TargetLearner,
    sampled: Any,
    *,
    share: float,
    is_classification: bool,
    stream: Stream,
    day_first: bool | None,
) -> DividedRows:
    """Choose the rows to hold out.

    Parameters
    ----------
    division : Division
    inputs : Inputs
    found : RowKeys or TimeSample
    counts : KeyCounts
        The keys of rows with a target.
    target : TargetLearner
    sampled : (TableBlock, ndarray)
        A random sample of the rows, with their positions.
    share : float
        The share of the rows to hold out.
    is_classification : bool
    stream : Stream
    day_first : bool or None
    """
    if isinstance(found, TimeSample):
        keys, counts = found.find(day_first)
        held_out = choose_latest(counts, share)
        record, notes = _describe_times(division, keys, counts, held_out, inputs)
        return DividedRows(keys, counts, held_out, record, notes)
    assert found is not None
    lasts = target.lasts if is_classification else {}
    held_out, kept = choose_held_out(counts, share, stream, lasts, found.of(*sampled))
    if division.by == "groups":
        record, notes = _describe_groups(division, counts, held_out)
    else:
        record, notes = _describe_copies(counts, held_out, inputs)
    if held_out.share > 0:
        notes += _note_kept_classes({label: target.counts[label] for label in sorted(kept)})
    elif share > 0:
        what = "groups" if division.by == "groups" else "rows with the same inputs"
        notes.append(
            "No rows are held out to measure the error: without all rows of some "
            f"{what}, none of a class would be left."
        )
    return DividedRows(found, counts, held_out, record, notes)


def _describe_copies(
    counts: KeyCounts, held_out: HeldOut, inputs: Inputs
) -> tuple[RowDivision, list[Message | str]]:
    exact = counts.is_exact
    repeated = counts.n_repeated if exact else int(float(f"{counts.n_repeated:.3g}"))
    record = RowDivision("inputs", n_repeated=repeated, is_estimate=not exact)
    notes: list[Message | str] = []
    has_error = held_out.share > 0
    if repeated:
        notes.append(
            f"{'' if exact else 'About '}{plain.count(repeated)} of "
            f"{plain.count(counts.n_rows, 'row')} repeat the inputs of another row"
            + (
                "; copies are never divided between training and held-out rows."
                if has_error
                else "."
            )
        )
    dates = [name for name, kind in inputs.columns or () if kind == "date"]
    if dates and has_error:
        notes.append(
            Message(
                f"Column {dates[0]!r} has dates, but the held-out rows are random: their error is "
                "that of rows from the time of the training rows",
                Remedy(
                    "if the model is for later rows, hold out the latest", holdout_last=dates[0]
                ),
            )
        )
    return record, notes


def _describe_groups(
    division: Division, counts: KeyCounts, held_out: HeldOut
) -> tuple[RowDivision, list[Message | str]]:
    keys, sizes = counts.list()
    n_groups = counts.n_keys
    where = "groups" if division.column is None else f"column {division.column!r}"
    if n_groups < 2:
        raise TableError(
            f"must have at least two different values, but all rows of {where} have one value",
            Remedy("leave it out", groups=None),
            parameter="groups",
        )
    out = held_out.rows(keys)
    n_out = int(out.sum()) << counts.level
    about = "" if counts.is_exact else "about "
    left = "" if division.column is None else ", which is not an input,"
    notes: list[Message | str] = [
        f"Rows with the same value of {where}{left} stay together: {about}"
        f"{plain.count(n_groups)} groups"
        + (
            f", of which {plain.count(n_out)} {'is' if n_out == 1 else 'are'} held out"
            if n_out
            else ""
        )
        + "."
    ]
    if n_groups - n_out == 1:
        notes.append("Settings are tuned by rows of one group, since only one is for training.")
    without = int(sizes[keys == NO_GROUP].sum())
    if without:
        notes.append(f"{plain.count(without, 'row')} without a group are one group.")
    if not counts.n_repeated:
        notes.append(
            Doubt(
                f"All values of {where} are different, so rows are divided one by one",
                Remedy("if it does not identify groups, leave it out", groups=None),
            )
        )
    column = "" if division.column is None else str(division.column)
    record = RowDivision("groups", column, n_groups, n_out, is_estimate=not counts.is_exact)
    return record, notes


def _describe_times(
    division: Division, keys: TimeKeys, counts: KeyCounts, held_out: HeldOut, inputs: Inputs
) -> tuple[RowDivision, list[Message | str]]:
    times, sizes = counts.list()
    name = str(division.column)
    if len(times) < 2:
        raise TableError(
            f"must have different values, but all of column {division.column!r} are equal",
            Remedy("leave it out", holdout_last=None),
            parameter="holdout_last",
        )
    notes: list[Message | str] = []
    since = ""
    if held_out.share > 0:
        since = keys.format(int(times[held_out.rows(times)][0]))
        notes.append(
            f"Rows with {name!r} from {since} on are held out, and settings are tuned by the "
            "latest of the other rows."
        )
    else:
        notes.append(f"Settings are tuned by the rows with the latest {name!r}.")
    known = [each for each, _ in inputs.columns or ()]
    if name in known:
        notes.append(
            Message(
                f"Column {name!r} is an input, too",
                Remedy("if it only tells the order of the rows, leave it out", drop=[name]),
            )
        )
    if times[0] == NO_TIME:
        share = plain.percent(float(sizes[0]) / counts.n_rows)
        notes.append(f"Rows without a value of {name!r} ({share}) count as the earliest.")
    return RowDivision("time", name, since=since), notes


def _note_kept_classes(counts: Mapping[Any, int]) -> list[str]:
    """Return a note on classes of which all rows would have been held out."""
    if not counts:
        return []
    return [
        "At least one row of each of these classes is a training row, since they are too rare to "
        f"be held out at random: {list_classes(counts)}."
    ]


def list_classes(counts: Mapping[Any, int]) -> str:
    """Return classes with their numbers of rows as text."""
    shown = [
        f"{format_label(label)!r} ({plain.count(count, 'row')})" for label, count in counts.items()
    ]
    return ", ".join(shown[:5]) + (", ..." if len(shown) > 5 else "")
