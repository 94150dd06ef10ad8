"""A gate on the change since a baseline run: the end of the interval that it reads, or the reason why there is none."""

import json
from dataclasses import replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest

from rankbeam.pipelines.gates.checks import Check, _monitor_check, tolerances_of
from rankbeam.pipelines.gates.gates import MONITOR, Gate
from rankbeam.pipelines.monitor.changes import Change, MonitorResult
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.results.tables import InMemory
from rankbeam.transforms.records.errors import InputError

AT_LEAST, AT_MOST = Gate("RR", MONITOR, -0.03, True), Gate("RR", MONITOR, 0.03, False)
CHANGE = Change(
    configuration="c",
    config_id="id",
    metric="RR",
    mode="fresh",
    baseline_run="first",
    baseline_mean=0.5,
    change=-0.02,
    low=-0.05,
    high=0.02,
    lowest_high=0.01,
    highest_low=-0.04,
    nights=3,
    since=datetime(2026, 1, 5),
    queries=1_040,
    skipped=2,
    quarter=1,
)
UNKNOWN = {"change": None, "low": None, "high": None, "lowest_high": None, "highest_low": None}
NO_NIGHT = {**UNKNOWN, "nights": 0, "since": None}


def checked(gate: Gate, *changes: Change) -> Check:
    run = Results("", "run", InMemory({}))
    return _monitor_check(gate, "c", "all", MonitorResult(run, run, changes, ()))


@pytest.mark.parametrize(
    ("gate", "change", "measured", "is_met"),
    [
        (AT_LEAST, {}, 0.01, True),  # the upper end proves no loss
        (AT_LEAST, {"lowest_high": -0.031}, -0.031, False),
        (AT_MOST, {}, -0.04, True),
        (AT_MOST, {"highest_low": 0.031}, 0.031, False),
    ],
)
def test_the_end_that_proves_a_change_is_held_against_the_limit(
    gate: Gate, change: dict[str, Any], measured: float, is_met: bool
) -> None:
    other = replace(CHANGE, metric="AP", lowest_high=-9.0, highest_low=9.0)
    result = checked(gate, other, replace(CHANGE, **change))
    assert (result.measured, result.is_met, result.is_new) == (measured, is_met, False)
    assert result.reason == "3 nights since 2026-01-05; 2 more do not count"


@pytest.mark.parametrize(
    ("metric", "change", "is_alarming"),
    [
        ("RR", {"lowest_high": -0.1}, True),
        ("Cost", {"lowest_high": -0.1}, False),
        ("Hallucination(judge=lexical)", {"highest_low": 0.1}, True),
        ("Hallucination(judge=lexical)", {"lowest_high": -0.1, "highest_low": 0.1}, True),  # after a fall
        ("RR", {"lowest_high": -0.1, "highest_low": 0.1}, True),
    ],
)
def test_without_a_gate_a_rise_alarms_if_lower_values_are_better(
    metric: str, change: dict[str, float], is_alarming: bool
) -> None:
    names = {"Cost": None, "Hallucination(judge=lexical)": True, "RR": False}  # a run of an older release has none
    means = [{"config_id": "id", "slice": "all", "metric": name, "lower_is_better": low} for name, low in names.items()]
    rows = {"configuration_metrics": means, "configurations": [{"config_id": "id", "position": 0}]}
    run = Results("", "run", InMemory({name: pa.Table.from_pylist(of_table) for name, of_table in rows.items()}))
    tolerances = tolerances_of(run, 0.0)
    assert tolerances.is_alarming(replace(CHANGE, metric=metric, **change)) is is_alarming


def test_the_tolerance_is_that_of_the_gate_on_the_configuration_and_metric() -> None:
    """A judged metric without its judge, a criterion, and a gate on one of two configurations."""
    gates = [
        {"metric": "Faithfulness", "value": "monitor", "at_least": -0.3},
        {"metric": "Tone", "value": "monitor", "at_most": 0.4, "configuration": "d"},
    ]
    names = ["Faithfulness(judge=lexical)", "Criterion(Tone,judge=lexical)"]
    rows = {
        "runs": [
            {
                "experiment_yaml": json.dumps({"gates": gates}),
                "dataset": "{}",
                "versions": "{}",
                "statistics": "{}",
                "warnings": [],
            }
        ],
        "configuration_metrics": [{"config_id": "c", "slice": "all", "metric": name} for name in names],
        "configurations": [{"config_id": name, "name": name, "position": place} for place, name in enumerate("cd")],
    }
    run = Results("", "run", InMemory({name: pa.Table.from_pylist(of_table) for name, of_table in rows.items()}))
    tolerances = tolerances_of(run, None)
    judged, tone = (replace(CHANGE, metric=name) for name in names)
    assert [tolerances.of_change(change) for change in (judged, replace(judged, configuration="d"))] == [
        (0.3, False)
    ] * 2
    assert [tolerances.of_change(change) for change in (tone, replace(tone, configuration="d"))] == [
        (0, False),
        (0.4, True),
    ]


@pytest.mark.parametrize(
    ("changes", "is_new", "reason"),
    [
        ((), True, "no night after the baseline run yet"),
        ((replace(CHANGE, **NO_NIGHT, skipped=0),), True, "no night after the baseline run yet"),
        ((replace(CHANGE, **NO_NIGHT),), True, "none of 2 nights counts"),
        ((replace(CHANGE, metric="AP"),), False, "the baseline run has no such configuration or metric"),
        ((replace(CHANGE, configuration="d"),), False, "the baseline run has no such configuration or metric"),
        ((replace(CHANGE, **NO_NIGHT, queries=0),), False, "no query has a value to compare with the baseline run"),
        ((replace(CHANGE, **UNKNOWN),), False, "too few queries for an interval: 1,040"),
    ],
)
@pytest.mark.parametrize("gate", [AT_LEAST, AT_MOST])
def test_without_an_interval_the_gate_is_new_or_missed_and_says_why(
    gate: Gate, changes: tuple[Change, ...], is_new: bool, reason: str
) -> None:
    result = checked(gate, *changes)
    assert (result.measured, result.is_new, result.is_met, result.reason) == (None, is_new, is_new, reason)


def test_a_run_that_is_not_finished_is_new_and_one_without_a_baseline_is_missed() -> None:
    unfinished = _monitor_check(AT_LEAST, "c", "all", None)
    assert (unfinished.is_met, unfinished.reason) == (True, "checked once the run is finished")
    refused = _monitor_check(AT_LEAST, "c", "all", InputError("the baseline run is gone", path="out"))
    assert (refused.is_met, refused.is_new, refused.reason) == (False, False, "the baseline run is gone")
