"""Models of several kinds on the rows of one table.

Contents
--------
compare_table
    `compare_table`: the models that are compared.
baselines
    The models of scikit-learn among them, and how many rows they can take.
benchmark
    Error, times and memory of each.
"""
