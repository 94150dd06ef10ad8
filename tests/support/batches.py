"""Runs that leave calls to batch jobs of a stand-in, on a virtual clock: a day of waiting takes no time."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.emulators.services import gcs, write_credentials
from support.standin_answers import model, write_experiment
from support.standins import Standin, serve
from support.standins.vertex_batches import BUCKET

from rankbeam.pipelines.experiment.load import load_experiment
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.run import batch, evaluate
from rankbeam.pipelines.run.options import pipeline_options
from rankbeam.transforms.clients.virtual_clock import VirtualClock

PRICES = {"price_per_million": {"input": 100.0, "output": 4.0}}
TABLES = ("answers", "claims", "verdicts", "query_metrics", "configuration_metrics", "failures", "texts")
COSTS = {"cost", "run_id", "started_at", "seconds", "cached_tokens", "tokens"}


def experiment(
    folder: Path, server: Standin, settings: Mapping[str, Any] | None, kind: str = "openai", **more: Any
) -> str:
    """Write an experiment whose model leaves calls to batch jobs; None for one that calls online. Returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    own = {} if settings is None else {"batch": dict(settings)}
    return write_experiment(folder, {**model(server, kind), **own}, PRICES, **more)


@contextmanager
def served(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> Iterator[Standin]:
    """A stand-in with batch jobs; Vertex AI's has an emulator of Cloud Storage beside it."""
    with ExitStack() as stack:
        if kind == "vertex":
            storage = stack.enter_context(gcs())
            storage.bucket(BUCKET)
            monkeypatch.setenv("STORAGE_EMULATOR_HOST", storage.url)
            monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(write_credentials(folder, storage.token_url)))
            monkeypatch.setenv("NO_GCE_CHECK", "true")
        yield stack.enter_context(serve(f"{kind}_batches", **options))


def evaluated(path: str, run_id: str, monkeypatch: pytest.MonkeyPatch) -> Results:
    """Run an experiment; its jobs wait on a virtual clock."""
    os.environ.setdefault("RANKBEAM_TEST_KEY", "k")
    loaded = load_experiment(path)
    execution = evaluate.new_run(loaded, run_id)
    with VirtualClock() as clock:
        whole: Callable[..., Any] = batch.run_batch_rounds
        monkeypatch.setattr(evaluate, "run_batch_rounds", lambda *parts: whole(*parts, clock))
        try:
            return evaluate.run(loaded, execution, pipeline_options([]))
        finally:
            monkeypatch.setattr(evaluate, "run_batch_rounds", whole)


def rows(results: Results) -> dict[str, list[str]]:
    """The rows of every table without what batch jobs change on purpose: their cost."""
    tables = {}
    for name in TABLES:
        table = results.table(name)
        columns = [column for column in table.column_names if column not in COSTS]
        tables[name] = sorted(map(repr, table.select(columns).to_pylist()))
    return tables


def usage(results: Results) -> dict[str, float]:
    """Sums of the usage table, and the number of answers from the ledger by configuration."""
    rows = results.table("usage").to_pylist()
    recalled = sum(part["ledger_hits"] for row in rows for part in row["from_ledger"])
    return {name: sum(row[name] or 0 for row in rows) for name in ("calls", "ledger_hits", "cost")} | {
        "from_ledger": recalled
    }
