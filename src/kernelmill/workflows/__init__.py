"""From files to models, predictions and evaluations: what the command line does, in Python.

Contents
--------
fit_table
    A table becomes a `TableModel`.
TableModel
    Predicts, evaluates and transforms tables; `save` writes it to a file.
load, load_predictor
    The model in a file; the latter for prediction alone, without scikit-learn.
compare_table
    A linear model, random features and the exact kernel side by side.
diagnose_table
    How many features each map needs, what they cost, and how good they are.
"""

from typing import TYPE_CHECKING

from kernelmill.deferred import defer_imports

if TYPE_CHECKING:
    from kernelmill.workflows.comparison.compare_table import compare_table
    from kernelmill.workflows.diagnosis import diagnose_table
    from kernelmill.workflows.model.loading import load, load_predictor
    from kernelmill.workflows.model.table_model import TableModel
    from kernelmill.workflows.training.fit_table import fit_table

__all__ = ["TableModel", "compare_table", "diagnose_table", "fit_table", "load", "load_predictor"]

__getattr__ = defer_imports(
    __name__,
    {
        "compare_table": "comparison.compare_table",
        "diagnose_table": "diagnosis",
        "fit_table": "training.fit_table",
        "TableModel": "model.table_model",
        "load": "model.loading",
        "load_predictor": "model.loading",
    },
)
