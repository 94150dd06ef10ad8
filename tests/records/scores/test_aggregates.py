"""States of many queries: the laws of merging, and what comes out against plain Python."""

import tracemalloc
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaigns import examples
from support.judged import of_no_query

from rankbeam.transforms.judge.metrics import parse_judged
from rankbeam.transforms.kernels.hashing import hash_strings
from rankbeam.transforms.kernels.statistics.bootstrap import LIMIT, weighted_sums
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.metrics.evaluation import Configuration, Evaluation, Statistics
from rankbeam.transforms.records.metrics.names import parse_metric
from rankbeam.transforms.records.metrics.panels import Range
from rankbeam.transforms.records.scores.aggregates import RunAggregate, RunFacts
from rankbeam.transforms.records.scores.means import QueryAggregate, SumLayout
from rankbeam.transforms.records.scores.scored import ScoredConfiguration, ScoredPanel, ScoredPartition, Status

METRICS, CONFIGURATIONS = (2, 1), 3
"""The number of metrics of each panel, and of configurations."""

SHARES = st.sampled_from([0.0, 1.0, -1.0, 0.1, 1 / 3, 1e-300, 5e-324])
VALUES = st.sampled_from([0.0, 1.0, 0.1, 1 / 3, 1e-300, 5e-324, 12_345.678])


@dataclass(frozen=True)
class Plan:
    """Configurations that know their ties; they are the same in all partitions of a run."""

    ties: tuple[bool, ...]


PLANS = st.tuples(*[st.booleans()] * CONFIGURATIONS).map(Plan)


def evaluation_of(baseline: int, all_pairs: bool = False) -> Evaluation:
    """Two metrics without an upper bound, as the values below are not shares, and a judged one."""
    return Evaluation(
        configurations=tuple(Configuration(f"c{i}", f"c{i}", 0, "run_file", "{}", None, None) for i in range(3)),
        metrics=(parse_metric("NumRet"), parse_judged("AnswerRelevance(ragas)"), parse_metric("NumRelRet")),
        sources=(),
        baseline=baseline,
        statistics=Statistics(replicates=7, all_pairs=all_pairs),
    )


EVALUATIONS = st.builds(evaluation_of, st.integers(0, CONFIGURATIONS - 1), st.booleans())
NAMES = st.integers(0, 1 << 40).map(str)


@st.composite
def partitions(draw: st.DrawFn, plan: Plan) -> ScoredPartition:
    """A few scored queries, perhaps none; some failed or missing, and of one to three slices."""
    count = draw(st.integers(0, 4))
    halves = draw(st.lists(st.sampled_from(["a", "b"]), min_size=count, max_size=count))
    slices = {"all": np.ones(count, bool)}
    slices |= {f"half={name}": np.array([half == name for half in halves]) for name in sorted(set(halves))}
    return ScoredPartition(
        queries=pa.RecordBatch.from_pylist(
            [{"query_id": draw(NAMES), "text": "", "attributes": []} for _ in range(count)], schema=columns.QUERIES
        ),
        slices=slices,
        configurations=tuple(draw(configurations(place, count, ties)) for place, ties in enumerate(plan.ties)),
        unjudged=draw(st.integers(0, 3)),
        failures=draw(st.integers(0, 3)),
    )


@st.composite
def configurations(draw: st.DrawFn, place: int, count: int, ties: bool) -> ScoredConfiguration:
    retrieval, judged = METRICS
    return ScoredConfiguration(
        place, (draw(panels(count, retrieval, VALUES, ties)), draw(panels(count, judged, SHARES, ties=False)))
    )


@st.composite
def panels(draw: st.DrawFn, count: int, metrics: int, any_value: st.SearchStrategy[float], ties: bool) -> ScoredPanel:
    def table() -> np.ndarray:
        rows = st.lists(any_value, min_size=count * metrics, max_size=count * metrics)
        return np.array(draw(rows), np.float64).reshape(count, metrics)

    status = np.array(draw(st.lists(st.sampled_from(Status), min_size=count, max_size=count)), np.int8)
    values = table()
    bounds = np.stack([values - table(), values + table()]) if ties else None
    values[status > Status.EMPTY] = np.nan
    return ScoredPanel(status, values, bounds)


