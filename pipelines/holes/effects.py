"""Effects of filled holes: means by people's judgements, of judged documents alone, and with the judge's grades."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from rankbeam.pipelines.results.audit import Pair
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.kernels.arrays import FloatArray
from rankbeam.transforms.kernels.ranking.pools import Pool, find_judgements
from rankbeam.transforms.kernels.ranking.rankings import Assessment, Ranked, assess
from rankbeam.transforms.records.metrics.definitions import METRICS
from rankbeam.transforms.records.metrics.names import Metric, parse_metric

_ROWS = 1 << 12
ByQuery = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Effect:
    """The means of a metric and a configuration over the queries that people judged.

    Attributes:
        metric: name.
        configuration: name.
        human: mean by the judgements of people.
        judged_only: the same without the documents that people did not judge.
        filled: mean with the judge's grades in the holes.
    """

    metric: str
    configuration: str
    human: float
    judged_only: float
    filled: float


def effects_of(run: Results, human: Mapping[Pair, float], filled: Mapping[Pair, float]) -> list[Effect]:
    """The means of every metric of rankings and every configuration whose rankings the run wrote."""
    metrics = [parse_metric(name) for name in run.metrics if not run.is_judged(name)]
    metrics = [
        metric for metric in metrics if metric.name in METRICS and not metric.definition.chunks and not metric.holes
    ]
    names = {row["config_id"]: row["name"] for row in run.configurations}
    by_people, by_both = _by_query(human), _by_query({**human, **filled})
    sums: defaultdict[str, FloatArray] = defaultdict(lambda: np.zeros((len(metrics), 3)))
    counts: defaultdict[str, int] = defaultdict(int)
    for batch in run.batches("rankings", ["config_id", "query_id", "documents"], _ROWS):
        by_configuration: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in batch.to_pylist():
            if row["query_id"] in by_people:
                by_configuration[row["config_id"]].append(row)
        for config_id, rows in by_configuration.items():
            rankings = [[document["doc_id"] for document in row["documents"]] for row in rows]
            pools = [[pools[row["query_id"]] for row in rows] for pools in (by_people, by_both)]
            sums[config_id] += _sums(metrics, rankings, *pools)
            counts[config_id] += len(rows)
    return [
        Effect(str(metric), names[config_id], *(sums[config_id][place] / counts[config_id]).tolist())
        for place, metric in enumerate(metrics)
        for config_id in names
        if counts[config_id]
    ]


def _by_query(grades: Mapping[Pair, float]) -> ByQuery:
    result: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for (query_id, doc_id), grade in grades.items():
        result[query_id][doc_id] = grade
    return dict(result)


def _sums(
    metrics: Sequence[Metric],
    rankings: Sequence[Sequence[str]],
    human: Sequence[Mapping[str, float]],
    filled: Sequence[Mapping[str, float]],
) -> FloatArray:
    """float64[m, 3]: sums over queries, by the columns of `Effect`."""
    by_people, by_both = assessment_of(rankings, human), assessment_of(rankings, filled)
    columns = [
        (
            metric.values(by_people).sum(),
            replace(metric, judged_only=True).values(by_people).sum(),
            metric.values(by_both).sum(),
        )
        for metric in metrics
    ]
    return np.array(columns).reshape(len(metrics), 3)


def assessment_of(rankings: Sequence[Sequence[str]], pools: Sequence[Mapping[str, float]]) -> Assessment:
    """Rankings joined with their judgements.

    Args:
        rankings: documents of n queries, best first.
        pools: grades of documents, by query.
    """
    query = np.repeat(np.arange(len(rankings)), [len(ranking) for ranking in rankings])
    doc_id = pa.array([doc_id for ranking in rankings for doc_id in ranking], pa.string())
    pool = Pool(
        queries=len(rankings),
        query=np.repeat(np.arange(len(pools)), [len(pool) for pool in pools]),
        doc_id=pa.array([doc_id for pool in pools for doc_id in pool], pa.string()),
        grade=np.array([grade for pool in pools for grade in pool.values()], np.float64),
    )
    ranked = Ranked.of(np.arange(len(query)), query, doc_id, len(rankings)).collapsed(len(rankings))
    return assess(ranked, find_judgements(query, doc_id, pool), pool)


def reversed_pairs(effects: Sequence[Effect]) -> Iterator[tuple[str, str, str]]:
    """By metric, two configurations of which the first is better by people and worse with the judge's grades."""
    for metric in dict.fromkeys(effect.metric for effect in effects):
        own = [effect for effect in effects if effect.metric == metric]
        for one, other in combinations(own, 2):
            better, worse = (one, other) if one.human > other.human else (other, one)
            if better.human > worse.human and better.filled < worse.filled:
                yield metric, better.configuration, worse.configuration
