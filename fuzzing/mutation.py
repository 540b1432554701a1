"""Changes of bytes and of JSON records; each is a function of a random generator."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["change_numbers", "change_record", "mutate_bytes", "mutate_json", "mutate_text"]

_TOKENS = (
    *(b'"', b'""', b",", b";", b"\t", b"\n", b"\r", b"\r\n", b"\n\n", b" ", b"\0"),
    *(b"\xef\xbb\xbf", b"\n\xef\xbb\xbf", b"\xff", b"\xc3", b"\x1b[2J", b"\xe2\x80\xae"),
    *(b"NA", b"nan", b"inf", b"-inf", b"1e999", b"-1e-999", b"1_000", b"0x10", b"1,5", b"1.234,5"),
    *(b"9007199254740993", b"9" * 400, b"+", b"-", b".", b"e", b"#", b":", b"{", b"}", b"[", b"]"),
    *(b"true", b"null", b"2024-05-31", b"12:00", b"$1", b"5 %", b"qid:1", b"0:1", b"4294967296:1"),
)


def mutate_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    """The content with one to three changes: bits, bytes, integers, cuts, copies, insertions."""
    for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
        content = _change(content, rng)
    return content


def mutate_text(content: bytes, rng: np.random.Generator) -> bytes:
    """As `mutate_bytes`, or with tokens that matter to parsers of text."""
    for _ in range(int(rng.choice([1, 1, 2, 4]))):
        at = int(rng.integers(len(content) + 1))
        cut = int(rng.choice([0, 0, 1, 5]))
        token = _TOKENS[int(rng.integers(len(_TOKENS)))]
        content = content[:at] + token + content[at + cut :]
    return mutate_bytes(content, rng) if rng.random() < 0.3 else content


_JSON_TOKENS = (
    *(b'"', b"\\", b'\\"', b"\\u0000", b"\\ud800", b"{", b"}", b"[", b"]", b",", b":", b"\n"),
    *(b"{}", b"[]", b"null", b"true", b"-", b"0", b"1e999", b"NaN", b"-Infinity", b"9" * 400),
    *(b'"a":1,', b'"a":{},', b'{"a":1}\n', b'{"a":', b"}\n{", b"1.5", b"\0", b"\xef\xbb\xbf"),
    *(b"\r\n", b"\xff"),
)


def mutate_json(content: bytes, rng: np.random.Generator) -> bytes:
    """Lines of JSON with other values, tokens, or what is deep, long or wide; seldom very much."""
    for _ in range(int(rng.choice([1, 1, 2, 4]))):
        lines = content.split(b"\n")
        number = int(rng.integers(len(lines)))
        kind = int(rng.integers(4))
        try:
            record = json.loads(lines[number])
        except ValueError:  # changed before
            record = None
        if kind == 0 and isinstance(record, dict):
            changed = change_record(record, rng)
            lines[number] = json.dumps(changed, ensure_ascii=bool(rng.integers(2))).encode()
            content = b"\n".join(lines)
        elif kind == 1 and isinstance(record, dict) and record:
            name = json.dumps(list(record)[int(rng.integers(len(record)))]).encode()
            lines[number] = lines[number].replace(name + b": ", name + b": " + _bloat(rng) + b", ")
            content = b"\n".join(lines)
        else:
            at, cut = int(rng.integers(len(content) + 1)), int(rng.choice([0, 0, 1, 5]))
            token = _bloat(rng) if kind == 2 else _JSON_TOKENS[rng.integers(len(_JSON_TOKENS))]
            content = content[:at] + token + content[at + cut :]
    return mutate_bytes(content, rng) if rng.random() < 0.2 else content


def _bloat(rng: np.random.Generator) -> bytes:
    """A value of JSON that is deep, long or wide, with or without its end."""
    largest = 20_000_000 if rng.random() < 0.01 else 100_000 if rng.random() < 0.1 else 200
    n = int(rng.integers(1, largest))
    n_members = min(n, 200_000)
    made: tuple[Callable[[], bytes], ...] = (
        lambda: b"[" * n + b"]" * n,
        lambda: b'{"a":' * n + b"1" + b"}" * n,
        lambda: b'[{"a":[1,' * n + b"2" + b"]}]" * n,
        lambda: b"[" * n,
        lambda: b'"' + b"x" * n + b'"',
        lambda: b'"' + b'\\"[' * n + b'"',
        lambda: b'"' + b"x" * n,
        lambda: b"9" * n,
        lambda: b"[" + b"[1]," * n + b"[2]]",
        lambda: b"{" + b",".join(b'"k%d":1' % each for each in range(n_members)) + b"}",
    )
    return made[int(rng.integers(len(made)))]()


def _change(content: bytes, rng: np.random.Generator) -> bytes:
    content = content or rng.bytes(4)
    at, other = rng.integers(len(content), size=2).tolist()
    length = int(rng.integers(1, 65))
    before, after = content[:at], content[at:]
    width = int(rng.choice([1, 2, 4, 8]))
    extreme = int(rng.choice([0, 1, 127, 128, 255, 2**15, 2**31 - 1, 2**31, 2**32 - 1]))
    flipped = before + bytes([after[0] ^ (1 << int(rng.integers(8)))]) + after[1:]
    changed = (
        *(flipped, flipped),  # the most likely damage of disks and memory
        before + rng.bytes(1) + after[1:],
        before + (extreme % 256**width).to_bytes(width, "little") + after[width:],
        before,
        before + rng.bytes(length % 9) + after,
        before + after[length:],
        before + content[other : other + length] + after[length * int(rng.integers(2)) :],
    )
    return changed[int(rng.integers(len(changed)))]


_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 3, 99, 2**31, 2**40, 2**62, -(2**63), 0.0, 0.5, -1.0),
    *(1e-300, 1e300, "", "a", "0", "labels", "nan", "inf", "x" * 300, "\x1b[2J", "\u202e", [], {}),
    *([0], [1, 2], ["a"], [None], {"a": 1}, [[]], [[1]]),
)


def change_record(record: Any, rng: np.random.Generator) -> Any:
    """A copy of a JSON value with one of its parts replaced, removed, doubled or exchanged."""
    changed = copy.deepcopy(record)
    places: list[tuple[Any, Any]] = []
    _list_places(changed, places)
    if not places:
        return changed
    holder, key = places[int(rng.integers(len(places)))]
    kind = int(rng.integers(6))
    if kind <= 1:
        holder[key] = copy.deepcopy(_VALUES[int(rng.integers(len(_VALUES)))])
    elif kind == 2:
        other, other_key = places[int(rng.integers(len(places)))]
        holder[key] = copy.deepcopy(other[other_key])
    elif kind == 3 and isinstance(holder[key], (int, float)) and not isinstance(holder[key], bool):
        factor = float(rng.choice([-1, 0.5, 2, 10, 1e6]))
        value = holder[key] * factor
        holder[key] = int(value) if isinstance(holder[key], int) else value
    elif kind == 4:
        del holder[key]
    elif isinstance(holder, list):
        holder.insert(int(rng.integers(len(holder) + 1)), copy.deepcopy(holder[key]))
    else:
        holder[f"{key}_"] = holder.pop(key)
    return changed


def change_numbers(record: Any, values: tuple[float, ...], rng: np.random.Generator) -> Any:
    """A copy of a JSON value in which one of its floats is one of these values."""
    changed = copy.deepcopy(record)
    places: list[tuple[Any, Any]] = []
    _list_places(changed, places)
    floats = [(holder, key) for holder, key in places if isinstance(holder[key], float)]
    if floats:
        holder, key = floats[int(rng.integers(len(floats)))]
        holder[key] = values[int(rng.integers(len(values)))]
    return changed


def _list_places(value: Any, places: list[tuple[Any, Any]]) -> None:
    """All places in dicts and lists, each as a pair of the holder and the key."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        places.append((value, key))
        if isinstance(value[key], (dict, list)):
            _list_places(value[key], places)
