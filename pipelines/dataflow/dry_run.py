"""Describe a job on Dataflow without submitting it: its graph, its options, the files it would stage, and its cost.

Beam's own runner builds the job, and stops before its first request. Inputs, and the ledger, are read for the cost.
"""

import json
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from apache_beam.options.pipeline_options import (
    GoogleCloudOptions,
    PipelineOptions,
    SetupOptions,
    TestOptions,
    WorkerOptions,
)
from apache_beam.portability import common_urns
from apache_beam.portability.api import beam_runner_api_pb2 as protos

from rankbeam.pipelines.dataflow import package, record
from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.local.progress import clock
from rankbeam.pipelines.local.runner import quiet_beam, refusals
from rankbeam.pipelines.plan.corpora import corpora_plan
from rankbeam.pipelines.plan.plan import Plan, plan_of
from rankbeam.pipelines.run.build import build
from rankbeam.pipelines.show.tabular import WHOLE, Screen, Table
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.run import Run

_PIPELINE = "pipeline.pb"
_PRICE = 0.06  # assumed price of an hour of one CPU with its memory, in dollars; docs/scale.md assumes the same


@dataclass(frozen=True)
class StagedFile:
    """A file that would be uploaded for the workers."""

    name: str
    bytes: int


@dataclass(frozen=True)
class DryRun:
    """Description of a job."""

    run_id: str
    job_name: str
    project: str
    region: str
    staging_location: str
    options: dict[str, Any]
    steps: dict[str, int]  # number of primitive steps of Beam, by the part of the pipeline, in its order
    image: str
    staged: tuple[StagedFile, ...]  # files that would be uploaded to `staging_location`
    workers: tuple[int, int]  # lowest and highest number
    seconds: float  # shortest duration of the calls under their quotas
    plan: Plan

    @property
    def worker_cost(self) -> float:
        """Lowest cost of workers with one CPU, in dollars."""
        return self.workers[0] * self.seconds / 3600 * _PRICE

    def as_text(self, screen: Screen = WHOLE) -> str:
        files = [(file.name, f"{file.bytes:,}") for file in self.staged]
        total = sum(file.bytes for file in self.staged)
        options = {
            name: ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            for name, value in self.options.items()
        }
        tables = [
            Table(["step", "steps of Beam"], [(name, str(number)) for name, number in self.steps.items()], 1),
            Table(["option", "value"], list(options.items()), 2),
            Table([f"staged in {self.staging_location}", "bytes"], [*files, ("together", f"{total:,}")], 1),
        ]
        lines = [
            f"run      {self.run_id}",
            f"job      {self.job_name}, in {self.region} of {self.project}; nothing was sent",
            f"image    {self.image}",
            f"workers  {self.workers[0]:,} to {self.workers[1]:,}{self._cost()}",
        ]
        parts = [*map(screen.table, tables), self.plan.as_text(screen)]
        return "\n\n".join(["\n".join(lines), *parts])

    def _cost(self) -> str:
        if not self.seconds:
            return "; no calls to wait for, and the time of their own work is not estimated"
        cost = f"{self.worker_cost:,.2f} dollars at {_PRICE} an hour of one CPU"
        return f", for at least {clock(self.seconds)} by the quotas of calls: {cost}, without their own work"

    def as_json(self) -> str:
        document = {**asdict(self), "plan": self.plan.as_document(), "worker_cost": self.worker_cost}
        return json.dumps(document, indent=2, default=str)


def describe(experiment: Experiment, execution: Run, options: PipelineOptions, path: str | None) -> DryRun:
    """Build the job of a run, and describe it; `path` is that of the experiment's file."""
    package.set_defaults(options, execution, experiment.calls.lanes)
    setup, cloud = options.view_as(SetupOptions), options.view_as(GoogleCloudOptions)
    if setup.prebuild_sdk_container_engine:
        raise InputError("--prebuild_sdk_container_engine builds an image before a job; leave it out with --dry-run")
    setup.requirements_cache = "skip"  # otherwise Beam downloads the packages of --requirements_file
    options.view_as(TestOptions).dry_run = True
    workers = options.view_as(WorkerOptions)
    _, planned, _ = corpora_plan(experiment)
    with tempfile.TemporaryDirectory(prefix="rankbeam-", ignore_cleanup_errors=True) as folder:
        package.stage(options, folder)
        with refusals(), quiet_beam():
            pipeline: protos.Pipeline = build(planned, execution, options).run().job.proto_pipeline
        staged = tuple(_staged_files(pipeline))
    plan = plan_of(experiment, path)
    return DryRun(
        run_id=execution.run_id,
        job_name=cloud.job_name,
        project=cloud.project,
        region=cloud.region,
        staging_location=cloud.staging_location or cloud.temp_location,
        options=record.recorded_options(options),
        steps=_steps(pipeline),
        image=_image(pipeline),
        staged=staged,
        workers=(workers.num_workers, workers.max_num_workers),
        seconds=max((pool.seconds[0] for pool in plan.every_pool), default=0.0),
        plan=plan,
    )


def _steps(pipeline: protos.Pipeline) -> dict[str, int]:
    """The number of primitive steps of each part, by the part's name."""
    transforms = pipeline.components.transforms

    def primitive(name: str) -> int:
        parts = transforms[name].subtransforms
        return sum(map(primitive, parts)) if parts else 1

    parts = [name for root in pipeline.root_transform_ids for name in transforms[root].subtransforms]
    return {transforms[name].unique_name: primitive(name) for name in parts}


def _staged_files(pipeline: protos.Pipeline) -> Iterator[StagedFile]:
    """The files of a pipeline's environments, each once, and the pipeline itself."""
    sizes: dict[str, int] = {}
    for environment in pipeline.components.environments.values():
        for artifact in environment.dependencies:
            if artifact.type_urn == common_urns.artifact_types.FILE.urn:
                place = protos.ArtifactFilePayload.FromString(artifact.type_payload).path
                name = protos.ArtifactStagingToRolePayload.FromString(artifact.role_payload).staged_name
                sizes[name] = Path(place).stat().st_size
    sizes[_PIPELINE] = pipeline.ByteSize()
    return (StagedFile(name, size) for name, size in sizes.items())


def _image(pipeline: protos.Pipeline) -> str:
    payloads = [environment.payload for environment in pipeline.components.environments.values()]
    return ", ".join(sorted({protos.DockerPayload.FromString(payload).container_image for payload in payloads}))
