"""Keys of 128 bits, derived from a seed, from a `random_state`, or from a key and a name.

Each derivation is BLAKE2b with a 16-byte digest and its own personalization, so that inputs of
different kinds never collide. The derivations can never change: saved models hold seeds.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import SupportsIndex, TypeAlias

import numpy as np

from kernelmill.arguments import check_integer

__all__ = ["key_from_random_state", "key_from_seed", "key_of_substream"]

KEY_BITS = 128

RandomState: TypeAlias = SupportsIndex | np.random.RandomState | np.random.Generator | None
"""The `random_state` of a scikit-learn estimator."""


def _digest(purpose: bytes, message: bytes) -> int:
    return int.from_bytes(blake2b(message, digest_size=16, person=purpose).digest(), "little")


def key_from_seed(seed: SupportsIndex) -> int:
    """Return the key of a non-negative integer: BLAKE2b of its shortest little-endian form."""
    seed = check_integer("seed", seed, 0)
    return _digest(b"kernelmill.seed", seed.to_bytes((seed.bit_length() + 7) // 8, "little"))


def key_of_substream(key: int, name: str | int) -> int:
    """Return the key of the substream `name`: BLAKE2b of the key, a type tag and the name."""
    if isinstance(name, str):
        encoded = b"s" + name.encode("utf-8")
    elif isinstance(name, (bool, np.bool_)) or not hasattr(name, "__index__"):
        raise TypeError(
            "the path of a substream consists of strings and non-negative integers, "
            f"got {name!r} ({type(name).__name__})"
        )
    else:
        number = check_integer("an integer in the path of a substream", name, 0)
        encoded = b"i" + number.to_bytes((number.bit_length() + 7) // 8, "little")
    return _digest(b"kernelmill.path", key.to_bytes(KEY_BITS // 8, "little") + encoded)


def key_from_random_state(random_state: RandomState) -> int:
    """Return the key of the `random_state` of a scikit-learn estimator.

    An integer is a seed. A RandomState or Generator supplies 16 bytes and advances. None means
    NumPy's global RandomState, as in scikit-learn, which ``numpy.random.seed`` seeds.
    """
    if random_state is None or random_state is np.random:  # type: ignore[comparison-overlap]
        random_state = np.random.mtrand._rand
    if isinstance(random_state, (np.random.RandomState, np.random.Generator)):
        return _digest(b"kernelmill.state", random_state.bytes(KEY_BITS // 8))
    if isinstance(random_state, (bool, np.bool_)) or not hasattr(random_state, "__index__"):
        raise TypeError(
            "random_state must be None, a non-negative integer, a numpy.random.RandomState, a "
            f"numpy.random.Generator or a Stream, got {random_state!r} ("
            f"{type(random_state).__name__})"
        )
    return key_from_seed(check_integer("random_state", random_state, 0))
