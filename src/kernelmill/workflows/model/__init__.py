"""Models of tables.

Contents
--------
table_model
    `TableModel`, which predicts, evaluates and transforms tables.
prediction
    What a model predicts for the blocks of a table, and how good that is.
loading
    `load` and `load_predictor`.
"""
