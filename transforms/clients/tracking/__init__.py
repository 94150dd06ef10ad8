"""Copy the results of finished runs to experiment trackers: one record for each configuration of a run."""

import asyncio
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import not_
from typing import Any

from tenacity import AsyncRetrying, RetryError, retry_if_result, stop_after_attempt, wait_fixed

from rankbeam.transforms.clients.extras import MLFLOW, missing_extra
from rankbeam.transforms.clients.google.channels import Channels, Endpoint, open_channels
from rankbeam.transforms.records.errors import CallError, FailureKind, InputError

IDENTITY = "rankbeam.trial"  # the tag of an MLflow run with its trial's identity
_LONGEST = {"params": 6000, "tags": 5000}  # maximum characters in MLflow
LOCATION = re.compile(r"projects/[\w.:-]+/locations/[a-z0-9-]+")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,127}")
_VERSION = "0.0.1"
_EXPERIMENT, _RUN = "system.Experiment", "system.ExperimentRun"
_TIMEOUT_S, _STORE_POLLS, _POLL_S = 60.0, 60, 2.0


@dataclass(frozen=True)
class Trial:
    """A configuration of a run, with its parameters and means."""

    name: str
    run_id: str
    config_id: str
    started_at: datetime
    parameters: Mapping[str, str]
    metrics: Mapping[str, float]  # means by name, for example `ndcg_at_10`
    tags: Mapping[str, str]  # further facts, by name

    @property
    def identity(self) -> str:
        """The name of the trial in a tracker, which has each trial only once."""
        return f"{self.run_id}-{self.config_id}"


def log_to_mlflow(uri: str, experiment: str, trials: Sequence[Trial]) -> int:
    """Write the trials that MLflow lacks; return their number."""
    if (problem := missing_extra("mlflow", MLFLOW, "MLflow")) is not None:
        raise InputError(problem)
    from mlflow.exceptions import MlflowException
    from mlflow.tracking import MlflowClient

    try:
        client = MlflowClient(tracking_uri=uri)
        known = client.get_experiment_by_name(experiment)
        experiment_id = client.create_experiment(experiment) if known is None else known.experiment_id
        new = [trial for trial in trials if not _is_whole(client, experiment_id, trial)]
        for trial in new:
            _write_run(client, experiment_id, trial)
    except (MlflowException, OSError) as error:
        raise InputError(f"MLflow cannot store the run: {' '.join(str(error).split())}", path=uri) from error
    return len(new)


def _is_whole(client: Any, experiment_id: str, trial: Trial) -> bool:
    """Return whether MLflow has the complete trial; delete remains of an interrupted copy."""
    runs = client.search_runs([experiment_id], f"tags.`{IDENTITY}` = '{trial.identity}'")
    unfinished = [run for run in runs if run.info.status != "FINISHED"]
    for run in unfinished:
        client.delete_run(run.info.run_id)
    return len(runs) > len(unfinished)


def _write_run(client: Any, experiment_id: str, trial: Trial) -> None:
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


def log_to_vertex(location: str, experiment: str, trials: Sequence[Trial], endpoint: Endpoint | None = None) -> int:
    """Write trials, replacing those that exist; return their number."""
    if LOCATION.fullmatch(location) is None:
        raise InputError(f"{location!r} is not a location; write projects/PROJECT/locations/REGION")
    names = {trial.identity: resource_id(experiment, trial) for trial in trials}
    for name in (experiment, *names.values()):
        if _NAME.fullmatch(name) is None:
            advice = "lower-case letters, digits and hyphens, at most 128 with the run's id; choose --name or --run-id"
            raise InputError(f"Vertex AI Experiments takes no name {name!r}: {advice}")
    try:
        asyncio.run(_log(location, experiment, [(names[trial.identity], trial) for trial in trials], endpoint))
    except CallError as error:
        raise InputError(f"Vertex AI Experiments: {error.message}", path=location) from error
    return len(trials)


def resource_id(experiment: str, trial: Trial) -> str:
    """The id of a run, as in Google's SDK; if the run's id has letters that Vertex AI refuses, a hash is added."""
    known = trial.run_id.lower().replace("_", "-").replace(".", "-")
    if known != trial.run_id:
        known += f"-{hashlib.sha256(trial.run_id.encode()).hexdigest()[:8]}"
    return f"{experiment}-{known}-{trial.config_id}"


async def _log(location: str, experiment: str, trials: Sequence[tuple[str, Trial]], endpoint: Endpoint | None) -> None:
    region = location.rpartition("/")[2]
    endpoint = endpoint or f"{region}-aiplatform.googleapis.com"
    channels = await open_channels(endpoint, "google.cloud.aiplatform_v1", "MetadataService")
    try:
        store = f"{location}/metadataStores/default"
        await _ensure_store(channels, location, store)
        parent = await _put(channels, store, experiment, experiment, _EXPERIMENT, {"experiment_deleted": False})
        children = []
        for name, trial in trials:
            metadata = {"_params": dict(trial.parameters), "_metrics": dict(trial.metrics), "_state": "COMPLETE"}
            children.append(await _put(channels, store, name, trial.name, _RUN, metadata))
        request = {"context": parent, "child_contexts": children}
        await channels.call("add_context_children", lambda: request, _TIMEOUT_S)
    finally:
        await channels.close()


async def _put(
    channels: Channels, store: str, name: str, display_name: str, schema: str, metadata: dict[str, Any]
) -> str:
    """Create a context, or replace a run's metadata; return the resource name."""
    resource = f"{store}/contexts/{name}"
    context = {
        "name": resource,
        "display_name": display_name,
        "schema_title": schema,
        "schema_version": _VERSION,
        "metadata": metadata,
    }
    if await _is_there(channels, "get_context", resource):
        if schema == _RUN:
            update = {"context": context, "update_mask": {"paths": ["metadata"]}}
            await channels.call("update_context", lambda: update, _TIMEOUT_S)
        return resource
    create = {"parent": store, "context_id": name, "context": {**context, "name": ""}}
    await channels.call("create_context", lambda: create, _TIMEOUT_S)
    return resource


async def _ensure_store(channels: Channels, location: str, store: str) -> None:
    """Create the project's default store if it has none yet, and wait until the store is ready."""
    if await _is_there(channels, "get_metadata_store", store):
        return
    request = {"parent": location, "metadata_store_id": "default", "metadata_store": {}}
    await channels.call("create_metadata_store", lambda: request, _TIMEOUT_S)
    polls = AsyncRetrying(retry=retry_if_result(not_), stop=stop_after_attempt(_STORE_POLLS), wait=wait_fixed(_POLL_S))
    try:
        await polls(_is_there, channels, "get_metadata_store", store)
    except RetryError:
        problem = f"the metadata store of {location} is not ready yet; try again"
        raise CallError(FailureKind.TIMEOUT, problem) from None


async def _is_there(channels: Channels, method: str, name: str) -> bool:
    try:
        await channels.call(method, lambda: {"name": name}, _TIMEOUT_S)
    except CallError as error:
        if error.kind is FailureKind.NOT_FOUND:
            return False
        raise
    return True
