"""deploy/README.md: every command is one that its program has, and every place and name in it is there.

The commands of other pages that need a cloud, a cluster or a long time are checked as well.
"""

import importlib.util
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from string import Template
from typing import Any

import click
import pytest
import yaml
from support.data import REPOSITORY
from support.documents import PAGES, Document

from rankbeam.pipelines.cli import main
from rankbeam.pipelines.experiment.file.models import OutputModel
from rankbeam.pipelines.run.options import is_dataflow, pipeline_options
from rankbeam.transforms.records import tables

DEPLOY = REPOSITORY / "deploy"
README = (DEPLOY / "README.md").read_text(encoding="utf-8")
OUTPUTS = {
    "bucket": "gs://my-project-rankbeam",
    "dataset": "my-project.rankbeam",
    "worker": "rankbeam-worker@my-project.iam.gserviceaccount.com",
    "builder": "projects/my-project/serviceAccounts/rankbeam-builder@my-project.iam.gserviceaccount.com",
    "image": "us-central1-docker.pkg.dev/my-project/rankbeam/rankbeam:latest",
    "template": "gs://my-project-rankbeam/templates/rankbeam-latest.json",
}

# What is used of each program, its flags, and how many words follow. gcloud and bq are asked below, where they are.
KNOWN = {
    "gcloud projects create": ((), 1),
    "gcloud billing projects link": (("--billing-account",), 1),
    "gcloud auth login": ((), 0),
    "gcloud auth application-default login": ((), 0),
    "gcloud config set": ((), 2),
    "gcloud services enable": ((), 2),
    "gcloud builds submit": (("--config", "--substitutions", "--service-account", "--gcs-source-staging-dir"), 1),
    "gcloud dataflow flex-template build": (("--image", "--sdk-language", "--metadata-file"), 1),
    "gcloud dataflow flex-template run": (
        (
            "--template-file-gcs-location",
            "--region",
            "--parameters",
            "--service-account-email",
            "--staging-location",
            "--temp-location",
            "--max-workers",
        ),
        1,
    ),
    "gcloud storage cp": (("--recursive",), 2),
    "gcloud storage restore": ((), 1),
    "gcloud scheduler jobs run": (("--location",), 1),
    "gcloud secrets create": (("--replication-policy", "--data-file"), 1),
    "gcloud compute networks subnets update": (("--region", "--enable-private-ip-google-access"), 1),
    "bq load": (("--source_format",), 2),
    "bq query": (("--use_legacy_sql",), 1),
    "terraform init": ((), 0),
    "terraform apply": ((), 0),
    "terraform destroy": ((), 0),
    "cp": ((), 2),
    "source": ((), 1),
    "python3.11 -m venv": ((), 1),
    ".venv/bin/pip install": ((), 1),
}
SWITCHES = {"--recursive", "--enable-private-ip-google-access"}


def blocks(language: str, text: str = README) -> list[str]:
    """The text in the fences of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def commands(text: str) -> Iterator[list[str]]:
    """Every command, in a shell's words, with its variables as they were set before it."""
    variables: dict[str, str] = {}
    for line in "".join(blocks("sh", text)).replace("\\\n", " ").splitlines():
        outputs = re.sub(r"\$\(terraform -chdir=deploy/terraform output -raw (\w+)\)", lambda m: OUTPUTS[m[1]], line)
        words = shlex.split(Template(outputs).substitute(variables), comments=True)
        if words[0] == "export":
            variables |= dict(word.split("=", 1) for word in words[1:])
        else:
            yield words


COMMANDS = [*commands(README), *(words for page in PAGES for words in commands(page.text))]
OURS = [words[1:] for words in COMMANDS if words[0] == "rankbeam"]
OTHERS = [words for words in COMMANDS if words[0] != "rankbeam"]


def parsed(command: click.Command, words: list[str], parent: click.Context | None = None) -> dict[str, Any]:
    """Click's parsing of a command's words, down to the command of a group."""
    if isinstance(command, click.Group):
        name, inner, rest = command.resolve_command(click.Context(command), list(words))
        assert inner is not None
        return parsed(inner, rest, click.Context(command, info_name=name, parent=parent))
    with command.make_context(command.name, list(words), parent=parent) as context:
        return dict(context.params)


@pytest.mark.parametrize("words", OURS, ids=shlex.join)
def test_commands_of_rankbeam_are_right(words: list[str]) -> None:
    arguments = parsed(main, words)
    if words[0] == "evaluate":
        options = pipeline_options(arguments["beam_options"])
        assert is_dataflow(options) is ("DataflowRunner" in words)


@pytest.mark.parametrize("words", OTHERS, ids=lambda words: shlex.join(words)[:80])
def test_commands_of_others_are_known(words: list[str]) -> None:
    words = [word for word in words if word != "-chdir=deploy/terraform"]
    line = shlex.join(words)
    (name,) = (name for name in KNOWN if line == name or line.startswith(f"{name} "))
    flags, positional = KNOWN[name]
    rest = iter(words[len(name.split()) :])
    plain = 0
    for word in rest:
        if word.startswith("--"):
            flag, _, value = word.partition("=")
            assert flag in flags
            assert value or flag in SWITCHES or next(rest)
        else:
            plain += 1
    assert plain == positional


