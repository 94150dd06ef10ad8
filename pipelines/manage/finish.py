"""Finish a run whose job no process waited for: `results.duckdb`, changes since a baseline, BigQuery, corpora.

    pending records ─► lease ─► read the record again ─► write, load, release ─► record: finished

Every step can be repeated: if a process is killed in the middle, the record stays unfinished, and the next process
starts again. If there are several processes at once, one works and the others wait for it.
"""

import logging
import time
from collections.abc import Callable
from concurrent.futures import wait
from datetime import UTC, datetime

from rankbeam.pipelines.local.interrupt import in_thread
from rankbeam.pipelines.manage import jobs
from rankbeam.pipelines.manage.derived import build_duckdb, monitor
from rankbeam.pipelines.manage.jobs import RunRecord
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.ledger.leases.lease import Holder, Lease
from rankbeam.transforms.clients.ledger.leases.places import lease_place
from rankbeam.transforms.records.errors import InputError, RankbeamError

_LOOK_S, _MOST_S = 1.0, 3600.0
_logger = logging.getLogger(__name__)


def finish(output: str, run_id: str, *, is_loaded: bool = False) -> tuple[str, ...]:
    """Finish a run whose job has ended, unless this was done before; wait for another process that is doing it.

    Returns notes about the steps, in the order in which they were done.

    If `is_loaded`, the job itself has loaded its run into BigQuery, which the caller may not be allowed to read.
    """
    execution = jobs.run_of(jobs.find(output, run_id), output)
    me = Holder.here(run_id, "" if execution is None else execution.started)
    lease = Lease(lease_place(jobs.folder(output)), f"finish {run_id}", me)
    _claim(lease, run_id, output)
    try:
        record = jobs.find(output, run_id)
        if record.get("finished_at") or (run := jobs.run_of(record, output)) is None:
            return ()
        notes = _with_lease(lease, lambda: _finish(output, run_id, run, is_loaded=is_loaded))
        mark(output, run_id)
        return notes
    finally:
        lease.release()


def mark(output: str, run_id: str) -> None:
    """Note in a job's record that its run is finished."""
    moment = datetime.now(UTC).isoformat(timespec="milliseconds")
    jobs.save(output, run_id, jobs.find(output, run_id) | {"finished_at": moment})


def _claim(lease: Lease, run_id: str, output: str) -> None:
    deadline, waits = time.monotonic() + _MOST_S, False
    while (holder := lease.claim()) is not None:
        if not waits:
            _logger.info("run %s is being finished by another process: %s", run_id, holder)
        waits = True
        if time.monotonic() > deadline:
            raise InputError(f"{holder} has been finishing run {run_id} for an hour", path=output)
        time.sleep(_LOOK_S)


def _with_lease(lease: Lease, work: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
    """Do the work, renewing the lease meanwhile."""
    end = in_thread(work)
    while not wait([end], timeout=_LOOK_S).done:
        lease.beat()
    return end.result()


def _finish(output: str, run_id: str, run: RunRecord, *, is_loaded: bool) -> tuple[str, ...]:
    results = Results(output, run_id)
    notes = []
    if run.is_monitored:
        monitor(results)
    notes.append(f"wrote {build_duckdb(output, run_id, all_rows=run.all_rows)}")
    if run.bigquery is not None and not is_loaded and _load(results, run.bigquery):
        notes.append(f"loaded the run into {run.bigquery}")
    if run.corpora and (ledger := run.calls(run_id)) is not None:
        from rankbeam.pipelines.experiment.file.quotas import DATA
        from rankbeam.pipelines.run import corpora  # few experiments need it

        corpora.release(run.corpora, ledger, run.pools[DATA])
        notes.append("ended the use of the corpora that exist until the end of the run")
    return tuple(notes)


def _load(results: Results, dataset: str) -> bool:
    """Load a run into BigQuery, unless it is there; return whether it was loaded."""
    from rankbeam.pipelines.run.build import table_folders  # Beam takes a second to import
    from rankbeam.transforms.clients.bigquery import publish
    from rankbeam.transforms.clients.bigquery import results as stored
    from rankbeam.transforms.clients.bigquery.names import DatasetName

    name = DatasetName.parse(dataset)
    try:
        present = {(run.run_id, run.started_at) for run in stored.finished_runs(name)}
    except RankbeamError:  # no table yet; loading creates it, or reports the problem
        present = set()
    if results.execution in present:
        return False
    publish.load_run(name, results.run_id, table_folders(results.output, results.run_id))
    return True
