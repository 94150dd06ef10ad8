"""Load a finished run into BigQuery, as the last step of its pipeline: a submitted job needs no later command."""

from dataclasses import dataclass

import apache_beam as beam

from rankbeam.transforms.clients.bigquery import publish
from rankbeam.transforms.clients.bigquery.errors import LoadFailed
from rankbeam.transforms.clients.bigquery.names import DatasetName

_BEAM_SUFFIX = " [while running"  # Beam adds the step to the message of what it raises again
_MARK = f"{LoadFailed.__module__}.{LoadFailed.__name__}: "


@dataclass
class LoadTables(beam.PTransform):
    """Load all tables of a run once its row in `runs` is written; yields the run_id."""

    dataset: DatasetName
    run_id: str
    output: str
    folders: dict[str, str]

    def expand(self, finished: beam.PCollection[str]) -> beam.PCollection[str]:
        loaded = beam.Map(load, self.dataset, self.run_id, self.output, self.folders)
        # Between the two, so that a retried load does not write the row of the run again.
        return finished | "Written" >> beam.Reshuffle() | "Load" >> loaded


def load(_: str, dataset: DatasetName, run_id: str, output: str, folders: dict[str, str]) -> str:
    """Load a run; returns its id. It may be repeated, also by Beam: the rows of the run are replaced."""
    try:
        return publish.load_run(dataset, run_id, folders).run_id
    except LoadFailed as error:
        if not error.can_repeat:
            raise
        command = f"rankbeam warehouse load {output} --dataset {dataset} --run-id {run_id}"
        raise LoadFailed(f"{error}. The Parquet files in {output} are complete; load them with: {command}") from error


def failure(message: str) -> str | None:
    """The message of a failed load inside a job's error message; None for another error.

    >>> failure("RuntimeError: rankbeam.transforms.clients.bigquery.errors.LoadFailed: no quota [while running 'Load']")
    'no quota'
    """
    if _MARK not in message:
        return None
    return message.rpartition(_MARK)[2].partition(_BEAM_SUFFIX)[0].partition("\n\n")[0].strip()


def failure_behind(error: BaseException | None) -> str | None:
    """The message of a failed load behind an exception of Beam, which wraps errors of steps; None for another error."""
    while error is not None:
        text = failure(f"{_MARK}{error}" if isinstance(error, LoadFailed) else str(error))
        if text is not None:
            return text
        error = error.__cause__ or error.__context__
    return None
