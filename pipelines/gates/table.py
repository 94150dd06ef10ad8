"""The gates that a run misses, checked by its own pipeline, so that an unattended run has the result in its tables."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from rankbeam.pipelines.gates.checks import Check, check, noise_warnings
from rankbeam.pipelines.gates.gates import Gate
from rankbeam.pipelines.results.audit import audit_in
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.results.tables import InMemory
from rankbeam.transforms.records import answer_tables, tables
from rankbeam.transforms.records.holes import LLM
from rankbeam.transforms.records.metrics.evaluation import Evaluation
from rankbeam.transforms.records.metrics.names import HOLES
from rankbeam.transforms.records.run import Run
from rankbeam.transforms.records.scores.comparisons import comparisons_table, metrics_table
from rankbeam.transforms.records.scores.estimates import RunEstimates
from rankbeam.transforms.write.rows import configurations
from rankbeam.transforms.write.tables import RunVerdict


def verdict_of(
    estimates: RunEstimates,
    of_judge: Mapping[str, pa.Table],
    unanswered: Mapping[str, float],
    evaluation: Evaluation,
    gates: Sequence[Gate],
    max_failure_rate: float,
    run: Run,
) -> RunVerdict:
    """Check the scores of a run against the limits of its experiment."""
    results = _results(estimates, of_judge, evaluation, run)
    checks = check(results, gates) if gates else []
    ids = {row["name"]: row["config_id"] for row in results.configurations}
    places = {config_id: place for place, config_id in enumerate(ids.values())}
    rows = sorted(
        (_row(check_, list(gates), ids) for check_ in checks),
        key=lambda row: (row["position"], places.get(row["config_id"], -1), row["slice"]),
    )
    audit = None if evaluation.holes is None else audit_in(results)
    audit_warnings = () if audit is None else (f"{HOLES}={LLM}: {warning}" for warning in audit.warnings)
    limits = tuple(filter(None, [results.over_failure_rate(max_failure_rate, unanswered), results.mixed_versions()]))
    return RunVerdict(
        pa.Table.from_pylist(rows, tables.own_columns(answer_tables.GATES)),
        bool(limits) or not all(check_.is_met for check_ in checks),
        (*limits, *audit_warnings, *noise_warnings(results, gates, evaluation.statistics.confidence)),
    )


def _results(estimates: RunEstimates, of_judge: Mapping[str, pa.Table], evaluation: Evaluation, run: Run) -> Results:
    row = {
        "experiment": run.experiment,
        "experiment_yaml": run.experiment_yaml,
        "statistics": evaluation.statistics.as_json(),
        "dataset": "{}",
        "versions": "{}",
    }
    known = {
        "runs": pa.Table.from_pylist([row]),
        "configurations": configurations(evaluation),
        "configuration_metrics": metrics_table(estimates, evaluation),
        "comparisons": comparisons_table(estimates, evaluation),
        **of_judge,
    }
    return Results("", run.run_id, InMemory(known))


def _row(check_: Check, gates: Sequence[Gate], ids: dict[str, str]) -> dict[str, Any]:
    return {
        "position": gates.index(check_.gate),
        "config_id": ids.get(check_.configuration),
        **check_.facts(),
        "reason": check_.reason or None,
    }
