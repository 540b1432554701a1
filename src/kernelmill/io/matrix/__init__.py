"""Files with a matrix of numbers: NPY, NPZ and IDX.

Contents
--------
matrix_file
    `MatrixFile`, the base class of the formats, and rows read from raw bytes.
numpy_files
    `NpyFile` and `NpzFile`.
idx_file
    `IdxFile`, such as the files of MNIST.
"""
