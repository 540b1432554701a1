"""Blocks of rows, and their source for all estimators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
import scipy  # scipy.sparse is loaded when it is first used
from numpy.typing import NDArray

from kernelmill.errors import ArgumentError, ArgumentTypeError, Remedy
from kernelmill.learners.digests import BlockDigests
from kernelmill.runtime.progress import Progress

__all__ = [
    "Block",
    "BlockSource",
    "FoldState",
    "RowReader",
    "RowTaker",
    "SpreadBlocks",
    "concatenate_rows",
    "count_rows",
    "first_block",
    "fold_blocks",
    "slice_rows",
    "take_rows",
]

_Total = TypeVar("_Total")


class Block(NamedTuple):
    """A block of rows. Solvers take any iterable of blocks whose rows have been checked.

    Attributes
    ----------
    X : matrix, frame or list
        The rows, as the feature map takes them.
    y : ndarray
        For a classifier the number of the class of each row, of shape (n,); for a regressor the
        targets, of shape (n, n_outputs).
    weight : ndarray of shape (n,), or None
        None stands for weights of one.
    """

    X: Any
    y: Any
    weight: Any = None


@dataclass
class FoldState:
    """The progress of a fold over spread blocks: what it resumes from.

    Groups of blocks are folded in order, and totals of neighbors merged in a binary tree. After
    each part, `totals` has one value for each one in the binary digits of `n_done`: merging them
    later gives the tree of a fold without interruption, to the last bit.

    Attributes
    ----------
    n_groups : int
        The number of all groups; 0 before the fold has begun.
    n_done : int
        The number of groups whose values are in `totals`.
    totals : list
        The totals of parts of the tree, in order.
    """

    n_groups: int = 0
    n_done: int = 0
    totals: list[Any] = field(default_factory=list)

    def next_groups(self, most: int) -> range:
        """Return the groups to fold next, whose values are one subtree: about `most` at most."""
        size = 1 << max(0, most - 1).bit_length()
        if self.n_done:
            size = min(size, self.n_done & -self.n_done)
        return range(self.n_done, min(self.n_groups, self.n_done + size))

    def add(self, total: Any, groups: range, merge: Callable[[Any, Any], Any]) -> None:
        """Take the total of these groups, and merge subtrees of the same size."""
        self.totals.append(total)
        self.n_done = groups.stop
        wanted = self.n_done.bit_count() if self.n_done < self.n_groups else 1
        while len(self.totals) > wanted:
            last = self.totals.pop()
            self.totals.append(merge(self.totals.pop(), last))


class SpreadBlocks(Protocol):
    """Blocks on other machines: functions travel to them, the rows stay.

    They are divided into pieces, each of which has blocks (X, y) or (X, y, sample_weight).

    Attributes
    ----------
    first : tuple
        A block of rows that are here: a sample of all rows, on which the map is fitted.
    n_rows : int or None
        The number of all rows, if it is known.
    """

    first: Any
    n_rows: int | None

    def fold(
        self,
        fold: Callable[[_Total | None, Iterable[Any], int], _Total],
        merge: Callable[[_Total, _Total], _Total],
        *,
        progress: Progress | None = None,
        state: FoldState | None = None,
        save: Callable[[FoldState], bool] | None = None,
        **shape: int,
    ) -> _Total:
        """Return what `fold_blocks` returns, for unchecked blocks.

        With `save`, groups are folded in several parts, and it is called after each; if it returns
        False, parts may become longer. The fold begins after what `state` has. `shape` may give
        `rows_per_group`, the number of rows that are at least folded one after the other if there
        are many, and `fewest_groups`, the least number of such groups otherwise.
        """


class BlockSource:
    """Blocks (X, y) or (X, y, sample_weight) of an iterable, in one pass or in several.

    The first block can be read without being lost; no other block is kept. Iterating yields `Block`
    objects, which are checked after a call of `check_with`.

    Parameters
    ----------
    blocks : iterable
        An iterator, such as a generator, allows one pass. A list, or an object whose ``__iter__``
        starts from the beginning, allows any number of passes and must yield the same blocks in
        each. Blocks without rows are skipped. `SpreadBlocks`, such as `kernelmill.scale.Pieces`,
        are not iterated over, only folded.

    Attributes
    ----------
    repeatable : bool
        Whether there can be several passes.
    is_whole : bool
        Whether the first block has all the rows, as from `from_arrays`. It is then kept.
    is_spread : bool
        Whether the blocks are on other machines. The first one is a sample of their rows.
    digests : BlockDigests or None
        Compares the blocks with those of the checkpoint; None without one.

    Examples
    --------
    >>> from kernelmill.learners.blocks import BlockSource
    >>> source = BlockSource([([[1.0]], [0]), ([[2.0]], [1])])
    >>> source.repeatable, source.first.y
    (True, [0])
    >>> [block.y for block in source]
    [[0], [1]]
    """

    def __init__(self, blocks: Any) -> None:
        self.is_spread = hasattr(blocks, "fold")
        self.is_whole = False
        self._blocks = blocks
        self._is_first_checked = False
        self._check: Callable[[Any, Any, Any], Block] | None = None
        self.digests: BlockDigests | None = None
        self._begun: Iterator[Any] | None = None
        self._first: Block | None = None
        if self.is_spread:
            self.repeatable = True
            self._first = _unpack(blocks.first, 0)
            return
        if isinstance(blocks, (str, bytes)) or not isinstance(blocks, Iterable):
            raise ArgumentTypeError(
                "must be an iterable of (X, y) or (X, y, sample_weight), got "
                f"{type(blocks).__name__}",
                parameter="blocks",
            )
        iterator = iter(blocks)
        # Some objects return the same iterator each time: these give one pass, too.
        self.repeatable = iterator is not blocks and iter(blocks) is not iterator
        self._begun = iterator
        for number, block in enumerate(iterator):
            self._first = _unpack(block, number)
            if not _is_empty(self._first):
                break
        if self._first is None:
            raise ArgumentError(
                "must have at least one block of rows, got none",
                "create the generator again if it is exhausted",
                parameter="blocks",
            )

    @classmethod
    def from_arrays(cls, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Return a source with all rows as one block."""
        source = cls([(X, y, sample_weight)])
        source.is_whole = True
        return source

    @property
    def first(self) -> Block:
        """The first block; available until the first pass has gone on to the second."""
        assert self._first is not None
        return self._first

    @property
    def n_rows(self) -> int | None:
        """The number of all rows, if it is known."""
        if self.is_whole:
            return count_rows(self.first.X)
        n_rows: int | None = self._blocks.n_rows if self.is_spread else None
        return n_rows

    @property
    def form(self) -> str:
        """How the rows come: all at once, in blocks, or on other machines."""
        if self.is_spread:
            return "blocks on other machines"
        return "all rows" if self.is_whole else "blocks"

    def require_passes(self, reason: str, *remedies: Remedy | str) -> None:
        """Raise if only one pass is possible; `reason` states what needs several passes."""
        if not self.repeatable:
            raise ArgumentError(
                f"must be iterable more than once for {reason}, got an iterator",
                "pass a list or an object whose __iter__ starts from the beginning",
                *remedies,
                parameter="blocks",
            )

    def check_with(
        self,
        check: Callable[[Any, Any, Any], Block],
        first: Block | None = None,
    ) -> None:
        """Check the blocks in all further iterations.

        Parameters
        ----------
        check : callable
            Takes X, y and the weights or None.
        first : Block, optional
            The first block if it is checked already.
        """
        self._check = check
        if first is not None:
            self._first = first
            self._is_first_checked = True

    def fold(
        self,
        fold: Callable[[_Total | None, Iterable[Block], int], _Total],
        merge: Callable[[_Total, _Total], _Total],
        *,
        progress: Progress | None = None,
        **options: Any,
    ) -> _Total:
        """Return what `fold_blocks` returns; for `options` see `SpreadBlocks.fold`."""
        if not self.is_spread:
            return fold(None, self, 0)
        checked = _CheckedFold(fold, self._check)
        total: _Total = self._blocks.fold(checked, merge, progress=progress, **options)
        return total

    def compare_rest(self) -> None:
        """Compare all blocks with the checkpoint, if no pass of the solver has done so.

        A solver that has finished already reads none of them.
        """
        if self.digests is not None and not self.digests.was_passed:
            for _ in self:
                pass

    def take_first(self) -> Block:
        """Return the first block, checked; of blocks that are spread, the sample."""
        if not self.is_spread:
            return next(iter(self))
        return self.first if self._is_first_checked else self._check_block(self.first)

    def __iter__(self) -> Iterator[Block]:
        if self.is_spread:
            raise ArgumentError(
                "are on other machines, which this solver cannot use",
                "use another solver",
                parameter="blocks",
            )
        iterator, self._begun = self._begun, None
        number = n_given = 0  # blocks, those without rows included or not
        if iterator is not None or self.is_whole:
            first = self.first
            yield first if self._is_first_checked else self._check_block(first)
            if iterator is None or self.is_whole:
                return
            del first
            self._first, number, n_given = None, 1, 1  # not held while others are read
        else:
            self.require_passes("a second pass")
            iterator = iter(self._blocks)
        for block in iterator:  # not by `enumerate`, which holds a block while it reads the next
            unpacked = _unpack(block, number)
            del block
            if not _is_empty(unpacked):
                if self.digests is not None:
                    self.digests.take(n_given, *unpacked)
                yield self._check_block(unpacked)
                n_given += 1
            del unpacked
            number += 1
        if self.digests is not None:
            self.digests.end(n_given)

    def _check_block(self, block: Block) -> Block:
        return block if self._check is None else self._check(*block)


