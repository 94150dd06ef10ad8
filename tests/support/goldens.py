"""Files of goldens, and what a benchmark's folder holds."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from support.inputs import write

HELPDESK = Path(__file__).parents[2] / "examples" / "helpdesk" / "corpus.jsonl"
VOLATILE = ("costs.jsonl", "usage.json", "ledger")
"""Files that depend on retries and on the earlier content of the ledger."""
OFFLINE = {"sentences": {"type": "extractive"}, "words": {"type": "lexical"}}

SUBJECTS = ("archive", "invoice", "calendar", "password", "report", "template")
_SYLLABLES = ("ba", "co", "di", "fu", "ga", "ke", "lo", "mi", "nu", "pe", "ra", "so", "ti", "vu")


def documents(count: int) -> list[dict[str, str]]:
    """Documents of six subjects, with made-up words, so that no two are alike."""
    rows = []
    for n in range(count):
        subject = SUBJECTS[n % len(SUBJECTS)]
        text = " ".join(_sentence(subject, n, number) for number in range(6))
        rows.append({"_id": f"d{n:03}", "title": f"{subject} {n}", "text": text})
    return rows


def _sentence(subject: str, document: int, number: int) -> str:
    words = [_word(f"{document} {number} {place}") for place in range(9)]
    return f"{words[0].title()} of the {subject} {' '.join(words[1:])} after {document + number} days."


def _word(name: str) -> str:
    digest = hashlib.sha256(name.encode()).digest()
    return "".join(_SYLLABLES[byte % len(_SYLLABLES)] for byte in digest[:3])


def corpus(folder: Path, rows: list[dict[str, str]]) -> str:
    """A corpus of JSON lines."""
    return write(folder / "corpus.jsonl", "".join(json.dumps(row) + "\n" for row in rows))


def goldens_file(folder: Path, name: str = "goldens", **keys: Any) -> str:
    """A file of goldens, offline unless the keys say otherwise; its output is the folder `out`."""
    base = {"name": "made", "services": OFFLINE, "writer": "sentences", "checker": "words", "items": 8, "output": "out"}
    if "documents" not in keys:
        keys["documents"] = corpus(folder, documents(24))
    return write(folder / f"{name}.yaml", yaml.safe_dump({**base, **keys}, sort_keys=False))


def lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text().split("\n") if line]


def stable(folder: Path) -> Mapping[str, bytes]:
    """Every file that the same answers make the same, by its path."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    named = ((path.relative_to(folder).as_posix(), path) for path in paths)
    return {name: path.read_bytes() for name, path in named if name.split("/")[0] not in VOLATILE}
