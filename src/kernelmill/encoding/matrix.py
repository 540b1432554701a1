"""The encoding of matrix files, whose columns are all numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np
import scipy  # scipy.sparse is loaded when it is first used
from numpy.typing import NDArray

from kernelmill.encoding import MISSING
from kernelmill.encoding.encoder import (
    ColumnEncoder,
    EncodedColumn,
    Encoder,
    RowScaling,
    check_overflow,
    scale_rows,
)
from kernelmill.encoding.monotone import MonotoneTransform, choose_transform, most_knots
from kernelmill.encoding.units import common_scale, may_share_unit
from kernelmill.errors import Message, Remedy
from kernelmill.files.fields import ADDED, Nested, Tagged
from kernelmill.files.kinds import Array, Choice, ListOf, Null
from kernelmill.formatting import plain
from kernelmill.io.errors import TableError

__all__ = ["ENCODERS", "MatrixEncoder", "MatrixLearner"]

_IMPUTE = Remedy("replace NaN with the mean of the column", missing="impute")


@dataclass(frozen=True, eq=False)
class MatrixEncoder(Encoder):
    """(x - mean) / scale of each column, or its transform; sparse rows are only divided.

    Parameters
    ----------
    mean, scale : ndarray of float64 of shape (n_features,)
        `mean` is zero for sparse rows and images.
    missing : {"error", "impute"}
        Whether NaN raises an error or is replaced by the mean.
    rows : RowScaling, optional
        Applied to the encoded rows.
    transforms : sequence of MonotoneTransform or None, optional
        One for each column; None for columns that are only standardized.
    """

    mean: Annotated[NDArray[np.float64], Array(("float64",), ("n_features",))]
    scale: Annotated[NDArray[np.float64], Array(("float64",), ("n_features",), above=0)]
    missing: Annotated[str, Choice(*MISSING)]
    rows: RowScaling | None = field(default=None, metadata=ADDED)
    transforms: Annotated[
        Sequence[MonotoneTransform | None] | None,
        ListOf(Null() | Nested(MonotoneTransform)),
    ] = field(default=None, metadata=ADDED)

    def __post_init__(self) -> None:
        if self.transforms is not None and len(self.transforms) != len(self.mean):
            raise ValueError(f"there must be {len(self.mean)} transforms, one for each column")

    @property
    def n_inputs(self) -> int:
        """The number of columns."""
        return len(self.mean)

    def input_names(self) -> list[str]:
        """Return the positions of the columns, from 0."""
        return [str(number) for number in range(self.n_inputs)]

    def groups(self) -> NDArray[np.intp]:
        """Each column is a group."""
        return np.arange(self.n_inputs)

    def group_names(self) -> list[str]:
        """Return the column names."""
        return self.input_names()

    def encode(self, data: Any, *, file: Any = "the table", first_row: int = 0) -> Any:
        """Scale the rows."""
        if data.shape[1] > self.n_inputs:
            raise TableError(
                f"{file}: rows must have {self.n_inputs} columns, as in training, got "
                f"{data.shape[1]}",
                "leave out the additional columns",
            )
        if scipy.sparse.issparse(data):
            return self._encode_sparse(data, file, first_row)
        if data.shape[1] < self.n_inputs:
            raise TableError(
                f"{file}: rows must have {self.n_inputs} columns, as in training, got "
                f"{data.shape[1]}",
                "use rows with all columns",
            )
        rows = data.astype(np.float64)
        self._check(rows, file, first_row)
        rows -= self.mean
        rows /= self.scale
        for place, transform in enumerate(self.transforms or ()):
            if transform is not None:
                rows[:, place] = transform.apply(data[:, place].astype(np.float64))
        with np.errstate(over="ignore"):
            encoded = rows.astype(np.float32)
        if self.missing == "impute":
            encoded[np.isnan(encoded)] = 0.0
        check_overflow(encoded, self.input_names, file, first_row)
        return scale_rows(encoded, self.rows)

    def _encode_sparse(self, data: Any, file: Any, first_row: int) -> Any:
        self._check(data.data, file, first_row)
        values = (data.data / self.scale[data.indices]).astype(np.float32)
        # A file may lack the columns after the last one with an entry.
        shape = (data.shape[0], self.n_inputs)
        encoded = scipy.sparse.csr_array((values, data.indices, data.indptr), shape=shape)
        return scale_rows(encoded, self.rows)

    def _check(self, values: NDArray[Any], file: Any, first_row: int) -> None:
        wrong = np.isinf(values) if self.missing == "impute" else ~np.isfinite(values)
        if wrong.any():
            row = int(np.argwhere(wrong)[0][0]) + 1 if values.ndim == 2 else 1
            raise TableError(
                f"{file}: row {first_row + row} or a later one of its block has a value that is "
                "not finite",
                "replace it",
                _IMPUTE,
            )


# How an encoder is stored in a model file.
ENCODERS = Tagged("kind", {"columns": ColumnEncoder, "matrix": MatrixEncoder})


class MatrixLearner:
    """Fits a `MatrixEncoder` to the blocks of a matrix file.

    Dense columns are standardized. Sparse columns are divided by their largest absolute value, so
    zeros stay zero. Unsigned bytes, as in images, are divided by 255.

    Parameters
    ----------
    missing : {"error", "impute"}
    transform : {"auto", "none", "rank"}, default="auto"
        Which columns of dense numbers are transformed from ranks to normal scores.
    """

    def __init__(self, missing: str, transform: str = "auto") -> None:
        self.missing = missing
        self.transform = transform
        self.n_missing = 0
        self._count: NDArray[np.float64] | None = None
        self._kind = ""

    def update(self, data: Any, *, file: Any, first_row: int) -> None:
        """Add the data of a block, dense or CSR."""
        if self._kind == "":
            self._kind = (
                "sparse"
                if scipy.sparse.issparse(data)
                else "image"
                if data.dtype == np.uint8
                else "dense"
            )
            self._mean = np.zeros(data.shape[1])
            self._squares, self._count = np.zeros(data.shape[1]), np.zeros(data.shape[1])
            self._largest = np.zeros(data.shape[1])
            self._least = np.full(data.shape[1], np.inf)
            self._most = np.full(data.shape[1], -np.inf)
        if self._kind == "sparse":
            self._update_sparse(data)
        elif self._kind == "dense":
            self._update_dense(data, file, first_row)

    def _update_sparse(self, data: Any) -> None:
        if data.shape[1] > len(self._largest):  # the width of svmlight files may grow
            self._largest = np.pad(self._largest, (0, data.shape[1] - len(self._largest)))
        np.maximum.at(self._largest, data.indices, np.abs(data.data))

    def _update_dense(self, data: Any, file: Any, first_row: int) -> None:
        rows = data.astype(np.float64)
        absent = np.isnan(rows)
        if np.isinf(rows).any() or (self.missing == "error" and absent.any()):
            row = int(np.argmax((~np.isfinite(rows)).any(axis=1)))
            raise TableError(
                f"{file}: row {first_row + row + 1} has a value that is not finite",
                "replace it",
                _IMPUTE,
            )
        self.n_missing += int(absent.sum())
        n = (~absent).sum(axis=0)
        if len(rows):
            self._least = np.fmin(self._least, np.fmin.reduce(rows))
            self._most = np.fmax(self._most, np.fmax.reduce(rows))
        rows[absent] = 0.0
        mean = rows.sum(axis=0) / np.maximum(n, 1)
        deviations = np.where(absent, 0.0, rows - mean)
        self._add(mean, (deviations**2).sum(axis=0), n)

    def _add(self, mean: NDArray[Any], squares: NDArray[Any], n: NDArray[Any]) -> None:
        """Add n values of each column with their means and sums of squared deviations."""
        assert self._count is not None
        total = np.maximum(self._count + n, 1)
        shift = mean - self._mean
        self._squares += squares + shift**2 * self._count * n / total
        self._mean += shift * n / total
        self._count += n

    def merge(self, later: MatrixLearner) -> None:
        """Add the statistics of the rows that follow.

        Means and standard deviations equal those of a single pass up to rounding; all other results
        are identical.
        """
        if self._kind == "":
            self.__dict__.update(later.__dict__)
            return
        if later._kind == "":
            return
        self.n_missing += later.n_missing
        width = max(len(self._largest), len(later._largest))
        mine, other = (np.pad(v, (0, width - len(v))) for v in (self._largest, later._largest))
        self._largest = np.maximum(mine, other)
        if self._kind == "dense":
            assert later._count is not None
            self._least = np.fmin(self._least, later._least)
            self._most = np.fmax(self._most, later._most)
            self._add(later._mean, later._squares, later._count)

    def finish(
        self, sample: Any = None, target: NDArray[np.float64] | None = None
    ) -> tuple[MatrixEncoder, list[EncodedColumn], list[Message | str]]:
        """Return the encoder, one summary of all columns, and no notes.

        Transforms are chosen from `sample`, rows in any order, and the numbers to predict for these
        rows, which are NaN for rows that must not be used.
        """
        assert self._count is not None
        transforms = None
        if self._kind == "sparse":
            scale = np.where(self._largest > 0, self._largest, 1.0)
            mean, detail = np.zeros(len(scale)), "sparse, divided by the largest absolute value"
        elif self._kind == "image":
            mean, scale = np.zeros(len(self._mean)), np.full(len(self._mean), 255.0)
            detail = "bytes, divided by 255"
        else:
            mean, scale = self._mean, np.sqrt(self._squares / np.maximum(self._count, 1))
            scale = np.where(scale > 1e-12 * np.abs(mean), scale, 1.0)
            detail = "standardized"
            if sample is not None:
                transforms = self._choose_transforms(sample, target)
            if transforms is not None:
                chosen = [each for each in transforms if each is not None]
                clipped = sum(each.is_linear for each in chosen)
                detail += (
                    f"; {plain.count(len(chosen) - clipped, 'column')} replaced by "
                    "normal scores of ranks"
                )
                detail += f", {clipped} clipped" if clipped else ""
        encoder = MatrixEncoder(mean, scale, self.missing, transforms=transforms)
        name = f"{encoder.n_inputs} columns"
        summary = EncodedColumn(name, "matrix", encoder.n_inputs, self.n_missing, detail)
        return encoder, [summary], []

    def in_one_unit(
        self, encoder: MatrixEncoder, columns: Sequence[EncodedColumn]
    ) -> tuple[MatrixEncoder, list[EncodedColumn]] | None:
        """Return an encoder that divides all columns by one number, and the summary of them.

        None unless the columns are dense numbers that may share a unit. The given encoder is that
        which `finish` returned with the summary.
        """
        if self._kind != "dense" or self.transform != "auto":
            return None
        varying = self._least < self._most
        if not may_share_unit(self._least[varying], self._most[varying]):
            return None
        scale = common_scale(encoder.scale[varying])
        encoder = replace(encoder, scale=np.full(len(encoder.mean), scale), transforms=None)
        detail = f"centered, divided by {plain.number(scale)}"
        return encoder, [replace(each, detail=detail) for each in columns]

    def _choose_transforms(
        self, sample: Any, target: NDArray[np.float64] | None
    ) -> list[MonotoneTransform | None] | None:
        """Return the transform of each column; None if there are none."""
        transforms: list[MonotoneTransform | None] = []
        for place, (least, most) in enumerate(zip(self._least, self._most, strict=True)):
            values = sample[:, place].astype(np.float64)
            present = ~np.isnan(values)
            transforms.append(
                choose_transform(
                    values[present],
                    self.transform,
                    least=float(least),
                    most=float(most),
                    n_knots=most_knots(len(self._least)),
                    target=None if target is None else target[present],
                )
            )
        return transforms if any(each is not None for each in transforms) else None
