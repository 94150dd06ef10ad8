"""The scheduled queries that raise alerts, for Terraform: those of `deploy/alerts`, over bounded tables.

Each has one column, `message`, and a row for each reason. `@run_time` is BigQuery's own parameter of scheduled queries.
The others are not, so Terraform fills in their values. `make deploy-files` writes the files after a change.
"""

import re
from pathlib import Path

from rankbeam.transforms.clients.warehouse import views
from rankbeam.transforms.clients.warehouse.views import read_by, written_out

FOR_TERRAFORM = views.FOLDER / "terraform" / "alerts"
SOURCES = views.FOLDER / "alerts"
"""Folders in the repository only."""

_DAYS = "90"
_SETTINGS = re.compile(r"@(?!run_time\b)(\w+)")
_HEAD = "-- Made from deploy/alerts by `make deploy-files`; do not edit. Terraform fills in the settings.\n"


def for_terraform() -> dict[Path, str]:
    """The files, and their contents: templates with `${project}`, `${dataset}` and the settings of each query."""
    import sqlglot
    from sqlglot import exp

    trees = views.parsed()
    contents = {}
    for path in sorted(SOURCES.glob("*.sql")):
        text = path.read_text(encoding="utf-8")
        read = read_by(sqlglot.parse_one(text, dialect="bigquery", into=exp.Select), trees)
        whole = written_out(text, read, trees, lambda name: f"`${{project}}.${{dataset}}.{name}`", _DAYS, "@run_time")
        contents[FOR_TERRAFORM / path.name] = _HEAD + _SETTINGS.sub(r"${\1}", whole)
    return contents


if __name__ == "__main__":
    FOR_TERRAFORM.mkdir(exist_ok=True)
    for file, content in for_terraform().items():
        file.write_text(content, encoding="utf-8")
