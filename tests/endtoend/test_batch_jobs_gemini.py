"""Judgements through batch jobs of the Gemini Developer API: equal tables, and the same faults as those of others."""

from pathlib import Path
from typing import Any

import pytest
from support import batches
from support.cli import rankbeam
from support.standins import serve

from rankbeam.transforms.clients.ledger.batches import BatchFolder

MIN = {"min_calls": 5}
QUERIES, CLAIMS, SUPPORTS = 12, 12, 36


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")


@pytest.fixture(scope="module")
def online(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The tables of a run without batch jobs."""
    with pytest.MonkeyPatch.context() as patch, serve("gemini_batches") as server:
        patch.setenv("RANKBEAM_TEST_KEY", "k")
        path = batches.experiment(tmp_path_factory.mktemp("online"), server, None, "gemini")
        return batches.rows(batches.evaluated(path, "r", patch))


@pytest.mark.parametrize(
    ("faults", "answered", "words"),
    [
        ({"shuffled": True, "name_page": 7, "create": ["lost"]}, CLAIMS + SUPPORTS, ""),
        ({"state": "expired", "answered": 0.25}, (CLAIMS + SUPPORTS) // 4, "no answer"),
        pytest.param({"swapped": 1}, 0, "too many of its answers", marks=pytest.mark.campaign),
        pytest.param({"duplicated": 2}, 44, "several answers to one request", marks=pytest.mark.campaign),
        pytest.param({"failed": 1.0}, 0, "the request failed", marks=pytest.mark.campaign),
        pytest.param({"state": "failed"}, 0, "no answer", marks=pytest.mark.campaign),
        pytest.param({"half_line": True}, 46, "a row that cannot be read", marks=pytest.mark.campaign),
        pytest.param({"wrong_shape": 3}, 42, "the answer cannot be used", marks=pytest.mark.campaign),
        pytest.param({"create": ["quota", "unavailable"]}, 48, "", marks=pytest.mark.campaign),
    ],
    ids=lambda value: "-".join(map(str, value)) if isinstance(value, dict) else "",
)
def test_whatever_goes_wrong_no_value_is_wrong_and_nothing_is_paid_twice(
    faults: dict[str, Any], answered: int, words: str, tmp_path: Path, online: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve("gemini_batches", batch={"polls": 2, **faults}) as server:
        results = batches.evaluated(batches.experiment(tmp_path, server, MIN, "gemini"), "r", monkeypatch)
        stats = server.stats()
    assert batches.rows(results) == online
    records = BatchFolder(str(tmp_path / "out/ledger")).records()
    assert sum(record.answered for record in records) == answered
    assert stats.extra["jobs"] == 2
    of_calls = [number for name, number in stats.queries.items() if not name.startswith(("GET /", "POST /"))]
    assert len(of_calls) == QUERIES + CLAIMS + SUPPORTS - answered
    assert set(of_calls) == {1}
    warnings = " ".join(results.run["warnings"])
    assert words in warnings
    assert ("batch job" in warnings) == bool(words)


def test_vertex_ai_is_refused_with_its_line(tmp_path: Path) -> None:
    with serve("gemini_batches") as server:
        path = Path(batches.experiment(tmp_path, server, MIN, "gemini"))
    text = path.read_text("utf-8").replace(
        "    api_key: ${env:RANKBEAM_TEST_KEY}\n", "    project: p\n    location: us-central1\n"
    )
    path.write_text(text, "utf-8")
    outcome = rankbeam("validate", str(path))
    assert outcome.status == 2
    assert "services.m.batch: rankbeam makes no batch jobs of this service; take it out" in outcome.stderr
