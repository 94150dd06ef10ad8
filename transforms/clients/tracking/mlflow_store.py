"""Runs of MLflow, one for each configuration, in any of its tracking stores."""

from collections.abc import Sequence
from typing import Any

from rankbeam.transforms.clients.extras import MLFLOW, missing
from rankbeam.transforms.clients.tracking import Trial
from rankbeam.transforms.records.errors import InputError

IDENTITY = "rankbeam.trial"
"""The tag that says which trial a run of MLflow is."""
_LONGEST = {"params": 6000, "tags": 5000}
"""The most characters that MLflow takes."""


def log(uri: str, experiment: str, trials: Sequence[Trial]) -> int:
    """Write trials that are not there yet; returns how many these were."""
    if (problem := missing("mlflow", MLFLOW, "MLflow")) is not None:
        raise InputError(problem)
    from mlflow.exceptions import MlflowException
    from mlflow.tracking import MlflowClient

    try:
        client = MlflowClient(tracking_uri=uri)
        known = client.get_experiment_by_name(experiment)
        experiment_id = client.create_experiment(experiment) if known is None else known.experiment_id
        new = [trial for trial in trials if not _is_there(client, experiment_id, trial)]
        for trial in new:
            _write(client, experiment_id, trial)
    except (MlflowException, OSError) as error:
        raise InputError(f"MLflow cannot keep the run: {' '.join(str(error).split())}", path=uri) from error
    return len(new)


def _is_there(client: Any, experiment_id: str, trial: Trial) -> bool:
    """Return whether a trial is there whole; what an interrupted copy left of it is deleted."""
    runs = client.search_runs([experiment_id], f"tags.`{IDENTITY}` = '{trial.identity}'")
    unfinished = [run for run in runs if run.info.status != "FINISHED"]
    for run in unfinished:
        client.delete_run(run.info.run_id)
    return len(runs) > len(unfinished)


def _write(client: Any, experiment_id: str, trial: Trial) -> None:
    from mlflow.entities import Metric, Param, RunTag

    started = int(trial.started_at.timestamp() * 1000)
    run = client.create_run(experiment_id, started, tags={IDENTITY: trial.identity}, run_name=trial.name)
    client.log_batch(
        run.info.run_id,
        [Metric(name, value, started, 0) for name, value in trial.metrics.items()],
        [Param(name, value[: _LONGEST["params"]]) for name, value in trial.parameters.items()],
        [RunTag(name, value[: _LONGEST["tags"]]) for name, value in trial.tags.items()],
    )
    client.set_terminated(run.info.run_id)
