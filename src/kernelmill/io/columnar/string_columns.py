"""Detection of dates and formatted numbers among the strings of a typed column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kernelmill.errors import Message, Remedy
from kernelmill.io.columnar.arrow_values import drop_codes, to_categories
from kernelmill.io.text.amounts import NumberStyle, are_loose_numbers, detect_style
from kernelmill.io.text.evidence import (
    describe_amounts,
    find_doubt,
    find_leading_zeros,
    find_separators,
)
from kernelmill.io.text.records import DATE_PATTERN, NUMBER_PATTERN
from kernelmill.io.text.words import Words

__all__ = ["StringColumn", "inspect_strings", "to_styled_numbers"]


@dataclass(frozen=True)
class StringColumn:
    """The properties of the first strings of a column.

    Attributes
    ----------
    kind : str
        "category", "date", or "numeric" for amounts, percentages and digit groups.
    style : NumberStyle or None
        How such numbers are written; of categories, how they are if they are declared numeric.
    separator : str
        The comma or point between digit groups, or "".
    note : Message or None
    """

    kind: str = "category"
    style: NumberStyle | None = None
    separator: str = ""
    note: Message | None = None


def inspect_strings(rows: Any, codes: Sequence[str]) -> dict[str, StringColumn]:
    """Inspect columns of strings in the first rows, as those of text files are.

    Strings of plain numbers stay categories, with a note: the type of a column is respected. So do
    dictionaries.
    """
    return {
        name: _inspect(name, column, codes)
        for name, column in zip(rows.schema.names, rows.columns, strict=True)
    }


def _inspect(name: str, column: Any, codes: Sequence[str]) -> StringColumn:
    unique = pc.unique(column)  # an Array, of chunked ones too
    if pa.types.is_dictionary(unique.type):  # strings that occur often
        unique = unique.cast(unique.type.value_type)
    words = Words(to_categories(drop_codes(unique, codes)).dictionary)
    if len(words) == 0:
        return StringColumn()
    if words.all(DATE_PATTERN):
        return StringColumn("date")
    if words.all(NUMBER_PATTERN):
        if find_leading_zeros(words):
            return StringColumn()
        note = Message(
            f"Column {name!r} is read as categories, since its values are strings, but all of "
            f"them are numbers, such as {words.array[0].as_py()!r}",
            Remedy("read the column as numbers", numeric=[name]),
            column=name,
        )
        return StringColumn(note=note)
    separators = find_separators(words)
    decimals = (".", ",") if words.any(",") else (".",)
    for decimal in decimals:
        if (style := detect_style(words.array, decimal)) is not None:
            note = describe_amounts(name, words.array[0].as_py())
            return StringColumn("numeric", style, separators.replace(decimal, ""), note)
    found = [decimal for decimal in decimals if are_loose_numbers(words.array, decimal)]
    style = NumberStyle(decimal=found[0], loose=True) if found else None
    separator = separators.replace(found[0], "") if found else ""
    return StringColumn("category", style, separator, find_doubt(name, words))


def to_styled_numbers(array: Any, style: NumberStyle) -> Any:
    """Convert strings of a style to float64; others raise `pyarrow.ArrowInvalid`."""
    words = to_categories(array)
    # Dictionaries of files may have words of other rows.
    used = pc.unique(words.indices.drop_null())
    numbers = style.to_numbers(words.dictionary.take(used))
    return numbers.take(pc.index_in(words.indices, value_set=used))
