"""Execution of a job: its worker gets the staged packages, installs them, and runs the staged pipeline."""

import hashlib
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import threading
import urllib.parse
import urllib.request
import venv
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from apache_beam.portability import common_urns
from apache_beam.portability.api import beam_runner_api_pb2 as protos

WORKER = Path(__file__).parent / "worker.py"
EXTRA_PACKAGES, SETUP_PACKAGE = "extra_packages.txt", "workflow.tar.gz"
LIMIT_S = 300.0

_lock = threading.Lock()


def execute(job: Mapping[str, Any], folder: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    """Do what a job says; returns what the worker says of it.

    Args:
        job: as it was submitted.
        folder: an empty folder.
        environment: variables that lead to the emulators.
    """
    options = job["environment"]["sdkPipelineOptions"]["options"]
    pipeline = folder / "pipeline.pb"
    pipeline.write_bytes(download(options["pipelineUrl"], environment))
    staged = stage(protos.Pipeline.FromString(pipeline.read_bytes()), folder / "staged", environment)
    python = python_with(list(packages(staged)))
    answer = folder / "answer.json"
    # As on a machine that has never seen this checkout: none of this process's variables and folders.
    variables = {**environment, "PATH": os.defpath, "HOME": str(folder)}
    command = [python, "-I", str(WORKER), str(pipeline), json.dumps(options), str(answer)]
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=LIMIT_S)
    if done.returncode:
        return {"error": done.stderr}
    result: dict[str, Any] = json.loads(answer.read_text())
    return result


def download(url: str, environment: Mapping[str, str]) -> bytes:
    """An object of Cloud Storage."""
    bucket, _, name = url.removeprefix("gs://").partition("/")
    address = f"{environment['STORAGE_EMULATOR_HOST']}/storage/v1/b/{bucket}/o/{urllib.parse.quote(name, safe='')}"
    with urllib.request.urlopen(f"{address}?alt=media") as response:  # noqa: S310  the URL is ours
        content: bytes = response.read()
        return content


def stage(pipeline: protos.Pipeline, folder: Path, environment: Mapping[str, str]) -> Path:
    """Bring everything that the environments of a pipeline name into a folder; returns the folder."""
    folder.mkdir()
    for dependency in (
        dependency for owner in pipeline.components.environments.values() for dependency in owner.dependencies
    ):
        assert dependency.type_urn == common_urns.artifact_types.URL.urn, dependency
        assert dependency.role_urn == common_urns.artifact_roles.STAGING_TO.urn, dependency
        name = protos.ArtifactStagingToRolePayload.FromString(dependency.role_payload).staged_name
        url = protos.ArtifactUrlPayload.FromString(dependency.type_payload).url
        (folder / name).write_bytes(download(url, environment))
    return folder


def packages(staged: Path) -> Iterator[Path]:
    """The packages that the container installs before it starts to work, in its order."""
    if (staged / EXTRA_PACKAGES).exists():
        yield from (staged / name for name in (staged / EXTRA_PACKAGES).read_text().split())
    if (staged / SETUP_PACKAGE).exists():
        yield staged / SETUP_PACKAGE


def python_with(staged: list[Path]) -> str:
    """A Python of a worker with what was staged. Jobs that stage the same share it: pip takes seconds."""
    content = hashlib.sha256(b"".join(path.name.encode() + path.read_bytes() for path in staged)).hexdigest()
    with _lock:
        folder = Path(pythons().name, content, "worker")
        return str(folder / "bin" / "python") if folder.exists() else clean_python(folder, staged)


@cache
def pythons() -> "tempfile.TemporaryDirectory[str]":
    """The folder of the workers' Pythons, which goes with this process."""
    return tempfile.TemporaryDirectory(prefix="dataflow-pythons-")


def clean_python(folder: Path, packages: Iterable[Path]) -> str:
    """A Python that has what was staged and our dependencies, but no rankbeam of this machine; returns its path.

    A path named in a .pth file is searched last, and its own .pth files, such as that of an editable rankbeam,
    are not read.
    """
    venv.EnvBuilder(symlinks=True).create(folder)
    python = str(folder / "bin" / "python")
    for package in packages:
        how = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
        run(sys.executable, "-m", "pip", "--isolated", "--python", python, "install", *how, str(package))
    site_packages = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    dependencies = dict.fromkeys([sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
    (site_packages / "dependencies.pth").write_text("".join(f"{path}\n" for path in dependencies))
    return python


def run(*command: str) -> str:
    """The output of a command; it sees no setting of Python's, such as PYTHONPATH."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
