"""The state of labels by strata: however queries are divided, the merged state has the estimate of all at once."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaigns import examples

from rankbeam.transforms.judge.metrics import parse_judged
from rankbeam.transforms.kernels.statistics.ppi import LabelledSample, estimate, stratified_estimate
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.metrics.evaluation import Configuration, Evaluation, Statistics
from rankbeam.transforms.records.scores.aggregates import RunAggregate
from rankbeam.transforms.records.scores.comparisons import comparisons_of
from rankbeam.transforms.records.scores.estimates import RunEstimates
from rankbeam.transforms.records.scores.judged import NOT_LABELLED, NOTHING_TO_LABEL
from rankbeam.transforms.records.scores.labelled import LabelledMoments
from rankbeam.transforms.records.scores.scored import ScoredConfiguration, ScoredPanel, ScoredPartition, Status
from rankbeam.transforms.records.slices import ALL

QUARTERS = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
QUERIES = st.lists(
    st.tuples(st.none() | QUARTERS, st.none() | QUARTERS, st.sampled_from("abc")), min_size=60, max_size=90
)


def state(rows: list[tuple[float | None, float | None, str]]) -> LabelledMoments:
    labels, judged = (np.array([math.nan if row[at] is None else row[at] for row in rows]) for at in (0, 1))
    names = np.array([row[2] for row in rows], object)
    every, none = np.ones(len(rows), bool), np.zeros(len(rows), bool)
    return LabelledMoments.of(labels, judged, none, none, every, {name: names == name for name in "abc"})


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
    expected = stratified_estimate(samples)
    assert (ours.mean, ours.standard_error) == pytest.approx((expected.mean, expected.standard_error), abs=1e-9)


def test_a_stratum_with_one_label_is_joined_to_another() -> None:
    rows = [(float(place % 2), float(place % 3 > 0), "a") for place in range(24)]
    rows += [(1.0, 1.0, "b"), *[(None, 0.0, "b")] * 10, *[(None, 1.0, "a")] * 40]
    result = state(rows).estimate(0.0, 1.0)
    assert result is not None
    assert result.degrees == 24.0  # one stratum is left
    assert state(rows[:19]).estimate(0.0, 1.0) is None


@settings(max_examples=examples(20))
@given(known=st.lists(QUARTERS, min_size=1, max_size=5), labels=st.lists(QUARTERS, min_size=20, max_size=20))
def test_queries_with_nothing_to_label_count_as_if_they_had_been_drawn_like_all_others(
    known: list[float], labels: list[float]
) -> None:
    judged = np.tile([0.0, 0.75, 1.0, 0.5], 20)  # of 20 labelled queries and of 60 others
    of_certain = np.repeat(known, 4)
    certain = np.arange(80 + len(of_certain)) >= 80
    columns = np.concatenate([labels, np.full(60, np.nan), of_certain]), np.concatenate([judged, of_certain])
    nothing = np.zeros(len(certain), bool)
    parts = [LabelledMoments.of(*columns, nothing, certain, np.arange(len(certain)) % 2 == half) for half in (0, 1)]
    actual = parts[0].merge(parts[1]).estimate(0.0, 1.0)
    expected = estimate(
        LabelledSample.of(
            np.array([*labels, *known]),
            np.array([*judged[:20], *known]),
            np.concatenate([judged[20:], np.repeat(known, 3)]),
        )
    )
    assert actual is not None
    assert actual.mean == pytest.approx(expected.mean)
    assert (actual.power, actual.standard_error) == pytest.approx((expected.power, expected.standard_error), abs=1e-9)
    assert actual.interval() == pytest.approx(expected.interval(), abs=1e-9)


def test_queries_with_nothing_to_label_and_no_judged_value_are_left_out() -> None:
    """Another judge of the panel may have failed where the first one found nothing to decide."""
    labels, judged = np.tile([0.0, 1.0, np.nan, np.nan], 10), np.tile([0.0, 1.0, 0.5, np.nan], 10)
    none, every = np.zeros(40, bool), np.ones(40, bool)
    without = LabelledMoments.of(labels, judged, none, none, every)
    assert LabelledMoments.of(labels, judged, none, np.isnan(judged), every) == without
    result = without.estimate(0.0, 1.0)
    assert result is not None
    assert not math.isnan(result.mean)


def test_wins_and_losses_count_the_queries_of_the_difference() -> None:
    """If one configuration has labels and the other nothing to label, their difference is known, too."""
    evaluation = Evaluation(
        configurations=tuple(Configuration(name, name, 0, "run_file", "{}", None, None) for name in "ab"),
        metrics=(parse_judged("ContextRelevance(labels=True)"),),
        sources=(),
        baseline=0,
        statistics=Statistics(replicates=0),
    )
    count = 90
    labels, judged = np.random.default_rng(7).integers(0, 2, (2, 2, count)).astype(float)
    is_labelled = np.arange(count) < np.array([[50], [45]])
    is_certain = np.arange(count) % np.array([[5], [3]]) == 0
    judged[is_certain] = 0.0
    known = is_labelled & ~is_certain
    no_ranking = ScoredPanel(np.full(count, Status.MISSING, np.int8), np.empty((count, 0)))
    configurations = tuple(
        ScoredConfiguration(
            place,
            (
                no_ranking,
                ScoredPanel(
                    np.where(known[place], Status.OK, Status.UNDEFINED).astype(np.int8),
                    np.where(known[place], labels[place], np.nan)[:, None],
                    reasons=pa.array(np.where(is_certain[place], NOTHING_TO_LABEL, NOT_LABELLED), pa.string()),
                    judged=judged[place],
                ),
            ),
        )
        for place in range(2)
    )
    rows = [{"query_id": f"q{number}", "text": "", "attributes": [], "judgements": []} for number in range(count)]
    queries = pa.RecordBatch.from_pylist(rows, schema=columns.JUDGED_QUERIES)
    aggregate = RunAggregate.of(ScoredPartition(queries, {ALL: np.ones(count, bool)}, configurations), evaluation)
    (row,) = comparisons_of(RunEstimates.of(aggregate, evaluation))

    differences = []
    for query in range(count):
        values = [0.0 if is_certain[place, query] else labels[place, query] for place in range(2)]
        if (known | is_certain)[:, query].all() and not is_certain[:, query].all():
            differences.append(values[1] - values[0])
    assert row.queries == len(differences)
    assert (row.wins, row.ties, row.losses) == tuple(map(differences.count, (1.0, 0.0, -1.0)))
    assert row.unpaired == sum(
        known[:, query].any() and not (known | is_certain)[:, query].all() for query in range(count)
    )
