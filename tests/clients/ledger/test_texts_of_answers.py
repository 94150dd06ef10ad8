"""Clearing a ledger deletes the texts that no answer uses any more, and no others."""

import json
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

from support.runs import rankbeam

from rankbeam.transforms.clients.ledger import Entry, Ledger, clear, compact
from rankbeam.transforms.records.errors import InputError

NOW = datetime.now(UTC)


def answered(ledger: Ledger, key: str, days: float, *texts: str) -> None:
    """An answer of some days ago, to a request with these texts."""
    hashes = tuple(ledger.texts().put(texts))
    writer = ledger.writer()
    writer.add(Entry(key, None, "{}", 1, 0.1, NOW - timedelta(days), service="judge", texts=hashes))
    writer.close()


def held(ledger: Ledger, *texts: str) -> list[str]:
    present = []
    for text in texts:
        try:
            present.append(ledger.texts().get(sha256(text.encode()).hexdigest()))
        except InputError:
            continue
    return present


def test_texts_stay_as_long_as_an_answer_uses_them(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path / "ledger"))
    answered(ledger, "old", 9, "question", "old chunk")
    answered(ledger, "new", 1, "question", "new chunk")
    compact(ledger.folder)
    since = clear(ledger.folder, timedelta(5))
    assert (since.answers, since.texts) == (1, 0)  # the texts themselves were stored just now
    answered(ledger, "old", 9, "question", "old chunk")
    old = clear(ledger.folder, timedelta(microseconds=1))
    assert (old.answers, old.texts) == (2, 3)


def test_old_texts_go_with_the_last_answer_that_uses_them(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path / "ledger"))
    answered(ledger, "old", 9, "question", "old chunk")
    answered(ledger, "future", -9, "question", "new chunk")  # stays whatever is cleared, so that no clock is needed
    shown = rankbeam("ledger", ledger.folder, "--clear", "--older-than", "0")
    assert shown.output.startswith(f"{ledger.folder}: cleared 1 answer, 1 text, ")
    assert held(ledger, "question", "old chunk", "new chunk") == ["question", "new chunk"]
    everything = rankbeam("ledger", ledger.folder, "--clear", "--format", "json")
    assert json.loads(everything.output)["texts"] == 2
    assert held(ledger, "question", "new chunk") == []
