"""Jobs: begun once for an id, run in a thread, and kept."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.strict_bigquery import faults, loading
from support.strict_bigquery.faults import Fault, Refusal
from support.strict_bigquery.scripts import Script, values_of
from support.strict_bigquery.tables import Table, check_change, check_columns


@dataclass
class Job:
    """A job.

    Attributes:
        resource: as jobs.get shows it, but for what changes.
        error: error that ended it.
        rows: number of loaded rows.
    """

    resource: dict[str, Any]
    error: Refusal | None = None
    rows: int = 0
    created_ms: int = field(default_factory=lambda: int(time.time() * 1000))
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def configuration(self) -> dict[str, Any]:
        """Its configuration."""
        configuration: dict[str, Any] = self.resource["configuration"]
        return configuration

    def shown(self) -> dict[str, Any]:
        """The resource, complete."""
        status: dict[str, Any] = {"state": "DONE" if self.ended.is_set() else "RUNNING"}
        if self.ended.is_set() and self.error is not None:
            status |= {"errorResult": self.error.proto(), "errors": [self.error.proto()]}
        statistics: dict[str, Any] = {"creationTime": str(self.created_ms)}
        if self.ended.is_set() and "load" in self.configuration:
            statistics["load"] = {"outputRows": str(self.rows)}
        return {**self.resource, "status": status, "statistics": statistics}


class Warehouse:
    """All datasets, tables and jobs of a project.

    Args:
        project: its name.
        root: the folder behind `gs://`.
    """

    def __init__(self, project: str, root: Path | None) -> None:
        self.project, self.root = project, root
        self.faults: list[Fault] = []
        self.datasets: dict[str, str] = {}
        self.defaults: dict[str, dict[str, str | None]] = {}
        self.tables: dict[tuple[str, str], Table] = {}
        self.jobs: dict[tuple[str, str], Job] = {}
        self.lock = threading.RLock()

    def table(self, dataset: str, name: str) -> Table:
        """A table.

        Raises:
            Refusal: there is none.
        """
        self.place(dataset)
        table = self.tables.get((dataset, name))
        if table is None or table.has_expired:
            raise Refusal("notFound", f"Not found: Table {self.project}:{dataset}.{name}")
        return table

    def place(self, dataset: str) -> str:
        """The location of a dataset.

        Raises:
            Refusal: there is none of that name.
        """
        if dataset not in self.datasets:
            raise Refusal("notFound", f"Not found: Dataset {self.project}:{dataset}")
        return self.datasets[dataset]

    def begin(self, request: Mapping[str, Any], content: bytes | None) -> Job:
        """Begin a job.

        Raises:
            Refusal: its id was used, or it is not complete.
        """
        reference = request["jobReference"]
        place, job_id = reference.get("location", "US"), reference["jobId"]
        if reference["projectId"] != self.project or not job_id or len(job_id) > 1024:
            raise Refusal("invalid", f"Invalid job reference: {reference}")
        with self.lock:
            if (place, job_id) in self.jobs:
                raise Refusal("duplicate", f"Already Exists: Job {self.project}:{place}.{job_id}")
            job = Job({**request, "id": f"{self.project}:{place}.{job_id}", "user_email": "nobody@example.com"})
            self.jobs[place, job_id] = job
        threading.Thread(target=self._run, args=(job, place, content), daemon=True).start()
        return job

    def _run(self, job: Job, place: str, content: bytes | None) -> None:
        try:
            kind = "load" if "load" in job.configuration else "script"
            fault = faults.take(self.faults, kind, str(job.configuration))
            if fault is not None and fault.what in faults.STATUSES:
                raise fault.refusal()
            if kind == "load":
                self._load(job, place, content, fault)
            else:
                self._script(job, place, fault)
        except Refusal as refusal:
            job.error = refusal
        finally:
            job.ended.set()

    def _load(self, job: Job, place: str, content: bytes | None, fault: Fault | None) -> None:
        load = job.configuration["load"]
        reference = load["destinationTable"]
        expected = (load["sourceFormat"], load["createDisposition"], load["writeDisposition"])
        if expected != ("PARQUET", "CREATE_NEVER", "WRITE_TRUNCATE") or (content is None) == (
            not load.get("sourceUris")
        ):
            raise Refusal("invalid", f"A load that nobody here makes: {load}")
        columns = load["schema"]["fields"]
        check_columns(columns)
        contents = [content] if content is not None else loading.matching_files(load["sourceUris"], self.root)
        lists = load.get("parquetOptions", {}).get("enableListInference", False)
        rows = loading.rows_of(contents, columns, lists=lists)
        time.sleep(fault.seconds if fault is not None else 0.0)
        with self.lock:
            table = self.table(reference["datasetId"], reference["tableId"])
            if table.resource["location"] != place:
                raise Refusal("notFound", f"Not found: Dataset {reference['datasetId']} was not found in {place}")
            check_change(table.columns, columns)
            table.rows, job.rows = rows, len(rows)
            table.deletions += 1

    def _script(self, job: Job, place: str, fault: Fault | None) -> None:
        query = job.configuration["query"]
        if query.get("useLegacySql", True) or query.get("parameterMode") != "NAMED":
            raise Refusal("invalidQuery", "Legacy SQL, or parameters without names")

        script = self.script(query, place)
        pause_s, dies = (0.0, None) if fault is None else (fault.seconds, fault.after if fault.what == "dies" else None)
        script.run(query["query"], pause_s, dies)

    def script(self, query: Mapping[str, Any], place: str) -> Script:
        """A runner of statements with parameters at the dataset's location."""

        def named(name: str) -> Table:
            project, dataset, table = name.split(".")
            if project != self.project or self.place(dataset) != place:
                raise Refusal("notFound", f"Not found: Dataset {project}:{dataset} was not found in location {place}")
            return self.table(dataset, table)

        return Script(named, values_of(query["queryParameters"]), self.lock)
