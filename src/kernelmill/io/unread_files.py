"""Files that people have, but that are not read: said by name, with what to do."""

from __future__ import annotations

import zipfile
from pathlib import Path

from kernelmill.io.compression import COMPRESSIONS, raw_beginning
from kernelmill.io.errors import TableError

__all__ = ["refuse_unread"]

_WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
_OLD_WORKBOOK = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ZIP = b"PK\x03\x04"
_COMPRESSED_NAMES = (".xz", ".lzma", ".7z", ".zip", ".rar", ".lz4", ".br", ".z", ".tgz", ".tar")
_COMPRESSED_BEGINNINGS = {
    b"\xfd7zXZ\0": "xz",
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"Rar!\x1a\x07": "rar",
    b"\x04\x22\x4d\x18": "lz4",
}


def refuse_unread(path: Path, given: str | None) -> None:
    r"""Raise an error for a workbook, an archive or a compression that is not read.

    Parameters
    ----------
    path : Path
        The file.
    given : str or None
        The format that the user named: then only the file's content counts.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from kernelmill.io.unread_files import refuse_unread
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "rows"
    ...     _ = path.write_bytes(b"\xfd7zXZ\0...")
    ...     try:
    ...         refuse_unread(path, None)
    ...     except ValueError as error:
    ...         print(str(error).replace(folder, ""))
    /rows is compressed by xz, which is not read; decompress it, or use .gz, .bz2 or .zst.
    """
    suffix = path.suffix.lower()
    start = raw_beginning(path)
    members = _members(path) if start.startswith(_ZIP) and given != "npz" else None
    if (
        (given is None and suffix in _WORKBOOKS)
        or start.startswith(_OLD_WORKBOOK)
        or (members is not None and any(_is_of_workbook(name) for name in members))
    ):
        raise TableError(
            f"{path} is a workbook: Excel workbooks are not read; save the sheet as CSV."
        )
    if members is not None and not any(name.endswith(".npy") for name in members):
        raise TableError(f"{path} is a zip archive, which is not read; unpack it first.")
    found = next((n for magic, n in _COMPRESSED_BEGINNINGS.items() if start.startswith(magic)), "")
    if not found and given is None and suffix in _COMPRESSED_NAMES and members is None:
        found = suffix.removeprefix(".")
    if found:
        known = f"{', '.join(COMPRESSIONS[:-1])} or {COMPRESSIONS[-1]}"
        raise TableError(
            f"{path} is compressed by {found}, which is not read; decompress it, or use {known}."
        )


def _members(path: Path) -> list[str] | None:
    """The names in a zip archive; None if it is damaged, which its reader tells."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return None


def _is_of_workbook(name: str) -> bool:
    return name.startswith("xl/") or name == "content.xml"
