"""A run with judged metrics: rankings and judged values are scored, aggregated and written as a pipeline does."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rankbeam.transforms.judge.metrics import parse_all
from rankbeam.transforms.records import columns, tables
from rankbeam.transforms.records.errors import Failure, FailureKind
from rankbeam.transforms.records.metrics.evaluation import Configuration, Evaluation, Source, Statistics
from rankbeam.transforms.records.scores.aggregates import RunAggregate
from rankbeam.transforms.records.scores.comparisons import comparisons_table, metrics_table
from rankbeam.transforms.records.scores.estimates import RunEstimates
from rankbeam.transforms.records.scores.judged import JudgedValues
from rankbeam.transforms.records.scores.means import QueryAggregate
from rankbeam.transforms.records.scores.scored import ScoredPanel, ScoredPartition, Status
from rankbeam.transforms.score import score
from rankbeam.transforms.write.rows import configurations, query_metrics

METRICS = ("Faithfulness", "RR", "AnswerRelevance(ragas)", "P@1")
JUDGED = ("Faithfulness", "AnswerRelevance(ragas)")
NAMES = ("base", "other", "retrieval-only")
REASONS = {Status.FAILED: "the judge is down", Status.UNDEFINED: "no_claims"}
RUN_ID, STARTED_AT = "judged", datetime(2026, 1, 2, tzinfo=UTC)

Cell = tuple[str, float | None, str | None]
"""Status, value and reason of one metric of one query."""


@dataclass(frozen=True)
class JudgedRun:
    """A run that was made up.

    Attributes:
        evaluation: three configurations; the last one is not judged.
        partitions: the scored queries.
        cells: by name of the configuration and metric, that of every query.
    """

    evaluation: Evaluation
    partitions: list[ScoredPartition]
    cells: dict[tuple[str, str], dict[str, Cell]]

    def aggregate(self) -> RunAggregate:
        """The state of all queries."""
        return reduce(
            RunAggregate.merge, [RunAggregate.of(partition, self.evaluation) for partition in self.partitions]
        )

    def estimates(self) -> RunEstimates:
        """The estimates of all slices."""
        return RunEstimates.of(self.aggregate(), self.evaluation)

    def write(self, folder: Path) -> Path:
        """The tables of the run, as files in an output folder."""
        estimates = self.estimates()
        values = [table for partition in self.partitions for table in query_metrics(partition, self.evaluation)]
        document = {"metrics": list(METRICS), "slices": list(self.evaluation.slices)}
        known = {name: tables.own_columns(schema).empty_table() for name, schema in tables.TABLES.items()} | {
            "configurations": configurations(self.evaluation),
            "configuration_metrics": metrics_table(estimates, self.evaluation),
            "comparisons": comparisons_table(estimates, self.evaluation),
            "query_metrics": pa.concat_tables(values),
            "runs": pa.Table.from_pylist(
                [
                    {
                        "state": "done", "finished_at": STARTED_AT, "experiment_yaml": json.dumps(document),
                        "dataset_fingerprint": "f", "dataset": json.dumps({"judged": 1, "judgements": 1}),
                        "versions": "{}", "statistics": json.dumps(asdict(self.evaluation.statistics)), "calls": 0,
                        "ledger_hits": 0, "failures": 0, "warnings": [],
                    }
                ],
                tables.own_columns(tables.RUNS),
            ),
        }  # fmt: skip
        common = {"run_id": RUN_ID, "experiment": "test", "started_at": STARTED_AT}
        for name, own in known.items():
            constant = [
                pa.repeat(pa.scalar(common[column.name], column.type), own.num_rows) for column in tables.COMMON
            ]
            table = pa.Table.from_arrays([*constant, *own.columns], schema=tables.TABLES[name])
            (folder / name / RUN_ID).mkdir(parents=True)
            pq.write_table(table, folder / name / RUN_ID / "part-0.parquet")
        return folder


def judged_run(seed: int, queries: int = 60, buckets: int = 3, replicates: int = 200) -> JudgedRun:
    """Every metric fails at queries of its own, and judged ones are undefined at some."""
    rng = np.random.default_rng(seed)
    evaluation = Evaluation(
        configurations=tuple(
            Configuration(name, name, place, "x", "{}", None, None, judged=frozenset(JUDGED if place < 2 else ()))
            for place, name in enumerate(NAMES)
        ),
        metrics=tuple(parse_all(METRICS)),
        sources=tuple(Source(None, None, False, keep_rankings=False) for _ in NAMES),
        slices=("kind",),
        statistics=Statistics(replicates=replicates, seed=5, all_pairs=True),
    )
    cells: dict[tuple[str, str], dict[str, Cell]] = {(name, metric): {} for name in NAMES for metric in METRICS}
    partitions = [
        _scored([f"q{bucket}-{number:03}" for number in range(queries // buckets)], rng, evaluation, cells)
        for bucket in range(buckets)
    ]
    return JudgedRun(evaluation, partitions, cells)


def of_no_query(metrics: int) -> QueryAggregate:
    return QueryAggregate.of(ScoredPanel(np.empty(0, np.int8), np.empty((0, metrics))), np.empty(0, np.bool_))


def _scored(
    ids: list[str], rng: np.random.Generator, evaluation: Evaluation, cells: dict[tuple[str, str], dict[str, Cell]]
) -> ScoredPartition:
    judged = [
        {
            "query_id": query_id, "text": f"text of {query_id}",
            "attributes": [{"name": "kind", "value": str(place % 2)}],
            "judgements": [{"doc_id": "d", "grade": 1.0}],
        }
        for place, query_id in enumerate(ids)
    ]  # fmt: skip
    rows, failures = {}, {}
    for source, name in enumerate(NAMES):
        ranks = dict(zip(ids, rng.integers(-1, 5, len(ids)).tolist(), strict=True))  # -1 failed, 0 empty
        rows[source] = [_rankings({query_id: rank for query_id, rank in ranks.items() if rank > 0})]
        failed = [query_id for query_id, rank in ranks.items() if rank < 0]
        failures[source] = [Failure("retrieve", FailureKind.TIMEOUT, query_id, 1, "too late") for query_id in failed]
        for query_id, rank in ranks.items():
            status = "failed" if rank < 0 else "ok" if rank else "empty"
            reciprocal, first = (None, None) if rank < 0 else (1 / rank if rank else 0.0, float(rank == 1))
            cells[name, "RR"][query_id], cells[name, "P@1"][query_id] = (
                (status, reciprocal, None),
                (status, first, None),
            )
    values = [part for query_id in _judged(ids, rng, cells) for part in query_id]
    batch = pa.RecordBatch.from_pylist(judged, schema=columns.JUDGED_QUERIES)
    return score([batch], rows, failures, evaluation, values)


def _rankings(ranks: dict[str, int]) -> pa.RecordBatch:
    rows = [
        {"query_id": doc_id, "documents": [{"doc_id": f"x{n}"} for n in range(rank - 1)] + [{"doc_id": "d"}]}
        for doc_id, rank in ranks.items()
    ]
    return pa.RecordBatch.from_pylist(rows, schema=columns.RETRIEVED)


def _judged(
    ids: list[str], rng: np.random.Generator, cells: dict[tuple[str, str], dict[str, Cell]]
) -> Iterator[list[JudgedValues]]:
    """In two parts each, in any order."""
    for place, name in enumerate(NAMES):
        for metric in JUDGED:
            if place == 2:
                cells[name, metric] |= dict.fromkeys(ids, ("missing", None, None))
                continue
            kinds = (Status.OK, Status.EMPTY, Status.FAILED, Status.UNDEFINED)
            status = rng.choice(kinds, len(ids), p=(0.6, 0.1, 0.2, 0.1))
            values = np.round(rng.uniform(0.0 if metric == "Faithfulness" else -1.0, 1.0, len(ids)), 3)
            values[status == Status.EMPTY] = 0.0
            values[status > Status.EMPTY] = np.nan
            reasons = [REASONS.get(Status(code)) for code in status]
            for code, kind, value, reason in zip(ids, status, values.tolist(), reasons, strict=True):
                cells[name, metric][code] = Status(kind).label, None if reason else value, reason
            order = rng.permutation(len(ids))
            yield [
                JudgedValues(
                    place, metric, pa.array(np.array(ids)[some]), values[some], status[some].astype(np.int8),
                    pa.array([reasons[i] for i in some], pa.string()),
                )
                for some in np.array_split(order, 2)
            ]  # fmt: skip
