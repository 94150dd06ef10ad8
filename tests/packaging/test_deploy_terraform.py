"""deploy/terraform: parsed, formatted, held against the provider's schema, and granting no more than is needed.

`test_deploy_provider.json` is the part of the provider's schema that is used here, made by

    python tests/packaging/test_deploy_terraform.py cdktf_cdktf_provider_google-16.12.1-py3-none-any.whl

from a wheel on PyPI (`pip download --no-deps cdktf-cdktf-provider-google==16.12.1`; 49 MB, so no dependency of tests).
Where that package lies in .venv-emulators, or RANKBEAM_PROVIDER names its wheel, it is made again and compared.
"""

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import hcl2
import pytest
import sqlglot
from google.cloud import bigquery, dataflow_v1beta3
from google.protobuf import json_format
from sqlglot import exp
from support.data import REPOSITORY

from rankbeam.transforms.clients.bigquery import schemas
from rankbeam.transforms.clients.bigquery.names import DatasetName
from rankbeam.transforms.clients.warehouse import views
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.counters import Counter

FOLDER = REPOSITORY / "deploy" / "terraform"
FILES = sorted(FOLDER.glob("*.tf"))
SCHEMA_FILE = Path(__file__).with_name("test_deploy_provider.json")
PACKAGE = "cdktf_cdktf_provider_google"
META = {"count", "for_each", "depends_on", "lifecycle", "provider"}
MARKS = {"__is_block__", "__comments__", "__inline_comments__"}
TERRAFORM = shutil.which("terraform")
needs_terraform = pytest.mark.skipif(TERRAFORM is None, reason="terraform is not installed")

Schema = dict[str, Any]
Block = Mapping[str, Any]


def parsed() -> Iterator[tuple[str, str, Block]]:
    """Every block of every file: kind, its labels with a dot between, content."""
    for path in FILES:
        for kind, blocks in hcl2.loads(path.read_text(encoding="utf-8")).items():
            for block in blocks if kind not in MARKS else ():
                yield from _labelled(kind, [], block)


def _labelled(kind: str, labels: list[str], block: Block) -> Iterator[tuple[str, str, Block]]:
    if "__is_block__" in block:
        yield kind, ".".join(labels), block
        return
    for label, inner in block.items():
        yield from _labelled(kind, [*labels, label.strip('"')], inner)


BLOCKS = list(parsed())
RESOURCES = {name: block for kind, name, block in BLOCKS if kind == "resource"}
LOCALS = {name: value for kind, _, block in BLOCKS if kind == "locals" for name, value in block.items()}
TEXT = "\n".join(path.read_text(encoding="utf-8") for path in FILES)
SCHEMA: Schema = json.loads(SCHEMA_FILE.read_text(encoding="utf-8")) if SCHEMA_FILE.is_file() else {}


# The provider's schema


def make_schema(wheel: zipfile.ZipFile | Path) -> Schema:
    """The used part of the schema, from the package's jsii assembly, a description of all its classes."""
    if isinstance(wheel, Path):
        (archive,) = (wheel / "_jsii").glob("*.tgz")
        packed = archive.read_bytes()
    else:
        (name,) = (each for each in wheel.namelist() if each.endswith(".jsii.tgz"))
        packed = wheel.read(name)
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        assembly = files.extractfile("package/.jsii")
        assert assembly is not None
        types = json.load(assembly)["types"]
    named = {match[1]: each for each in types.values() if (match := _REGISTRY.search(_summary(each)))}
    used = sorted({name.partition(".")[0] for name in RESOURCES})
    resources = {name: _resource(types, named[name]) for name in used}
    version = re.search(r"hashicorp/google/([\d.]+)/", _summary(named[used[0]]))
    assert version is not None
    provider = _block(types, "@cdktf/provider-google.provider.GoogleProviderConfig")
    return {"version": version[1], "provider": provider, "resources": resources}


_REGISTRY = re.compile(r"^Represents a \{@link \S+/docs/resources/\w+ (google_\w+)\}")


def _summary(entry: Mapping[str, Any]) -> str:
    return str(entry.get("docs", {}).get("summary", ""))


