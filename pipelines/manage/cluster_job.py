"""A job on a cluster, as its engine's record describes it: shown as text and as JSON, with what can be done next."""

import json
import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, ClassVar, Self

from rankbeam.pipelines.local.progress import counter_lines
from rankbeam.pipelines.manage import jobs
from rankbeam.pipelines.manage.job_progress import JobProgress, JobSnapshot, as_document, gist, outlook_lines
from rankbeam.pipelines.manage.jobs import RunRecord
from rankbeam.transforms.records.errors import InputError


class ClusterJob(ABC):
    """A submitted job; every engine has its own dataclass of what finds the job again."""

    page_name: ClassVar[str] = "page"
    __dataclass_fields__: ClassVar[dict[str, Any]]
    job_name: str
    run_id: str
    experiment: str
    output: str
    submitted_at: str
    run: RunRecord | None

    @classmethod
    def of_record(cls, record: dict[str, Any], output: str) -> Self:
        try:
            return cls(**{**record, "run": jobs.run_of(record, output)})
        except TypeError as error:
            raise InputError(f"holds a record of a job that cannot be read: {error}", path=output) from error

    @property
    def title(self) -> str:
        return self.job_name

    @property
    def cancel_command(self) -> str:
        return self.command("cancel")

    def command(self, name: str) -> str:
        return shlex.join(["rankbeam", name, self.output, "--run-id", self.run_id])

    @abstractmethod
    def page(self) -> str | None:
        """The job's page in a browser; None if there is none, or none yet."""

    def remedies(self, _problems: Iterable[str]) -> list[str] | None:
        """Advice about a failed job's messages; None on engines whose messages include it."""
        return None

    def save(self) -> None:
        jobs.save(self.output, self.run_id, asdict(self))

    def as_text(self, snapshot: JobSnapshot | None = None, outlook: JobProgress | None = None) -> str:
        """A job, its state, progress and counters, and commands for what can be done next; a new job has no state."""
        lines = [f"run      {self.run_id} of {self.experiment}"] if self.run_id else []
        lines.append(f"job      {self.title}" + (f", submitted {self.submitted_at}" if self.submitted_at else ""))
        if (page := self.page()) is not None:
            lines.append(f"{self.page_name:<8} {page}")
        if snapshot is None:
            return "\n".join([*lines, f"status   {self.command('status')}", f"cancel   {self.cancel_command}"])
        lines += [f"state    {snapshot.state}", *outlook_lines(outlook)]
        if snapshot.is_done and self.output:
            lines.append(f"report   {self.command('report')}")
        lines += [] if snapshot.has_ended else [f"cancel   {self.cancel_command}"]
        lines += counter_lines(snapshot.counts)
        if problems := snapshot.problems:
            lines += ["", *map(gist, problems), *(self.remedies(problems) or ())]
        return "\n".join(lines)

    def as_json(self, snapshot: JobSnapshot | None = None, outlook: JobProgress | None = None) -> str:
        """A job as one JSON document, with its state, progress and counters where they are known."""
        document = {**asdict(self), self.page_name: self.page()}
        if snapshot is not None:
            document |= as_document(snapshot, outlook)
            if (remedies := self.remedies(snapshot.problems)) is not None:
                document["remedies"] = remedies
        return json.dumps(document, indent=2)

    def still_writing(self) -> InputError:
        """The refusal of another run under the same id: this job would lose its rows."""
        advice = f"wait for it, cancel it ({self.cancel_command}), or choose another --run-id"
        return InputError(f"the job {self.title} is still writing the run {self.run_id}; {advice}")
