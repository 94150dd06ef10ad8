"""The part of a job's record that is the same on every engine: what its status and its end need of the run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter, ValidationError

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.experiment.quotas import DATA
from rankbeam.transforms.clients.ledger import Ledger, LedgerUse, Owner
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.corpora import TemporaryCorpora
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.run import Run


@dataclass(frozen=True)
class RunRecord:
    """The run of a job.

    Attributes:
        started: when the run began, in UTC; with its id, it identifies one execution.
        ledger: folder of the answers that were paid for; None for a run without calls.
        sources: number of retrievers that run in the workers.
        configurations: number of configurations.
        pools: quota pools by name, with their prices.
        bigquery: dataset that the run is published in; None for none.
        is_monitored: whether the changes since a baseline run are written at the end.
        all_rows: whether `results.duckdb` has the rows of large tables, too.
        corpora: corpora that are deleted at the end of the run.
    """

    started: str
    ledger: str | None = None
    sources: int = 0
    configurations: int = 1
    pools: Mapping[str, Quota] = field(default_factory=dict)
    bigquery: str | None = None
    is_monitored: bool = False
    all_rows: bool = False
    corpora: tuple[TemporaryCorpora, ...] = ()

    @classmethod
    def of(cls, experiment: Experiment, execution: Run, *, all_rows: bool = False) -> "RunRecord":
        """The record of a run that is about to be submitted."""
        temporary: tuple[TemporaryCorpora, ...] = ()
        if experiment.served:
            from rankbeam.pipelines.run import corpora  # few experiments need it

            temporary = corpora.temporary(experiment)
        pools = dict(experiment.pools) | ({DATA: experiment.corpus_quotas.data} if temporary else {})
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
        """The ledger, as this run uses it; None for a run without calls."""
        return None if self.ledger is None else Ledger(self.ledger, Owner(run_id, self.started))

    def uses(self, run_id: str) -> list[LedgerUse]:
        """The ledger's records of this run: they have the calls of lost workers, which engines do not report."""
        return [] if (ledger := self.calls(run_id)) is None else ledger.uses()

    def seconds(self, now: datetime) -> float:
        """Time since the run was started."""
        return (now - datetime.fromisoformat(self.started)).total_seconds()


_RECORDS = TypeAdapter(RunRecord)


def read(record: Mapping[str, Any], output: str) -> RunRecord | None:
    """The run of a job's record; None in a record of an earlier version. Keys of later versions are ignored."""
    if (values := record.get("run")) is None:
        return None
    try:
        return _RECORDS.validate_python(values)
    except ValidationError as error:
        problem = f"holds a record of a job that cannot be read: {error.errors()[0]['msg']}"
        raise InputError(problem, path=output) from error
