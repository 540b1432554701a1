"""Records as JSON: plain values in one spelling, and a reader that takes nothing else."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from kernelmill.storage.model_file_error import ModelFileError

__all__ = ["canonical_json", "parsed_json"]

_DEEPEST = 32
_SMALLEST, _LARGEST = -(2**63), 2**64 - 1  # the integers of numpy


def canonical_json(value: Any, what: str = "record") -> str:
    r"""The one spelling of a value made of dicts, lists, strings, numbers, booleans and None.

    Keys are sorted, floats have the fewest digits that give the same float again, and all is ASCII.

    Parameters
    ----------
    value : object
    what : str, default="record"
        How messages call it.

    Examples
    --------
    >>> from kernelmill.storage.plain_values import canonical_json
    >>> canonical_json({"b": [1, 0.1, None], "a": "é"})
    '{"a":"\\u00e9","b":[1,0.1,null]}'
    """
    _check(value, what, 0)
    return json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":"))


def parsed_json(text: str | bytes) -> Any:
    """The value of a JSON text; ModelFileError for whatever `canonical_json` does not write.

    That is: NaN and infinities, numbers too large for 64 bits, a key twice, more than 32 levels.

    Examples
    --------
    >>> from kernelmill.storage.plain_values import parsed_json
    >>> parsed_json('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    """
    try:
        value = json.loads(
            text, object_pairs_hook=_without_repetition, parse_constant=_refused_constant
        )
    except ModelFileError:
        raise
    except RecursionError:
        raise ModelFileError("its JSON is nested too deeply") from None
    except ValueError as error:
        raise ModelFileError(f"its JSON cannot be read ({str(error)[:120]})") from None
    _check(value, "its JSON", 0)
    return value


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ModelFileError("its JSON has a key twice")
    return found


def _refused_constant(name: str) -> NoReturn:
    raise ModelFileError(f"its JSON has {name}, which is not a number")


def _check(value: Any, what: str, depth: int) -> None:
    """Refuse what is not a plain value; `what` says where it is."""
    if depth > _DEEPEST:
        raise ModelFileError(f"{what} must not be nested more than {_DEEPEST} levels deep")
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
            raise ModelFileError(f"{what} must hold Unicode text, got {ascii(text)[:80]}") from None
