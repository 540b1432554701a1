"""Maps, estimators and tests on the workers of a Dask cluster.

Requires ``pip install kernelmill[dask]``.

Contents
--------
DaskKernelClassifier, DaskKernelRegressor
    Estimators for Dask arrays and data frames.
transform, fit_map
    Feature maps on Dask arrays and data frames, lazily and chunk by chunk.
two_sample_test
    Test whether two samples on a cluster have the same distribution.
sample_rows
    A sample of rows in memory, for diagnostics.
Piece, Pieces
    Rows that are divided among workers, and folds over them; accepted by `fit_blocks`.
Cluster
    Where tasks run.
ClusterError, PieceError
    Errors of a cluster, and errors on a worker.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from kernelmill.deferred import defer_imports

if find_spec("distributed") is None:
    raise ModuleNotFoundError(
        "kernelmill.scale needs Dask; install it with: pip install 'kernelmill[dask]'",
        name="distributed",
    )

if TYPE_CHECKING:
    from kernelmill.scale.cluster import Cluster, ClusterError, PieceError
    from kernelmill.scale.estimators import DaskKernelClassifier, DaskKernelRegressor
    from kernelmill.scale.maps import fit_map, sample_rows, transform
    from kernelmill.scale.pieces import Piece, Pieces
    from kernelmill.scale.two_sample import two_sample_test

__all__ = [
    "Cluster",
    "ClusterError",
    "DaskKernelClassifier",
    "DaskKernelRegressor",
    "Piece",
    "PieceError",
    "Pieces",
    "fit_map",
    "sample_rows",
    "transform",
    "two_sample_test",
]

# Workers that read files need no Dask collections, and predictions no scikit-learn.
__getattr__ = defer_imports(
    __name__,
    {
        "Cluster": "cluster",
        "ClusterError": "cluster",
        "PieceError": "cluster",
        "DaskKernelClassifier": "estimators",
        "DaskKernelRegressor": "estimators",
        "fit_map": "maps",
        "sample_rows": "maps",
        "transform": "maps",
        "Piece": "pieces",
        "Pieces": "pieces",
        "two_sample_test": "two_sample",
    },
)
