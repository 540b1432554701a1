"""Learners on a Dask cluster beside the same learners on one machine, and beside Incremental SGD.

Clusters are local processes. CPU time is that of all processes together: on a machine that does
other work, too, its ratios are what can be compared. Wall-clock times are printed beside it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait
from numpy.typing import NDArray
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDClassifier

from benchmarks.extent import at_least, load
from benchmarks.timing import heading
from kernelmill import Fastfood, KernelClassifier, KernelRegressor
from kernelmill.scale import DaskKernelClassifier, DaskKernelRegressor

N_COLUMNS, N_FEATURES, N_TEST = 50, 2048, 20_000
LENGTH_SCALE = 7.0
EPOCHS = 2
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
    """Return what dask-ml's Incremental trains: partial_fit of one chunk after the other."""
    gamma = 0.5 / LENGTH_SCALE**2
    sampler = RBFSampler(gamma=gamma, n_components=N_FEATURES, random_state=0)
    sampler.fit(np.zeros((1, N_COLUMNS), np.float32))

    def step(model: Any, rows: Any, codes: Any) -> Any:
        return model.partial_fit(sampler.transform(rows), codes, classes=[0, 1])

    model: Any = SGDClassifier(loss="log_loss", alpha=1e-6, random_state=0)
    pairs = list(zip(X.to_delayed().ravel(), labels.to_delayed().ravel(), strict=True))
    for _ in range(EPOCHS):
        for rows, codes in pairs:
            model = dask.delayed(step)(model, rows, codes)
    trained = client.compute(model).result()
    return lambda test: trained.predict(sampler.transform(test))


def main() -> None:
    """Print the table."""
    n_rows = 1_000_000 if at_least("usual") else 250_000
    heading(f"Clusters: {n_rows} x {N_COLUMNS} rows, {N_FEATURES} features ({load()})")
    X, y = draw_rows(n_rows, 0)
    X_test, y_test = draw_rows(N_TEST, 1)
    labels, test_labels = (y > 0.5).astype(np.int64), (y_test > 0.5).astype(np.int64)
    feature_map = Fastfood(n_components=N_FEATURES, length_scale=LENGTH_SCALE, random_state=0)
    ridge: dict[str, Any] = {"feature_map": feature_map, "alpha": 1.0}
    sgd: dict[str, Any] = {"feature_map": feature_map, "epochs": EPOCHS, "random_state": 0}

    def print_error(predict: Callable[[Any], Any]) -> None:
        print(f"    error {100 * float(np.mean(predict(X_test) != test_labels)):.2f} %")

    alone = measure("ridge, one machine", partial(KernelRegressor(**ridge).fit, X, y))
    single = measure("SGD, one machine", partial(KernelClassifier(**sgd).fit, X, labels))
    print_error(single.predict)
    for n_workers in (2, 1):
        with local_cluster(n_workers) as client:
            parts = [da.from_array(part, (CHUNK_ROWS, -1)[: part.ndim]) for part in (X, y, labels)]
            rows, targets, codes = client.persist(parts)
            wait([rows, targets, codes])
            client.run(import_module, "kernelmill.scale")  # once in the life of a worker
            of = f"{n_workers} worker{'s' if n_workers > 1 else ''}"
            fit = partial(DaskKernelRegressor(**ridge).fit, rows, targets)
            spread = measure(f"ridge, {of}", fit, client)
            assert np.abs(spread.coef_ - alone.coef_).max() < 1e-6 * np.abs(alone.coef_).max()
            fit = partial(DaskKernelClassifier(**sgd).fit, rows, codes)
            averaged = measure(f"SGD, {of}", fit, client)
            print_error(averaged.to_local().predict)
            if n_workers > 1:
                peer = partial(incremental_sgd, client, rows, codes)
                print_error(measure("RBFSampler, Incremental SGD", peer, client))


if __name__ == "__main__":
    main()
