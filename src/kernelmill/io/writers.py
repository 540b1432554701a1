"""Columns to files, complete or not at all."""

from __future__ import annotations

from typing import Any

__all__ = ["open_writer"]


def open_writer(path: Any, columns: dict[str, Any]) -> Any:
    """To come."""
    raise NotImplementedError