@st.composite
def runs(draw: st.DrawFn) -> list[ScoredPartition]:
    plan = draw(PLANS)
    return draw(st.lists(partitions(plan), min_size=3, max_size=6))


@pytest.mark.long
def test_columns_of_many_pairs_are_summed_for_some_queries_at_a_time() -> None:
    """40 configurations have 780 pairs, and so 13 kB of columns per query."""
    evaluation = Evaluation(
        configurations=tuple(Configuration(f"c{i}", f"c{i}", 0, "", "{}", None, None) for i in range(40)),
        metrics=(parse_metric("RR"),),
        sources=(),
        statistics=Statistics(replicates=2, all_pairs=True),
    )
    values = np.random.default_rng(6).random((40, 4 * LIMIT, 1))

    def peak(queries: int) -> int:
        ids = [pa.array(map(str, range(queries)), pa.string()), pa.nulls(queries, pa.string())]
        panels = [ScoredPanel(np.zeros(queries, np.int8), own[:queries]) for own in values]
        partition = ScoredPartition(
            pa.RecordBatch.from_arrays([*ids, pa.nulls(queries, columns.ATTRIBUTES)], schema=columns.QUERIES),
            {"all": np.ones(queries, bool)},
            tuple(ScoredConfiguration(place, (panel,)) for place, panel in enumerate(panels)),
        )
        tracemalloc.start()
        state = RunAggregate.of(partition, evaluation).replicates["all"]
        _, largest = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        units = np.rint(values[0, :queries] * 2.0**32).astype(np.int64)
        assert np.array_equal(state.totals()[:1], weighted_sums(hash_strings(ids[0]), units, 2, 0))
        return largest

    column_bytes = 8 * 2 * LIMIT * len(SumLayout.of(evaluation).weights)
    assert peak(4 * LIMIT) - peak(2 * LIMIT) < column_bytes


@settings(max_examples=examples(50))
@given(parts=runs(), evaluation=EVALUATIONS)
def test_merging_is_associative_and_commutative_and_nothing_is_neutral(
    parts: list[ScoredPartition], evaluation: Evaluation
) -> None:
    x, y, z = (RunAggregate.of(part, evaluation) for part in parts[:3])
    assert x.merge(y).merge(z) == x.merge(y.merge(z))
    assert x.merge(y) == y.merge(x)
    assert x.merge(RunAggregate()) == x == RunAggregate().merge(x)


@settings(max_examples=examples(50))
@given(parts=runs(), evaluation=EVALUATIONS)
def test_the_states_of_slices_merge_to_the_whole(parts: list[ScoredPartition], evaluation: Evaluation) -> None:
    whole = reduce(RunAggregate.merge, [RunAggregate.of(part, evaluation) for part in parts])
    by_slice = dict(whole.by_slice())
    assert set(by_slice) == {name for part in parts for name in part.slices}
    assert reduce(RunAggregate.merge, by_slice.values()) == whole
    for name, state in by_slice.items():
        assert {key[-1] for key in (*state.queries, *state.pairs)} == {name}
        assert set(state.replicates) == {name}


class Counted(dict[tuple[int, int, str], QueryAggregate]):
    """Counts how often all states are read."""

    reads = 0

    def items(self) -> Any:
        self.reads += 1
        return super().items()


def test_states_are_read_once_for_all_slices() -> None:
    """All pairs of 75 configurations were read once for each of 100 slices: 7 s for each bucket."""
    states = Counted({(0, 0, f"half={number}"): of_no_query(1) for number in range(50)})
    assert len(list(RunAggregate(queries=states).by_slice())) == 50
    assert states.reads == 1


