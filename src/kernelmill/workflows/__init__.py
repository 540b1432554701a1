"""From files to models, predictions and evaluations: the Python interface of the commands.

Contents
--------
fit_table
    Fit a `TableModel` to a table.
TableModel
    Predicts, evaluates and transforms tables; `save` writes it to a file.
load, load_predictor
    Load a model from a file; `load_predictor` only predicts and does not import scikit-learn.
compare_table
    Compare a linear model, random features, trees and the exact kernel.
diagnose_table
    Report how many features each map needs, their cost and their errors.
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
