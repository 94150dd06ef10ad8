"""Estimates of slices, and of the comparisons that a race leaves."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from support.judged import judged_run, of_no_query

from rankbeam.transforms.judge.metrics import parse_all
from rankbeam.transforms.records.metrics.evaluation import Evaluation
from rankbeam.transforms.records.race import Race
from rankbeam.transforms.records.scores.aggregates import NO_OTHER, RunAggregate
from rankbeam.transforms.records.scores.comparisons import comparisons_of
from rankbeam.transforms.records.scores.estimates import RunEstimates, _after_race
from rankbeam.transforms.records.scores.labelled import LabelledMoments
from rankbeam.transforms.records.scores.means import QueryAggregate
from rankbeam.transforms.records.scores.rows import Comparison, ConfigurationMetric, Verdict
from rankbeam.transforms.records.scores.scored import ScoredPanel
from rankbeam.transforms.records.slices import ALL

JUDGED_RUN = judged_run(3, queries=30, replicates=50)
AGGREGATE = JUDGED_RUN.aggregate()
RACE = Race("RR", 0.05, (10,))


def estimates(evaluation: Evaluation) -> RunEstimates:
    return RunEstimates.of(AGGREGATE, evaluation)


def rows(actual: RunEstimates) -> list[ConfigurationMetric]:
    return [row for of_slice in actual.means.values() for row in of_slice.values()]


EVERY = estimates(replace(JUDGED_RUN.evaluation, statistics=replace(JUDGED_RUN.evaluation.statistics, min_slice=0)))
WHOLE = rows(estimates(JUDGED_RUN.evaluation))
COUNTS = sorted({row.queries for row in WHOLE if row.slice != ALL and row.queries > 1})


@pytest.mark.parametrize("least", [COUNTS[0], COUNTS[len(COUNTS) // 2], COUNTS[-1] + 1])
def test_slices_of_fewer_queries_have_a_mean_but_no_interval_and_no_comparison(least: int) -> None:
    actual = estimates(
        replace(JUDGED_RUN.evaluation, statistics=replace(JUDGED_RUN.evaluation.statistics, min_slice=least))
    )
    for row in rows(actual):
        is_enough = row.slice == ALL or row.queries >= least
        assert (row.mean is None) == (row.queries == 0)
        assert (row.ci_low is None, row.ci_high is None) == ((not is_enough or row.queries < 2,) * 2)
        assert row.joint_low is None or is_enough
    compared, known = (
        {(row.config_id, row.baseline, row.slice, row.metric): row.queries for row in comparisons_of(state)}
        for state in (actual, EVERY)
    )
    assert compared == {key: size for key, size in known.items() if key[2] == ALL or size >= least}


def test_the_pairs_are_listed_once_and_each_finds_its_columns_without_a_search() -> None:
    class Pairs(tuple[tuple[int, int], ...]):
        def index(self, *_: object) -> int:
            pytest.fail("searched")

    class Listed(Evaluation):
        @property
        def pairs(self) -> Pairs:
            listed.append(True)
            return Pairs(super().pairs)

    listed: list[bool] = []
    actual = estimates(Listed(**vars(JUDGED_RUN.evaluation)))
    assert len(actual.differences) > len(listed) == 1
    assert actual == estimates(JUDGED_RUN.evaluation)


def test_two_configurations_with_values_are_compared_and_one_is_not() -> None:
    actual = {(row.config_id, row.metric): row for row in WHOLE if row.slice == ALL}
    assert all(actual[name, "Faithfulness"].joint_low is not None for name in ("base", "other"))
    assert actual["retrieval-only", "Faithfulness"].joint_low is None


def test_what_a_race_dropped_is_not_the_best_and_is_compared_with_nothing() -> None:
    base, other, last = JUDGED_RUN.evaluation.configurations
    evaluation = replace(JUDGED_RUN.evaluation, configurations=(base, replace(other, dropped_at=10), last), race=RACE)
    actual = {(row.config_id, row.slice, row.metric): row for row in rows(estimates(evaluation))}
    assert {(row.may_be_best, row.joint_low) for key, row in actual.items() if key[0] == "other"} == {
        (False, None), (None, None),
    }  # fmt: skip
    assert [key for key, row in actual.items() if key[0] == "other" and row.may_be_best is False] == [
        ("other", ALL, "RR")
    ]
    assert {actual[name, ALL, "RR"].joint_low is None for name in ("base", "retrieval-only")} == {False}
    # By other metrics, and over a slice, the dropped one may be the best: nothing is known of the others there.
    assert {row.may_be_best for key, row in actual.items() if key[1:] != (ALL, "RR")} == {None}


def test_a_race_that_leaves_one_configuration_has_its_best() -> None:
    base, *others = JUDGED_RUN.evaluation.configurations
    dropped = tuple(replace(score, dropped_at=10) for score in others)
    actual = rows(estimates(replace(JUDGED_RUN.evaluation, configurations=(base, *dropped), race=RACE)))
    best = {row.config_id: row.may_be_best for row in actual if (row.slice, row.metric) == (ALL, "RR")}
    assert best == {"base": True, "other": False, "retrieval-only": False}
    assert {row.may_be_best for row in actual if (row.slice, row.metric) != (ALL, "RR")} == {None}
    assert {row.joint_low for row in actual} == {None}


def test_a_race_knows_nothing_of_a_configuration_without_a_value() -> None:
    base, other, last = JUDGED_RUN.evaluation.configurations
    evaluation = replace(JUDGED_RUN.evaluation, configurations=(base, replace(other, dropped_at=10), last), race=RACE)
    (row,) = (row for row in WHOLE if (row.config_id, row.slice, row.metric) == ("base", ALL, "RR"))
    failed = replace(row, mean=None, may_be_best=None)
    assert [_after_race(one, {"other"}, evaluation).may_be_best for one in (row, failed)] == [row.may_be_best, None]


def test_without_a_dropped_configuration_a_race_says_nothing_of_its_own() -> None:
    assert rows(estimates(replace(JUDGED_RUN.evaluation, race=RACE))) == WHOLE


def test_the_estimates_of_no_slice_are_neutral() -> None:
    assert RunEstimates().merge(EVERY) == EVERY == EVERY.merge(RunEstimates())


def test_estimates_of_different_slices_and_pairs_add_up() -> None:
    first, *others = (pa.table({"position": [position]}) for position in range(3))
    one = RunEstimates(
        {"a": {}}, {"a": first}, frozenset({2}),
        unjudged=2, failures=3, with_results=frozenset({0, 1}), with_judged=frozenset({1}),
    )  # fmt: skip
    other = RunEstimates(
        {"b": {}}, {"a": others[0], "b": others[1]}, frozenset({2, 3}),
        unjudged=5, failures=7, with_results=frozenset({1, 2}), with_judged=frozenset({2}),
    )  # fmt: skip
    assert one.merge(other) == RunEstimates(
        {"a": {}, "b": {}}, {"a": pa.concat_tables([first, others[0]]), "b": others[1]}, frozenset({2, 3}),
        unjudged=7, failures=10, with_results=frozenset({0, 1, 2}), with_judged=frozenset({1, 2}),
    )  # fmt: skip


def test_configurations_that_lack_results_are_named_however_many_lists_are_empty_and_how_many_missing() -> None:
    lacking = {0: (0, 0), 1: (2, 2), 2: (0, 1)}
    queries = dict(AGGREGATE.queries)
    for position, (empty, missing) in lacking.items():
        queries[position, 0, ALL] = replace(queries[position, 0, ALL], empty=empty, missing=missing)
    assert RunEstimates.of(replace(AGGREGATE, queries=queries), JUDGED_RUN.evaluation).resultless == {1, 2}


@pytest.mark.parametrize("rare", [0.0, 1.0])
def test_fifty_values_near_one_end_do_not_exclude_one_in_twenty_at_the_other(rare: float) -> None:
    """If one value in twenty is at the other end, one or two of twenty such samples show none of these."""
    values = np.abs((1.0 - rare) - np.array([0.0] * 30 + np.linspace(0.01, 0.2, 20).tolist()))
    panel = ScoredPanel(np.zeros(50, np.int8), np.column_stack([values, values]))
    queries = {**AGGREGATE.queries, (0, 0, ALL): QueryAggregate.of(panel, np.ones(50, np.bool_))}
    aggregate = replace(AGGREGATE, queries=queries, replicates={})
    actual = RunEstimates.of(aggregate, JUDGED_RUN.evaluation).means[ALL]["base", "RR"]
    assert actual.ci_low is not None
    assert actual.ci_high is not None
    assert actual.ci_low <= 0.95 * values.mean() + 0.05 * rare <= actual.ci_high


def test_configurations_of_equal_values_name_the_first_of_them_and_those_without_a_value_none() -> None:
    def equal(first: QueryAggregate, others: QueryAggregate) -> list[str | None]:
        states = {(place, 0, ALL): others if place else first for place in range(3)}
        actual = RunEstimates.of(replace(AGGREGATE, queries={**AGGREGATE.queries, **states}), JUDGED_RUN.evaluation)
        return [row.equal_to for row in rows(actual) if (row.slice, row.metric) == (ALL, "RR")]

    one, other = (AGGREGATE.queries[place, 0, ALL] for place in (0, 1))
    assert one.values_of(0) != other.values_of(0)
    assert equal(one, one) == [None, "base", "base"]
    assert equal(one, other) == [None, None, "other"]
    nothing = of_no_query(len(JUDGED_RUN.evaluation.panels[0].metrics))
    assert equal(nothing, nothing) == [None] * 3


def test_two_queries_of_every_configuration_are_enough_for_joint_intervals() -> None:
    run = judged_run(3, queries=6, replicates=50)
    evaluation = replace(run.evaluation, statistics=replace(run.evaluation.statistics, min_slice=0))
    actual = [row for row in rows(RunEstimates.of(run.aggregate(), evaluation)) if row.slice != ALL and row.queries]
    least = {(row.slice, row.metric): 99 for row in actual}
    for row in actual:
        least[row.slice, row.metric] = min(least[row.slice, row.metric], row.queries)
    assert {1, 2} <= set(least.values())
    assert [row.joint_low is not None for row in actual] == [least[row.slice, row.metric] >= 2 for row in actual]


def test_only_metrics_that_unjudged_documents_bound_have_such_bounds() -> None:
    evaluation = replace(
        JUDGED_RUN.evaluation,
        configurations=JUDGED_RUN.evaluation.configurations[:1],
        metrics=tuple(parse_all(["RR", "NumRet", "P@1"])),
    )
    values = np.full((4, 3), 0.5)
    scored = ScoredPanel(np.zeros(4, np.int8), values, unjudged_bounds=np.stack([values - 0.25, values + 0.25]))
    queries = {(0, 0, ALL): QueryAggregate.of(scored, np.ones(4, np.bool_))}
    actual = RunEstimates.of(RunAggregate(queries), evaluation).means[ALL]
    assert {name: row.unjudged_lowest for (_, name), row in actual.items()} == {"RR": 0.25, "NumRet": None, "P@1": 0.25}
    assert {name: row.unjudged_highest for (_, name), row in actual.items()} == {
        "RR": 0.75, "NumRet": None, "P@1": 0.75,
    }  # fmt: skip


@pytest.mark.parametrize(("name", "least", "has_interval"), [(ALL, 31, True), ("a=b", 30, True), ("a=b", 31, False)])
def test_configurations_with_equal_labels_and_different_judged_values_are_not_equal(
    name: str, least: int, has_interval: bool
) -> None:
    statistics = replace(JUDGED_RUN.evaluation.statistics, min_slice=least)
    metrics = tuple(parse_all(["Faithfulness(labels=True)"]))
    evaluation = replace(JUDGED_RUN.evaluation, metrics=metrics, statistics=statistics)
    people, nobody = np.where(np.arange(60) < 30, np.arange(60) % 2 * 1.0, np.nan), np.zeros(60, np.bool_)
    panel = ScoredPanel(np.where(np.isnan(people), np.int8(4), np.int8(0)), people[:, None])
    judged = [np.where(np.isnan(people), value, people) for value in (0.0, 0.0, 1.0)]
    states = [LabelledMoments.of(people, one, nobody, nobody, ~nobody) for one in judged]
    aggregate = RunAggregate(
        {
            (place, number, name): state
            for place in range(3)
            for number, state in enumerate((of_no_query(0), QueryAggregate.of(panel, ~nobody)))
        },
        labelled={(place, NO_OTHER, 1, name): state for place, state in enumerate(states)},
    )
    first, same, other = rows(RunEstimates.of(aggregate, evaluation))
    assert (first.mean, first.equal_to, same.equal_to) == (same.mean, None, first.config_id)
    assert (other.mean != first.mean, other.equal_to) == (True, None)
    assert {row.ci_low is not None for row in (first, same, other)} == {has_interval}


def test_labels_of_a_part_of_the_queries_do_not_say_that_all_are_equal() -> None:
    row = Comparison.of({"difference": 0.0, "queries": 20, "ties": 20, "p_value": 1.0, "p_method": "student"})
    assert row.verdict(0.95) is Verdict.UNDECIDED
