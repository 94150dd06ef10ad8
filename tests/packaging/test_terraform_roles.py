"""deploy/terraform grants no more than is needed."""

import re

from support.terraform import LOCALS, PROJECT_ROLES, RESOURCES, TEXT, Block

NARROW_ROLES = {
    "google_artifact_registry_repository_iam_member": {
        "roles/artifactregistry.reader",
        "roles/artifactregistry.writer",
    },
    "google_bigquery_dataset_iam_member": {"roles/bigquery.dataEditor", "roles/bigquery.dataViewer"},
    "google_cloud_run_v2_job_iam_member": {"roles/run.invoker"},
    "google_secret_manager_secret_iam_member": {"roles/secretmanager.secretAccessor"},
    "google_service_account_iam_member": {"roles/iam.serviceAccountUser"},
    "google_storage_bucket_iam_member": {"roles/storage.objectAdmin", "roles/storage.objectViewer"},
    "google_storage_managed_folder_iam_member": {"roles/storage.objectUser"},
}


def roles_of(block: Block) -> set[str]:
    """The roles that a resource grants, also by `for_each` over a set."""
    if not block["role"].startswith("${"):
        return {block["role"].strip('"')}
    source = str(block["for_each"])
    seen: set[str] = set()
    while sets := set(re.findall(r"local\.(\w+)", source)) - seen:
        seen |= sets
        source = " ".join([source, *(str(LOCALS[name]) for name in sets)])
    return set(re.findall(r"roles/[\w.]+", source))


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
