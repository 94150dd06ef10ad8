"""Comparisons of many pairs and slices: columns all the way, with the numbers that a loop over rows gives."""

import pickle
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from rankbeam.transforms.kernels.statistics.corrections import benjamini_hochberg, holm
from rankbeam.transforms.records import columns, tables
from rankbeam.transforms.records.metrics.evaluation import Configuration, Evaluation, Statistics
from rankbeam.transforms.records.metrics.names import parse_metric
from rankbeam.transforms.records.scores.aggregates import RunAggregate
from rankbeam.transforms.records.scores.comparisons import comparisons_of, comparisons_table
from rankbeam.transforms.records.scores.estimates import RunEstimates
from rankbeam.transforms.records.scores.scored import ScoredConfiguration, ScoredPanel, ScoredPartition, Status
from rankbeam.transforms.records.slices import ALL, slices_of

COUNT, METRICS = 120, ("RR", "P@1")
EVALUATION = Evaluation(
    configurations=tuple(Configuration(f"id-{9 - i}", f"name-{i}", 0, "", "{}", None, None) for i in range(6)),
    metrics=tuple(map(parse_metric, METRICS)),
    sources=(),
    slices=("kind",),
    statistics=Statistics(replicates=0, all_pairs=True, min_slice=12),
)


@pytest.fixture(scope="module")
def parts() -> list[RunEstimates]:
    """The estimates of each slice; some configurations are equal everywhere, and some in slices or metrics alone."""
    rng = np.random.default_rng(7)
    kinds = [f"kind-{number}" for number in rng.integers(0, 9, COUNT)]
    attributes = [[{"name": "kind", "value": kind}] for kind in kinds]
    batch = pa.RecordBatch.from_arrays(
        [pa.array(map(str, range(COUNT))), pa.nulls(COUNT, pa.string()), pa.array(attributes, columns.ATTRIBUTES)],
        schema=columns.QUERIES,
    )
    values = [rng.integers(0, 3, (COUNT, len(METRICS))) / 2.0 for _ in EVALUATION.configurations]
    values[3] = values[1].copy()
    values[4][:, 0] = values[0][:, 0]
    values[5][np.array(kinds) == "kind-3"] = values[2][np.array(kinds) == "kind-3"]
    status = np.full(COUNT, Status.OK, np.int8)
    scored = tuple(ScoredConfiguration(place, (ScoredPanel(status, own),)) for place, own in enumerate(values))
    partition = ScoredPartition(batch, dict(slices_of(batch, EVALUATION.slices)), scored)
    return [RunEstimates.of(state, EVALUATION) for _, state in RunAggregate.of(partition, EVALUATION).by_slice()]


def merged(parts: list[RunEstimates]) -> RunEstimates:
    whole = RunEstimates()
    for part in parts:
        whole = whole.merge(part)
    return whole


def test_corrections_over_columns_are_those_of_a_loop_over_rows(parts: list[RunEstimates]) -> None:
    estimates = merged(parts)
    actual = comparisons_of(estimates)
    families: defaultdict[tuple[str, bool], dict[tuple[object, ...], float | None]] = defaultdict(dict)
    members = []
    uncorrected = [row for name in sorted(estimates.differences) for row in estimates.differences[name].to_pylist()]
    ordered = sorted(uncorrected, key=lambda row: (row["position"], row["baseline_position"], row["slice"]))
    for row in ordered:
        means = estimates.means[row["slice"]]
        firsts = {means[row[side], row["metric"]].equal_to or row[side] for side in ("config_id", "baseline")}
        member = (frozenset(firsts), row["slice"]) if len(firsts) == 2 else None
        members.append(member)
        if member is not None:
            families[row["metric"], row["slice"] == ALL].setdefault(member, row["p_value"])
    corrected = {}
    for key, family in families.items():
        p_values = np.array(list(family.values()), np.float64)
        corrected[key] = dict(zip(family, zip(holm(p_values), benjamini_hochberg(p_values), strict=True), strict=True))

    assert len(actual) == len(ordered)
    assert len(set(members) - {None}) < len(actual) - members.count(None) < len(actual)  # equal ones occur in both ways
    for row, before, member in zip(actual, ordered, members, strict=True):
        assert {name: before[name] for name in vars(row) if name in ("config_id", "baseline", "slice", "metric")} == {
            name: getattr(row, name) for name in ("config_id", "baseline", "slice", "metric")
        }
        if member is None:
            assert (row.p_value, row.t_p_value, row.p_method, row.p_adjusted, row.q_value) == (None,) * 5
        else:
            assert (row.p_value, row.p_method) == (before["p_value"], before["p_method"])
            assert (row.p_adjusted, row.q_value) == corrected[row.metric, row.slice == ALL][member]


def test_slices_come_together_in_any_order_and_without_an_object_for_each_comparison(
    parts: list[RunEstimates],
) -> None:
    one, other = merged(parts), merged(parts[::-1])
    assert one == other
    table = comparisons_table(one, EVALUATION)
    assert table.equals(comparisons_table(other, EVALUATION))
    assert table.schema.equals(tables.own_columns(tables.COMPARISONS))
    assert b"Comparison" not in pickle.dumps(one)


def test_without_pairs_there_are_no_comparisons(parts: list[RunEstimates]) -> None:
    nothing = replace(merged(parts), differences={})
    assert comparisons_of(nothing) == []
    assert comparisons_table(nothing, EVALUATION).equals(tables.own_columns(tables.COMPARISONS).empty_table())
