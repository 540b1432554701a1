"""Model files: a record of plain values and arrays in one safetensors file, checked when read.

Contents
--------
write_model_file, read_model_file
    One file, replaced as a whole or not at all; a checksum over everything in it.
ModelFile
    What is in such a file.
ModelFileError
    What is wrong with one.
"""

from kernelmill.storage.model_file import (
    FORMAT_VERSION,
    ModelFile,
    read_model_file,
    write_model_file,
)
from kernelmill.storage.model_file_error import ModelFileError

__all__ = [
    "FORMAT_VERSION",
    "ModelFile",
    "ModelFileError",
    "read_model_file",
    "write_model_file",
]
