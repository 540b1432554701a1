"""The first pass over a table: how to encode it, what its target is, and a sample of its rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.encoding.encoder import ColumnLearner, Encoder
from kernelmill.encoding.inputs import Inputs
from kernelmill.encoding.matrix import MatrixLearner
from kernelmill.encoding.targets import TargetLearner, TargetReader
from kernelmill.io import Table, TableError
from kernelmill.io.row_sample import RowSample
from kernelmill.random import Stream
from kernelmill.runtime.progress import Progress
from kernelmill.workflows.records import InputColumn

__all__ = ["HeldOut", "Survey", "survey"]

SAMPLE_ROWS = 80_000
_SAMPLE_BYTES = 64 << 20  # of encoded rows
_MOST_HELD_OUT = 10_000
_FEWEST_ROWS = 100


@dataclass(frozen=True)
class HeldOut:
    """Which rows are kept out of training: those whose random number is below `share`."""

    stream: Stream
    share: float

    def rows(self, first_row: int, n_rows: int) -> NDArray[np.bool_]:
        """Whether rows from this position on are held out."""
        if self.share <= 0:
            return np.zeros(n_rows, bool)
        return self.stream.uniforms(n_rows, start=first_row) < self.share


@dataclass(frozen=True)
class Survey:
    """What the first pass found."""

    inputs: Inputs
    encoder: Encoder
    columns: list[InputColumn]
    reader: TargetReader
    n_rows: int  # with a target
    held_out: HeldOut
    sample: Any  # encoded rows that are not held out, in random order
    sample_target: NDArray[Any]
    notes: list[str]


def survey(
    table: Table,
    inputs: Inputs,
    *,
    task: str,
    missing: str,
    holdout: float | None,
    stream: Stream,
    progress: Progress,
    sample_rows: int = SAMPLE_ROWS,
    usual_holdout: float = 0.1,
) -> Survey:
    """Pass over the table once.

    Without `holdout`, the share of rows held out is `usual_holdout`, or what gives 10,000 rows.
    """
    learner = (
        MatrixLearner(missing) if inputs.columns is None else ColumnLearner(inputs.columns, missing)
    )
    target = TargetLearner(inputs.target, task)
    sample: RowSample | None = None
    n_rows = 0
    progress.start("Reading", table.n_rows)
    for block in table.blocks():
        data = inputs.data(block.data)
        learner.update(data, file=block.file, first_row=block.first_row)
        target.update(block)
        if missing == "error" and target.missing:
            raise TableError(
                f"{target.first_missing} has no value of the target {inputs.target!r}; fill it in, "
                "or say missing='impute' (--missing impute) to leave such rows out."
            )
        if sample is None:
            row_bytes = 4 * max(1, data.shape[1])
            size = int(np.clip(_SAMPLE_BYTES // row_bytes, 1000, sample_rows))
            sample = RowSample(size, stream.substream("sample"))
        sample.update(block)
        n_rows += block.n_rows
        progress.advance(block.n_rows)
    if sample is None:
        raise TableError(f"{table.files[0]} has no rows; give a file that has some.")
    reader, notes = target.finish()
    encoder, found, doubts = learner.finish()
    notes += doubts
    if target.missing:
        notes.append(f"{target.missing} rows without a target are left out.")
    if holdout is None and n_rows - target.missing < _FEWEST_ROWS:
        notes.append(
            f"There are fewer than {_FEWEST_ROWS} rows: none is held out to measure the error."
        )
    held_out = HeldOut(
        stream.substream("held out"), _share(holdout, usual_holdout, n_rows - target.missing)
    )
    columns = [InputColumn(c.name, c.kind, c.n_columns, c.missing, c.detail) for c in found]
    result = Survey(
        inputs,
        encoder,
        columns,
        reader,
        n_rows - target.missing,
        held_out,
        None,
        np.empty(0),
        [*table.notes, *notes],
    )
    return _with_sample(result, sample)


def _with_sample(found: Survey, sample: RowSample) -> Survey:
    block, positions = sample.rows()
    numbers, present = found.reader.numbers(block)
    out = np.array([found.held_out.rows(int(p), 1)[0] for p in positions])
    chosen = np.flatnonzero(present & ~out)
    if len(chosen) < 2:
        chosen = np.flatnonzero(present)  # of a handful of rows
    encoded = found.encoder.encode(found.inputs.data(block.data))
    return replace(found, sample=encoded[chosen], sample_target=numbers[chosen])


def _share(holdout: float | None, usual: float, n_rows: int) -> float:
    if holdout is not None:
        return float(holdout)
    return 0.0 if n_rows < _FEWEST_ROWS else min(usual, _MOST_HELD_OUT / n_rows)
