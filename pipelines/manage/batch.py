"""The command `rankbeam batch`: list the batch jobs of a ledger, collect their answers, or cancel them."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from rankbeam.pipelines.manage.ledger import ledger_folder
from rankbeam.pipelines.show.tabular import WHOLE, Screen, Table
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.clients.ledger.waiting import GIVEN_UP, BatchFolder, BatchJobRecord
from rankbeam.transforms.clients.models.base import MODELS
from rankbeam.transforms.clients.models.batches.jobs import existing_job, may_answer
from rankbeam.transforms.clients.models.batches.make import BatchJobs
from rankbeam.transforms.clients.models.batches.service import BatchedService
from rankbeam.transforms.clients.models.remote import RemoteModel
from rankbeam.transforms.judge import steps  # noqa: F401  registers the steps that read answers
from rankbeam.transforms.records.errors import CallError, FailureKind, InputError, did_you_mean


@dataclass(frozen=True)
class LedgerJobs:
    """The batch jobs of a ledger."""

    ledger: str
    records: tuple[BatchJobRecord, ...]

    @classmethod
    def of(cls, place: str) -> "LedgerJobs":
        folder = ledger_folder(place)
        return cls(folder, tuple(sorted(BatchFolder(folder).records(), key=lambda record: record.created)))

    def named(self, names: Sequence[str]) -> list[BatchJobRecord]:
        """The open jobs with these names; without names, all open jobs."""
        jobs = {record.name: record for record in self.records}
        for name in names:
            if name not in jobs:
                hint = did_you_mean(name, jobs) if jobs else "it has none"
                raise InputError(f"{name!r} is not a batch job of this ledger; {hint}", path=self.ledger)
        records = [jobs[name] for name in names] if names else self.records
        return [record for record in records if record.is_open]

    def collect(self, names: Sequence[str]) -> list[str]:
        """Record the answers of jobs that have ended; return warnings."""
        records = self.named(names)
        jobs = BatchJobs(Ledger(self.ledger), [service_of(record) for record in records])
        jobs.run(records, waits=False)
        return jobs.warnings

    def cancel(self, names: Sequence[str]) -> list[BatchJobRecord]:
        """Ask services to end jobs; return the jobs' records. Answers that exist already can still be collected.

        A job is given up if its service does not have it, or if it has ended without answers or they are gone.
        """
        records = self.named(names)
        cancelled = [asyncio.run(_cancel_job(record)) for record in records]
        for record in cancelled:
            if record not in records:
                BatchFolder(self.ledger).save(record)
        return cancelled

    def as_text(self, screen: Screen = WHOLE) -> str:
        if not self.records:
            return f"{self.ledger} has no batch jobs. Services with `batch:` make them."
        rows = [
            (record.name, record.service, record.step, *map("{:,}".format, _counts(record)), record.state)
            for record in self.records
        ]
        head = ["job", "service", "step", "calls", "answered", "input tokens", "output tokens", "state"]
        return screen.table(Table(head, rows, 3))

    def as_json(self) -> str:
        """One JSON document, without the services' parameters."""
        jobs = [{"name": record.name, **asdict(record)} for record in self.records]
        for job in jobs:
            del job["parameters"]
        return json.dumps({"ledger": self.ledger, "jobs": jobs}, indent=2)


def _counts(record: BatchJobRecord) -> tuple[int, ...]:
    return record.calls, record.answered, record.input_tokens, record.output_tokens


def service_of(record: BatchJobRecord) -> BatchedService:
    model = MODELS.load(record.kind)
    parameters = model(**record.parameters)
    if not isinstance(parameters, RemoteModel):
        raise InputError(f"batch job {record.name}: services of type {record.kind} have no batch jobs")
    account = f"{record.kind} {parameters.scope()}".strip()
    return BatchedService(record.service, record.kind, parameters, record.service, account, parameters.default_quota)


async def _cancel_job(record: BatchJobRecord) -> BatchJobRecord:
    connection = await service_of(record).connect()
    try:
        if record.job is None:  # a killed run may have created it
            record = replace(record, job=await existing_job(connection, record))
        if record.job is None:
            return record.closed(GIVEN_UP)
        try:
            await connection.cancel(record.job)
            return record
        except CallError as error:
            is_gone = error.kind is FailureKind.NOT_FOUND
            if not is_gone and await may_answer(connection, await connection.job(record.job)):
                raise
            return record.closed(GIVEN_UP)
    except CallError as error:
        raise InputError(f"batch job {record.name} cannot be cancelled: {error.message}") from None
    finally:
        await connection.connection.close()
