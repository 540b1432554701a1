"""The error of model files, and the description of other files by their first bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from kernelmill.errors import KernelmillError

__all__ = ["ModelFileError", "errors_of_file", "unknown_file_error"]

_OTHER_FORMATS = (
    (b"\x89PNG\r\n\x1a\n", "an image (PNG)"),
    (b"\xff\xd8\xff", "an image (JPEG)"),
    (b"GIF8", "an image (GIF)"),
    (b"%PDF", "a PDF"),
    (b"PK\x03\x04", "a ZIP archive, perhaps of NumPy (.npz) or skops"),
    (b"\x93NUMPY", "a NumPy array (.npy)"),
    (b"PAR1", "a Parquet table"),
    (b"ARROW1", "an Arrow table"),
    (b"\x7fELF", "a program"),
    (b"\x89HDF", "an HDF5 file"),
)
GIVE_ANOTHER = "pass a file that `save` wrote"


class ModelFileError(KernelmillError, ValueError):
    """A file cannot be loaded as a model, or a model cannot be stored in a file.

    The message names the file or the parameter, and a remedy.

    Examples
    --------
    >>> from kernelmill.storage import ModelFileError
    >>> str(ModelFileError("its checksum is wrong", "copy it again"))
    'its checksum is wrong; copy it again.'
    """


@contextmanager
def errors_of_file(path: str | os.PathLike[str], remedy: str | None = None) -> Iterator[None]:
    """Add the name of the file to each ModelFileError that is raised inside.

    Parameters
    ----------
    path : str or path
    remedy : str, optional
        The remedy of errors that have none themselves.

    Examples
    --------
    >>> from kernelmill.storage import ModelFileError, errors_of_file
    >>> with errors_of_file("a.kmill", "save the model again"):
    ...     raise ModelFileError("its kind is unknown")
    Traceback (most recent call last):
        ...
    kernelmill.storage.errors.ModelFileError: 'a.kmill' cannot be loaded: its kind is unknown; \
save the model again.
    """
    try:
        yield
    except ModelFileError as error:
        problem, remedies = error.message.problem, error.message.remedies
        if not remedies and remedy is not None:
            raise ModelFileError(
                f"{os.fspath(path)!r} cannot be loaded: {problem}", remedy
            ) from error
        raise ModelFileError(
            f"{os.fspath(path)!r} cannot be loaded: {problem}", *remedies
        ) from error


def unknown_file_error(beginning: bytes, size: int) -> ModelFileError:
    """Return the error about a file that is not a model, judged by its first bytes.

    Examples
    --------
    >>> from kernelmill.storage.errors import unknown_file_error
    >>> unknown_file_error(b"%PDF-1.7", 1000)
    ModelFileError('it is a PDF', 'pass a file that `save` wrote')
    """
    problem, remedy = _describe(beginning, size)
    return ModelFileError(problem, remedy or GIVE_ANOTHER)


def _describe(beginning: bytes, size: int) -> tuple[str, str | None]:
    """Return what a file is, and a remedy other than passing another file."""
    if size == 0:
        return "it is empty", "save the model again"
    for start, name in _OTHER_FORMATS:
        if beginning.startswith(start):
            return f"it is {name}", None
    if beginning.startswith(b"\x1f\x8b"):
        return "it is compressed with gzip", "decompress it first if it contains a model"
    if beginning[:1] == b"\x80" and beginning[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return (
            "it is a pickle file, which can run arbitrary code and is never loaded by kernelmill",
            "load it with the pickle module if you trust it, then write the model with `save`",
        )
    if beginning[8:9] == b"{":
        return "it is truncated or its first bytes are damaged", "copy it again"
    is_text = all(byte in b"\t\r\n" or 32 <= byte < 127 or byte >= 128 for byte in beginning)
    return "it is a text file" if is_text else "it is not a kernelmill model file", None