def _unpack(block: Any, number: int) -> Block:
    if not isinstance(block, (tuple, list)) or len(block) not in (2, 3):
        what = f"{len(block)} items" if isinstance(block, (tuple, list)) else type(block).__name__
        raise ArgumentTypeError(
            f"must be tuples (X, y) or (X, y, sample_weight), got {what} as block {number}",
            parameter="blocks",
        )
    return Block(*block)


def _is_empty(block: Block) -> bool:
    """Return whether a block has no rows; it is then skipped, unless all blocks are empty."""
    return hasattr(block.X, "__len__") and count_rows(block.X) == 0


class _CheckedFold:
    """A fold of unchecked blocks that checks them first; it can be pickled if its parts can."""

    def __init__(self, fold: Any, check: Callable[[Any, Any, Any], Block] | None) -> None:
        self.fold = fold
        self.check = check

    def __call__(self, total: Any, blocks: Iterable[Any], number: int) -> Any:
        return self.fold(total, self._check_blocks(blocks), number)

    def _check_blocks(self, blocks: Iterable[Any]) -> Iterator[Block]:
        for index, block in enumerate(blocks):
            X, y, weight = _unpack(block, index)
            # A piece may have no rows, or none that counts, which checks would reject.
            if count_rows(X) and (weight is None or np.any(weight)):
                yield Block(X, y, weight) if self.check is None else self.check(X, y, weight)


