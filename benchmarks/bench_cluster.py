"""Learners on a Dask cluster compared with the same learners on one machine and Incremental SGD.

A cluster is a number of local processes with one thread each, compared with one process with as
many threads. CPU times are those of all processes; on a busy machine, compare their ratios.
Wall-clock times are also printed. Rows of dask-ml are omitted if it is not installed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait
from numpy.typing import NDArray
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDClassifier
from threadpoolctl import threadpool_limits

from benchmarks.timing import at_least, heading, load
from kernelmill import Fastfood, KernelClassifier, KernelRegressor
from kernelmill.scale import DaskKernelClassifier, DaskKernelRegressor

try:
    from dask_ml.wrappers import Incremental
except ImportError:
    Incremental = None

N_COLUMNS, N_FEATURES, N_TEST = 50, 2048, 20_000
LENGTH_SCALE = 7.0
EPOCHS = 2
MODELS = ("ridge", "sgd", "incremental")
CHUNK_ROWS = 62_500


def draw_rows(n_rows: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return rows and a smooth function of some columns, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, N_COLUMNS), dtype=np.float32)
    y = np.sin(2 * X[:, 0]) * X[:, 1] + np.cos(X[:, 2] * X[:, 3]) + 0.5 * X[:, 4] ** 2
    return X, (y + 0.3 * rng.standard_normal(n_rows, dtype=np.float32)).astype(np.float32)


@contextmanager
def local_cluster(n_workers: int) -> Iterator[Any]:
    """Yield a client of single-threaded worker processes."""
    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", memory_limit=0
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def bytes_sent(dask_worker: Any) -> int:
    """Return the bytes that a worker has sent: to other workers, and as results."""
    return int(dask_worker.transfer_outgoing_bytes_total)


def measure(name: str, call: Callable[[], Any], client: Any = None) -> Any:
    """Print CPU and wall-clock time of a call, and the bytes that workers sent."""

    def cpu() -> float:
        workers = [] if client is None else client.run(time.process_time).values()
        return float(time.process_time() + sum(workers))

    before, moved = cpu(), {} if client is None else client.run(bytes_sent)
    begin = time.perf_counter()
    result = call()
    wall = time.perf_counter() - begin
    text = f"  {name:34s} {cpu() - before:8.1f} s of CPU {wall:8.1f} s"
    if client is not None:
        sent = [n - moved[address] for address, n in client.run(bytes_sent).items()]
        text += "   sent by workers: " + ", ".join(f"{n / 1e6:.1f} MB" for n in sent)
    print(text, flush=True)
    return result


def incremental_sgd(client: Any, X: Any, labels: Any) -> Any:
    """Return the predictions of dask-ml's Incremental: partial_fit of one chunk after the other."""
    gamma = 0.5 / LENGTH_SCALE**2
    sampler = RBFSampler(gamma=gamma, n_components=N_FEATURES, random_state=0)
    sampler.fit(np.zeros((1, N_COLUMNS), np.float32))
    features = X.map_blocks(sampler.transform, chunks=(X.chunks[0], (N_FEATURES,)), dtype="f4")
    with client.as_current():
        model = Incremental(SGDClassifier(loss="log_loss", alpha=1e-6, random_state=0))
        for _ in range(EPOCHS):
            model.partial_fit(features, labels, classes=[0, 1])
    return lambda test: model.estimator_.predict(sampler.transform(test))


class Comparison:
    """Fits of the same rows on one machine and on a cluster, with as many threads as workers."""

    def __init__(self, n_rows: int) -> None:
        self.X, self.y = draw_rows(n_rows, 0)
        self.X_test, y_test = draw_rows(N_TEST, 1)
        self.labels, self.test_labels = (self.y > 0.5).astype(np.int64), y_test > 0.5
        feature_map = Fastfood(n_components=N_FEATURES, length_scale=LENGTH_SCALE, random_state=0)
        self.settings: dict[str, dict[str, Any]] = {
            "ridge": {"feature_map": feature_map, "alpha": 1.0},
            "sgd": {"feature_map": feature_map, "epochs": EPOCHS, "random_state": 0},
        }

    def print_error(self, predict: Callable[[Any], Any]) -> None:
        """Print the error on the test rows."""
        error = float(np.mean(predict(self.X_test) != self.test_labels))
        print(f"    error {100 * error:.2f} %")

    def run(self, n: int, models: Sequence[str]) -> None:
        """Print the times with n threads and with n workers of one thread."""
        alone = {}
        for name in set(models) & set(self.settings):
            learner: Any = (KernelRegressor if name == "ridge" else KernelClassifier)(
                **self.settings[name], n_threads=n
            )
            target = self.y if name == "ridge" else self.labels
            with threadpool_limits(n):
                fit = partial(learner.fit, self.X, target)
                alone[name] = measure(f"{name}, one process, {n} threads", fit)
        with local_cluster(n) as client:
            given = (self.X, self.y, self.labels)
            parts = [da.from_array(part, (CHUNK_ROWS, -1)[: part.ndim]) for part in given]
            rows, targets, codes = client.persist(parts)
            wait([rows, targets, codes])
            client.run(import_module, "kernelmill.scale")  # Workers import it once.
            if "ridge" in models:
                spread: Any = DaskKernelRegressor(**self.settings["ridge"])
                measure(f"ridge, {n} workers", partial(spread.fit, rows, targets), client)
                expected = alone["ridge"].coef_
                assert np.abs(spread.coef_ - expected).max() < 1e-6 * np.abs(expected).max()
            if "sgd" in models:
                self.print_error(alone["sgd"].predict)
                spread = DaskKernelClassifier(**self.settings["sgd"])
                measure(f"sgd, {n} workers", partial(spread.fit, rows, codes), client)
                self.print_error(spread.to_local().predict)
            if "incremental" in models and Incremental is not None:
                peer = partial(incremental_sgd, client, rows, codes)
                self.print_error(measure(f"Incremental, {n} workers", peer, client))


def main(models: Sequence[str] = MODELS, workers: Sequence[int] = (1, 2)) -> None:
    """Print the table."""
    n_rows = 1_000_000 if at_least("usual") else 250_000
    heading(f"Clusters: {n_rows} x {N_COLUMNS} rows, {N_FEATURES} features ({load()})")
    comparison = Comparison(n_rows)
    for n in workers:
        comparison.run(n, models)


if __name__ == "__main__":  # For example: python -m benchmarks.bench_cluster ridge 2
    main(sys.argv[1:2] or MODELS, [int(n) for n in sys.argv[2:]] or (1, 2))
