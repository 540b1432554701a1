"""The common section Parameters of the docstrings of all draws."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TypeVar

Method = TypeVar("Method", bound=Callable[..., object])

PARAMETERS = {
    "size": ("int or tuple of int", "The shape of the result, filled in C order."),
    "shape": ("float", "The shape parameter, positive and finite."),
    "df": ("float", "The degrees of freedom, positive and finite, not necessarily an integer."),
    "dim": ("int", "The dimension of the space, at least 1."),
    "high": ("int", "One more than the largest value: from 1 to 2**63 (2**31 for int32)."),
    "n": ("int", "The number of elements."),
    "n_buckets": ("int", "The number of buckets, from 1 to 2**61 - 1."),
    "independence": ("int", "k: the values of any k distinct indices are independent; 2 to 1000."),
    "index": ("int", "Each integer from 0 to 2**64 - 1 gives an independent result."),
    "start": ("int", "The position of the first element, from 0 to 2**63."),
    "dtype": ("dtype", "float64, or float32: the same values, rounded."),
    "n_threads": ("int, optional", "By default :func:`kernelmill.get_num_threads`."),
}


def describes_parameters(**special: str) -> Callable[[Method], Method]:
    """Insert the section Parameters, made from the signature, before the examples of a method.

    `special` replaces descriptions of parameters that differ in this method.
    """

    def insert(method: Method) -> Method:
        if method.__doc__ is None:  # python -OO
            return method
        lines = ["Parameters", "----------"]
        for name, parameter in inspect.signature(method).parameters.items():
            if name == "self":
                continue
            kind, text = PARAMETERS[name]
            default = parameter.default
            if default is not inspect.Parameter.empty and default is not None:
                kind += f", default={getattr(default, '__name__', default)}"
            lines += [f"{name} : {kind}", f"    {special.get(name, text)}"]
        # Python 3.13 and later store docstrings without indentation, earlier versions as written.
        before, examples = inspect.cleandoc(method.__doc__).split("Examples\n--------\n", 1)
        section = "\n".join(lines)
        method.__doc__ = f"{before}{section}\n\nExamples\n--------\n{examples}\n"
        return method

    return insert
