"""Delimited text files (CSV, TSV and others).

Contents
--------
records
    Records and values: where they begin and end, what is missing, a number or a date.
amounts
    Numbers with signs and digit groups.
sniffing
    Delimiter and header from the first lines of a file.
words
    The different strings of columns, and how many match a pattern.
evidence
    Kinds of columns from their first values.
parser
    Pieces of text as record batches.
text_file
    `TextFile`, which reads a file in blocks.
"""
