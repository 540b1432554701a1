"""The interface of projections z = V x, and the features of z with their scale."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kernelmill import _native
from kernelmill.random import Stream
from kernelmill.runtime.arrays import Floats, Rows

__all__ = ["KINDS", "FeatureLayout", "Projection", "Scoring", "score_features"]

KINDS = ("cos_sin", "complex", "cos_phase", "projection")

Scoring = tuple[Floats, Floats]
"""Weights of shape (T, D) of a few outputs, and scores of shape (n, T), which are written."""


class Projection(ABC):
    """Projections z = V x of rows, and features of z that are computed while it is in the cache."""

    @abstractmethod
    def prepare(self, dtype: DTypeLike) -> None:
        """Draw the coefficients for data of this dtype."""

    @abstractmethod
    def features(
        self,
        X: Rows,
        layout: FeatureLayout,
        phases: Floats | None,
        out: Floats,
        n_threads: int = 0,
        scoring: Scoring | None = None,
    ) -> bool:
        """Write the features of the rows of X, which has the real dtype of `out`.

        Return True if all features are finite. False means that this is not known.

        Parameters
        ----------
        X : matrix of shape (n, dim)
        layout : FeatureLayout
        phases : ndarray of shape (n_frequencies,), or None
        out : ndarray of shape (n, n_columns)
        n_threads : int, default=0
            0 stands for the default number.
        scoring : Scoring, optional
            The scores are the inner products of the features with each row of the weights.
        """


def score_features(features: Floats, scoring: Scoring | None, n_threads: int) -> None:
    """Write the scores of features that have been computed, if there are any to write."""
    if scoring is not None:
        _native.score_rows(features, *scoring, n_threads)


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

    @cached_property
    def scale(self) -> float:
        """The factor that makes the inner product of two rows an unbiased estimate of k."""
        if self.kind == "complex":
            return float(1 / np.sqrt(self.n_columns))
        return float(np.sqrt(2 / self.n_columns))

    @cached_property
    def native_kind(self) -> int:
        """The number of the kind in native code."""
        return _native.feature_kinds[self.kind]

    @property
    def has_phases(self) -> bool:
        """Whether some column needs a phase."""
        return self.kind == "cos_phase" or (self.kind == "cos_sin" and self.n_columns % 2 == 1)

    def phases(self, stream: Stream) -> NDArray[np.float64] | None:
        """Return a phase in [0, 2 pi) for each frequency; None if no column needs one."""
        if not self.has_phases:
            return None
        return 2 * np.pi * stream.substream("phases").uniforms(self.n_frequencies)

    def empty(
        self, n_rows: int, dtype: np.dtype[np.floating]
    ) -> tuple[NDArray[np.inexact], Floats]:
        """Return a new output for rows of this real dtype, and its view for native code."""
        if self.kind != "complex":
            out = np.empty((n_rows, self.n_columns), dtype)
            return out, out
        pairs = np.empty((n_rows, self.n_columns), np.result_type(dtype, np.complex64))
        return pairs, pairs.view(dtype)
