"""Where the examples of a run lie on a map, and in which order its matrix shows them: alike ones stand together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import UNKNOWN

Floats = NDArray[np.float64]
UNFOLDED = 500  # examples up to which a map shows neighbours; of more it shows the two main directions
FEWEST = 6  # examples that a map is made of
CLUSTERED = 1_500  # examples up to which they are put in order by clustering
SEED = 0


def map_places(matrix: NDArray[np.int8], vectors: NDArray[np.float32] | None = None) -> Floats:
    """A place in the unit square for each example: by vectors where all have one, else by labels."""
    known = vectors is not None and len(vectors) == matrix.shape[1] and bool(np.any(vectors, axis=1).all())
    values = np.asarray(vectors, np.float64) if known else _centred(matrix)
    directions = _main_directions(values)
    if FEWEST <= len(values) <= UNFOLDED and directions.any():
        from sklearn.manifold import TSNE

        start = directions / (directions.std(axis=0).max() or 1.0) * 1e-4
        perplexity = min(30.0, (len(values) - 1) / 3)
        found = TSNE(perplexity=perplexity, init=start, random_state=SEED, max_iter=500).fit_transform(values)
        directions = np.asarray(found, np.float64)
    spread = np.ptp(directions, axis=0) if len(directions) else np.ones(2)
    least = directions.min(axis=0) if len(directions) else 0.0
    placed: Floats = (directions - least) / np.where(spread > 0, spread, 1.0)
    return placed


def example_order(matrix: NDArray[np.int8]) -> list[int]:
    """Rows of examples, neighbours alike."""
    values = _centred(matrix)
    if 2 < len(values) <= CLUSTERED and values.any():
        from scipy.cluster.hierarchy import leaves_list, linkage

        return [int(row) for row in leaves_list(linkage(values, "average"))]
    return [int(row) for row in np.argsort(_main_directions(values)[:, 0], kind="stable")]


def _centred(matrix: NDArray[np.int8]) -> Floats:
    """Examples × features, the mean of a feature in place of an unknown label."""
    known = np.where(matrix == UNKNOWN, np.nan, matrix.astype(np.float64))
    counts = np.maximum((matrix != UNKNOWN).sum(axis=1, keepdims=True), 1)
    centred: Floats = np.nan_to_num(known - np.nansum(known, axis=1, keepdims=True) / counts).T
    return centred


def _main_directions(values: Floats) -> Floats:
    """The two main components, without a decomposition of what is as long as the data set."""
    if not values.size:
        return np.zeros((len(values), 2))
    centred = values - values.mean(axis=0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    main: Floats = centred @ vectors[:, ::-1][:, :2]
    return np.pad(main, ((0, 0), (0, 2 - main.shape[1])))
