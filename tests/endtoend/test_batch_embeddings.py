"""Embeddings through batch jobs: the same vectors, and so the same rankings."""

from pathlib import Path
from typing import Any

import pytest
from support import batches
from support.stage_world import Rankings, rankings
from support.standins import serve

DENSE = {"name": "dense", "retriever": {"type": "dense", "embedding_model": "m"}, "top_k": 5}
QUERIES = 12


def ranked(
    kind: str,
    folder: Path,
    settings: dict[str, Any] | None,
    port: int,
    monkeypatch: pytest.MonkeyPatch,
    **faults: Any,
) -> tuple[Rankings, Any, int]:
    """Rankings by embeddings, the statistics of the service, and its port."""
    parts = {"configurations": [DENSE], "judge": None, "metrics": ["nDCG@5"]}
    with serve(f"{kind}_batches", port=port, batch=faults) as server:
        output = {"path": "out", "rankings": True}
        path = batches.experiment(folder, server, settings, kind, output=output, **parts)
        results = batches.evaluated(path, "r1", monkeypatch)
        stats = server.stats()
        if settings is not None:
            batches.evaluated(path, "r2", monkeypatch)
            assert server.stats().calls == stats.calls
        assert results.table("failures").num_rows == 0
    return rankings(path), stats, int(server.address.rpartition(":")[2])


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")


# Of two rows that come twice, the last one is cut: one text is embedded online.
@pytest.mark.parametrize(
    ("kind", "faults", "online_texts"),
    [
        ("gemini", {"shuffled": True}, 0),
        pytest.param("openai", {"shuffled": True}, 0, marks=pytest.mark.campaign),
        pytest.param("gemini", {"duplicated": 2, "half_line": True}, 1, marks=pytest.mark.campaign),
        pytest.param("openai", {"duplicated": 2, "half_line": True}, 1, marks=pytest.mark.campaign),
    ],
)
def test_rankings_are_those_of_online_embeddings(
    kind: str, faults: dict[str, Any], online_texts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, online, port = ranked(kind, tmp_path / "online", None, 0, monkeypatch)
    settings = {"min_calls": 5, "answers": True}
    by_jobs, stats, _ = ranked(kind, tmp_path / "jobs", settings, port, monkeypatch, **faults)
    assert by_jobs == expected
    assert (online.extra["rows"], stats.extra["jobs"]) == (0, 1)
    texts = {name for name in online.queries if name.startswith("embed")}
    assert stats.extra["rows"] == len(texts) > QUERIES
    assert sum(name.startswith("embed") for name in stats.queries) == online_texts
