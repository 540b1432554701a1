"""The target of a model: found in a table and converted to numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kernelmill.encoding.columns import category_values
from kernelmill.io.errors import TableError

__all__ = ["LABELS", "TargetLearner", "TargetReader", "values_of_target"]

LABELS = "labels"  # the name of the target of files that carry their own
_MOST_CLASSES = 1000
_LARGEST_EXACT = 2**53  # of whole numbers in float64
_MOST_WHOLE_NUMBERS = 30  # different ones that are still taken for classes


def values_of_target(block: Any, target: str | int) -> Any:
    """The target of a block: a dictionary array of texts, or float64 with NaN where missing.

    `target` is a column's name, an index into a matrix, or `LABELS`.
    """
    if target == LABELS and block.labels is not None:
        return _as_numbers(block.labels)
    if isinstance(block.data, pa.RecordBatch):
        column = block.data.column(target)
        if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
            return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return category_values(column)
    if isinstance(block.data, np.ndarray):
        return _as_numbers(block.data[:, int(target)])
    raise TableError(f"{block.file} has no labels; give a file that has them.")


def _as_numbers(labels: Any) -> Any:
    labels = np.asarray(labels)
    if labels.dtype.kind in "iu" and len(labels) and max(map(abs, _ends(labels))) > _LARGEST_EXACT:
        return pa.array(labels.astype(str).tolist(), pa.string()).dictionary_encode()
    if labels.dtype.kind in "biuf":
        return labels.astype(np.float64)
    return pa.array(labels.astype(str).tolist(), pa.string()).dictionary_encode()


def _ends(labels: NDArray[Any]) -> tuple[int, int]:
    return int(labels.min()), int(labels.max())


@dataclass(frozen=True)
class TargetReader:
    """Gives the target of blocks as numbers to learn from.

    Parameters
    ----------
    target : str or int
        As `values_of_target` takes it.
    task : {"classification", "regression"}
    classes : ndarray or None
        The sorted labels: int64, float64 or str. The number of a class is its place.
    """

    target: str | int
    task: str
    classes: NDArray[Any] | None

    def numbers(self, block: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Classes' numbers (int64) or values (float64) of the rows, and which rows have them.

        Numbers are 0 where there is none. A label that is not among the classes is refused.
        """
        values = values_of_target(block, self.target)
        if self.task == "regression":
            return self._values(values, block)
        assert self.classes is not None
        if isinstance(values, np.ndarray):
            present = ~np.isnan(values)
            found = np.where(present, values, 0.0)
            known = self.classes
            if known.dtype.kind == "U":  # the texts of training look like numbers in this file
                known = np.array([_number_or_nan(text) for text in known.tolist()])
            return self._places(found, known, present, block), present
        present = values.is_valid().to_numpy(zero_copy_only=False)
        texts = values.dictionary.to_pylist()
        place_of = {text: place for place, text in enumerate(self._texts())}
        lookup = np.array([place_of.get(text, -1) for text in texts] + [0], np.int64)
        indices = values.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)
        places = lookup[indices]
        if (places < 0).any():
            row = int(np.argmax(places < 0))
            self._refuse(repr(texts[indices[row]]), row, block)
        return places, present

    def _texts(self) -> list[str]:
        assert self.classes is not None
        return [text_of_label(label) for label in self.classes.tolist()]

    def _values(self, values: Any, block: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        if not isinstance(values, np.ndarray):
            raise TableError(
                f"{block.file}: the target {self.target!r} must hold numbers for regression, got "
                f"texts such as {values.dictionary[0].as_py()!r}; say task='classification' "
                "(--task classification), or give another target."
            )
        present = ~np.isnan(values)
        if np.isinf(values).any():
            row = block.first_row + int(np.argmax(np.isinf(values))) + 1
            raise TableError(
                f"{block.file}: the target {self.target!r} is not finite in row {row}; mend or "
                "leave out the row."
            )
        return np.where(present, values, 0.0), present

    def _places(
        self,
        found: NDArray[np.float64],
        known: NDArray[Any],
        present: NDArray[np.bool_],
        block: Any,
    ) -> NDArray[np.int64]:
        order = np.argsort(known)
        nearest = np.searchsorted(known[order], found).clip(0, len(known) - 1)
        places: NDArray[np.int64] = order[nearest].astype(np.int64)
        wrong = present & (known[places] != found)
        if wrong.any():
            row = int(np.argmax(wrong))
            self._refuse(text_of_label(float(found[row])), row, block)
        return places

    def _refuse(self, label: str, row: int, block: Any) -> None:
        texts = self._texts()
        some = ", ".join(texts[:8]) + (", ..." if len(texts) > 8 else "")
        raise TableError(
            f"{block.file}: the target is {label} in row {block.first_row + row + 1}, which is "
            f"none of the classes the model knows ({some}); mend the labels, or fit a new model."
        )

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        classes = None if self.classes is None else self.classes.tolist()
        return {"target": self.target, "task": self.task, "classes": classes}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """The reader that `to_json` described; wrong values raise ValueError."""
        target, task, classes = values["target"], values["task"], values["classes"]
        if type(target) not in (str, int) or task not in ("classification", "regression"):
            raise ValueError("the target is not as it should be")
        if task == "regression":
            return cls(target, task, None)
        kinds = {type(label) for label in classes} if isinstance(classes, list) else set()
        if len(kinds) != 1 or not kinds <= {int, float, str} or len(classes) < 2:
            raise ValueError("the classes are not as they should be")
        return cls(target, task, np.array(classes))


class TargetLearner:
    """Finds out what the target is like: its task, its classes.

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
        self._whole = True
        self._n_distinct_exceeded = False

    def update(self, block: Any) -> None:
        """Take in the target of a block."""
        values = values_of_target(block, self.target)
        if isinstance(values, np.ndarray):
            self._look_at_missing(np.isnan(values), block)
            present = values[~np.isnan(values)]
            self._refuse_infinite(values, block)
            self._whole = self._whole and bool((present == np.round(present)).all())
            if not self._n_distinct_exceeded:
                labels, times = np.unique(present, return_counts=True)
                self.counts.update(dict(zip(labels.tolist(), times.tolist(), strict=True)))
        else:
            self._look_at_missing(values.is_null().to_numpy(zero_copy_only=False), block)
            indices = values.indices.drop_null().to_numpy(zero_copy_only=False)
            found = np.bincount(indices, minlength=len(values.dictionary)).tolist()
            texts = values.dictionary.to_pylist()
            self.counts.update({t: n for t, n in zip(texts, found, strict=True) if n})
        if len(self.counts) > _MOST_CLASSES:
            # Enough to know that these are no classes; regression needs no counts.
            self._n_distinct_exceeded = True
            if self.task == "classification" or any(isinstance(k, str) for k in self.counts):
                raise TableError(
                    f"{block.file}: the target {self.target!r} has more than {_MOST_CLASSES} "
                    "different values; give another target, or task='regression' (--task "
                    "regression) for numbers."
                )

    def _look_at_missing(self, absent: NDArray[np.bool_], block: Any) -> None:
        count = int(absent.sum())
        if count and not self.missing:
            self.first_missing = f"{block.file}: row {block.first_row + int(np.argmax(absent)) + 1}"
        self.missing += count
        self.n_rows += len(absent) - count

    def _refuse_infinite(self, values: NDArray[np.float64], block: Any) -> None:
        infinite = np.isinf(values)
        if infinite.any():
            row = int(np.argmax(infinite))
            raise TableError(
                f"{block.file}: the target {self.target!r} is {values[row]:g} in row "
                f"{block.first_row + row + 1}; correct it or leave out the row."
            )

    def finish(self) -> tuple[TargetReader, list[str]]:
        """The reader, and sentences on what was decided."""
        texts = any(isinstance(label, str) for label in self.counts)
        notes = []
        task = self.task
        if texts and task == "regression":
            raise TableError(
                f"the target {self.target!r} must hold numbers for regression, got texts such as "
                f"{next(iter(self.counts))!r}; say task='classification' (--task classification)."
            )
        if texts and len(self.counts) > 30 and 2 * len(self.counts) > self.n_rows:
            some = ", ".join(repr(label) for label in list(self.counts)[:3])
            raise TableError(
                f"the target {self.target!r} has {len(self.counts)} different texts in "
                f"{self.n_rows} rows ({some}, ...), too many for classes; give another target, or "
                f"say numeric=[{self.target!r}] (--numeric {self.target}) if they are numbers."
            )
        if task == "auto":
            few = self._whole and len(self.counts) <= _MOST_WHOLE_NUMBERS
            task = "classification" if texts or few else "regression"
            if task == "classification" and not texts:
                notes.append(
                    f"The target {self.target!r} has {len(self.counts)} different whole numbers: "
                    "classification. For regression say task='regression' (--task regression)."
                )
        if not self.counts:
            raise TableError(f"the target {self.target!r} has no value in any row.")
        if len(self.counts) < 2:
            raise TableError(
                f"the target {self.target!r} must have at least two different values, got only "
                f"{next(iter(self.counts))!r}; give another target or more rows."
            )
        if task == "regression":
            return TargetReader(self.target, task, None), notes
        labels: list[Any] = list(self.counts)
        if texts:
            classes = np.array(sorted(str(label) for label in labels))
        else:
            classes = np.array(sorted(labels))
            if self._whole and abs(classes).max() >= _LARGEST_EXACT:
                raise TableError(
                    f"the target {self.target!r} has whole numbers beyond 2**53, such as "
                    f"{classes[abs(classes).argmax()]:.0f}, of which different ones may have "
                    f"become one; say categorical=[{self.target!r}] (--categorical {self.target})."
                )
            if self._whole:
                classes = classes.astype(np.int64)
        return TargetReader(self.target, task, classes), notes


def text_of_label(label: Any) -> str:
    """A label as people write it: 3, not 3.0."""
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return str(label)


def _number_or_nan(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
