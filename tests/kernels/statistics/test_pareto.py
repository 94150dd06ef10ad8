"""The Pareto front, against its definition."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rankbeam.transforms.kernels.statistics.selection import pareto_front

POINTS = st.lists(st.tuples(st.integers(0, 4).map(float), st.integers(-3, 3).map(float)), max_size=12)


@given(POINTS)
def test_the_front_has_what_no_other_choice_dominates(points: list[tuple[float, float]]) -> None:
    def is_dominated(cost: float, quality: float) -> bool:
        return any(
            other <= cost and better >= quality and (other, better) != (cost, quality) for other, better in points
        )

    cost, quality = np.array([x for x, _ in points]), np.array([y for _, y in points])
    assert pareto_front(cost, quality).tolist() == [not is_dominated(*point) for point in points]
