"""Files with typed columns: Parquet and Arrow IPC (Feather 2).

Contents
--------
arrow_file, parquet_file
    `ArrowFile` and `ParquetFile`, which read a file in blocks.
arrow_values
    Columns of any Arrow type as numbers or categories.
columnar_files
    What both have in common, and what strings in typed columns are.
parquet_pages
    What the pages of Parquet files decompress to.
"""