def _resource(types: Mapping[str, Any], entry: Mapping[str, Any]) -> Schema:
    attributes = {_snake(each["name"]) for each in entry["properties"] if not each["name"].endswith("Input")}
    return {**_block(types, f"{entry['fqn']}Config"), "attributes": sorted(attributes - {"tf_resource_type"})}


def _block(types: Mapping[str, Any], name: str) -> Schema:
    """What may stand in a block: arguments by name, and blocks; what is not optional has `required`."""
    arguments: Schema = {}
    blocks: Schema = {}
    for each in types[name].get("properties", ()):
        required = {} if each.get("optional") else {"required": True}
        kind = _kind(each["type"])
        if kind.startswith("block"):
            inner = _block(types, kind.split(" ")[1])
            blocks[_snake(each["name"])] = {**inner, **required, "many": kind.startswith("blocks")}
        else:
            arguments[_snake(each["name"])] = {"type": kind, **required}
    return {"arguments": arguments, "blocks": blocks}


def _kind(given: Mapping[str, Any]) -> str:
    if "union" in given:
        (given,) = (each for each in given["union"]["types"] if each.get("fqn") != "cdktf.IResolvable")
    if "collection" in given:
        element = _kind(given["collection"]["elementtype"])
        many = given["collection"]["kind"] == "array"
        return element.replace("block ", "blocks ") if many else f"map {element}"
    return str(given["primitive"]) if "primitive" in given else f"block {given['fqn']}"


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def _provider() -> zipfile.ZipFile | Path | None:
    if os.environ.get("RANKBEAM_PROVIDER"):
        return zipfile.ZipFile(os.environ["RANKBEAM_PROVIDER"])
    return next(REPOSITORY.glob(f".venv-emulators/lib/python*/site-packages/{PACKAGE}"), None)


def test_the_schema_is_that_of_the_provider() -> None:
    if (provider := _provider()) is None:
        pytest.skip(f"{PACKAGE} is not in .venv-emulators, and RANKBEAM_PROVIDER names no wheel")
    assert make_schema(provider) == SCHEMA


def test_the_schema_is_of_the_version_that_is_asked_for() -> None:
    (constraint,) = re.findall(r'version = "~> (\d+\.\d+)"', TEXT)
    assert SCHEMA["version"].startswith(f"{constraint}.")
    assert set(SCHEMA["resources"]) == {name.partition(".")[0] for name in RESOURCES}


@pytest.mark.parametrize("name", RESOURCES)
def test_resources_are_as_the_provider_has_them(name: str) -> None:
    assert list(problems(RESOURCES[name], SCHEMA["resources"][name.partition(".")[0]], name)) == []


def test_the_provider_is_set_up_as_it_wants() -> None:
    (block,) = (block for kind, _, block in BLOCKS if kind == "provider")
    assert list(problems(block, SCHEMA["provider"], "provider")) == []


def problems(block: Block, schema: Schema, place: str) -> Iterator[str]:
    """What is in a block and not in the schema, of another type, or missing."""
    given = {name: value for name, value in block.items() if name not in MARKS | META}
    arguments, blocks = schema["arguments"], schema["blocks"]
    for name, value in given.items():
        inner = [each for each in value if isinstance(each, dict) and "__is_block__" in each] if _is_list(value) else []
        if inner and name in blocks:
            if len(inner) > 1 and not blocks[name]["many"]:
                yield f"{place}.{name}: once only"
            for each in inner:
                yield from problems(each, blocks[name], f"{place}.{name}")
        elif inner or name not in arguments:
            yield f"{place}.{name}: unknown"
        elif not _fits(value, arguments[name]["type"]):
            yield f"{place}.{name}: not a {arguments[name]['type']}: {value}"
    required = {name for name, each in (arguments | blocks).items() if each.get("required")}
    yield from (f"{place}.{name}: missing" for name in sorted(required - given.keys()))


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _fits(value: object, kind: str) -> bool:
    if isinstance(value, str) and value.startswith("${"):
        return True  # an expression; its type is Terraform's to find
    if kind.startswith("map "):
        return isinstance(value, dict)
    if _is_list(value):
        return kind in ("string", "number") or kind.startswith("blocks")  # a list's type is that of its elements here
    types = {"string": str, "number": (int, float), "boolean": bool}
    return isinstance(value, types[kind]) and (kind == "boolean" or not isinstance(value, bool))


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        ({"name": '"a"'}, ["b.location: missing"]),
        ({"name": '"a"', "location": '"US"', "colour": '"red"'}, ["b.colour: unknown"]),
        ({"name": '"a"', "location": '"US"', "force_destroy": '"no"'}, ['b.force_destroy: not a boolean: "no"']),
        ({"name": True, "location": '"US"'}, ["b.name: not a string: True"]),
        (
            {"name": '"a"', "location": '"US"', "versioning": [{"__is_block__": True}]},
            ["b.versioning.enabled: missing"],
        ),
    ],
)
def test_wrong_resources_are_found(wrong: Block, found: list[str]) -> None:
    assert list(problems(wrong, SCHEMA["resources"]["google_storage_bucket"], "b")) == found


