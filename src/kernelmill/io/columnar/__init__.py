"""Files with typed columns: Parquet and Arrow IPC (Feather 2).

Contents
--------
arrow_values
    Columns of any Arrow type as numbers or categories.
columnar_files
    `ParquetFile` and `ArrowFile`, which read a file in blocks.
"""
