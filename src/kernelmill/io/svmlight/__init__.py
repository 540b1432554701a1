"""Svmlight / LIBSVM files.

Contents
--------
parser
    Text as arrays, by the native parser, with errors that name the line and the column.
reader
    A file in pieces of complete lines, and the numbering of its indices.
svmlight_file
    `SvmlightFile`, which reads a file in blocks, and `read_svmlight`, which reads all of it.
"""
