"""Tables written to files atomically.

Contents
--------
table_writer
    `open_writer` and the `TableWriter` that it returns.
formats
    CSV, TSV, Parquet, Arrow (Feather 2) and NPY.
"""
