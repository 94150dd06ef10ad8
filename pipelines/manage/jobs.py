"""The records of submitted jobs, stored with their output: enough to find a job again, without secrets."""

import glob
import json
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter, ValidationError

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.experiment.file.quotas import DATA
from rankbeam.transforms.clients.ledger import Ledger, LedgerUse, Owner
from rankbeam.transforms.clients.storage import files, matching, whole_files
from rankbeam.transforms.clients.storage.parquet import run_folder
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.corpora import TemporaryCorpora
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.run import Run

LONGEST_NAME = 63  # for jobs, and for label values on Google Cloud
_FOLDER = "jobs"
_MOST_NAMED = 20
_READERS = 16


def save(output: str, run_id: str, record: Mapping[str, Any]) -> None:
    whole_files.put(_path(output, run_id), json.dumps(record, indent=2).encode())


def folder(output: str) -> str:
    return files.join(output, _FOLDER)


def every(output: str) -> list[dict[str, Any]]:
    """The records of all submitted jobs, the latest one last."""
    return sorted(_read_all(matching.matches(_path(glob.escape(output), "*"))), key=_submission_time)


def find(output: str, run_id: str | None = None) -> dict[str, Any]:
    if not (paths := matching.matches(_path(glob.escape(output), "*"))):
        raise InputError("holds no submitted job (no jobs/*.json)", path=output)
    run_paths = {path.replace("\\", "/").rpartition("/")[2].removesuffix(".json"): path for path in paths}
    if run_id is None:
        return max(_read_all(paths), key=_submission_time)
    if run_id not in run_paths:
        named = ", ".join(sorted(run_paths)[-_MOST_NAMED:])
        raise InputError(f"holds no job of a run {run_id!r}; there are: {named}", path=output)
    return _read_record(run_paths[run_id])


def has_rows(output: str, run_id: str) -> bool:
    """Return whether all rows of a run are written: its row in `runs` is written last."""
    folder = run_folder(output, "runs", run_id)
    return bool(matching.matches(files.join(glob.escape(folder), "part-*.parquet")))


def job_name(execution: Run) -> str:
    """The name of a run's job: at most 63 lower-case letters, digits and hyphens, starting with a letter.

    >>> from datetime import datetime
    >>> job_name(Run("20260102-030405-ab12", "FiQA, chunked", datetime(2026, 1, 2), ""))
    'rankbeam-fiqa-chunked-20260102-030405-ab12'
    """
    last = plain(execution.run_id)[-LONGEST_NAME // 2 :].strip("-")
    first = f"rankbeam-{plain(execution.experiment)}"[: LONGEST_NAME - len(last) - 1].strip("-")
    return f"{first}-{last}".strip("-")


def plain(text: str, also: str = "") -> str:
    """The text with only lower-case letters, digits, hyphens, and the characters in `also`."""
    return re.sub(rf"[^a-z0-9{also}]+", "-", text.lower()).strip("-")


def _path(output: str, run_id: str) -> str:
    return files.join(output, _FOLDER, f"{run_id}.json")


def _submission_time(record: Mapping[str, Any]) -> str:
    return str(record.get("submitted_at", ""))


def _read_all(paths: Iterable[str]) -> list[dict[str, Any]]:
    """Read records in parallel: a year of nightly jobs in a bucket means hundreds of network requests."""
    with ThreadPoolExecutor(_READERS) as readers:
        return list(readers.map(_read_record, paths))


def _read_record(path: str) -> dict[str, Any]:
    try:
        record = json.loads(files.read_all(path))
    except ValueError as error:
        raise InputError(f"is not a record of a job: {error}", path=path) from error
    if not isinstance(record, dict):
        raise InputError("is not a record of a job", path=path)
    return record


@dataclass(frozen=True)
class RunRecord:
    """The run of a job."""

    started: str  # in UTC; identifies one execution together with the run's id
    ledger: str | None = None  # None for a run without calls
    sources: int = 0  # number of retrievers that run in the workers
    configurations: int = 1  # number of configurations
    pools: Mapping[str, Quota] = field(default_factory=dict)
    bigquery: str | None = None  # dataset in which the run is published, if any
    is_monitored: bool = False  # True if changes since a baseline run are written at the end
    all_rows: bool = False  # True if `results.duckdb` also has the rows of large tables
    corpora: tuple[TemporaryCorpora, ...] = ()  # corpora that are deleted at the end of the run

    @classmethod
    def of(cls, experiment: Experiment, execution: Run, *, all_rows: bool = False) -> "RunRecord":
        """The record of a run that is about to be submitted."""
        temporary: tuple[TemporaryCorpora, ...] = ()
        if experiment.served:
            from rankbeam.pipelines.run import corpora  # few experiments need it

            temporary = corpora.temporary(experiment)
        pools = dict(experiment.calls.pools) | ({DATA: experiment.calls.corpus_quotas.data} if temporary else {})
        return cls(
            started=execution.started_at.isoformat(),
            ledger=experiment.ledger if experiment.makes_calls else None,
            sources=len(experiment.local),
            configurations=len(experiment.evaluation.configurations),
            pools=pools,
            bigquery=None if experiment.bigquery is None else str(experiment.bigquery),
            is_monitored=experiment.is_monitored,
            all_rows=all_rows,
            corpora=temporary,
        )

    def calls(self, run_id: str) -> Ledger | None:
        return None if self.ledger is None else Ledger(self.ledger, Owner(run_id, self.started))

    def uses(self, run_id: str) -> list[LedgerUse]:
        """The ledger's records of this run, including calls of lost workers, which engines do not report."""
        return [] if (ledger := self.calls(run_id)) is None else ledger.uses()

    def seconds(self, now: datetime) -> float:
        return (now - datetime.fromisoformat(self.started)).total_seconds()


_RECORDS = TypeAdapter(RunRecord)


def run_of(record: Mapping[str, Any], output: str) -> RunRecord | None:
    """The run of a job's record; None in a record of an earlier version. Keys of later versions are ignored."""
    if (values := record.get("run")) is None:
        return None
    try:
        return _RECORDS.validate_python(values)
    except ValidationError as error:
        problem = f"holds a record of a job that cannot be read: {error.errors()[0]['msg']}"
        raise InputError(problem, path=output) from error
