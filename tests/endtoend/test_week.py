"""A week of nightly runs on a virtual calendar: what a person sees each morning, in the terminal, in views, by alerts.

Run it with `-s` to read the mornings.
"""

import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import yaml
from support.cli import rankbeam
from support.data import REPOSITORY
from support.json_server import responding
from support.loaded_runs import DATASET, QUICK
from support.nights import ALERTS, messages
from support.outage import query_rows
from support.remote import signalled
from support.strict_bigquery import StrictBigQuery, serve

from rankbeam.pipelines.experiment.load import load_experiment
from rankbeam.pipelines.run.build import table_folders
from rankbeam.pipelines.run.evaluate import run
from rankbeam.pipelines.run.options import pipeline_options
from rankbeam.transforms.clients.bigquery import publish
from rankbeam.transforms.clients.warehouse import views
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.run import Run

pytestmark = pytest.mark.campaign
HELPDESK = REPOSITORY / "examples" / "helpdesk"
MONDAY = date(2026, 3, 2)
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
SETTINGS = {"hours": "26", "experiments": '["nightly"]', "most_cost": "1.0"}


@dataclass
class Service:
    """A search service that can be down, stale or slow."""

    state: str = "good"
    requests: int = 0
    released: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        lines = (HELPDESK / "qrels" / "test.tsv").read_text().splitlines()[1:]
        judged = sorted((int(grade), query, doc) for query, doc, grade in (line.split("\t") for line in lines))
        self._relevant = {query: doc for _, query, doc in judged}  # of the highest grade
        self._texts = {row["_id"]: row["text"] for row in map(json.loads, (HELPDESK / "corpus.jsonl").open())}
        self._queries = {row["text"]: row["_id"] for row in map(json.loads, (HELPDESK / "queries.jsonl").open())}

    def respond(self, text: str) -> tuple[int, bytes]:
        self.requests += 1
        if self.state == "down":
            return 503, b'{"error": "the index is being rebuilt"}'
        if self.state == "slow" and self.requests > 20:
            self.released.wait(60)
        first = self._relevant[self._queries[text]]
        others = [doc for doc in sorted(self._texts) if doc != first][:9]
        place = 5 if self.state == "stale" else len(text) % 2  # an index that is stale finds it, but late
        docs = [*others[:place], first, *others[place:]]
        hits = [{"id": doc, "score": -float(rank), "text": self._texts[doc]} for rank, doc in enumerate(docs)]
        return 200, json.dumps({"hits": hits}).encode()


@dataclass
class Week:
    """A folder of results, the dataset that they are loaded into, and the days."""

    folder: Path
    service: Service
    bigquery: StrictBigQuery
    seen: list[dict[str, Any]] = field(default_factory=list)

    @property
    def experiment(self) -> str:
        return str(self.folder / "experiment.yaml")

    def night(self, day: int) -> None:
        """The run at three o'clock: evaluated, compared with the baseline, loaded."""
        loaded = load_experiment(self.experiment)
        began = datetime(MONDAY.year, MONDAY.month, MONDAY.day, 3, tzinfo=UTC) + timedelta(days=day)
        execution = Run(DAYS[day], loaded.name, began, loaded.text)
        run(loaded, execution, pipeline_options(()))

    def load(self, day: int) -> None:
        publish.load_run(DATASET, DAYS[day], table_folders(str(self.folder / "out"), DAYS[day]), QUICK)

    def morning(self, day: int, *, ran: bool = True) -> dict[str, Any]:
        """Look at everything at six o'clock."""
        out = str(self.folder / "out")
        monitor = rankbeam("monitor", out, "--tolerance", "0.02")
        if ran:
            self.load(day)
        trend = rankbeam("trend", out, "-m", "nDCG@10")
        now = datetime(MONDAY.year, MONDAY.month, MONDAY.day, 6, tzinfo=UTC) + timedelta(days=day)
        with self.warehouse() as connection:
            view = query_rows(
                connection,
                "SELECT run_id, verdict, previous_run_id, ROUND(mean, 3) AS mean, ROUND(difference, 3) AS difference "
                "FROM regressions WHERE is_latest AND metric = 'nDCG@10'",
            )
            alerts = {name: texts for name in ALERTS if (texts := messages(connection, name, now, **SETTINGS))}
        seen = {"status": monitor.status, "trend": trend.stdout, "view": view, "alerts": alerts}
        print(f"\n== {DAYS[day]} 06:00 ==\n$ rankbeam trend out -m nDCG@10\n{trend.stdout}")  # noqa: T201  for people
        print(f"$ rankbeam monitor out --tolerance 0.02   (status {monitor.status})\n{monitor.stdout}{monitor.stderr}")  # noqa: T201  for people
        print(f"view regressions, latest run: {view}")  # noqa: T201  for people
        print("alerts: " + (json.dumps(alerts, indent=2) if alerts else "none"))  # noqa: T201  for people
        return seen

    def warehouse(self) -> duckdb.DuckDBPyConnection:
        """The rows that readers of BigQuery see now, with the views over them."""
        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'")
        for name, schema in tables.TABLES.items():
            rows = self.bigquery.rows(name)
            if name == "runs":  # each was at its night, not today, and took some minutes
                rows = [{**row, "finished_at": row["started_at"] + timedelta(minutes=9)} for row in rows]
            connection.from_arrow(pa.Table.from_pylist(rows, schema)).create(name)
        connection.execute(views.for_duckdb())
        return connection

    def delete_partition(self, day: int) -> None:
        """Delete a day from all tables but `runs`, as somebody may do by hand."""
        for name in tables.TABLES.keys() - {"runs"}:
            table = self.bigquery.table("warehouse", name)
            table.rows = [row for row in table.rows if row["started_at"].date() != MONDAY + timedelta(days=day)]


