"""Model files: a record of plain values and arrays in one safetensors file, checked when read.

Contents
--------
write_model_file, read_model_file
    One file, replaced as a whole or not at all; a checksum over everything in it.
ModelFile
    What is in such a file.
ModelFileError, errors_of_file
    What is wrong with one, and messages that name it.
under_prefix, without_prefix
    Names of tensors of a record that is a part of a larger one.
"""

from kernelmill.storage.model_file import (
    FORMAT_VERSION,
    ModelFile,
    read_model_file,
    write_model_file,
)
from kernelmill.storage.model_file_error import ModelFileError, errors_of_file
from kernelmill.storage.tensor_names import under_prefix, without_prefix

__all__ = [
    "FORMAT_VERSION",
    "ModelFile",
    "ModelFileError",
    "errors_of_file",
    "read_model_file",
    "under_prefix",
    "without_prefix",
    "write_model_file",
]
