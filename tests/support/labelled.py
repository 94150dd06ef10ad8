"""People who label tasks: their decisions as files, made from the tasks of a folder."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from support.inputs import write

Task = Mapping[str, Any]


def tasks(out: Path, number: int = 1) -> list[dict[str, Any]]:
    """The tasks of a folder, as other tools read them."""
    lines = (out / "label-tasks" / f"tasks-{number:03}.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def decided(path: Path, rows: list[dict[str, Any]], decide: Callable[[Task], str], annotator: str = "ann") -> str:
    """A file of decisions about every task."""
    lines = [{"id": row["id"], "decision": decide(row), "annotator": annotator} for row in rows]
    return write(path, "".join(f"{json.dumps(line)}\n" for line in lines))


def by_words(task: Task) -> str:
    """Supported where every word of the claim is in the text: stricter than the offline judge."""
    words = {word.strip(".,[]()").lower() for word in task["claim"].split()} - {"", "1", "2", "3"}
    return "supported" if all(word in task["text"].lower() for word in words) else "not_stated"