def fold_blocks(
    blocks: Iterable[Block],
    fold: Callable[[_Total | None, Iterable[Block], int], _Total],
    merge: Callable[[_Total, _Total], _Total],
    *,
    progress: Progress | None = None,
) -> _Total:
    """Return one value computed from all blocks, wherever they are.

    Parameters
    ----------
    blocks : iterable of Block
        If it is a `BlockSource` of spread blocks, both functions run where the blocks are, so that
        they and the values must be picklable.
    fold : callable
        ``fold(total, blocks, number)`` returns a new value: that of some blocks, added to `total`.
        It may be called for one piece after the other, of which `number` is the number. `total` is
        None at first and must not be changed: a machine may fail afterwards, and the call be
        repeated.
    merge : callable
        ``merge(a, b)`` returns the value of both; it may change and return `a`.
    progress : Progress, optional
        Receives the rows of spread blocks while they are folded.
    """
    if isinstance(blocks, BlockSource):
        return blocks.fold(fold, merge, progress=progress)
    return fold(None, blocks, 0)


def first_block(blocks: Iterable[Block]) -> Block:
    """Return the first block; of spread blocks, a sample of all rows."""
    return blocks.take_first() if isinstance(blocks, BlockSource) else next(iter(blocks))


class RowReader:
    """Rows of an iterable of matrices, taken from the front in any numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.learners.blocks import RowReader
    >>> reader = RowReader([np.eye(2), np.ones((3, 2))])
    >>> reader.take(3)
    array([[1., 0.],
           [0., 1.],
           [1., 1.]])
    >>> len(reader.take(3)), reader.take(3)
    (2, None)
    """

    def __init__(self, matrices: Iterable[Any]) -> None:
        self._matrices = iter(matrices)
        self._ahead: list[Any] = []

    def take(self, n_rows: int) -> Any:
        """Return the next rows: fewer at the end, and None after it."""
        taken: list[Any] = []
        missing = n_rows
        while missing and (block := self._next()) is not None:
            if block.shape[0] > missing:
                self._ahead.append(block[missing:])
                block = block[:missing]
            taken.append(block)
            missing -= block.shape[0]
        return concatenate_rows(taken) if taken else None

    def put_back(self, rows: Any) -> None:
        """Make the rows that were taken last the next ones."""
        self._ahead.append(rows)

    def _next(self) -> Any:
        return self._ahead.pop() if self._ahead else next(self._matrices, None)


