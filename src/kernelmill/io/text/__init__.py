"""Delimited text files (CSV, TSV and others).

Contents
--------
records
    Records and values: where they begin and end, what is missing, a number or a date.
amounts
    Numbers with signs and groups of digits.
sniffing
    Delimiter, header and kinds of columns from the first lines of a file.
parser
    Pieces of text as record batches.
text_file
    `TextFile`, which reads a file in blocks.
"""
