"""Texts that are alike by their embeddings."""

from collections.abc import Mapping, Sequence

import numpy as np

from rankbeam.transforms.kernels.search.nearest import SingleArray, unit_length

Vectors = Mapping[str, SingleArray]
"""By text, its embedding."""

_DIGITS = 9  # machines add in another order


def first_near(texts: Sequence[str], vectors: Vectors, least_cosine: float, same: Sequence[int]) -> list[int]:
    """For every text, the position of the first similar one; its own if none is similar.

    Only texts that resemble no earlier one represent others.

    Args:
        texts: the texts in their order.
        vectors: their embeddings; a text without one resembles no other.
        least_cosine: the lowest cosine at which two are similar.
        same: the same positions by another measure, whose pairs are similar in any case.

    >>> vectors = {"a": np.float32([1, 0]), "b": np.float32([0, 1]), "c": np.float32([1, 0.1])}
    >>> first_near(["a", "b", "c"], vectors, 0.9, [0, 1, 2])
    [0, 1, 0]
    """
    places = list(same)
    originals: list[int] = []
    matrix = np.empty((len(texts), len(next(iter(vectors.values()), ()))))
    for place, text in enumerate(texts):
        if places[place] != place or text not in vectors:
            continue
        own = unit_length(vectors[text][None, :])[0].astype(np.float64)
        cosines = np.round(matrix[: len(originals)] @ own, _DIGITS)
        near = np.flatnonzero(cosines >= least_cosine)
        if len(near):
            places[place] = originals[near[0]]
        else:
            matrix[len(originals)] = own
            originals.append(place)
    return places