@settings(max_examples=examples(50))
@given(parts=runs())
def test_the_state_of_no_query_is_neutral_for_a_configuration(parts: list[ScoredPartition]) -> None:
    for (_, panel, _), state in RunAggregate.of(parts[0], evaluation_of(0)).queries.items():
        zero = of_no_query(METRICS[panel])
        assert state.merge(zero) == state == zero.merge(state)


@settings(max_examples=examples(50))
@given(parts=runs(), evaluation=EVALUATIONS, data=st.data())
def test_any_order_and_any_tree_give_the_same_state(
    parts: list[ScoredPartition], evaluation: Evaluation, data: st.DataObject
) -> None:
    states = [RunAggregate.of(part, evaluation) for part in parts]
    whole = reduce(RunAggregate.merge, states, RunAggregate())
    left = list(data.draw(st.permutations(states)))
    while len(left) > 1:
        first = left.pop(data.draw(st.integers(0, len(left) - 1)))
        place = data.draw(st.integers(0, len(left) - 1))
        left[place] = left[place].merge(first)
    assert left == [whole]


@pytest.mark.long
@settings(max_examples=examples(50))
@given(parts=runs())
def test_the_result_is_that_of_all_queries_together(parts: list[ScoredPartition]) -> None:
    whole = reduce(RunAggregate.merge, [RunAggregate.of(part, evaluation_of(0)) for part in parts])
    assert whole.unjudged == sum(part.unjudged for part in parts)
    assert whole.failures == sum(part.failures for part in parts)
    names = {name for part in parts for name in part.slices}
    assert set(whole.queries) == set(product(range(CONFIGURATIONS), range(len(METRICS)), names))
    assert set(whole.pairs) == set(product(range(1, CONFIGURATIONS), [0], range(len(METRICS)), names))
    assert set(whole.replicates) == names
    for (place, panel, name), state in whole.queries.items():
        here = [(part.configurations[place].panels[panel], part.slices[name]) for part in parts if name in part.slices]
        status = [Status(code) for scored, chosen in here for code in scored.status[chosen].tolist()]
        counts = [status.count(kind) for kind in (Status.EMPTY, Status.FAILED, Status.MISSING, Status.UNDEFINED)]
        assert [state.empty, state.failed, state.missing, state.undefined] == counts
        assert state.moments.count == status.count(Status.OK) + status.count(Status.EMPTY)
        values = [scored.values[chosen & scored.scored] for scored, chosen in here]
        metrics = METRICS[panel]
        summaries = state.result([Range(0.0, 1.0)] * metrics)
        assert_means([summary.mean for summary in summaries], np.concatenate(values))
        ends = [[summary.tie_lowest for summary in summaries], [summary.tie_highest for summary in summaries]]
        for at, bound in enumerate(ends):
            if here[0][0].tie_bounds is None:
                assert bound == [None] * metrics
            else:
                bounds = [scored.tie_bounds[at, chosen & scored.scored] for scored, chosen in here]
                assert_means(bound, np.concatenate(bounds))
    for (one, other, panel, name), paired in whole.pairs.items():
        both, either = [], []
        for part in parts:
            chosen = part.slices.get(name, np.zeros(len(part.queries), bool))
            ours, theirs = (part.configurations[place].panels[panel].scored[chosen] for place in (one, other))
            both.append(ours & theirs)
            either.append(ours | theirs)
        paired_count, either_count = (int(np.concatenate(rows).sum()) for rows in (both, either))
        assert (paired.moments.count, paired.unpaired) == (paired_count, either_count - paired_count)


def assert_means(means: list[float | None], values: np.ndarray) -> None:
    """The means of the columns; None over no query."""
    columns_of = [[Fraction(value) for value in column] for column in values.T.tolist()]
    assert means == [float(sum(column) / len(column)) if column else None for column in columns_of]


def test_counts_of_sources_that_only_some_queries_have_are_added() -> None:
    first, second = RunFacts(unplaced={0: (1, 5), 2: (0, 3)}), RunFacts(unplaced={0: (2, 4), 1: (3, 7)})
    assert first.facts_with(second)["unplaced"] == {0: (3, 9), 1: (3, 7), 2: (0, 3)}
