"""Nightly runs in small tables, and the alerts that they raise."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from string import Template

import duckdb
from support.deploy_files import FOR_ALERTS, SOURCES
from support.outage import common, insert, query_rows

ALERTS = sorted(path.stem for path in SOURCES.glob("*.sql"))
SETTINGS = {"hours": "36", "experiments": '["nightly"]', "most_cost": "2.5", "project": "p", "dataset": "d"}


def template(name: str) -> str:
    """The template that Terraform fills in."""
    return (FOR_ALERTS / f"{name}.sql").read_text(encoding="utf-8")


def at(query: str, now: datetime) -> str:
    """A scheduled query as it runs at a time."""
    return query.replace("@run_time", f"TIMESTAMP '{now:%Y-%m-%d %H:%M:%S}+00'")


def messages(connection: duckdb.DuckDBPyConnection, name: str, now: datetime, **settings: str) -> list[str]:
    """The reasons that an alert finds at a time."""
    text = Template(template(name)).substitute(SETTINGS | settings)
    query = re.sub(r"`p\.d\.(\w+)`", r"main.\1", at(text, now))
    return sorted(row["message"] for row in query_rows(connection, query))


def night(
    connection: duckdb.DuckDBPyConnection, day: int, values: Sequence[float | None], name: str, hours: int = 1
) -> None:
    """A run at three o'clock, of some hours, with a value or a failure for each query."""
    own = common(f"{name}-{day}", day, name)
    own["started_at"] += timedelta(hours=3)
    ended = {"finished_at": own["started_at"] + timedelta(hours=hours)}
    insert(connection, "runs", [own | ended | {"dataset_fingerprint": "d", "calls": 1, "warnings": []}])
    insert(connection, "configurations", [own | {"config_id": "c", "name": "bm25", "dialect": "rankbeam", "parts": []}])
    scores = [value for value in values if value is not None]
    mean = sum(scores) / len(scores) if scores else None
    of_all = {"config_id": "c", "slice": "all", "metric": "RR", "mean": mean, "queries": len(scores)}
    insert(connection, "configuration_metrics", [own | of_all])
    rows = [
        {"query_id": f"q{place}", "status": "failed" if value is None else "ok"}
        | {"metrics": [] if value is None else [{"metric": "RR", "value": value}]}
        for place, value in enumerate(values)
    ]
    insert(connection, "query_metrics", [own | {"config_id": "c", "slices": []} | row for row in rows])
    insert(connection, "usage", [own | {"stage": stage, "pool": "p", "cost": 1.5} for stage in ("answer", "judge")])
    fell = mean is not None and mean < 0.5
    change = {"metric": "RR", "mode": "fixed", "config_id": "c", "baseline_run": "b", "change": -0.25}
    insert(connection, "monitor", [own | change | {"state": "fell" if fell else "same", "alarm": fell}])
