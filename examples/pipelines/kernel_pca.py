"""PCA on random features: kernel PCA, which also transforms new rows.

Three noisy rings. Their principal components are just the rings again; those of the features of a
Gaussian kernel (Schölkopf, Smola & Müller 1998) separate the rings. PCA centers the features as
KernelPCA centers the kernel, so that both find the same components: one for the radius, then two
for the direction, which are determined up to a rotation.

    python examples/pipelines/kernel_pca.py        # 4000 rows; or give another number
"""

import sys
import time
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.decomposition import PCA, KernelPCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from kernelmill import RandomFourier

LENGTH_SCALE = 1.0
PICTURE = "kernel_pca.png"


def rings(n: int, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Points near three rings around the origin, and which ring it is."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    radius = np.array([0.3, 1.2, 2.1])[y] + rng.normal(scale=0.12, size=n)
    angle = rng.uniform(0, 2 * np.pi, n)
    return radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]), y


def agreement(A: NDArray[Any], B: NDArray[Any]) -> float:
    """The least canonical correlation of two sets of components: 1 if they span the same space."""
    bases = [np.linalg.qr(C - C.mean(axis=0))[0] for C in (A, B)]
    return float(np.linalg.svd(bases[0].T @ bases[1], compute_uv=False).min())


def draw(components: dict[str, NDArray[Any]], y: NDArray[Any]) -> None:
    """The first two components by each method."""
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    panels = figure.subplots(1, len(components))
    styles = (("#0072b2", "o"), ("#e69f00", "^"), ("#555555", "s"))
    for axes, (name, C) in zip(panels, components.items(), strict=True):
        for label, (colour, marker) in enumerate(styles):
            axes.scatter(*C[y == label][:400, :2].T, s=6, c=colour, marker=marker, linewidths=0)
        axes.set(title=name, xlabel="component 1", ylabel="component 2")
    figure.savefig(PICTURE, dpi=110)
    print(f"Drawn to {PICTURE}")


def main(n_rows: int = 4000) -> None:
    """Print agreement, use and times of the components, then draw."""
    X, y = rings(n_rows, seed=0)
    new, y_new = rings(2000, seed=1)
    features = RandomFourier(length_scale=LENGTH_SCALE, n_components=500, random_state=0)
    models = {
        "PCA": PCA(2),
        "PCA on 500 features": make_pipeline(features, PCA(3)),
        "KernelPCA": KernelPCA(3, kernel="rbf", gamma=1 / (2 * LENGTH_SCALE**2)),
    }
    components, lines = {}, []
    for name, model in models.items():
        start = time.perf_counter()
        old = model.fit(X).transform(X)
        components[name] = model.transform(new)
        seconds = time.perf_counter() - start
        error = 1 - LogisticRegression(C=1e4).fit(old, y).score(components[name], y_new)
        lines.append((name, error, seconds))
    print(f"Three rings: components of {n_rows} points, seen on {len(new)} new ones\n")
    print(f"{'method':20s} agreement with KernelPCA  rings mistaken  seconds (fit + transform)")
    for name, error, seconds in lines:
        alike = ""  # two components cannot be three
        if name != "PCA":
            alike = f"{agreement(components[name], components['KernelPCA']):.4f}"
        print(f"{name:20s} {alike:>24s} {error:15.1%} {seconds:8.2f}")
    draw(components, y_new)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