@pytest.fixture
def week(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Week]:
    service = Service()
    with serve(root=tmp_path / "cloud") as bigquery, responding(service.respond) as (url, _):
        monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", bigquery.url)
        bigquery.dataset("warehouse")
        retriever = {"type": "http", "url": url, "results": "hits", "id": "id", "score": "score", "text": "text"}
        experiment = {
            "name": "nightly",
            "fresh": "daily",
            "dataset": {
                "queries": str(HELPDESK / "queries.jsonl"),
                "qrels": str(HELPDESK / "qrels" / "test.tsv"),
                "answers": "answer",
            },
            "services": {"reader": {"type": "extractive"}, "overlap": {"type": "lexical"}},
            "quotas": {
                "http": {"requests_per_minute": 60_000, "price_per_1000": 10.0, "attempts": 1, "give_up_after_s": 1.0}
            },
            "configurations": [
                {
                    "name": "search",
                    "retriever": retriever,
                    "top_k": 10,
                    "generate": {"service": "reader", "contexts": 1},
                }
            ],
            "judge": {"service": "overlap"},
            "metrics": ["nDCG@10", "ContextRecall"],
            "statistics": {"replicates": 200},
            "output": {"path": "out"},
        }
        (tmp_path / "experiment.yaml").write_text(yaml.safe_dump(experiment))
        yield Week(tmp_path, service, bigquery)


def test_seven_mornings(week: Week) -> None:
    for day in (0, 1):
        week.night(day)
        seen = week.morning(day)
        assert (seen["status"], seen["alerts"]) == (0, {})
    assert [row["verdict"] for row in seen["view"]] == ["same"]

    week.service.state = "down"
    week.night(2)
    seen = week.morning(2)
    assert (seen["status"], seen["alerts"].keys()) == (3, {"fresh_run"})  # no value at all
    assert [row["verdict"] for row in seen["view"]] == ["nothing to compare"]

    week.service.state = "good"
    week.night(3)
    seen = week.morning(3)
    assert (seen["status"], seen["alerts"]) == (0, {})
    assert [(row["previous_run_id"], row["verdict"]) for row in seen["view"]] == [("Tue", "same")]  # over the outage

    week.service.state, week.service.requests = "slow", 0
    arguments = ["evaluate", week.experiment, "--run-id", "Fri"]
    ended = signalled(arguments, signal.SIGINT, lambda: week.service.requests > 20, week.folder)
    week.service.released.set()
    print(f"\nFri 03:00: cancelled, status {ended.status}: {ended.stderr.strip().splitlines()[-1]}")  # noqa: T201  for people
    assert ended.status == 130
    seen = week.morning(4, ran=False)
    assert seen["alerts"].keys() == {"fresh_run"}
    assert "Fri" not in seen["trend"]

    week.service.state = "stale"
    week.night(5)
    seen = week.morning(5)
    assert seen["status"] == 3
    assert seen["alerts"].keys() == {"monitor", "regressions"}
    assert [(row["previous_run_id"], row["verdict"]) for row in seen["view"]] == [("Thu", "worse")]

    week.delete_partition(5)
    week.night(6)
    seen = week.morning(6)
    assert seen["status"] == 3
    assert seen["alerts"].keys() == {"monitor", "regressions"}  # the last run that is left is Thursday's
    assert [(row["previous_run_id"], row["verdict"]) for row in seen["view"]] == [("Thu", "worse")]
    assert "Sat" in seen["trend"]  # the folder still has it
