"""Tables: their resources, their rows, and what may be changed about them."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from support.strict_bigquery.faults import Refusal

Row = dict[str, Any]
TYPES = {"STRING", "INTEGER", "FLOAT", "BOOLEAN", "TIMESTAMP", "RECORD"}
MODES = {"NULLABLE", "REQUIRED", "REPEATED"}
IMMUTABLE = ("timePartitioning", "clustering")


@dataclass
class Table:
    """A table.

    Attributes:
        resource: as tables.get shows it, but for the etag and what is counted.
        rows: in it.
        version: version of the resource.
        deletions: number of deletions and replacements of rows.
    """

    resource: dict[str, Any]
    rows: list[Row] = field(default_factory=list)
    version: int = 0
    deletions: int = 0

    @property
    def columns(self) -> list[dict[str, Any]]:
        """Its columns."""
        columns: list[dict[str, Any]] = self.resource["schema"]["fields"]
        return columns

    @property
    def etag(self) -> str:
        """The tag of the resource, another one after every change."""
        return f"etag-{self.version}"

    @property
    def has_expired(self) -> bool:
        """Return whether it has expired."""
        return int(self.resource.get("expirationTime", 1 << 62)) <= time.time() * 1000

    def shown(self) -> dict[str, Any]:
        """The resource, complete."""
        return {**self.resource, "etag": self.etag, "numRows": str(len(self.rows)), "type": "TABLE"}

    def patch(self, changes: Mapping[str, Any], if_match: str | None) -> None:
        """Change the resource.

        Raises:
            Refusal: it is not as the caller knows it, or must not be changed so.
        """
        if if_match is not None and if_match != self.etag:
            raise Refusal("conditionNotMet", "Precondition Failed")
        for name in IMMUTABLE:
            if name in changes and _fixed(changes[name]) != _fixed(self.resource.get(name)):
                raise Refusal("invalid", f"Cannot change {name} of a table")
        if "schema" in changes:
            check_columns(changes["schema"]["fields"])
            check_change(self.columns, changes["schema"]["fields"])
        merged = {
            name: {key: item for key, item in (self.resource[name] | changes[name]).items() if item is not None}
            for name in IMMUTABLE
            if name in changes
        }
        self.resource |= {**changes, **merged}
        self.version += 1


def _fixed(setting: Any) -> Any:
    """The parts of a setting that cannot be changed: all but the expiry of partitions."""
    return {key: value for key, value in setting.items() if key != "expirationMs"} if setting else setting


def new_table(resource: Mapping[str, Any], location: str) -> Table:
    """A table without rows.

    Raises:
        Refusal: it cannot be made so.
    """
    columns = resource["schema"]["fields"]
    check_columns(columns)
    top = {column["name"]: column for column in columns}
    partitioning = resource.get("timePartitioning")
    if partitioning is not None:
        by = top.get(partitioning.get("field"), {})
        if partitioning.get("type") != "DAY" or by.get("type") != "TIMESTAMP" or by.get("mode") == "REPEATED":
            raise Refusal("invalid", f"Cannot partition by {partitioning}")
    for name in resource.get("clustering", {}).get("fields", ()):
        if name not in top or top[name]["type"] == "RECORD" or top[name]["mode"] == "REPEATED":
            raise Refusal("invalid", f"Cannot cluster by {name}")
    table = Table({**resource, "location": location, "creationTime": str(int(time.time() * 1000))})
    if table.has_expired:
        raise Refusal("invalid", "The expiration time is in the past")
    return table


def check_columns(columns: Sequence[Mapping[str, Any]]) -> None:
    """Hold columns against what there is.

    Raises:
        Refusal: a type or a mode is unknown, a name stands twice, a record has no fields.
    """
    names = [column["name"].lower() for column in columns]
    if len(set(names)) != len(names) or not names:
        raise Refusal("invalid", f"Duplicate or no columns: {names}")
    for column in columns:
        if column["type"] not in TYPES or column.get("mode", "NULLABLE") not in MODES:
            raise Refusal("invalid", f"Unknown type or mode: {column}")
        if column["type"] == "RECORD":
            check_columns(column.get("fields", ()))


def check_change(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]], path: str = "") -> None:
    """Allow what BigQuery allows: further columns that are not REQUIRED, at the end, and REQUIRED ones no longer so.

    Raises:
        Refusal: it is something else.
    """
    if [column["name"] for column in new[: len(old)]] != [column["name"] for column in old]:
        raise Refusal("invalid", f"Provided Schema does not match Table: columns of {path or 'the table'} are missing")
    for before, after in zip(old, new, strict=False):
        name = f"{path}{before['name']}"
        modes = (before.get("mode", "NULLABLE"), after.get("mode", "NULLABLE"))
        if before["type"] != after["type"] or (modes[0] != modes[1] and modes != ("REQUIRED", "NULLABLE")):
            raise Refusal("invalid", f"Provided Schema does not match Table. Field {name} has changed")
        check_change(before.get("fields", ()), after.get("fields", ()), f"{name}.")
    for added in new[len(old) :]:
        if added.get("mode") == "REQUIRED":
            raise Refusal("invalid", f"Provided Schema does not match Table. Cannot add required field {added['name']}")
