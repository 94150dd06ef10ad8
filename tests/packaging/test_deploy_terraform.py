"""deploy/terraform: parsed, formatted, its tables, views, schedule and alerts as the code has them."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import hcl2
import pytest
import sqlglot
from google.cloud import bigquery, dataflow_v1beta3
from google.protobuf import json_format
from sqlglot import exp
from support import deploy_files
from support.terraform import BLOCKS, FILES, FOLDER, LOCALS, MARKS, PROJECT_ROLES, RESOURCES, SCHEMA, TEXT
from support.terraform_values import TERRAFORM, evaluated, needs_terraform, refusal

from rankbeam.pipelines.cli import main
from rankbeam.transforms.clients.bigquery import schemas
from rankbeam.transforms.clients.bigquery.names import DatasetName
from rankbeam.transforms.clients.bigquery.tables import partition_ms
from rankbeam.transforms.clients.warehouse import views
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.counters import Counter


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
        opened = sum(code.count(bracket) for bracket in "{([") - sum(code.count(bracket) for bracket in "})]")
        depth += max(-1, min(1, opened))
        assigned = re.match(r"\s*[\w\"]+ *(?==[^=>])", code)
        if assigned and opened == 0:
            aligned.append((f"{number}", assigned.end()))
            continue
        if len({place for _, place in aligned}) > 1:
            yield f"{aligned[0][0]}: equals signs are not aligned"
        aligned = []


def _without_strings(line: str) -> str:
    return re.sub(r'"(?:[^"\\]|\\.)*"', lambda match: '"' * len(match[0]), line.partition(" #")[0].partition("# ")[0])


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ('a "b" {\n  c   = 1\n  def = 2\n}\n', []),
        ('a "b" {\n  c = 1\n  def = 2\n}\n', ["2: equals signs are not aligned"]),
        ('a "b" {\n    c = 1\n}\n', ["2: indented by other than 2"]),
        ('a "b" {\n  c = 1 \n}\n', ["2: blanks at the end, or a tab"]),
    ],
)
def test_a_wrong_form_is_found(text: str, messages: list[str]) -> None:
    assert list(misformatted(text)) == messages


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
    assert environment.service_account_email == "default@my-project.iam.gserviceaccount.com"
    assert environment.temp_location == "gs://my-project-rankbeam/temp"
    assert environment.subnetwork == ""


SHARED = "projects/host/regions/r/subnetworks/s"
KEY = "projects/keys/locations/us-central1/keyRings/ring/cryptoKeys/rankbeam"


@needs_terraform
def test_labels_of_the_user_come_beside_that_of_the_application(tmp_path: Path) -> None:
    launch = evaluated("local.launches", tmp_path, labels='{team="search"}')["nightly"]
    labels = launch["launchParameter"]["environment"]["additionalUserLabels"]
    assert labels == {"application": "rankbeam", "team": "search"}
    assert TEXT.count("var.labels") == 1  # everything else has the merged ones


@needs_terraform
def test_a_key_encrypts_all_that_can_be_encrypted(tmp_path: Path) -> None:
    schedules = '{nightly={cron="0 3 * * *",experiment="gs://b/e.yaml",environment={machineType="n2-highmem-4"}}}'
    values = evaluated("[local.kms_keys, local.launches]", tmp_path, kms_key=KEY, schedules=schedules)
    assert values[0] == [KEY]
    launch = json_format.ParseDict(values[1]["nightly"], dataflow_v1beta3.LaunchFlexTemplateRequest.pb()())
    environment = launch.launch_parameter.environment
    assert (environment.kms_key_name, environment.machine_type) == (KEY, "n2-highmem-4")
    encrypted = {name for name, block in RESOURCES.items() if re.search(r"kms_key|encryption_key", str(block))}
    assert encrypted == {
        "google_artifact_registry_repository.rankbeam", "google_bigquery_data_transfer_config.alerts",
        "google_bigquery_dataset.rankbeam", "google_cloud_run_v2_job.evaluation", "google_storage_bucket.rankbeam",
    }  # fmt: skip


@needs_terraform
def test_every_submitter_gets_every_role(tmp_path: Path) -> None:
    grants = evaluated("local.submitter_grants", tmp_path, submitters='["user:a@b.c","group:d@e.f"]')
    expected = {(member, role) for member in ("user:a@b.c", "group:d@e.f") for role in PROJECT_ROLES["submitter"]}
    assert {(grant["member"], grant["role"]) for grant in grants.values()} == expected


@needs_terraform
@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("project", "My Project", "6 to 30 lower-case letters"),
        ("dataset", "my-dataset", "letters, digits and underscores"),
        ("temporary_days", "2", "at least 7 days"),
        ("schedules", '{Night={cron="0 3 * * *",experiment="gs://b/e.yaml"}}', "lower-case letters"),
        ("schedules", '{night={cron="0 3 * * *",experiment="e.yaml"}}', "lies on gs://"),
        ("schedules", '{night={cron="0 3 * * *",experiment="gs://b/e.yaml",engine="flink"}}', "dataflow or cloud_run"),
        ("partition_days", "0", "at least one day"),
        ("soft_delete_days", "3", "7 to 90 days"),
        (
            "schedules",
            '{a={cron="",experiment="gs://b/e",engine="cloud_run",environment={network="n"}}}',
            "on Dataflow",
        ),
        ("kms_key", "rankbeam", "A key is projects/PROJECT"),
        ("teams", "{Search={}}", "lower-case letters"),
        ("teams", "{default={}}", "default is taken"),
    ],
)
def test_wrong_values_are_refused(name: str, value: str, reason: str, tmp_path: Path) -> None:
    shutil.copy(FOLDER / "variables.tf", tmp_path)
    (tmp_path / "terraform.tfvars").write_text('project = "my-project"\n')
    command = [str(TERRAFORM), "plan", "-no-color", f"-var={name}={value}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert reason in " ".join(done.stderr.replace("│", " ").split())


@needs_terraform
def test_a_small_schedule_is_a_job_of_cloud_run(tmp_path: Path) -> None:
    schedules = '{small={cron="0 3 * * *",experiment="gs://b/e.yaml",engine="cloud_run"}}'
    values = evaluated(
        "{ jobs = keys(local.on_cloud_run), launches = keys(local.launches) }", tmp_path, schedules=schedules
    )
    assert values == {"jobs": ["small"], "launches": []}
    (job,) = RESOURCES["google_cloud_run_v2_job.evaluation"]["template"]
    (task,) = job["template"]
    (container,) = task["containers"]
    assert (container["command"], task["max_retries"]) == (['"rankbeam"'], 0)
    words = re.findall(r'"([^"$]+)"', str(container["args"]))
    assert words == ["evaluate", "--output"]
    parsed = main.commands["evaluate"].make_context("evaluate", ["evaluate", "gs://b/e.yaml", "--output", "gs://b/out"])
    assert parsed.params["output"] == "gs://b/out"
    target = RESOURCES["google_cloud_scheduler_job.cloud_run"]["http_target"][0]
    assert target["uri"] == '"https://run.googleapis.com/v2/${google_cloud_run_v2_job.evaluation[each.key].id}:run"'


@needs_terraform
@pytest.mark.parametrize(
    ("variables", "is_refused"),
    [
        ({}, False),
        ({"subnetwork": "regions/r/subnetworks/s"}, False),
        ({"public_ips": "false"}, True),
        ({"public_ips": "false", "subnetwork": "s"}, False),
    ],
)
def test_private_jobs_on_cloud_run_need_a_subnetwork(
    tmp_path: Path, variables: dict[str, str], is_refused: bool
) -> None:
    printed = refusal("google_cloud_run_v2_job.evaluation", tmp_path, **variables)
    assert ("need a subnetwork with Private Google Access" in printed) == bool(printed) == is_refused


@needs_terraform
@pytest.mark.parametrize(
    ("subnetwork", "name"),
    [
        ("regions/r/subnetworks/s", "s"),
        (SHARED, SHARED),
        (f"https://www.googleapis.com/compute/v1/{SHARED}", SHARED),
    ],
)
def test_cloud_run_gets_the_subnetwork_in_its_own_form(tmp_path: Path, subnetwork: str, name: str) -> None:
    assert evaluated("local.run_subnetworks", tmp_path, subnetwork=subnetwork) == [name]
    (task,) = RESOURCES["google_cloud_run_v2_job.evaluation"]["template"][0]["template"]
    assert "local.run_subnetworks" in str(task["dynamic"])


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
    assert names == {"failed_job", "failed_calls", "missed_limit", "failed_launch", "results"}
    assert all(block["notification_channels"] == "${local.channels}" for block in policies.values())
    closed = {name.partition(".")[2]: block["alert_strategy"][0]["auto_close"] for name, block in policies.items()}
    assert all(int(seconds.strip('"s')) <= 86400 for seconds in closed.values()), "an open incident hides the next one"


# Tables and views

BIGQUERY_TABLES = {
    name.partition(".")[2]: block for name, block in RESOURCES.items() if name.startswith("google_bigquery_table.")
}
LEVELS = [[name.strip('"') for name in level] for level in LOCALS["view_levels"]]


def test_columns_are_those_of_the_code() -> None:
    contents = {path: path.read_text(encoding="utf-8") for path in deploy_files.FOR_TERRAFORM.iterdir()}
    assert contents == deploy_files.terraform_schemas(), "run make deploy-files"


def test_tables_are_as_rankbeam_makes_them() -> None:
    partitioning = bigquery.TimePartitioning(field=schemas.PARTITIONED_BY)
    (settings,) = BIGQUERY_TABLES["tables"]["time_partitioning"]
    assert settings["type"] == f'"{partitioning.type_}"'
    assert settings["field"] == f'"{partitioning.field}"'
    assert BIGQUERY_TABLES["tables"]["clustering"] == "${local.clustering[each.value.name]}"
    assert BIGQUERY_TABLES["tables"]["schema"] == "${local.schemas[each.value.name]}"


@needs_terraform
@pytest.mark.parametrize("days", [0, 400])
def test_tables_expire_as_warehouse_apply_has_it(tmp_path: Path, days: int) -> None:
    (settings,) = BIGQUERY_TABLES["tables"]["time_partitioning"]
    dataset = RESOURCES["google_bigquery_dataset.rankbeam"]
    assert settings["expiration_ms"] == dataset["default_partition_expiration_ms"] == "${local.partition_ms}"
    variables = {"partition_days": str(days)} if days else {}
    assert evaluated("local.partition_ms", tmp_path, **variables) == partition_ms(days)


@needs_terraform
def test_tables_are_clustered_as_rankbeam_does_it(tmp_path: Path) -> None:
    expected = {name: schemas.clustering_of(schema) for name, schema in tables.TABLES.items()}
    assert evaluated("local.clustering", tmp_path) == expected


def test_tables_are_kept_and_their_new_columns_too() -> None:
    assert BIGQUERY_TABLES["tables"]["deletion_protection"] == "${var.deletion_protection}"
    (lifecycle,) = BIGQUERY_TABLES["tables"]["lifecycle"]
    assert lifecycle["ignore_changes"] == ["schema"]


def test_views_are_made_after_what_they_read() -> None:
    level: dict[str, int] = {}
    for name, tree in views.syntax_trees().items():
        level[name] = 1 + max((level.get(table.name, -1) for table in tree.find_all(exp.Table)), default=-1)
    levels = [sorted(name for name in level if level[name] == depth) for depth in range(max(level.values()) + 1)]
    assert levels == LEVELS
    below = "tables"
    resources = [name for name in BIGQUERY_TABLES if name.startswith("views_")]
    assert len(resources) == len(levels)
    for number, name in enumerate(resources):
        assert BIGQUERY_TABLES[name]["for_each"] == f"${{local.team_views[{number}]}}"
        assert BIGQUERY_TABLES[name]["depends_on"] == [f"${{google_bigquery_table.{below}}}"]
        below = name


@pytest.mark.parametrize("name", [name for name in BIGQUERY_TABLES if name.startswith("views_")])
def test_views_are_in_googlesql_and_easily_replaced(name: str) -> None:
    (view,) = BIGQUERY_TABLES[name]["view"]
    assert view["use_legacy_sql"] is False
    assert view["query"] == "${local.view_queries[each.value.team][each.value.name]}"
    assert BIGQUERY_TABLES[name]["description"] == "${local.view_descriptions[each.value.name]}"
    assert BIGQUERY_TABLES[name]["deletion_protection"] is False


@needs_terraform
def test_views_are_those_of_warehouse_apply(tmp_path: Path) -> None:
    outputs = evaluated('{ queries = local.view_queries["default"], descriptions = local.view_descriptions }', tmp_path)
    assert outputs["descriptions"] == {name: views.about(name) for name in views.sources()}
    ours = dict(views.for_bigquery(DatasetName("my-project", "rankbeam")))
    assert outputs["queries"].keys() == ours.keys()
    for name, statement in ours.items():
        theirs = sqlglot.parse_one(outputs["queries"][name], dialect="bigquery").sql("bigquery", comments=False)
        assert theirs == sqlglot.parse_one(statement, dialect="bigquery").expression.sql("bigquery", comments=False)


@needs_terraform
def test_only_tables_and_views_of_ours_are_qualified(tmp_path: Path) -> None:
    query = "WITH some AS (SELECT * FROM runs) SELECT * FROM some JOIN runs_2 JOIN trend"
    replaced = LOCALS["view_queries"].removeprefix("${").removesuffix("}").replace("local.view_files", "local.asked")
    folder = tmp_path / "terraform"
    folder.mkdir()
    (folder / "asked.tf").write_text(f'locals {{\n  asked = {{ a = "{query}" }}\n  answer = {replaced}\n}}\n')
    assert evaluated("local.answer", tmp_path)["default"]["a"] == (
        "WITH some AS (SELECT * FROM `my-project`.`rankbeam`.runs) "
        "SELECT * FROM some JOIN runs_2 JOIN `my-project`.`rankbeam`.trend"
    )
