"""Remote retrievers of other packages: their bugs fail calls, not the run."""

from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from support.cli import rankbeam
from support.inputs import write
from support.remote import answers, dataset, http, write_experiment
from support.runs import query_values
from support.standins import serve

from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.parameters import entry_points_of

QUERIES = 30
PLUGIN = """
    from typing import ClassVar

    from rankbeam import Ranking
    from rankbeam.transforms.clients.retrievers.http import Http


    class Own(Http):
        read_before: ClassVar[int] = 0

        def read(self, answer: str) -> Ranking:
            type(self).read_before += 1
            return {}["a bug"] if self.read_before == 1 else super().read(answer)
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package with a remote retriever that cannot read the first answer of its life."""
    site = tmp_path / "site"
    write(site / "own_bug.py", dedent(PLUGIN))
    write(site / "own_bug-1.dist-info" / "METADATA", "Metadata-Version: 2.1\nName: own-bug\nVersion: 1\n")
    write(site / "own_bug-1.dist-info" / "entry_points.txt", "[rankbeam.retrievers]\nown = own_bug:Own\n")
    monkeypatch.syspath_prepend(site)
    entry_points_of.cache_clear()
    yield "own"
    entry_points_of.cache_clear()


def test_a_bug_in_one_call_costs_another_attempt_and_a_warning_names_its_traceback(own: str, tmp_path: Path) -> None:
    with serve("http", answers=answers(QUERIES), latency_s=(0.3, 1.0)) as server:
        configuration = {"name": "own", "retriever": {**http(server), "type": own}, "top_k": 20}
        quotas = {own: {"requests_per_minute": 60_000}}
        base = {"dataset": dataset(tmp_path, QUERIES), "configurations": [configuration], "quotas": quotas}
        path = write_experiment(tmp_path, base)
        outcome = rankbeam("evaluate", path, "--run-id", "one")
        assert outcome.status == 0, outcome.stderr
        assert server.stats().calls == QUERIES + 1
    assert "an unexpected KeyError at own_bug, line " in outcome.stderr
    (log,) = (tmp_path / "out" / "ledger" / "uses").glob("error-*.log")
    assert str(log) in outcome.stderr.replace("\n", "")
    assert "own_bug.py" in log.read_text()
    assert len(query_values(Results(str(tmp_path / "out"), "one"))["own"]) == QUERIES
