"""Values of expressions in deploy/terraform, by Terraform's console, without a provider."""

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.terraform import FILES, FOLDER, RESOURCES

from rankbeam.transforms.clients.warehouse import views

TERRAFORM = shutil.which("terraform")
needs_terraform = pytest.mark.skipif(TERRAFORM is None, reason="terraform is not installed")
STAND_INS = {
    "google_artifact_registry_repository.rankbeam.repository_id": '"rankbeam"',
    'google_storage_bucket.rankbeam["default"].name': "local.bucket",
    "google_storage_bucket.rankbeam[schedule.team].name": "local.teams[schedule.team].bucket",
    "google_service_account.worker[schedule.team].email": '"${schedule.team}@my-project.iam.gserviceaccount.com"',
    "[for channel in google_monitoring_notification_channel.email : channel.name]": "[]",
}
"""Values in place of what only a provider knows."""


def evaluated(expression: str, folder: Path, **variables: str) -> Any:
    """Terraform's value of an expression, without any provider: names replace resources."""
    done = _run("console", f"jsonencode({expression})\n", folder, variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(json.loads(done.stdout))


def refusal(resource: str, folder: Path, **variables: str) -> str:
    """Terraform's message about the precondition of a resource, without any provider; empty if it holds."""
    (lifecycle,) = RESOURCES[resource]["lifecycle"]
    (check,) = lifecycle["precondition"]
    condition, message = check["condition"][2:-1], check["error_message"].replace("each.key", '"small"')
    rule = f"precondition {{\n    condition     = {condition}\n    error_message = {message}\n  }}"
    (folder / "terraform").mkdir()
    (folder / "terraform" / "checked.tf").write_text(f'output "checked" {{\n  value = 1\n  {rule}\n}}\n')
    done = _run("plan", "", folder, variables)
    return " ".join(done.stderr.replace("│", " ").split()) if done.returncode else ""


def _run(verb: str, entry: str, folder: Path, variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    shutil.copytree(views.FOLDER / "bigquery", folder / "bigquery")
    folder /= "terraform"
    for part in ("schemas", "alerts"):
        shutil.copytree(FOLDER / part, folder / part)
    for path in FILES:
        if path.name in ("outputs.tf", "versions.tf"):
            continue
        name = path.name
        text = re.sub(r'(?ms)^(resource "|moved )[^\n]*\{\n.*?^\}\n', "", path.read_text(encoding="utf-8"))
        for reference, value in STAND_INS.items():
            text = text.replace(reference, value)
        (folder / name).write_text(text, encoding="utf-8")
    shutil.copy(FOLDER / "terraform.tfvars.example", folder / "terraform.tfvars")
    arguments = [f"-var={name}={value}" for name, value in variables.items()]
    command = [str(TERRAFORM), verb, "-no-color", *arguments]
    return subprocess.run(command, cwd=folder, input=entry, capture_output=True, text=True, check=False)
