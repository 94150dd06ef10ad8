"""The state of labels by strata: however queries are divided, the merged state has the estimate of all at once."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaigns import examples

from rankbeam.transforms.kernels.statistics.ppi import LabelledSample, stratified
from rankbeam.transforms.records.scores.labelled import LabelledMoments

QUARTERS = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
QUERIES = st.lists(
    st.tuples(st.none() | QUARTERS, st.none() | QUARTERS, st.sampled_from("abc")), min_size=60, max_size=90
)


def state(rows: list[tuple[float | None, float | None, str]]) -> LabelledMoments:
    labels, judged = (np.array([math.nan if row[at] is None else row[at] for row in rows]) for at in (0, 1))
    names = np.array([row[2] for row in rows], object)
    every, none = np.ones(len(rows), bool), np.zeros(len(rows), bool)
    return LabelledMoments.of(labels, judged, none, every, {name: names == name for name in "abc"})


@settings(max_examples=examples(30))
@given(rows=QUERIES, parts=st.integers(1, 5))
def test_the_estimate_over_strata_does_not_depend_on_parts(
    rows: list[tuple[float | None, float | None, str]], parts: int
) -> None:
    merged = state([])
    for part in range(parts):
        merged = merged.merge(state(rows[part::parts]))
    ours, whole = merged.estimate(0.0, 1.0), state(rows).estimate(0.0, 1.0)
    assert (ours is None) == (whole is None)
    if ours is None or whole is None:
        return
    assert ours.interval() == pytest.approx(whole.interval(), abs=1e-9)
    groups = [[row for row in rows if row[2] == name] for name in "abc"]
    labelled = [sum(None not in row[:2] for row in group) for group in groups]
    if min(labelled) < 2:
        return  # strata are joined
    samples = [
        LabelledSample.of(
            np.array([row[0] for row in group if None not in row[:2]]),
            np.array([row[1] for row in group if None not in row[:2]]),
            np.array([row[1] for row in group if row[0] is None and row[1] is not None]),
        )
        for group in groups
    ]
    expected = stratified(samples)
    assert (ours.mean, ours.standard_error) == pytest.approx((expected.mean, expected.standard_error), abs=1e-9)


def test_a_stratum_with_one_label_is_joined_to_another() -> None:
    rows = [(float(place % 2), float(place % 3 > 0), "a") for place in range(24)]
    rows += [(1.0, 1.0, "b"), *[(None, 0.0, "b")] * 10, *[(None, 1.0, "a")] * 40]
    result = state(rows).estimate(0.0, 1.0)
    assert result is not None
    assert result.degrees == 24.0  # one stratum is left
    assert state(rows[:19]).estimate(0.0, 1.0) is None
