"""Learn from permutations: the length of round trips, from examples of trips and their lengths.

A trip visits each of nine cities once and returns; the model sees orders of cities and lengths, but
not the coordinates of the cities. The length is a sum over pairs of neighbours on the trip, a
polynomial of degree 2 in the permutation matrix. A linear model learns nothing, since the position
of a single city does not determine the length; features of degree 2 are needed. These polynomials
form a space of 1578 dimensions, so that about that many columns, and more trips than that, predict
the length exactly.

    python examples/tours.py
"""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline

from kernelmill import PermutationEncoder, TensorSketch

N_CITIES = 9
N_TRAIN, N_NEW = 4000, 2000


def trips_and_lengths(n: int, cities: NDArray[Any], rng: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Random round trips through the cities, one a row, and their lengths."""
    trips = np.argsort(rng.random((n, len(cities))), axis=1)
    legs = cities[trips] - cities[np.roll(trips, -1, axis=1)]
    return trips, np.linalg.norm(legs, axis=2).sum(axis=1)


def main() -> None:
    """Compare models by how well they predict the lengths of new trips."""
    rng = np.random.default_rng(0)
    cities = rng.random((N_CITIES, 2))
    train, train_lengths = trips_and_lengths(N_TRAIN, cities, rng)
    new, new_lengths = trips_and_lengths(N_NEW, cities, rng)
    print(f"Round trips through {N_CITIES} cities: {N_TRAIN} to learn from, {N_NEW} new ones")
    print(f"Lengths of the new ones: {new_lengths.min():.2f} to {new_lengths.max():.2f}\n")
    print("features                       columns      R²  shortest by prediction  seconds")

    def show(name: str, *features: Any) -> None:
        start = time.perf_counter()
        model = make_pipeline(*features, Ridge(alpha=1e-3)).fit(train, train_lengths)
        predicted = model.predict(new)
        seconds = time.perf_counter() - start
        chosen = new_lengths[np.argmin(predicted)]
        place = 1 + np.count_nonzero(new_lengths < chosen)
        print(
            f"{name:30s} {model[-1].n_features_in_:7d} {r2_score(new_lengths, predicted):7.3f} "
            f"{f'{chosen:.2f}, no. {place}':>23s} {seconds:8.2f}"
        )

    show("permutation matrix", PermutationEncoder())
    show("signs of pairs", PermutationEncoder("pairs"))
    for n_components in (128, 256, 512, 1024, 2048):
        sketch = TensorSketch(degree=2, n_components=n_components, random_state=0)
        show("matrix, TensorSketch(degree=2)", PermutationEncoder(), sketch)


if __name__ == "__main__":
    main()
