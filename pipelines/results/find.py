"""Find finished runs in a folder or in BigQuery: the latest one, one by its id, or another run's baseline."""

from collections.abc import Sequence

from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.results.tables import InBigQuery
from rankbeam.transforms.clients.bigquery import results as bigquery
from rankbeam.transforms.clients.bigquery.names import DatasetName, is_table
from rankbeam.transforms.records.errors import InputError

_MOST_NAMED = 20


def find_run(output: str, run_id: str | None = None, experiment: str | None = None) -> Results:
    """One finished run: by its id, or by default the experiment's run that was started last."""
    runs = finished_runs(output)
    if run_id is not None and run_id not in (run.run_id for run in runs):
        problem = f"holds no finished run {run_id!r}; there are: {_list_names([run.run_id for run in runs])}"
        raise InputError(problem, path=runs[0].output)
    candidates = [run for run in runs if run_id in (None, run.run_id)]
    if experiment is not None:
        candidates = _runs_of(candidates, experiment)
    elif len(names := _experiments(candidates)) > 1:
        problem = f"holds runs of {len(names)} experiments ({_list_names(names)}); choose one with --experiment-name"
        raise InputError(problem, path=runs[0].output)
    return candidates[-1]


def find_baseline(run: Results, output: str, run_id: str | None) -> Results:
    """The run to compare another one with: by default the latest other run of the same experiment."""
    if run_id is not None:
        other = find_run(output, run_id)
        if other.execution == run.execution:
            problem = f"both are run {run.run_id!r}; name another as --baseline-run-id"
            raise InputError(problem, path=other.output)
        return other
    others = [finished_run for finished_run in finished_runs(output) if finished_run.execution != run.execution]
    experiment = run.run["experiment"]
    if not others:
        problem = f"holds only the run {run.run_id!r}, so there is nothing to compare it with"
        raise InputError(problem, path=_place(output))
    if experiment not in _experiments(others):
        problem = (
            f"holds no other finished run of the experiment {experiment!r}, but of {_list_names(_experiments(others))}"
        )
        raise InputError(f"{problem}; name one with --baseline-run-id to compare anyway", path=_place(output))
    return _runs_of(others, experiment)[-1]


def finished_runs(output: str) -> list[Results]:
    """All finished runs in a folder or dataset, at least one, in the order of their start."""
    if is_table(output):
        stored = bigquery.finished_runs(DatasetName.parse(output))
        runs = [Results(_place(output), run.run_id, InBigQuery(run)) for run in stored]
    else:
        from rankbeam.transforms.clients.warehouse import (
            duckdb as warehouse,  # imports DuckDB, which not every command needs
        )

        runs = [Results(output, run_id) for run_id in warehouse.finished_runs(output)]
    if not runs:
        raise InputError("holds no finished run", path=_place(output))
    return sorted(runs, key=lambda results: (results.execution[1], results.run_id))


def runs_alike(results: Results, most: int) -> tuple[list[Results], int]:
    """The latest runs of the same experiment and dataset, this one last, and the number of earlier runs on other ones.

    In BigQuery, this run only.
    """
    if is_table(results.output):
        return [results], 0  # each run would cost a query
    try:
        finished = finished_runs(results.output)
    except InputError:  # the tables were moved, or are in memory
        return [results], 0
    start = results.execution[1]
    earlier = [run for run in finished if run.execution[1] < start and run.experiment == results.experiment]
    matches = [run for run in earlier if run.run["dataset_fingerprint"] == results.run["dataset_fingerprint"]]
    latest = (run.overall() for run in matches[max(0, len(matches) - most + 1) :])
    return [*latest, results], len(earlier) - len(matches)


def _runs_of(runs: Sequence[Results], experiment: str) -> list[Results]:
    matches = [run for run in runs if run.experiment == experiment]
    if not matches:
        others = _list_names(_experiments(runs))
        problem = f"holds no finished run of the experiment {experiment!r}; there are runs of {others}"
        raise InputError(problem, path=runs[0].output)
    return matches


def _experiments(runs: Sequence[Results]) -> list[str]:
    return list(dict.fromkeys(run.experiment for run in runs))


def _place(output: str) -> str:
    return bigquery.place_of(DatasetName.parse(output)) if is_table(output) else output


def _list_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    return f"{', '.join(sorted(names[-_MOST_NAMED:]))}{more}"