def count_rows(X: Any) -> int:
    """Return the number of rows of a matrix, frame or list."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def take_rows(X: Any, rows: slice | NDArray[np.intp]) -> Any:
    """Return some rows of a matrix, frame or list."""
    if isinstance(X, np.ndarray) or scipy.sparse.issparse(X):
        return X[rows]
    from sklearn.utils import _safe_indexing  # noqa: PLC0415 # frames and lists come from fits

    return _safe_indexing(X, rows)


class RowTaker:
    """`take_rows` for one batch after the other, in memory that the next batch overwrites.

    New memory for each batch has new pages, which take as long as copying the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.learners.blocks import RowTaker
    >>> take = RowTaker(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> take(np.array([1, 1]))
    array([[3., 4.],
           [3., 4.]])
    """

    def __init__(self, X: Any) -> None:
        self._X = X
        self._memory: NDArray[Any] | None = None

    def __call__(self, rows: NDArray[np.intp]) -> Any:
        """Return some rows, whose numbers are not negative."""
        X = self._X
        if not isinstance(X, np.ndarray) or X.ndim != 2 or not X.flags.c_contiguous:
            return take_rows(X, rows)
        if self._memory is None or len(self._memory) < len(rows):
            self._memory = np.empty((len(rows), X.shape[1]), X.dtype)
        # With "raise", NumPy would fill another array first.
        return np.take(X, rows, axis=0, out=self._memory[: len(rows)], mode="clip")


def slice_rows(n_rows: int, size: int) -> Iterator[slice]:
    """Yield slices of at most `size` rows that cover `n_rows` in order."""
    for begin in range(0, n_rows, size):
        yield slice(begin, min(begin + size, n_rows))


def concatenate_rows(parts: list[Any]) -> Any:
    """Return checked rows one below the other; sparse if any of them is."""
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    return scipy.sparse.vstack([scipy.sparse.csr_array(part) for part in parts], format="csr")