def test_references_name_what_is_there() -> None:
    references = set(re.findall(r"(?<![\w\".])(google_\w+)\.(\w+)(?:\[[^\]]*\])?(?:\.(\w+))?", TEXT))
    assert len(references) > 10
    for kind, name, attribute in references:
        assert f"{kind}.{name}" in RESOURCES
        assert attribute in {"", *SCHEMA["resources"][kind]["attributes"]}, f"{kind}.{attribute}"


# Form


@needs_terraform
def test_terraform_finds_the_files_formatted() -> None:
    done = subprocess.run([str(TERRAFORM), "fmt", "-check", "-diff", str(FOLDER)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    example = (FOLDER / "terraform.tfvars.example").read_text(encoding="utf-8")
    done = subprocess.run([str(TERRAFORM), "fmt", "-"], input=example, capture_output=True, text=True)
    assert done.stdout == example


@pytest.mark.parametrize("path", [*FILES, FOLDER / "terraform.tfvars.example"], ids=lambda path: path.name)
def test_files_are_formatted(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert list(misformatted(text)) == []
    assert text == text.rstrip() + "\n"
    assert "\n\n\n" not in text


def misformatted(text: str) -> Iterator[str]:
    """Lines that are not indented by two blanks a level, or whose = is not below that of their neighbours."""
    depth = 0
    aligned: list[tuple[str, int]] = []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        code = _without_strings(line)
        closes = len(code) - len(code.lstrip(" })]")) and re.match(r"\s*[})\]]+", code)
        level = depth - (1 if closes else 0)
        if line.strip() and len(line) - len(line.lstrip(" ")) != 2 * level:
            yield f"{number}: indented by other than {2 * level}"
        if line != line.rstrip() or "\t" in line:
            yield f"{number}: blanks at the end, or a tab"
        opened = sum(code.count(each) for each in "{([") - sum(code.count(each) for each in "})]")
        depth += max(-1, min(1, opened))
        assigned = re.match(r"\s*[\w\"]+ *(?==[^=>])", code)
        if assigned and opened == 0:
            aligned.append((f"{number}", assigned.end()))
            continue
        if len({place for _, place in aligned}) > 1:
            yield f"{aligned[0][0]}: equals signs are not aligned"
        aligned = []


def _without_strings(line: str) -> str:
    return re.sub(r'"(?:[^"\\]|\\.)*"', lambda found: '"' * len(found[0]), line.partition(" #")[0].partition("# ")[0])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('a "b" {\n  c   = 1\n  def = 2\n}\n', []),
        ('a "b" {\n  c = 1\n  def = 2\n}\n', ["2: equals signs are not aligned"]),
        ('a "b" {\n    c = 1\n}\n', ["2: indented by other than 2"]),
        ('a "b" {\n  c = 1 \n}\n', ["2: blanks at the end, or a tab"]),
    ],
)
def test_a_wrong_form_is_found(text: str, found: list[str]) -> None:
    assert list(misformatted(text)) == found


# Variables, and values


def test_every_variable_is_declared_used_and_described() -> None:
    declared = {name: block for kind, name, block in BLOCKS if kind == "variable"}
    assert set(re.findall(r"\bvar\.(\w+)", re.sub(r"(?s)\n  validation \{.*?\n  \}", "", TEXT))) == set(declared)
    described = [block for kind, _, block in BLOCKS if kind in ("variable", "output")]
    assert all(len(block["description"]) > 10 for block in described)
    assert [name for name, block in declared.items() if "default" not in block] == ["project"]


def test_every_local_is_declared_and_used() -> None:
    assert set(re.findall(r"\blocal\.(\w+)", TEXT)) == LOCALS.keys() - MARKS


def test_the_example_sets_variables_that_are_there() -> None:
    values = hcl2.loads((FOLDER / "terraform.tfvars.example").read_text(encoding="utf-8"))
    declared = {name for kind, name, _ in BLOCKS if kind == "variable"}
    assert {"project", "schedules"} <= values.keys() - MARKS <= declared


def evaluated(expression: str, folder: Path, **variables: str) -> Any:
    """What Terraform makes of an expression, without any provider: resources are stood in for by their names."""
    stand_ins = {
        "google_artifact_registry_repository.rankbeam.repository_id": '"rankbeam"',
        "google_storage_bucket.rankbeam.name": "local.bucket",
        "google_service_account.worker.email": '"worker@my-project.iam.gserviceaccount.com"',
    }
    shutil.copytree(views.FOLDER / "bigquery", folder / "bigquery")
    folder /= "terraform"
    shutil.copytree(schemas.FOR_TERRAFORM, folder / "schemas")
    for name in ("variables.tf", "schedule.tf", "storage.tf", "iam.tf", "tables.tf", "views.tf"):
        text = re.sub(r'(?ms)^resource "[^\n]*\{\n.*?^\}\n', "", (FOLDER / name).read_text(encoding="utf-8"))
        for reference, value in stand_ins.items():
            text = text.replace(reference, value)
        (folder / name).write_text(text, encoding="utf-8")
    shutil.copy(FOLDER / "terraform.tfvars.example", folder / "terraform.tfvars")
    given = [f"-var={name}={value}" for name, value in variables.items()]
    command = [str(TERRAFORM), "console", "-no-color", *given]
    done = subprocess.run(
        command, cwd=folder, input=f"jsonencode({expression})\n", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(json.loads(done.stdout))


@needs_terraform
def test_a_schedule_launches_the_template(tmp_path: Path) -> None:
    launch = evaluated("local.launches", tmp_path)["nightly"]
    request = json_format.ParseDict(launch, dataflow_v1beta3.LaunchFlexTemplateRequest.pb()())  # refuses unknown fields
    parameter = request.launch_parameter
    assert parameter.job_name == "rankbeam-nightly"
    assert parameter.container_spec_gcs_path == "gs://my-project-rankbeam/templates/rankbeam-latest.json"
    assert dict(parameter.parameters) == {"experiment": "gs://my-project-rankbeam/experiments/helpdesk/experiment.yaml"}
    environment = parameter.environment
    assert environment.sdk_container_image == "us-central1-docker.pkg.dev/my-project/rankbeam/rankbeam:latest"
    assert environment.service_account_email == "worker@my-project.iam.gserviceaccount.com"
    assert environment.temp_location == "gs://my-project-rankbeam/temp"
    assert environment.subnetwork == ""


@needs_terraform
def test_every_submitter_gets_every_role(tmp_path: Path) -> None:
    grants = evaluated("local.submitter_grants", tmp_path, submitters='["user:a@b.c","group:d@e.f"]')
    expected = {(member, role) for member in ("user:a@b.c", "group:d@e.f") for role in PROJECT_ROLES["submitter"]}
    assert {(each["member"], each["role"]) for each in grants.values()} == expected


@needs_terraform
@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("project", "My Project", "6 to 30 lower-case letters"),
        ("dataset", "my-dataset", "letters, digits and underscores"),
        ("temporary_days", "2", "at least 7 days"),
        ("schedules", '{Night={cron="0 3 * * *",experiment="gs://b/e.yaml"}}', "lower-case letters"),
        ("schedules", '{night={cron="0 3 * * *",experiment="e.yaml"}}', "lies on gs://"),
    ],
)
def test_wrong_values_are_refused(name: str, value: str, reason: str, tmp_path: Path) -> None:
    shutil.copy(FOLDER / "variables.tf", tmp_path)
    (tmp_path / "terraform.tfvars").write_text('project = "my-project"\n')
    command = [str(TERRAFORM), "plan", "-no-color", f"-var={name}={value}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert reason in " ".join(done.stderr.replace("│", " ").split())


def test_the_schedule_is_sent_as_the_api_wants_it() -> None:
    job = RESOURCES["google_cloud_scheduler_job.evaluation"]
    (target,) = job["http_target"]
    (token,) = target["oauth_token"]
    assert target["uri"].endswith('/locations/${var.region}/flexTemplates:launch"')
    assert target["body"].startswith("${base64encode(")
    assert token["service_account_email"] == "${google_service_account.scheduler.email}"


def test_alerts_watch_what_there_is() -> None:
    for counter in (Counter.CALLS_FAILED, Counter.RUNS_MISSED):
        assert f'\\"metric_name\\" = \\"{counter.value}\\"' in TEXT
    policies = {name: block for name, block in RESOURCES.items() if name.startswith("google_monitoring_alert_policy.")}
    names = {name.partition(".")[2] for name in policies}
    assert names == {"failed_job", "failed_calls", "missed_limit", "failed_launch"}
    assert all(block["notification_channels"] == "${local.channels}" for block in policies.values())


# Tables and views

MADE = {name.partition(".")[2]: block for name, block in RESOURCES.items() if name.startswith("google_bigquery_table.")}
LEVELS = [[name.strip('"') for name in level] for level in LOCALS["view_levels"]]


def test_columns_are_those_of_the_code() -> None:
    kept = {path: path.read_text(encoding="utf-8") for path in schemas.FOR_TERRAFORM.iterdir()}
    assert kept == schemas.for_terraform(), "run make deploy-files"


def test_tables_are_as_rankbeam_makes_them() -> None:
    partitioning = bigquery.TimePartitioning(field=schemas.PARTITIONED_BY)
    (given,) = MADE["tables"]["time_partitioning"]
    assert given["type"] == f'"{partitioning.type_}"'
    assert given["field"] == f'"{partitioning.field}"'
    assert MADE["tables"]["clustering"] == "${local.clustering[each.key]}"
    assert MADE["tables"]["schema"] == "${each.value}"


@needs_terraform
def test_tables_are_clustered_as_rankbeam_does_it(tmp_path: Path) -> None:
    expected = {name: schemas.clustering_of(schema) for name, schema in tables.TABLES.items()}
    assert evaluated("local.clustering", tmp_path) == expected


def test_tables_are_kept_and_their_new_columns_too() -> None:
    assert MADE["tables"]["deletion_protection"] == "${var.deletion_protection}"
    (lifecycle,) = MADE["tables"]["lifecycle"]
    assert lifecycle["ignore_changes"] == ["schema"]


def test_views_are_made_after_what_they_read() -> None:
    level: dict[str, int] = {}
    for name, tree in views.parsed().items():
        level[name] = 1 + max((level.get(table.name, -1) for table in tree.find_all(exp.Table)), default=-1)
    levels = [sorted(name for name in level if level[name] == each) for each in range(max(level.values()) + 1)]
    assert levels == LEVELS
    below = "tables"
    resources = [name for name in MADE if name.startswith("views_")]
    assert len(resources) == len(levels)
    for number, name in enumerate(resources):
        assert MADE[name]["for_each"] == f"${{toset(local.view_levels[{number}])}}"
        assert MADE[name]["depends_on"] == [f"${{google_bigquery_table.{below}}}"]
        below = name


@pytest.mark.parametrize("name", [name for name in MADE if name.startswith("views_")])
def test_views_are_in_googlesql_and_easily_replaced(name: str) -> None:
    (view,) = MADE[name]["view"]
    assert view["use_legacy_sql"] is False
    assert view["query"] == "${local.view_queries[each.key]}"
    assert MADE[name]["description"] == "${local.view_descriptions[each.key]}"
    assert MADE[name]["deletion_protection"] is False


@needs_terraform
def test_views_are_those_of_warehouse_apply(tmp_path: Path) -> None:
    made = evaluated("{ queries = local.view_queries, descriptions = local.view_descriptions }", tmp_path)
    assert made["descriptions"] == {name: views.about(name) for name in views.sources()}
    ours = dict(views.for_bigquery(DatasetName("my-project", "rankbeam")))
    assert made["queries"].keys() == ours.keys()
    for name, statement in ours.items():
        theirs = sqlglot.parse_one(made["queries"][name], dialect="bigquery").sql("bigquery", comments=False)
        assert theirs == sqlglot.parse_one(statement, dialect="bigquery").expression.sql("bigquery", comments=False)


@needs_terraform
def test_only_tables_and_views_of_ours_are_qualified(tmp_path: Path) -> None:
    query = "WITH some AS (SELECT * FROM runs) SELECT * FROM some JOIN runs_2 JOIN trend"
    replaced = LOCALS["view_queries"].removeprefix("${").removesuffix("}").replace("local.view_files", "local.asked")
    folder = tmp_path / "terraform"
    folder.mkdir()
    (folder / "asked.tf").write_text(f'locals {{\n  asked = {{ a = "{query}" }}\n  answer = {replaced}\n}}\n')
    assert evaluated("local.answer", tmp_path)["a"] == (
        "WITH some AS (SELECT * FROM `my-project`.`rankbeam`.runs) "
        "SELECT * FROM some JOIN runs_2 JOIN `my-project`.`rankbeam`.trend"
    )


# Rights

PROJECT_ROLES = {
    "worker": {
        "roles/aiplatform.user",
        "roles/bigquery.jobUser",
        "roles/bigquery.readSessionUser",
        "roles/dataflow.worker",
        "roles/discoveryengine.viewer",
    },
    "scheduler": {"roles/dataflow.developer"},
    "builder": {"roles/logging.logWriter"},
    "submitter": {"roles/bigquery.jobUser", "roles/dataflow.developer", "roles/monitoring.viewer"},
    "reader": {"roles/bigquery.jobUser"},
}
NARROW_ROLES = {
    "google_artifact_registry_repository_iam_member": {
        "roles/artifactregistry.reader",
        "roles/artifactregistry.writer",
    },
    "google_bigquery_dataset_iam_member": {"roles/bigquery.dataEditor", "roles/bigquery.dataViewer"},
    "google_secret_manager_secret_iam_member": {"roles/secretmanager.secretAccessor"},
    "google_service_account_iam_member": {"roles/iam.serviceAccountUser"},
    "google_storage_bucket_iam_member": {"roles/storage.objectAdmin", "roles/storage.objectViewer"},
}


def roles_of(block: Block) -> set[str]:
    """The roles that a resource grants; those of a set stand in the set."""
    if not block["role"].startswith("${"):
        return {block["role"].strip('"')}
    found = str(block["for_each"])
    while sets := re.findall(r"local\.(\w+)", found):
        found = " ".join(str(LOCALS[name]) for name in sets)
    return set(re.findall(r"roles/[\w.]+", found))


def test_the_project_grants_nothing_but_work() -> None:
    granted = {name: roles_of(block) for name, block in RESOURCES.items() if name.startswith("google_project_iam")}
    assert granted == {f"google_project_iam_member.{name}": roles for name, roles in PROJECT_ROLES.items()}
    broad = re.compile(r"(owner|editor|viewer|admin)$", re.IGNORECASE)
    wide = {role for roles in granted.values() for role in roles if broad.search(role)}
    assert wide == {"roles/discoveryengine.viewer", "roles/monitoring.viewer"}  # searching, and looking at counters


def test_data_is_granted_where_it_lies() -> None:
    for name, block in RESOURCES.items():
        kind = name.partition(".")[0]
        if kind in NARROW_ROLES:
            assert roles_of(block) <= NARROW_ROLES[kind], name
        else:
            assert "_iam_" not in kind or kind == "google_project_iam_member", name


def test_nothing_is_public_and_no_policy_is_replaced() -> None:
    assert "allUsers" not in TEXT
    assert "allAuthenticatedUsers" not in TEXT
    assert not re.search(r'"google_\w+_iam_(policy|binding)"', TEXT)  # these would take rights from others
    bucket = RESOURCES["google_storage_bucket.rankbeam"]
    assert (bucket["uniform_bucket_level_access"], bucket["public_access_prevention"]) == (True, '"enforced"')


if __name__ == "__main__":
    made = make_schema(zipfile.ZipFile(sys.argv[1]))
    SCHEMA_FILE.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n", encoding="utf-8")
