"""A plot of the page, with what is said about it and the numbers behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from markupsafe import Markup
from matplotlib.figure import Figure

from kernelmill.report.inline_svg import inline_svg

__all__ = ["Panel", "Table", "grouped_pairs"]


@dataclass(frozen=True)
class Table:
    """Columns of text; all but the first `n_names` of them and those in `prose` hold numbers."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str
    n_names: int = 1
    prose: tuple[int, ...] = ()  # columns of words that wrap
    marked: frozenset[tuple[int, int]] = frozenset()  # (row, column) of cells that stand out


@dataclass(frozen=True)
class Panel:
    """A plot: its heading, its text alternative, how to read it, and its table."""

    key: str  # letters, digits and hyphens; no other plot of the page has it
    title: str
    figure: Figure = field(repr=False)
    alternative: str
    reading: str
    table: Table

    @property
    def svg(self) -> Markup:
        """The plot as an element of the page."""
        return inline_svg(self.figure, self.key, self.alternative)


def grouped_pairs(
    pairs: Sequence[tuple[float, float]], n_groups: int = 10
) -> list[list[tuple[float, float]]]:
    """The pairs in order, in at most so many groups of about the same size."""
    ordered = sorted(pairs)
    n_groups = min(n_groups, len(ordered))
    ends = [len(ordered) * k // n_groups for k in range(n_groups + 1)]
    return [ordered[a:b] for a, b in pairwise(ends)]
