"""The options that a job on Dataflow has by default, and the package that its workers install.

Beam's own options override each default. `deploy/dataflow.md` lists the defaults with their reasons.

The package is a wheel of the running rankbeam, made without network and without build tools. It has the modules that
submit the job, from an installed wheel or from a checkout with its uncommitted changes. Its metadata names rankbeam's
dependencies, which pip installs on the workers, and those of the extras that are installed here, since a job that was
checked with them needs them there. Workers use neither duckdb nor jinja2, rich and click, so a custom image may leave
those out.
"""

import base64
import hashlib
import re
import zipfile
from importlib import import_module
from importlib.metadata import Distribution, distributions
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
from rankbeam.transforms.clients.extras import EXTRAS
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.run import Run

_WORKERS = 4
_THREADS, _THREADS_BESIDE_LANES = 12, 4
_SINGLE, _MULTIPLE = "no_use_multiple_sdk_containers", "use_multiple_sdk_containers"
_REQUIRED = ("project", "region", "temp_location")
_NAME = "rankbeam"
_CODE = ("pipelines", "transforms")
_DATA = ("deploy/bigquery", "deploy/duckdb")
_TABLES = ("entry_points.txt", "top_level.txt")
_WHEEL = "Wheel-Version: 1.0\nGenerator: rankbeam\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
_EXTRA = re.compile(r"^(Requires-Dist: ([\w.-]+)[^;\n]*); extra == [\"'](\w+)[\"']$", flags=re.MULTILINE)
_TIMESTAMP = (1980, 1, 1, 0, 0, 0)  # a fixed date: the same code makes the same file, which Beam does not upload again


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


def stage(options: PipelineOptions, folder: str) -> None:
    """Have the workers install rankbeam, unless the options already name its source.

    Such options are `--setup_file`, `--sdk_container_image`, and an `--extra_package` that is named rankbeam-….
    """
    setup = options.view_as(SetupOptions)
    packages = setup.extra_packages or []
    named = any(Path(path).name.startswith(f"{_NAME}-") for path in packages)
    if not (named or setup.setup_file or options.view_as(WorkerOptions).sdk_container_image):
        setup.extra_packages = [*packages, write_wheel(folder)]


def write_wheel(folder: str) -> str:
    """Write a wheel of the running rankbeam; return its path."""
    known = list(distributions(name=_NAME))  # a checkout in the current folder may come before the installed one
    installed = (distribution for distribution in known if distribution.read_text("METADATA") is not None)
    distribution = next(installed, known[0])
    version = distribution.version.replace("-", "_")
    about = f"{_NAME}-{version}.dist-info"
    content = _code() | _metadata(distribution, about)
    record = "".join(f"{name},{_digest(data)},{len(data)}\n" for name, data in content.items())
    content[f"{about}/RECORD"] = f"{record}{about}/RECORD,,\n".encode()
    path = Path(folder) / f"{_NAME}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(zipfile.ZipInfo(name, _TIMESTAMP), data, zipfile.ZIP_DEFLATED)
    return str(path)


def _code() -> dict[str, bytes]:
    """Every file of the package, by its path in the archive."""
    folder = Path(str(import_module(_NAME).__file__)).parent
    paths = [path for path in folder.glob("*") if path.is_file()]
    for part in _CODE:  # in a checkout these are links to folders, which rglob on `folder` would not follow
        paths += [path for path in (folder / part).rglob("*") if path.suffix != ".pyc" and path.is_file()]
    for part in _DATA:
        paths += (folder / part).glob("*.sql")
    by_name = {path.relative_to(folder.parent).as_posix(): path for path in paths}
    return {name: by_name[name].read_bytes() for name in sorted(by_name)}


def _metadata(distribution: Distribution, about: str) -> dict[str, bytes]:
    texts = {name: distribution.read_text(name) for name in _TABLES}
    metadata = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
    texts |= {"WHEEL": _WHEEL, "METADATA": _EXTRA.sub(_for_workers, metadata)}
    licences = {
        f"{about}/licenses/{file.name}": Path(str(file.locate())).read_bytes()
        for file in distribution.files or ()
        if file.parent.name == "licenses" and file.parent.parent.suffix == ".dist-info"
    }
    return licences | {f"{about}/{name}": text.encode() for name, text in texts.items() if text is not None}


def _for_workers(requirement: re.Match[str]) -> str:
    """A dependency of an extra becomes one of the package where it is installed here."""
    needed, name, extra = requirement.groups()
    is_here = extra in EXTRAS and next(iter(distributions(name=name)), None) is not None
    return needed if is_here else requirement[0]


def _digest(data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
    return f"sha256={digest}"
