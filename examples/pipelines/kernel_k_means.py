"""MiniBatchKMeans on a tensor sketch: kernel k-means without the n x n matrix.

Signals of unknown sign: each point is one of five waves, times a random amplitude that may be
negative, plus noise; points of a wave lie along a line through the origin. k-means cuts the lines
in two, even if all rows are scaled to length 1. The kernel <x, y>² does not distinguish x from -x,
and kernel k-means finds the waves. Pham & Pagh (2013) mention clustering by tensor sketches as
future work; Chitta, Jin & Jain (2012) do it with random Fourier features.

    python examples/pipelines/kernel_k_means.py        # 4000 rows; or give another number
"""

import sys
import time
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.cluster import MiniBatchKMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize

from kernelmill import TensorSketch

N_WAVES, N_COLUMNS = 5, 40
PICTURE = "kernel_k_means.png"


def signals(n: int, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Waves with random amplitudes and noise, and which wave it is."""
    rng = np.random.default_rng(seed)
    phases = np.pi * np.arange(N_WAVES) / N_WAVES
    waves = np.sqrt(2 / N_COLUMNS) * np.cos(phases[:, None] + 0.1 * np.pi * np.arange(N_COLUMNS))
    y = rng.integers(0, N_WAVES, n)
    amplitude = rng.uniform(0.4, 1, n) * rng.choice([-1, 1], n)
    return amplitude[:, None] * waves[y] + rng.normal(scale=0.05, size=(n, N_COLUMNS)), y


def exact_kernel_k_means(K: NDArray[Any], n_clusters: int, n_init: int) -> NDArray[Any]:
    """Lloyd's algorithm on a kernel matrix: the best of several starts from random rows."""
    rng = np.random.default_rng(0)
    best, best_labels = np.inf, np.zeros(len(K), int)
    for _ in range(n_init):
        # A center is a weighted sum of mapped rows: a column of weights.
        centers = np.zeros((len(K), n_clusters))
        centers[rng.choice(len(K), n_clusters, replace=False), range(n_clusters)] = 1
        labels, before = np.zeros(len(K), int), np.ones(len(K), int)
        while (labels != before).any():
            products = K @ centers
            distances = (centers * products).sum(axis=0) - 2 * products
            labels, before = distances.argmin(axis=1), labels
            members = np.eye(n_clusters)[labels]
            centers = members / np.maximum(members.sum(axis=0), 1)
        if (score := distances.min(axis=1).sum()) < best:
            best, best_labels = score, labels
    return best_labels


def draw(found: dict[str, tuple[NDArray[Any], str]], X: NDArray[Any]) -> None:
    """The first two principal components of some points, coloured by cluster."""
    plane = PCA(2).fit_transform(X)[:1000]
    figure = Figure(figsize=(11, 3.8), layout="constrained")
    panels = figure.subplots(1, len(found), sharey=True)
    colours = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#222222")
    for axes, (name, (labels, result)) in zip(panels, found.items(), strict=True):
        # Numbers of clusters mean nothing: in the order of their first points, colours agree.
        order = np.argsort([np.argmax(labels == cluster) for cluster in range(N_WAVES)])
        for cluster, colour, marker in zip(order, colours, "o^sDP", strict=True):
            members = plane[labels[: len(plane)] == cluster]
            axes.scatter(*members.T, s=9, c=colour, marker=marker, linewidths=0)
        axes.set(title=f"{name}\n{result}", xlabel="principal component 1")
    panels[0].set_ylabel("principal component 2")
    figure.savefig(PICTURE, dpi=110)
    print(f"Drawn to {PICTURE}")


def main(n_rows: int = 4000) -> None:
    """Print how well clusters match the waves, and times; then draw."""
    X, y = signals(n_rows, seed=0)
    k_means = MiniBatchKMeans(N_WAVES, n_init=10, random_state=0)
    sketch = TensorSketch(degree=2, gamma=1.0, n_components=256, random_state=0)
    methods: dict[str, Any] = {
        "k-means": k_means.fit_predict,
        "k-means on 256 features": make_pipeline(sketch, k_means).fit_predict,
        "exact kernel k-means": lambda X: exact_kernel_k_means((X @ X.T) ** 2, N_WAVES, 10),
    }
    print(f"{n_rows} signals of {N_COLUMNS} columns: {N_WAVES} waves with either sign\n")
    print(f"{'method':24s} adjusted Rand index  seconds")
    found = {}
    for name, cluster in methods.items():
        start = time.perf_counter()
        labels = cluster(normalize(X))
        seconds = time.perf_counter() - start
        match = adjusted_rand_score(y, labels)
        print(f"{name:24s} {match:19.3f} {seconds:8.2f}")
        found[name] = labels, f"adjusted Rand index {match:.2f}, {seconds:.2f} s"
    draw(found, X)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
