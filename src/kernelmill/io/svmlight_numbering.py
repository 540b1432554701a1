"""From which number the indices of svmlight files count, and how many features they make."""

from __future__ import annotations

from dataclasses import dataclass

from kernelmill.io.errors import TableError

__all__ = ["LARGEST_INDEX", "LARGEST_WIDTH", "IndexRange", "Numbering"]

LARGEST_INDEX = 2**31 - 1
# One vector of so many float64 takes 1 GiB; wider tables are most likely damaged ones.
LARGEST_WIDTH = 2**27


@dataclass
class IndexRange:
    """The smallest and the largest index seen so far; nothing was seen if they are in disorder."""

    smallest: int = LARGEST_INDEX
    largest: int = -1

    def include(self, smallest: int, largest: int) -> None:
        """Take in those of more rows."""
        self.smallest = min(self.smallest, smallest)
        self.largest = max(self.largest, largest)


@dataclass(frozen=True)
class Numbering:
    """What the user said of indices: nothing, or the number of features or the first index.

    Without a word, indices count from 0 if the index 0 occurs, otherwise from 1 as LIBSVM has it.

    Examples
    --------
    >>> from kernelmill.io.svmlight_numbering import IndexRange, Numbering
    >>> numbering = Numbering()
    >>> numbering.zero_based_in(IndexRange(0, 7)), numbering.width_of(IndexRange(0, 7))
    (True, 8)
    >>> numbering.zero_based_in(IndexRange(2, 7)), numbering.width_of(IndexRange(2, 7))
    (False, 7)
    """

    n_features: int | None = None
    zero_based: bool | None = None
    widest: int | None = None  # more features are an error, unless the user asked for them

    def __post_init__(self) -> None:
        n_features, zero_based = self.n_features, self.zero_based
        if zero_based is not None and not isinstance(zero_based, bool):
            raise TableError(f"zero_based must be True, False or None, got {zero_based!r}.")
        if n_features is None:
            return
        if isinstance(n_features, bool) or not isinstance(n_features, int) or n_features < 0:
            raise TableError(
                f"n_features must be a whole number of columns, at least 0, got {n_features!r}."
            )
        if n_features > LARGEST_INDEX:
            raise TableError(f"n_features must be at most {LARGEST_INDEX}, got {n_features}.")

    def zero_based_in(self, seen: IndexRange) -> bool:
        """Whether indices count from 0, if these are all there are."""
        return seen.smallest == 0 if self.zero_based is None else self.zero_based

    def width_of(self, seen: IndexRange) -> int:
        """The number of features, if these are all the indices there are."""
        if self.n_features is not None:
            return self.n_features
        return max(0, seen.largest + self.zero_based_in(seen))

    def limit(self, zero_based: bool) -> int:
        """The largest index that may occur."""
        if self.n_features is not None:
            return self.n_features - zero_based
        return LARGEST_INDEX if self.widest is None else self.widest - zero_based
