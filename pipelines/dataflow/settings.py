"""rankbeam's default options for a job on Dataflow. Beam's own options override each of them.

`deploy/dataflow.md` lists them with their reasons, and the options that keep the defaults of Dataflow and Beam.
"""

import re
from pathlib import Path

from apache_beam.options.pipeline_options import (
    DebugOptions,
    GoogleCloudOptions,
    PipelineOptions,
    SetupOptions,
    WorkerOptions,
)

from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.run import Run

_WORKERS = 4
_THREADS, _THREADS_BESIDE_LANES = 12, 4
_SINGLE, _MULTIPLE = "no_use_multiple_sdk_containers", "use_multiple_sdk_containers"
_LONGEST_NAME = 63  # of jobs and of the values of labels
_REQUIRED = ("project", "region", "temp_location")


def set_defaults(options: PipelineOptions, execution: Run, lanes: int) -> None:
    """Set options that the user did not set.

    Args:
        options: Beam's options from the user; they are changed.
        execution: the run, after which the job is named.
        lanes: of all quota pools.

    Raises:
        InputError: an option that Dataflow needs is missing, or an option names a missing file.
    """
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


def job_name(execution: Run) -> str:
    """The name of a run's job: at most 63 lower-case letters, digits and hyphens, a letter first.

    >>> from datetime import datetime
    >>> job_name(Run("20260102-030405-ab12", "FiQA, chunked", datetime(2026, 1, 2), ""))
    'rankbeam-fiqa-chunked-20260102-030405-ab12'
    """
    last = _plain(execution.run_id)[-_LONGEST_NAME // 2 :].strip("-")
    first = f"rankbeam-{_plain(execution.experiment)}"[: _LONGEST_NAME - len(last) - 1].strip("-")
    return f"{first}-{last}".strip("-")


def labels(execution: Run) -> list[str]:
    """The labels of a run's job, in the form of Beam's option.

    >>> from datetime import datetime
    >>> labels(Run("r_1.A", "FiQA", datetime(2026, 1, 2), ""))
    ['rankbeam-run-id=r_1-a', 'rankbeam-experiment=fiqa']
    """
    values = {"rankbeam-run-id": execution.run_id, "rankbeam-experiment": execution.experiment}
    return [f"{name}={_plain(value, '_')[:_LONGEST_NAME]}" for name, value in values.items()]


def _plain(text: str, also: str = "") -> str:
    return re.sub(rf"[^a-z0-9{also}]+", "-", text.lower()).strip("-")


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
