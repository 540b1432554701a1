"""The encoding of matrix files, whose columns are all numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import scipy  # scipy.sparse is loaded when it is first used
from numpy.typing import NDArray

from kernelmill.encoding.encoder import (
    MISSING,
    ColumnEncoder,
    EncodedColumn,
    Encoder,
    check_overflow,
)
from kernelmill.errors import Message, Remedy
from kernelmill.io.errors import TableError
from kernelmill.storage.fields import Tagged
from kernelmill.storage.kinds import Array, Choice

__all__ = ["ENCODERS", "MatrixEncoder", "MatrixLearner"]

_IMPUTE = Remedy("replace NaN by the mean of the column", missing="impute")


@dataclass(frozen=True, eq=False)
class MatrixEncoder(Encoder):
    """(x - mean) / scale of each column; sparse rows are only divided.

    Parameters
    ----------
    mean, scale : ndarray of float64 of shape (n_features,)
        `mean` is zero for sparse rows and images.
    missing : {"error", "impute"}
        NaN is an error, or is replaced by the mean.
    """

    mean: Annotated[NDArray[np.float64], Array(("float64",), ("n_features",))]
    scale: Annotated[NDArray[np.float64], Array(("float64",), ("n_features",), above=0)]
    missing: Annotated[str, Choice(*MISSING)]

    @property
    def n_inputs(self) -> int:
        """The number of columns."""
        return len(self.mean)

    def input_names(self) -> list[str]:
        """The positions of the columns, from 0."""
        return [str(number) for number in range(self.n_inputs)]

    def encode(self, data: Any, *, file: Any = "the table", first_row: int = 0) -> Any:
        """Scale the rows."""
        if data.shape[1] > self.n_inputs:
            raise TableError(
                f"{file}: rows must have {self.n_inputs} columns, as in training, got "
                f"{data.shape[1]}",
                "leave out the others",
            )
        if scipy.sparse.issparse(data):
            return self._encode_sparse(data, file, first_row)
        if data.shape[1] < self.n_inputs:
            raise TableError(
                f"{file}: rows must have {self.n_inputs} columns, as in training, got "
                f"{data.shape[1]}"
            )
        rows = data.astype(np.float64)
        self._check(rows, file, first_row)
        rows -= self.mean
        rows /= self.scale
        with np.errstate(over="ignore"):
            encoded = rows.astype(np.float32)
        if self.missing == "impute":
            encoded[np.isnan(encoded)] = 0.0
        check_overflow(encoded, self.input_names, file, first_row)
        return encoded

    def _encode_sparse(self, data: Any, file: Any, first_row: int) -> Any:
        self._check(data.data, file, first_row)
        values = (data.data / self.scale[data.indices]).astype(np.float32)
        # A file may lack the columns after the last one with an entry.
        shape = (data.shape[0], self.n_inputs)
        return scipy.sparse.csr_array((values, data.indices, data.indptr), shape=shape)

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
    that zeros stay zero. Unsigned bytes, as in images, are divided by 255.
    """

    def __init__(self, missing: str) -> None:
        self.missing = missing
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
        assert self._count is not None
        n = (~absent).sum(axis=0)
        rows[absent] = 0.0
        mean = rows.sum(axis=0) / np.maximum(n, 1)
        deviations = np.where(absent, 0.0, rows - mean)
        total = np.maximum(self._count + n, 1)
        shift = mean - self._mean
        self._squares += (deviations**2).sum(axis=0) + shift**2 * self._count * n / total
        self._mean += shift * n / total
        self._count += n

    def finish(self) -> tuple[MatrixEncoder, list[EncodedColumn], list[Message | str]]:
        """Return the encoder, one summary of all columns, and no notes."""
        assert self._count is not None
        if self._kind == "sparse":
            scale = np.where(self._largest > 0, self._largest, 1.0)
            mean, detail = np.zeros(len(scale)), "sparse; divided by the largest absolute value"
        elif self._kind == "image":
            mean, scale = np.zeros(len(self._mean)), np.full(len(self._mean), 255.0)
            detail = "bytes; divided by 255"
        else:
            mean, scale = self._mean, np.sqrt(self._squares / np.maximum(self._count, 1))
            scale = np.where(scale > 1e-12 * np.abs(mean), scale, 1.0)
            detail = "standardized"
        encoder = MatrixEncoder(mean, scale, self.missing)
        name = f"{encoder.n_inputs} columns"
        summary = EncodedColumn(name, "matrix", encoder.n_inputs, self.n_missing, detail)
        return encoder, [summary], []
