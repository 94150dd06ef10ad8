"""The records of submitted jobs, beside their output: enough to find a job again, and no secrets."""

import json
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from rankbeam.transforms.clients.storage import files, matching, whole
from rankbeam.transforms.clients.storage.parquet import run_folder
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.run import Run

LONGEST_NAME = 63  # of jobs, and of the values of labels on Google Cloud
_FOLDER = "jobs"
_MOST_NAMED = 20
_READERS = 16


def save(output: str, run_id: str, record: Mapping[str, Any]) -> None:
    """Write the record of a job."""
    whole.put(_path(output, run_id), json.dumps(record, indent=2).encode())


def folder(output: str) -> str:
    return files.join(output, _FOLDER)


def every(output: str) -> list[dict[str, Any]]:
    """The records of all submitted jobs, the latest one last."""
    return sorted(_read_all(matching.matches(_path(matching.escaped(output), "*"))), key=_submitted)


def find(output: str, run_id: str | None = None) -> dict[str, Any]:
    """The record of a run's job."""
    if not (paths := matching.matches(_path(matching.escaped(output), "*"))):
        raise InputError("holds no submitted job (no jobs/*.json)", path=output)
    by_run = {path.replace("\\", "/").rpartition("/")[2].removesuffix(".json"): path for path in paths}
    if run_id is None:
        return max(_read_all(paths), key=_submitted)
    if run_id not in by_run:
        named = ", ".join(sorted(by_run)[-_MOST_NAMED:])
        raise InputError(f"holds no job of a run {run_id!r}; there are: {named}", path=output)
    return _read(by_run[run_id])


def has_rows(output: str, run_id: str) -> bool:
    """Return whether all rows of a run are written: its row in `runs` is the last one."""
    folder = run_folder(output, "runs", run_id)
    return bool(matching.matches(files.join(matching.escaped(folder), "part-*.parquet")))


def job_name(execution: Run) -> str:
    """The name of a run's job: at most 63 lower-case letters, digits and hyphens, a letter first.

    >>> from datetime import datetime
    >>> job_name(Run("20260102-030405-ab12", "FiQA, chunked", datetime(2026, 1, 2), ""))
    'rankbeam-fiqa-chunked-20260102-030405-ab12'
    """
    last = plain(execution.run_id)[-LONGEST_NAME // 2 :].strip("-")
    first = f"rankbeam-{plain(execution.experiment)}"[: LONGEST_NAME - len(last) - 1].strip("-")
    return f"{first}-{last}".strip("-")


def plain(text: str, also: str = "") -> str:
    """A text of lower-case letters, digits and hyphens, and of the characters `also`."""
    return re.sub(rf"[^a-z0-9{also}]+", "-", text.lower()).strip("-")


def _path(output: str, run_id: str) -> str:
    return files.join(output, _FOLDER, f"{run_id}.json")


def _submitted(record: Mapping[str, Any]) -> str:
    return str(record.get("submitted_at", ""))


def _read_all(paths: Iterable[str]) -> list[dict[str, Any]]:
    """A year of nights in a bucket is hundreds of requests, which wait for the network."""
    with ThreadPoolExecutor(_READERS) as readers:
        return list(readers.map(_read, paths))


def _read(path: str) -> dict[str, Any]:
    try:
        record = json.loads(files.read_all(path))
    except ValueError as error:
        raise InputError(f"is not a record of a job: {error}", path=path) from error
    if not isinstance(record, dict):
        raise InputError("is not a record of a job", path=path)
    return record
