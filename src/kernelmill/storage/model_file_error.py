"""The error of model files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["ModelFileError", "errors_of_file"]


class ModelFileError(ValueError):
    """A file is not a model that can be loaded, or a model is not one that a file can hold.

    The message names the file or the parameter, and what to do.

    Examples
    --------
    >>> from kernelmill.storage import ModelFileError
    >>> issubclass(ModelFileError, ValueError)
    True
    """


@contextmanager
def errors_of_file(path: str | os.PathLike[str], advice: str = "") -> Iterator[None]:
    """Let each ModelFileError raised inside say which file it is about, and what to do.

    Parameters
    ----------
    path : str or path
    advice : str, default=""
        The end of the message, where those inside do not say what to do.

    Examples
    --------
    >>> from kernelmill.storage import ModelFileError, errors_of_file
    >>> with errors_of_file("a.kmill", "save the model again"):
    ...     raise ModelFileError("its kind is unknown")
    Traceback (most recent call last):
        ...
    kernelmill.storage.model_file_error.ModelFileError: 'a.kmill' cannot be loaded: its kind is \
unknown; save the model again.
    """
    try:
        yield
    except ModelFileError as error:
        end = f"; {advice}." if advice else "."
        raise ModelFileError(f"{os.fspath(path)!r} cannot be loaded: {error}{end}") from error