def test_no_command_is_known_in_vain() -> None:
    lines = [shlex.join([word for word in words if not word.startswith("-chdir")]) for words in OTHERS]
    assert [name for name in KNOWN if not any(line.startswith(name) for line in lines)] == []


def _sdk() -> Path | None:
    gcloud = shutil.which("gcloud")
    root = Path(gcloud).resolve().parents[1] if gcloud else None
    return root / "data" / "cli" if root and (root / "data" / "cli" / "gcloud_completions.py").is_file() else None


@pytest.mark.skipif(_sdk() is None, reason="gcloud is not installed")
def test_gcloud_and_bq_have_what_is_known() -> None:
    folder = _sdk()
    assert folder is not None
    spec = importlib.util.spec_from_file_location("gcloud_completions", folder / "gcloud_completions.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    trees = {"gcloud": module.STATIC_COMPLETION_CLI_TREE, "bq": json.loads((folder / "bq.json").read_text())}
    for name, (flags, _) in KNOWN.items():
        program, *rest = name.split()
        if program in trees:
            tree = trees[program]
            for word in rest:
                tree = tree["commands"][word]
            # Flags of queries and loads are in no list of bq's.
            bqs = {*tree["flags"], "--use_legacy_sql", "--source_format"}
            known = tree["flags"] if program == "gcloud" else bqs
            assert set(flags) <= set(known), name


def test_the_template_is_launched_with_its_parameters() -> None:
    metadata = json.loads((DEPLOY / "flex_template" / "metadata.json").read_text(encoding="utf-8"))
    regexes = {parameter["name"]: parameter["regexes"] for parameter in metadata["parameters"]}
    (launched,) = (words for words in OTHERS if words[:4] == ["gcloud", "dataflow", "flex-template", "run"])
    values = dict(parameter.split("=", 1) for parameter in launched[launched.index("--parameters") + 1].split(","))
    assert "experiment" in values
    for name, value in values.items():
        assert all(re.search(regex, value) for regex in regexes[name]), name
    documented = set(re.findall(r"^\| `(\w+)` \| [^|]+\|$", README, flags=re.MULTILINE))
    assert regexes.keys() <= documented


def test_outputs_are_those_of_terraform() -> None:
    text = (DEPLOY / "terraform" / "outputs.tf").read_text(encoding="utf-8")
    assert set(re.findall(r'^output "(\w+)"', text, flags=re.MULTILINE)) == OUTPUTS.keys()
    assert set(re.findall(r"output -raw (\w+)", README)) == OUTPUTS.keys()


def test_settings_are_variables_of_terraform() -> None:
    text = (DEPLOY / "terraform" / "variables.tf").read_text(encoding="utf-8")
    declared = set(re.findall(r'^variable "(\w+)"', text, flags=re.MULTILINE))
    named = {"submitters", "readers", "temporary_days", "image_tag", "notification_channels", "most_failed_calls"}
    named |= {"partition_days", "soft_delete_days", "alert_schedule", "fresh_experiments", "fresh_hours"}
    named |= {
        "most_cost_per_day",
        "kms_key",
        "labels",
        "public_ips",
        "subnetwork",
        "secrets",
        "schedules",
        "alert_emails",
        "bucket",
        "project",
    }
    assert named <= declared
    assert [name for name in sorted(named) if not re.search(rf"`{name}`|{name} =", README)] == []


def test_files_are_there() -> None:
    made_here = {"deploy/terraform/terraform.tfvars"}
    named = {word for words in COMMANDS for word in words if re.match(r"(deploy|examples)/", word)} - made_here
    assert [name for name in named if not (REPOSITORY / name).exists()] == []
    page = Document(DEPLOY / "README.md")
    assert len(page.links) > 5
    assert page.broken_links == []


def test_names_of_views_and_fields_are_right() -> None:
    views = {path.stem for path in (DEPLOY / "bigquery").glob("*.sql")}
    used = set(re.findall(r"FROM rankbeam\.(\w+)", README))
    charts = re.findall(r"^\| [^|]+ \| `(\w+)`[^|]*\| ([^|]+) \| ([^|]+) \|$", README, flags=re.MULTILINE)
    assert len(charts) >= 5
    for view, *columns in charts:
        text = (DEPLOY / "bigquery" / f"{view}.sql").read_text(encoding="utf-8")
        for column in re.findall(r"`(\w+)`", " ".join(columns)):
            assert re.search(rf"\b{column}\b", text), f"{view}.{column}"
    assert used <= views | tables.TABLES.keys()


def test_the_yaml_is_an_experiments() -> None:
    (block,) = blocks("yaml")
    output = OutputModel.model_validate(yaml.safe_load(block)["output"])
    assert (output.path, output.bigquery) == (f"{OUTPUTS['bucket']}/results/helpdesk", OUTPUTS["dataset"])
