"""A model whose replies to some prompts are malformed however often it is asked, while a benchmark is made."""

from pathlib import Path

import pytest
from support.cli import rankbeam
from support.goldens import corpus, documents, goldens_file, lines, stable
from support.standin_models import KEY, service
from support.standins import Faults, serve


@pytest.mark.campaign
def test_malformed_replies_are_final_and_not_paid_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "not a secret")
    with serve("openai", faults=Faults(contents=0.06, content_kinds=("prose",))) as server:
        path = goldens_file(
            tmp_path,
            documents=corpus(tmp_path, documents(24)),
            services={"model": service("openai", server)},
            writer="model",
            checker="model",
            items=12,
            types=["lookup"],
            reviews={"pool": 4},
            quotas={"openai": {"requests_per_minute": 60_000}},
        )
        first = rankbeam("goldens", path)
        calls = server.stats().calls
        before = stable(tmp_path / "out")
        again = rankbeam("goldens", path)
        assert server.stats().calls == calls
    rejected = [row for row in lines(tmp_path / "out" / "rejected.jsonl") if row["detail"].startswith("malformed")]
    assert rejected
    assert "12 of 12 questions" in first.stdout
    assert (first.status, again.status) == (0, 0), first.stderr
    assert "may succeed later" not in first.stderr
    assert "(0 calls, " in again.stdout
    assert stable(tmp_path / "out") == before
