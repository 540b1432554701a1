"""Names of a package that are imported when they are first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["defer_imports"]


def defer_imports(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package that imports names on first use (PEP 562).

    A command that predicts imports some modules of a package, and must not pay for all others.

    Parameters
    ----------
    package : str
    modules : mapping of str to str
        From each name to the module inside the package that defines it; "" if the name is a module.

    Examples
    --------
    >>> from kernelmill.deferred import defer_imports
    >>> defer_imports("json", {"JSONDecoder": "decoder"})("JSONDecoder").__name__
    'JSONDecoder'
    """

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if not modules[name]:
            return import_module(f"{package}.{name}")
        return getattr(import_module(f"{package}.{modules[name]}"), name)

    return find
