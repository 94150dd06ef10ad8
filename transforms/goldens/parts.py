"""Write results of works as they arrive: JSON lines in small parts, every few seconds."""

import glob
import json
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, TypeVar

import apache_beam as beam
from pydantic import TypeAdapter

from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.calls.steps import CallAnswer

Record = TypeVar("Record")

RESULTS, USAGE, WARNINGS = "results", "usage", "warnings"
_MOST_LINES, _EVERY_S = 200, 2.0


class WriteResultsFn(beam.DoFn):
    """Writes the values of tasks to parts in a folder, with one line for each result."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def start_bundle(self) -> None:
        self._lines: list[str] = []
        self._written_at = time.monotonic()

    def process(self, element: CallAnswer) -> None:
        values = element.value if isinstance(element.value, tuple) else (element.value,)
        self._lines += [as_line(value) for value in values]
        if len(self._lines) >= _MOST_LINES or time.monotonic() >= self._written_at + _EVERY_S:
            self._write()

    def finish_bundle(self) -> None:
        self._write()

    def _write(self) -> None:
        write_part(self._folder, RESULTS, self._lines)
        self._lines, self._written_at = [], time.monotonic()


def write_record(record: Any, folder: str, kind: str) -> None:
    write_part(folder, kind, [as_line(record)])


def as_line(record: Any) -> str:
    """Write a record as one line of JSON.

    >>> from rankbeam.transforms.goldens.records.items import Nugget
    >>> as_line(Nugget("a", True))
    '{"text": "a", "vital": true}'
    """
    return json.dumps(record if isinstance(record, str) else asdict(record), ensure_ascii=False)


def json_lines(records: Iterable[Mapping[str, Any]]) -> bytes:
    text = "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records)
    return text.encode("utf-8", "replace")


def write_part(folder: str, kind: str, lines: list[str]) -> None:
    if lines:
        text = "".join(f"{line}\n" for line in lines)
        files.write(files.join(folder, f"{kind}-{uuid.uuid4().hex}.jsonl"), text.encode("utf-8", "replace"))


def read_parts(folder: str, kind: str, record: type[Record]) -> Iterator[Record]:
    adapter = TypeAdapter(record)
    for path in sorted(files.match(files.join(glob.escape(folder), f"{kind}-*.jsonl"))):
        for line in files.read_all(path).decode().split("\n"):
            if line:
                yield adapter.validate_json(line)
