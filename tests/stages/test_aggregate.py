"""Scores combined by a pipeline: slice by slice, and equal to the state of all queries."""

import pickle
import tempfile
from dataclasses import replace
from functools import reduce
from pathlib import Path

import apache_beam as beam
import pytest
from support.judged import judged_run
from support.pipeline import run

from rankbeam.transforms.aggregate import AggregateScores, EstimateScores
from rankbeam.transforms.clients.storage import spill
from rankbeam.transforms.records.scores.aggregates import RunAggregate
from rankbeam.transforms.records.scores.comparisons import comparisons_table
from rankbeam.transforms.records.scores.estimates import RunEstimates


@pytest.mark.long
@pytest.mark.parametrize("pairs_at_once", [1_000, 1])
def test_states_are_combined_slice_by_slice_and_some_pairs_at_a_time(
    pairs_at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rankbeam.transforms.records.metrics.evaluation._PAIRS_AT_ONCE", pairs_at_once)
    judged = judged_run(4)
    whole = reduce(
        RunAggregate.merge, [RunAggregate.of(partition, judged.evaluation) for partition in judged.partitions]
    )

    def build(pipeline: beam.Pipeline) -> list[beam.PCollection]:
        states = pipeline | beam.Create(judged.partitions) | AggregateScores(judged.evaluation)
        return [states, states | EstimateScores(judged.evaluation)]

    states, (estimates,) = run(tmp_path, build)
    pieces = -(-len(judged.evaluation.pairs) // pairs_at_once)
    assert len(states) == 3 * pieces  # all queries, and two kinds
    expected = RunEstimates.of(whole, judged.evaluation)
    assert comparisons_table(estimates, judged.evaluation).equals(comparisons_table(expected, judged.evaluation))
    if pieces > 1:
        assert replace(estimates, differences={}) == replace(expected, differences={})
        return
    assert dict(states) == {(name, 0): state for name, state in whole.by_slice()}
    assert max(len(pickle.dumps(state)) for state in states) < 0.7 * len(pickle.dumps(whole))
    assert estimates == expected


def test_a_state_that_waits_for_its_merge_is_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    judged = judged_run(4)
    state = RunAggregate.of(next(iter(judged.partitions)), judged.evaluation)
    assert len(whole := pickle.dumps(state)) > 10_000
    with spill.spilling():
        place = pickle.dumps(state)
        assert len(place) < 1_000
        assert pickle.loads(place) == state  # noqa: S301  our own
    assert pickle.loads(whole) == state  # noqa: S301
