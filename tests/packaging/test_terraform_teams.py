"""deploy/terraform for several teams: what one team had keeps its address, and no team reaches another's data."""

import re
from pathlib import Path
from typing import Any

import pytest
from support.terraform import BLOCKS, LOCALS, PROJECT_ROLES, RESOURCES
from support.terraform_values import evaluated, needs_terraform

from rankbeam.transforms.clients.warehouse import views
from rankbeam.transforms.records import tables

EARLIER = {
    "google_artifact_registry_repository_iam_member.worker",
    "google_bigquery_dataset.rankbeam",
    "google_bigquery_dataset_iam_member.worker",
    "google_service_account.worker",
    "google_service_account_iam_member.scheduler_runs_as_worker",
    "google_storage_bucket.rankbeam",
    "google_storage_bucket_iam_member.worker",
}
"""Resources that earlier versions had once, and that each team has now."""
KEYED = ("team_submitters", "team_readers", "team_secrets", "team_worker_roles", "team_tables")
VALUES = ", ".join(f"{name} = local.{name}" for name in (*KEYED, "team_views"))
MEMBERS = {"submitters": '["user:a@b.c"]', "readers": '["group:r@b.c"]', "secrets": '["token"]'}


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return evaluated(f"{{ {VALUES} }}", tmp_path_factory.mktemp("before"), **MEMBERS)


@needs_terraform
def test_keys_of_the_default_team_are_those_of_earlier_versions(before: Any) -> None:
    assert before["team_submitters"].keys() == {"user:a@b.c"}
    assert before["team_readers"].keys() == {"group:r@b.c"}
    assert before["team_secrets"].keys() == {"token"}
    assert before["team_worker_roles"].keys() == PROJECT_ROLES["worker"]
    assert before["team_tables"].keys() == tables.TABLES.keys()
    assert [sorted(level) for level in before["team_views"]] == [
        [name.strip('"') for name in level] for level in LOCALS["view_levels"]
    ]


@needs_terraform
def test_a_further_team_only_adds(before: Any, tmp_path: Path) -> None:
    teams = '{search={submitters=["user:s@b.c"],readers=["group:r@b.c"]}}'
    expression = f"{{ {VALUES}, teams = local.teams, queries = local.view_queries }}"
    values = evaluated(expression, tmp_path, **MEMBERS, teams=teams)
    for name in KEYED:
        assert before[name].items() <= values[name].items()
        added = {key: value for key, value in values[name].items() if key not in before[name]}
        assert all(key.startswith("search/") and value["team"] == "search" for key, value in added.items())
    assert set(values["team_submitters"]) == {"user:a@b.c", "search/user:s@b.c"}
    assert len(values["team_tables"]) == 2 * len(tables.TABLES)
    assert sum(map(len, values["team_views"])) == 2 * len(views.sources())
    team = values["teams"]["search"]
    assert (team["dataset"], team["bucket"]) == ("rankbeam_search", "my-project-rankbeam-search")
    assert "`my-project`.`rankbeam_search`.runs" in values["queries"]["search"]["run_history"]
    assert "rankbeam_search" not in values["queries"]["default"]["run_history"]


def test_resources_of_earlier_versions_are_moved() -> None:
    moved = {block["from"]: block["to"] for kind, _, block in BLOCKS if kind == "moved"}
    assert moved == {f"${{{name}}}": f'${{{name}["default"]}}' for name in EARLIER}
    assert {RESOURCES[name]["for_each"] for name in EARLIER} == {"${local.teams}"}


def test_an_account_reaches_only_the_data_of_its_team() -> None:
    reached = []
    for name, block in RESOURCES.items():
        account = re.search(r"service_account\.worker\[(.+?)\]", str(block.get("member", "")))
        place = re.search(r"google_\w+\.rankbeam\[(.+?)\]", str(block.get("dataset_id", block.get("bucket", ""))))
        if account and place and not name.startswith("google_storage_managed_folder"):
            assert account[1] == place[1], name
            reached.append(name)
    assert reached == ["google_bigquery_dataset_iam_member.worker", "google_storage_bucket_iam_member.worker"]
    folder = RESOURCES["google_storage_managed_folder.ledger"]
    assert folder["name"] == '"ledger/"'  # which all teams share
