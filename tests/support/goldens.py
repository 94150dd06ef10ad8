"""Files of goldens, and what a benchmark's folder holds."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from support.inputs import write

HELPDESK = Path(__file__).parents[2] / "examples" / "helpdesk" / "corpus.jsonl"
VOLATILE = ("costs.jsonl", "usage.json", "ledger", "work")
"""What depends on retries and on what the ledger had."""
OFFLINE = {"sentences": {"type": "extractive"}, "words": {"type": "lexical"}}

SENTENCES = (
    "The {thing} of plan {n} is kept for {days} days after the workspace owner cancels it.",
    "Owners change the {thing} under Settings, section {n}, with the button that says Renew.",
    "Members without the role of editor see the {thing} {n} but never alter its contents.",
)
THINGS = ("archive", "invoice", "calendar", "password", "report", "template")


def documents(count: int) -> list[dict[str, str]]:
    """Documents of a few subjects, each with sentences of its own."""
    rows = []
    for n in range(count):
        thing = THINGS[n % len(THINGS)]
        text = " ".join(sentence.format(thing=thing, n=n, days=10 + n) for sentence in SENTENCES)
        rows.append({"_id": f"d{n:03}", "title": f"{thing} {n}", "text": text})
    return rows


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
