"""Races over clusters: queries that resemble each other are less evidence to drop a configuration."""

from dataclasses import replace
from functools import reduce

import numpy as np
import pyarrow as pa

from rankbeam.transforms.judge.metrics import parse_all
from rankbeam.transforms.kernels.statistics.moments import ClusterTotals
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.metrics.evaluation import Configuration, Evaluation, Statistics
from rankbeam.transforms.records.race import Look, Race
from rankbeam.transforms.records.scores.aggregates import RunAggregate
from rankbeam.transforms.records.scores.comparisons import comparisons_of
from rankbeam.transforms.records.scores.estimates import RunEstimates
from rankbeam.transforms.records.scores.means import cluster_moments, cluster_totals
from rankbeam.transforms.records.scores.racing import left_after
from rankbeam.transforms.records.scores.rows import Verdict
from rankbeam.transforms.records.scores.scored import ScoredConfiguration, ScoredPanel, ScoredPartition

LEADS = (0.4, 0.4, 0.4, -0.1, -0.2)
"""By how much the first configuration is better, at all 40 queries of each of five conversations."""
LOOK = Look(200, 0.05)


def evaluation(cluster: str | None, metric: str = "RR") -> Evaluation:
    return Evaluation(
        configurations=tuple(Configuration(name, name, 0, "x", "{}", None, None) for name in ("best", "other")),
        metrics=(*parse_all([metric]),),
        sources=(),
        statistics=Statistics(replicates=1000, cluster=cluster),
        race=Race(metric, 0.05, (200,)),
    )


def partition() -> ScoredPartition:
    rng = np.random.default_rng(1)
    lead = np.repeat(LEADS, 40) + rng.normal(0.0, 0.02, 200)
    rows = [
        {"query_id": f"q{i}", "text": None, "attributes": [{"name": "talk", "value": f"t{i // 40}"}]}
        for i in range(200)
    ]
    panels = [ScoredPanel(np.zeros(200, np.int8), values[:, None]) for values in (0.5 + lead / 2, 0.5 - lead / 2)]
    return ScoredPartition(
        pa.RecordBatch.from_pylist(rows, columns.QUERIES),
        {"all": np.ones(200, bool)},
        tuple(ScoredConfiguration(place, (panel,)) for place, panel in enumerate(panels)),
    )


def test_five_conversations_do_not_decide_what_two_hundred_queries_would() -> None:
    scored, by_query, by_talk = partition(), evaluation(None), evaluation("talk")
    assert left_after(RunAggregate.of(scored, by_query), by_query, LOOK) == {0}
    totals = reduce(ClusterTotals.merge, [part for _, part in cluster_totals(scored, by_talk)])
    aggregate = RunAggregate.of(scored, by_talk).merge(RunAggregate(clusters={"all": cluster_moments(totals, by_talk)}))
    assert left_after(aggregate, by_talk, LOOK) == {0, 1}


def test_the_lowest_rate_of_errors_wins() -> None:
    rules = evaluation(None, "Hallucination")
    scored = partition()
    panels = [configuration.panels[0] for configuration in scored.configurations]
    empty = ScoredPanel(panels[0].status, np.empty((200, 0)))
    judged = replace(
        scored,
        configurations=tuple(ScoredConfiguration(place, (empty, panel)) for place, panel in enumerate(panels)),
    )
    aggregate = RunAggregate.of(judged, rules)
    assert left_after(aggregate, rules, LOOK) == {1}
    estimates = RunEstimates.of(aggregate, rules)
    may_be_best = {row.config_id: row.may_be_best for row in estimates.means["all"].values()}
    assert may_be_best == {"best": False, "other": True}
    (row,) = comparisons_of(estimates)
    assert (row.config_id, row.verdict(0.95), row.wins, row.losses) == ("other", Verdict.BETTER, 120, 80)
