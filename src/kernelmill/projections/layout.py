"""The output columns of a map: cosines and sines of the projections, and their scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill import _native
from kernelmill.random import Stream

__all__ = ["KINDS", "FeatureLayout"]

KINDS = ("cos_sin", "complex", "cos_phase", "projection")


@dataclass(frozen=True)
class FeatureLayout:
    r"""`n_columns` features of one kind, scaled so that inner products estimate the kernel.

    Parameters
    ----------
    kind : {"cos_sin", "complex", "cos_phase", "projection"}
        "cos_sin" has :math:`\cos z_j` in the first half of the columns and :math:`\sin z_j` in the
        second; an odd number of columns ends with one :math:`\cos(z_j + b_j)`, which keeps the
        estimate unbiased. "complex" has :math:`\exp(i z_j)`, "cos_phase" has
        :math:`\cos(z_j + b_j)`, and "projection" the :math:`z_j` themselves, unscaled.
    n_columns : int
        The number of columns of the output.
    """

    kind: str
    n_columns: int

    @property
    def n_frequencies(self) -> int:
        """The number of projections z_j."""
        return (self.n_columns + 1) // 2 if self.kind == "cos_sin" else self.n_columns

    @property
    def scale(self) -> float:
        """The factor that makes the inner product of two rows an unbiased estimate of k."""
        if self.kind == "complex":
            return float(1 / np.sqrt(self.n_columns))
        return float(np.sqrt(2 / self.n_columns))

    @property
    def native_kind(self) -> int:
        """The number of the kind in native code."""
        return _native.feature_kinds[self.kind]

    @property
    def has_phases(self) -> bool:
        """Whether some column needs a phase."""
        return self.kind == "cos_phase" or (self.kind == "cos_sin" and self.n_columns % 2 == 1)

    def phases(self, stream: Stream) -> NDArray[np.float64] | None:
        """Return a phase in [0, 2 pi) for each frequency, where the columns need any."""
        if not self.has_phases:
            return None
        return 2 * np.pi * stream.substream("phases").uniforms(self.n_frequencies)

    def empty(self, n_rows: int, dtype: np.dtype[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return a new output for rows of this real dtype, and its view for native code."""
        if self.kind != "complex":
            out = np.empty((n_rows, self.n_columns), dtype)
            return out, out
        out = np.empty((n_rows, self.n_columns), np.result_type(dtype, np.complex64))
        return out, out.view(dtype)
