"""rankbeam's default options for a job on Dataflow. Beam's own options override each of them.

`deploy/dataflow.md` lists them with their reasons, and the options that keep the defaults of Dataflow and Beam.
"""

from pathlib import Path

from apache_beam.options.pipeline_options import (
    DebugOptions,
    GoogleCloudOptions,
    PipelineOptions,
    SetupOptions,
    WorkerOptions,
)

from rankbeam.pipelines.dataflow.service import RUN_LABEL
from rankbeam.pipelines.manage.jobs import LONGEST_NAME, job_name, plain
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.run import Run

_WORKERS = 4
_THREADS, _THREADS_BESIDE_LANES = 12, 4
_SINGLE, _MULTIPLE = "no_use_multiple_sdk_containers", "use_multiple_sdk_containers"
_REQUIRED = ("project", "region", "temp_location")


def set_defaults(options: PipelineOptions, execution: Run, lanes: int) -> None:
    """Set the options that the user did not set; `lanes` counts those of all quota pools."""
    _refuse_incomplete(options)
    cloud, debug = options.view_as(GoogleCloudOptions), options.view_as(DebugOptions)
    workers = options.view_as(WorkerOptions)
    cloud.job_name = cloud.job_name or job_name(execution)
    cloud.labels = [*labels(execution), *(cloud.labels or ())]  # of two labels with one name, the last counts
    workers.num_workers = workers.num_workers or 1
    workers.max_num_workers = workers.max_num_workers or max(_WORKERS, workers.num_workers)
    if debug.number_of_worker_harness_threads is None:
        debug.number_of_worker_harness_threads = max(_THREADS, lanes + _THREADS_BESIDE_LANES)
    setup = options.view_as(SetupOptions)
    setup.save_main_session = bool(setup.save_main_session)
    if _MULTIPLE not in (debug.experiments or ()):
        debug.add_experiment(_SINGLE)


def labels(execution: Run) -> list[str]:
    """Labels of a run's job, in the form of Beam's option.

    >>> from datetime import datetime
    >>> labels(Run("r_1.A", "FiQA", datetime(2026, 1, 2), ""))
    ['rankbeam-run-id=r_1-a', 'rankbeam-experiment=fiqa']
    """
    values = {RUN_LABEL: execution.run_id, "rankbeam-experiment": execution.experiment}
    return [f"{name}={plain(value, '_')[:LONGEST_NAME]}" for name, value in values.items()]


def _refuse_incomplete(options: PipelineOptions) -> None:
    cloud, setup = options.view_as(GoogleCloudOptions), options.view_as(SetupOptions)
    missing = [f"--{name}" for name in _REQUIRED if not getattr(cloud, name)]
    if missing:
        raise InputError(f"a job on Dataflow needs {', '.join(missing)}")
    if not cloud.temp_location.startswith("gs://"):
        raise InputError(f"--temp_location must be a folder on gs://; found {cloud.temp_location!r}")
    for path in filter(None, [setup.setup_file, setup.requirements_file, *(setup.extra_packages or ())]):
        if files.is_local(path) and not Path(path).is_file():
            raise InputError("no such file", path=path)
