"""Load a finished run into BigQuery, as the last step of its pipeline: nobody needs to wait for a submitted job."""

from dataclasses import dataclass

import apache_beam as beam

from rankbeam.transforms.clients.bigquery import publish
from rankbeam.transforms.clients.bigquery.errors import LoadFailed
from rankbeam.transforms.clients.bigquery.names import DatasetName

_BEAM_SUFFIX = " [while running"  # Beam adds the step to the message of what it raises again
_MARK = f"{LoadFailed.__module__}.{LoadFailed.__name__}: "


@dataclass
class LoadTables(beam.PTransform):
    """Load all tables of a run once its row in `runs` is written; yields the run_id.

    Attributes:
        dataset: where to.
        run_id: of the run.
        output: the folder of all tables, for messages.
        folders: where the files of each table lie.
    """

    dataset: DatasetName
    run_id: str
    output: str
    folders: dict[str, str]

    def expand(self, finished: beam.PCollection[str]) -> beam.PCollection[str]:
        """Add the steps."""
        loaded = beam.Map(load, self.dataset, self.run_id, self.output, self.folders)
        # Between the two, so that a load that is tried again does not write the row of the run anew.
        return finished | "Written" >> beam.Reshuffle() | "Load" >> loaded


def load(_: str, dataset: DatasetName, run_id: str, output: str, folders: dict[str, str]) -> str:
    """Load a run; returns its id. It may be called again, by Beam too: the run is replaced by itself.

    Raises:
        LoadFailed: it was not loaded; the message says how to go on.
    """
    try:
        return publish.load_run(dataset, run_id, folders).run_id
    except LoadFailed as error:
        if not error.can_repeat:
            raise
        command = f"rankbeam warehouse load {output} --dataset {dataset} --run-id {run_id}"
        raise LoadFailed(f"{error}. The Parquet files in {output} are complete; load them with: {command}") from error


def failure(told: str) -> str | None:
    """What a failed load said, in what Beam or a service tells of a job that failed; None where it was something else.

    >>> failure("RuntimeError: rankbeam.transforms.clients.bigquery.errors.LoadFailed: no quota [while running 'Load']")
    'no quota'
    """
    if _MARK not in told:
        return None
    return told.rpartition(_MARK)[2].partition(_BEAM_SUFFIX)[0].partition("\n\n")[0].strip()


def failure_behind(error: BaseException | None) -> str | None:
    """What a failed load said, behind an exception of Beam's, which wraps what a step raises; None for another one."""
    while error is not None:
        said = failure(f"{_MARK}{error}" if isinstance(error, LoadFailed) else str(error))
        if said is not None:
            return said
        error = error.__cause__ or error.__context__
    return None
