"""The nearest vectors are those of a full sort in double precision, however vectors and queries are divided."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbeam.transforms.kernels.search import nearest as module
from rankbeam.transforms.kernels.search.nearest import nearest, unit_length


def sorted_all(vectors: np.ndarray, query: np.ndarray, count: int) -> tuple[list[int], list[float]]:
    """The best of all vectors that have a direction; of equals, the earlier one first."""
    products = (vectors.astype(np.float64) * query.astype(np.float64)).sum(axis=1)
    places = [place for place in range(len(vectors)) if vectors[place].any()]
    best = sorted(places, key=lambda place: -products[place])[:count]
    return best, [float(products[place]) for place in best]


@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(0, 60),
    queries=st.integers(1, 9),
    count=st.integers(1, 70),
    blocks=st.tuples(st.integers(1, 64), st.integers(1, 9)),
    shapes=st.sampled_from(["any", "equal", "missing", "opposite"]),
)
def test_they_are_the_first_of_a_full_sort(
    seed: int, rows: int, queries: int, count: int, blocks: tuple[int, int], shapes: str
) -> None:
    draw = np.random.default_rng(seed)
    vectors = unit_length(draw.standard_normal((rows, 5)))
    vectors_of_queries = unit_length(draw.standard_normal((queries, 5)))
    if shapes == "equal":
        vectors = vectors[draw.integers(0, max(1, rows // 4), rows)] if rows else vectors
    elif shapes == "missing":
        vectors[draw.random(rows) < 0.5] = 0
    elif shapes == "opposite":  # all products are negative: less than the 0 of a missing vector
        vectors_of_queries = unit_length(np.abs(vectors_of_queries) + 0.1)
        vectors = -unit_length(np.abs(vectors) + 0.1)
        vectors[::3] = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_ROWS_AT_ONCE", blocks[0])
        patch.setattr(module, "_QUERIES_AT_ONCE", blocks[1])
        results = list(nearest(vectors, vectors_of_queries, count))
    assert len(results) == queries
    for query, (places, products) in zip(vectors_of_queries, results, strict=True):
        assert (places.tolist(), products.tolist()) == sorted_all(vectors, query, count)


def test_a_vector_at_a_right_angle_is_no_missing_one() -> None:
    vectors = np.float32([[0, 1], [0, 0], [1, 0]])
    ((places, products),) = nearest(vectors, np.float32([[1, 0]]), 3)
    assert (places.tolist(), products.tolist()) == ([2, 0], [1.0, 0.0])


def test_products_that_rounding_cannot_tell_apart_are_compared_in_double_precision() -> None:
    draw = np.random.default_rng(3)
    query = unit_length(draw.standard_normal((1, 384)))
    near = query + 1e-4 * draw.standard_normal((3000, 384))  # products differ by less than single precision shows
    vectors = unit_length(near)
    ((places, products),) = nearest(vectors, query, 20)
    assert (places.tolist(), products.tolist()) == sorted_all(vectors, query[0], 20)
