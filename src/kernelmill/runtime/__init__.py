"""How calls run: the number of threads."""

from __future__ import annotations

import operator

__all__ = ["resolve_threads"]


def resolve_threads(n_threads: int | None) -> int:
    """0 for None, the library's default; otherwise the given positive integer."""
    if n_threads is None:
        return 0
    if isinstance(n_threads, bool) or not hasattr(n_threads, "__index__"):
        raise TypeError(f"n_threads must be a positive integer or None, not {n_threads!r}")
    count = operator.index(n_threads)
    if count < 1:
        raise ValueError(f"n_threads must be a positive integer or None, not {n_threads!r}")
    return count
