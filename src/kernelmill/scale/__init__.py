"""Beyond one machine: maps, learners and tests on the workers of a Dask cluster.

Needs the packages of ``pip install kernelmill[dask]``.

Contents
--------
Piece, Pieces
    Rows that are divided among workers, and folds over them; what learners' `fit_blocks` takes.
Cluster
    Where tasks run.
ClusterError, PieceError
    What can go wrong there.
"""

from kernelmill.scale.cluster import Cluster, ClusterError, PieceError
from kernelmill.scale.pieces import Piece, Pieces

__all__ = ["Cluster", "ClusterError", "Piece", "PieceError", "Pieces"]
