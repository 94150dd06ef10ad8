"""Names in BigQuery, checked before they become part of a statement: identifiers cannot be parameters of a query."""

import re
from dataclasses import dataclass

from rankbeam.transforms.records.errors import InputError

SCHEME = "bigquery://"

_PROJECT = re.compile(r"(?:[a-z0-9.-]{1,61}:)?[a-z][a-z0-9-]{4,61}[a-z0-9]")  # a domain may stand before it
_DATASET = re.compile(r"[A-Za-z0-9_]{1,1024}")
_TABLE = re.compile(r"[^\W_][\w -]{0,1023}|_[\w -]{1,1023}")


@dataclass(frozen=True)
class DatasetName:
    """A dataset."""

    project: str
    dataset: str

    @classmethod
    def parse(cls, text: str) -> "DatasetName":
        """From `project.dataset`, with or without `bigquery://`."""
        project, dot, dataset = text.removeprefix(SCHEME).rpartition(".")
        if not dot or not _PROJECT.fullmatch(project) or not _DATASET.fullmatch(dataset):
            raise InputError(f"{text!r} is not a BigQuery dataset; write project.dataset")
        return cls(project, dataset)

    def table(self, name: str) -> "TableName":
        return TableName.parse(f"{self}.{name}")

    def __str__(self) -> str:
        return f"{self.project}.{self.dataset}"


@dataclass(frozen=True)
class TableName:
    """A table or view."""

    dataset: DatasetName
    table: str

    @classmethod
    def parse(cls, text: str) -> "TableName":
        """From `project.dataset.table`, with or without `bigquery://`."""
        dataset, dot, table = text.removeprefix(SCHEME).rpartition(".")
        if not dot or not _TABLE.fullmatch(table):
            raise InputError(f"{text!r} is not a BigQuery table; write {SCHEME}project.dataset.table")
        try:
            return cls(DatasetName.parse(dataset), table)
        except InputError as error:
            raise InputError(f"{text!r} is not a BigQuery table; write {SCHEME}project.dataset.table") from error

    @property
    def quoted(self) -> str:
        return f"`{self}`"

    def __str__(self) -> str:
        return f"{self.dataset}.{self.table}"
