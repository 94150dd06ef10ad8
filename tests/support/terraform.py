"""The blocks of deploy/terraform."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import hcl2
from support.data import REPOSITORY

FOLDER = REPOSITORY / "deploy" / "terraform"
FILES = sorted(FOLDER.glob("*.tf"))
SCHEMA_FILE = REPOSITORY / "tests" / "packaging" / "test_deploy_provider.json"
MARKS = {"__is_block__", "__comments__", "__inline_comments__"}

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
    "submitter": {
        "roles/aiplatform.user",
        "roles/bigquery.jobUser",
        "roles/bigquery.readSessionUser",
        "roles/dataflow.developer",
        "roles/monitoring.viewer",
    },
    "reader": {"roles/bigquery.jobUser"},
    "reader_sessions": {"roles/bigquery.readSessionUser"},
    "alerts": {"roles/bigquery.jobUser"},
}
