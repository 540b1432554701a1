"""Model files: a record of plain values and arrays in one safetensors file, checked when read.

Contents
--------
write_model_file, read_model_file
    One file, written atomically, with a checksum of all its content.
ModelFile
    The content of such a file.
ModelFileError, errors_of_file
    The error of model files, and a context that adds the file name to it.
fields
    The declaration of the stored fields of a class.
atomic_file
    Atomic writing of files.
outputs
    Files that are written must not be files that are read.
under_prefix, without_prefix
    Names of the tensors of a record inside another record.
"""

from kernelmill.files.fields import under_prefix, without_prefix
from kernelmill.files.model_file import (
    FORMAT_VERSION,
    ModelFile,
    check_record,
    check_tensor_bytes,
    read_model_file,
    write_model_file,
)
from kernelmill.files.safetensors import ModelFileError, errors_of_file

__all__ = [
    "FORMAT_VERSION",
    "ModelFile",
    "ModelFileError",
    "check_record",
    "check_tensor_bytes",
    "errors_of_file",
    "read_model_file",
    "under_prefix",
    "without_prefix",
    "write_model_file",
]
