"""What a file is that is not a model, by its first bytes: for messages that help."""

from __future__ import annotations

__all__ = ["description_of"]

_KNOWN = (
    (b"\x89PNG\r\n\x1a\n", "it is a picture (PNG)"),
    (b"\xff\xd8\xff", "it is a picture (JPEG)"),
    (b"GIF8", "it is a picture (GIF)"),
    (b"%PDF", "it is a PDF"),
    (b"PK\x03\x04", "it is a ZIP archive, perhaps of numpy (.npz) or skops"),
    (b"\x1f\x8b", "it is compressed with gzip; if there is a model in it, decompress it first"),
    (b"\x93NUMPY", "it is an array of numpy (.npy)"),
    (b"PAR1", "it is a Parquet table"),
    (b"ARROW1", "it is an Arrow table"),
    (b"\x7fELF", "it is a program"),
    (b"\x89HDF", "it is an HDF5 file"),
)
_GIVE = "give the file that `save` wrote"


def description_of(beginning: bytes, size: int) -> str:
    """What a file that begins so is, and what to give instead.

    Examples
    --------
    >>> from kernelmill.storage.foreign_files import description_of
    >>> description_of(b"", 0)
    'it is empty; save the model again'
    """
    if size == 0:
        return "it is empty; save the model again"
    for start, name in _KNOWN:
        if beginning.startswith(start):
            return f"{name}; {_GIVE}"
    if beginning[:1] == b"\x80" and beginning[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return (
            "it is a pickle, which could run any program and is never opened here; load it with "
            "the pickle module if you trust it, and `save` the model"
        )
    if beginning[8:9] == b"{":
        return "its end is missing, or its first bytes are damaged; copy it again"
    if all(byte in b"\t\r\n" or 32 <= byte < 127 or byte >= 128 for byte in beginning):
        return f"it is a text file; {_GIVE}"
    return f"it is not a model file of kernelmill; {_GIVE}"
