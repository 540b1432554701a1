"""The target of a model: reading it from a table and converting it to numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kernelmill.encoding.columns import add_spellings, category_values
from kernelmill.errors import Message, Remedy
from kernelmill.files.fields import ADDED, Stored
from kernelmill.files.kinds import SMALLEST_INTEGER, Choice, Float, Integer, ListOf, Null, Text
from kernelmill.io.errors import TableError
from kernelmill.io.table_file import LARGEST_EXACT
from kernelmill.random.row_hashes import Keys

__all__ = ["LABELS", "TargetLearner", "TargetReader", "format_label", "read_target"]

LABELS = "labels"  # the name of the target in files that have labels
_MOST_CLASSES = 1000
_MOST_INTEGERS = 30  # different ones that are still classes


def read_target(block: Any, target: str | int) -> Any:
    """Read the target of a block: a dictionary array of strings, or float64 with NaN if missing.

    `target` is the name of a column, a position in a matrix, or `LABELS`.
    """
    if target == LABELS and block.labels is not None:
        return _to_numbers(block.labels)
    if isinstance(block.data, pa.RecordBatch):
        column = block.data.column(target)
        if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
            return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return category_values(column)
    if isinstance(block.data, np.ndarray):
        return _to_numbers(block.data[:, int(target)])
    raise TableError(f"{block.file} has no labels", "use a file with labels")


def _to_numbers(labels: Any) -> Any:
    labels = np.asarray(labels)
    if (
        labels.dtype.kind in "iu"
        and len(labels)
        and max(map(abs, _find_range(labels))) > LARGEST_EXACT
    ):
        return pa.array(labels.astype(str).tolist(), pa.string()).dictionary_encode()
    if labels.dtype.kind in "biuf":
        return labels.astype(np.float64)
    return pa.array(labels.tolist(), pa.string()).dictionary_encode()


def _find_range(labels: NDArray[Any]) -> tuple[int, int]:
    return int(labels.min()), int(labels.max())


@dataclass(frozen=True, eq=False)
class TargetReader(Stored):
    """Converts the target of blocks to numbers.

    Parameters
    ----------
    target : str or int
        As in `read_target`.
    task : {"classification", "regression"}
    classes : ndarray or None
        The sorted labels: int64, float64 or str. A class is encoded as its position.
    boolean : bool
        Whether the target is a column of booleans; the labels are 0 and 1, or "false" and "true".
    """

    target: str | int
    task: Annotated[str, Choice("classification", "regression")]
    classes: Annotated[
        NDArray[Any] | None,
        ListOf(Integer(SMALLEST_INTEGER), 2) | ListOf(Float(), 2) | ListOf(Text(), 2) | Null(),
    ]

    boolean: bool = field(default=False, metadata=ADDED)

    def __post_init__(self) -> None:
        if (self.classes is None) == (self.task == "classification"):
            raise ValueError("classification has classes and regression has none")
        if self.classes is not None:
            object.__setattr__(self, "classes", np.array(self.classes))

    def restore(self, predicted: NDArray[Any]) -> NDArray[Any]:
        """Return predictions in the type of the target: booleans, if it has them."""
        if not self.boolean:
            return predicted
        found: NDArray[Any] = predicted == "true" if predicted.dtype.kind == "U" else predicted > 0
        return found

    def numbers(self, block: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The positions of classes (int64) or the values (float64), and which rows have a target.

        Numbers are 0 for rows without a target. A label that is not a known class raises an error.
        """
        values = read_target(block, self.target)
        if self.task == "regression":
            return self._values(values, block)
        assert self.classes is not None
        if isinstance(values, np.ndarray):
            present = ~np.isnan(values)
            found = np.where(present, values, 0.0)
            known = self.classes
            if known.dtype.kind == "U":  # the strings of training look like numbers in this file
                known = np.array([_parse_or_nan(text) for text in known.tolist()])
            return self._find_classes(found, known, present, block), present
        present = values.is_valid().to_numpy(zero_copy_only=False)
        strings = values.dictionary.to_pylist()
        position_of = add_spellings(self._class_names())
        lookup = np.array([position_of.get(each, -1) for each in strings] + [0], np.int64)
        indices = values.indices.fill_null(len(strings)).to_numpy(zero_copy_only=False)
        positions = lookup[indices]
        if (positions < 0).any():
            row = int(np.argmax(positions < 0))
            raise self._unknown_class_error(repr(strings[indices[row]]), row, block)
        return positions, present

    def _class_names(self) -> list[str]:
        assert self.classes is not None
        return [format_label(label) for label in self.classes.tolist()]

    def _values(self, values: Any, block: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        if not isinstance(values, np.ndarray):
            raise TableError(
                f"{block.file}: the target {self.target!r} must hold numbers for regression, got "
                f"strings such as {values.dictionary[0].as_py()!r}",
                Remedy("fit a classifier", task="classification"),
                Remedy("choose another target", target=...),
            )
        present = ~np.isnan(values)
        if np.isinf(values).any():
            row = block.row_in_file + int(np.argmax(np.isinf(values))) + 1
            raise TableError(
                f"{block.file}: the target {self.target!r} is not finite in row {row}",
                "correct the row or leave it out",
            )
        return np.where(present, values, 0.0), present

    def _find_classes(
        self,
        found: NDArray[np.float64],
        known: NDArray[Any],
        present: NDArray[np.bool_],
        block: Any,
    ) -> NDArray[np.int64]:
        order = np.argsort(known)
        nearest = np.searchsorted(known[order], found).clip(0, len(known) - 1)
        positions: NDArray[np.int64] = order[nearest].astype(np.int64)
        wrong = present & (known[positions] != found)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise self._unknown_class_error(format_label(float(found[row])), row, block)
        return positions

    def _unknown_class_error(self, label: str, row: int, block: Any) -> TableError:
        names = self._class_names()
        some = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        return TableError(
            f"{block.file}: the target is {label} in row {block.row_in_file + row + 1}, which is "
            f"not one of the model's classes ({some})",
            "correct the labels",
            "fit a new model",
        )


class TargetLearner:
    """Detects the task and the classes of a target, and fits a `TargetReader`.

    Parameters
    ----------
    target : str or int
    task : {"auto", "classification", "regression"}
    """

    def __init__(self, target: str | int, task: str) -> None:
        self.target = target
        self.task = task
        self.missing = 0
        self.first_missing = ""
        self.n_rows = 0
        self.counts: Counter[float | str] = Counter()
        # The largest rank of the keys of each class, which decides what is held out, and its key.
        self.lasts: dict[float | str, tuple[int, int]] = {}
        self._integers = True
        self._n_distinct_exceeded = False

    def update(
        self, block: Any, keys: Keys | None = None, ranks: Keys | None = None
    ) -> NDArray[np.bool_]:
        """Add the target of a block, with the keys of its rows and their ranks.

        Returns
        -------
        ndarray of bool
            Whether each row has a target.
        """
        values = read_target(block, self.target)
        labels: list[Any] = []
        places: NDArray[Any] = np.zeros(0, np.int64)
        if isinstance(values, np.ndarray):
            present = ~np.isnan(values)
            self._count_missing(~present, block)
            known = values[present]
            self._check_finite(values, block)
            self._integers = self._integers and bool((known == np.round(known)).all())
            if not self._n_distinct_exceeded:
                found, places, times = np.unique(known, return_inverse=True, return_counts=True)
                labels = found.tolist()
                self.counts.update(dict(zip(labels, times.tolist(), strict=True)))
        else:
            present = values.is_valid().to_numpy(zero_copy_only=False)
            self._count_missing(~present, block)
            places = values.indices.drop_null().to_numpy(zero_copy_only=False)
            counts = np.bincount(places, minlength=len(values.dictionary)).tolist()
            labels = values.dictionary.to_pylist()
            self.counts.update({s: n for s, n in zip(labels, counts, strict=True) if n})
        if keys is not None and ranks is not None and len(places):
            self._find_lasts(labels, places, keys[present], ranks[present])
        self._check_distinct(f"{block.file}: ")
        return present

    def merge(self, later: TargetLearner) -> None:
        """Add the targets of the rows that follow."""
        self.first_missing = self.first_missing or later.first_missing
        self.missing += later.missing
        self.n_rows += later.n_rows
        self._integers = self._integers and later._integers
        if not self._n_distinct_exceeded:
            self.counts.update(later.counts)
            for label, last in later.lasts.items():
                self.lasts[label] = max(last, self.lasts.get(label, last))
        self._check_distinct("")

    def _check_distinct(self, where: str) -> None:
        if len(self.counts) > _MOST_CLASSES:
            # Too many for classes; regression needs no counts.
            self._n_distinct_exceeded = True
            self.lasts.clear()
            if self.task == "classification" or any(isinstance(k, str) for k in self.counts):
                raise TableError(
                    f"{where}the target {self.target!r} has more than {_MOST_CLASSES} "
                    "different values",
                    Remedy("choose another target", target=...),
                    Remedy("if they are numbers, fit a regressor", task="regression"),
                )

    def _find_lasts(self, labels: list[Any], places: NDArray[Any], keys: Keys, ranks: Keys) -> None:
        highest = np.zeros(len(labels), np.uint64)
        np.maximum.at(highest, places, ranks)
        rows = np.flatnonzero(ranks == highest[places])
        key_of = dict(zip(places[rows].tolist(), keys[rows].tolist(), strict=True))
        for place, key in key_of.items():
            last = (int(highest[place]), key)
            self.lasts[labels[place]] = max(last, self.lasts.get(labels[place], last))

    def _count_missing(self, absent: NDArray[np.bool_], block: Any) -> None:
        count = int(absent.sum())
        if count and not self.missing:
            self.first_missing = (
                f"{block.file}: row {block.row_in_file + int(np.argmax(absent)) + 1}"
            )
        self.missing += count
        self.n_rows += len(absent) - count

    def _check_finite(self, values: NDArray[np.float64], block: Any) -> None:
        infinite = np.isinf(values)
        if infinite.any():
            row = int(np.argmax(infinite))
            raise TableError(
                f"{block.file}: the target {self.target!r} is {values[row]:g} in row "
                f"{block.row_in_file + row + 1}",
                "correct it or leave out the row",
            )

    def finish(self) -> tuple[TargetReader, list[Message | str]]:
        """Return the reader, and notes on what was decided."""
        strings = any(isinstance(label, str) for label in self.counts)
        if strings and self.task == "regression":
            raise TableError(
                f"the target {self.target!r} must hold numbers for regression, got strings such as "
                f"{next(iter(self.counts))!r}",
                Remedy("fit a classifier", task="classification"),
            )
        if strings or self.task == "classification":
            self._check_repeated(strings)
        notes: list[Message | str] = []
        task = self.task
        if task == "auto":
            few = self._integers and len(self.counts) <= _MOST_INTEGERS
            task = "classification" if strings or few else "regression"
            if task == "classification" and not strings:
                notes.append(
                    Message(
                        f"The target {self.target!r} has {len(self.counts)} different integers, "
                        "which are read as classes",
                        Remedy("for regression, set the task", task="regression"),
                    )
                )
        if not self.counts:
            raise TableError(
                f"all values of the target {self.target!r} are missing",
                Remedy("choose another target", target=...),
            )
        if len(self.counts) < 2:
            raise TableError(
                f"the target {self.target!r} must have at least two different values, got only "
                f"{_quote_label(next(iter(self.counts)))}",
                Remedy("choose another target", target=...),
                "add rows with other values",
            )
        classes = None if task == "regression" else self._find_classes(strings)
        return TargetReader(self.target, task, classes), notes

    def _check_repeated(self, strings: bool) -> None:
        """Raise an error for classes of which most have one row; scikit-learn warns of them."""
        if len(self.counts) <= _MOST_INTEGERS or 2 * len(self.counts) <= self.n_rows:
            return
        some = ", ".join(map(_quote_label, list(self.counts)[:3]))
        as_numbers = Remedy(
            "if they are numbers, read the column as numbers", numeric=[self.target]
        )
        raise TableError(
            f"the target {self.target!r} has {len(self.counts)} different "
            f"{'strings' if strings else 'numbers'} in {self.n_rows} rows ({some}, ...), too many "
            "for classes",
            *([] if strings else [Remedy("fit a regressor", task="regression")]),
            Remedy("choose another target", target=...),
            *([as_numbers] if strings else []),
        )

    def _find_classes(self, strings: bool) -> NDArray[Any]:
        """Return the sorted labels."""
        labels: list[Any] = list(self.counts)
        if strings:
            names = sorted(str(label) for label in labels)
            for name in names:
                if name.endswith("\0"):
                    raise TableError(
                        f"the target {self.target!r} has the class {name!r}, and NumPy drops NUL "
                        "characters at the end of strings",
                        "remove them, or write another character",
                    )
            return np.array(names)
        classes = np.array(sorted(labels))
        if not self._integers:
            return classes
        if abs(classes).max() >= LARGEST_EXACT:
            raise TableError(
                f"the target {self.target!r} has integers beyond 2**53, such as "
                f"{classes[abs(classes).argmax()]:.0f}, which float64 does not represent exactly",
                Remedy("read it as categories", categorical=[self.target]),
            )
        return classes.astype(np.int64)


def format_label(label: Any) -> str:
    """Format a label: 3, not 3.0."""
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return str(label)


def _quote_label(label: Any) -> str:
    return repr(label) if isinstance(label, str) else format_label(label)


def _parse_or_nan(text: str) -> float:
    if text.lower() in ("false", "true"):
        return float(text.lower() == "true")
    try:
        return float(text)
    except ValueError:
        return float("nan")
