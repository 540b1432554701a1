"""Records as JSON: one canonical spelling, and a parser that accepts only plain values."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from kernelmill.storage.errors import ModelFileError

__all__ = ["canonical_json", "parse_json"]

_DEEPEST = 32
_SMALLEST, _LARGEST = -(2**63), 2**64 - 1  # the integers of numpy


def canonical_json(value: Any, what: str = "record") -> str:
    r"""Return the canonical JSON of dicts, lists, strings, numbers, booleans and None.

    Keys are sorted, floats have the fewest digits that identify them, and all is ASCII.

    Parameters
    ----------
    value : object
    what : str, default="record"
        What the value is, in messages.

    Examples
    --------
    >>> from kernelmill.storage.plain_values import canonical_json
    >>> canonical_json({"b": [1, 0.1, None], "a": "é"})
    '{"a":"\\u00e9","b":[1,0.1,null]}'
    """
    _check(value, what, 0)
    return json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":"))


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text; raise ModelFileError for what `canonical_json` rejects.

    That is: NaN and infinities, integers beyond 64 bits, duplicate keys, more than 32 levels.

    Examples
    --------
    >>> from kernelmill.storage.plain_values import parse_json
    >>> parse_json('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    """
    try:
        value = json.loads(
            text, object_pairs_hook=_reject_duplicates, parse_constant=_reject_constant
        )
    except ModelFileError:
        raise
    except RecursionError:
        raise ModelFileError("its JSON is nested too deeply") from None
    except ValueError as error:
        raise ModelFileError(f"its JSON cannot be read ({str(error)[:120]})") from None
    _check(value, "its JSON", 0)
    return value


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ModelFileError("its JSON has a duplicate key")
    return values


def _reject_constant(name: str) -> NoReturn:
    raise ModelFileError(f"its JSON contains {name}, which is not allowed")


def _check(value: Any, what: str, depth: int) -> None:
    """Raise an error about what is not a plain value; `what` names its place."""
    if depth > _DEEPEST:
        raise ModelFileError(f"{what} must have at most {_DEEPEST} nested levels")
    kind = type(value)
    if kind is dict:
        for name, each in value.items():
            if type(name) is not str:
                raise ModelFileError(f"{what} must have strings as keys, got {name!r:.80}")
            _check_text(name, what)
            _check(each, f"{what}[{name!r:.80}]" if depth < 4 else what, depth + 1)
    elif kind is list:
        for each in value:
            _check(each, what, depth + 1)
    elif kind is str:
        _check_text(value, what)
    elif kind is float:
        if not math.isfinite(value):
            raise ModelFileError(f"{what} must hold finite numbers, got {value}")
    elif kind is int:
        if not _SMALLEST <= value <= _LARGEST:
            raise ModelFileError(f"{what} must hold integers of at most 64 bits, got a larger one")
    elif value is not None and kind is not bool:
        raise ModelFileError(
            f"{what} must be made of dicts, lists, strings, numbers, booleans and None, got "
            f"{kind.__name__}"
        )


def _check_text(text: str, what: str) -> None:
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise ModelFileError(f"{what} must be valid Unicode, got {ascii(text)[:80]}") from None
