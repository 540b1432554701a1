"""Seeds and streams as plain values, for model files."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from kernelmill.random import Stream
from kernelmill.storage import ModelFileError

__all__ = ["key_text", "random_state_from_values", "random_state_values", "stream_from_text"]

_LARGEST_SEED = 2**63 - 1


def random_state_values(random_state: Any, stream: Stream) -> Any:
    """A random state as a plain value: None, a seed, or the key of a stream.

    Of what changes by being used, a Generator for one, the stream that it gave is kept.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.maps.seed_specification import random_state_values
    >>> from kernelmill.random import Stream
    >>> random_state_values(7, Stream.from_seed(7))
    7
    >>> random_state_values(np.random.default_rng(0), Stream.from_seed(0))
    {'key': '18a38b629311f40cb659aa78faeb06fb'}
    """
    if random_state is None:
        return None
    if isinstance(random_state, (int, np.integer)) and 0 <= random_state <= _LARGEST_SEED:
        return int(random_state)
    return {"key": key_text(random_state if isinstance(random_state, Stream) else stream)}


def random_state_from_values(value: Any) -> Any:
    """The random state that `random_state_values` described."""
    if value is None or (type(value) is int and 0 <= value <= _LARGEST_SEED):
        return value
    if type(value) is dict and set(value) == {"key"}:
        return stream_from_text(value["key"])
    raise ModelFileError(f"its random_state is {str(value)[:80]}")


def key_text(stream: Stream) -> str:
    """The key of a stream in 32 hexadecimal digits."""
    return f"{stream.key:032x}"


def stream_from_text(text: Any) -> Stream:
    """The stream of a key that `key_text` wrote."""
    if type(text) is not str or not re.fullmatch("[0-9a-f]{32}", text):
        raise ModelFileError(f"its key {str(text)[:80]!r} is not one of 32 hexadecimal digits")
    return Stream(int(text, 16))
