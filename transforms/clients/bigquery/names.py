"""Names and sources in BigQuery. Identifiers cannot be parameters of a query: they are checked before they enter one.

A source is a table, a view, or the result of a query, written as one string, like a path:

    bigquery://project.dataset.table
    bigquery://{"project": "my-project", "query": "SELECT …", "parameters": {"split": "test"}}

In an experiment, a query is a mapping (`locations`); the string is accepted wherever a path is.
"""

import hashlib
import json
import re
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace

from rankbeam.transforms.records.errors import InputError, shortened

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
        dataset, _, table = text.removeprefix(SCHEME).rpartition(".")
        if _TABLE.fullmatch(table):
            with suppress(InputError):
                return cls(DatasetName.parse(dataset), table)
        is_pattern = bool(set(text) & {"$", "*"})
        advice = "; for a partition or several tables, write {query: SELECT …, project: PROJECT}" if is_pattern else ""
        raise InputError(f"{text!r} is not a BigQuery table; write {SCHEME}project.dataset.table{advice}")

    @property
    def quoted(self) -> str:
        return f"`{self}`"

    def __str__(self) -> str:
        return f"{self.dataset}.{self.table}"


Scalar = str | bool | int | float


def is_table(path: str) -> bool:
    return path.startswith(SCHEME)


@dataclass(frozen=True)
class TableSource:
    """A table or view, or a query with the project that pays for it."""

    table: str | None = None  # `project.dataset.table`; None for a query
    project: str | None = None
    query: str = ""
    parameters: dict[str, Scalar | list[Scalar]] = field(default_factory=dict)
    run: str | None = None
    stream: str | None = None  # the name of the one stream to read, empty for no rows; None for all rows
    number: int | None = None  # the stream's, from 1, for people

    @classmethod
    def parse(cls, path: str) -> "TableSource":
        """From a path that begins with `bigquery://`."""
        rest = path.removeprefix(SCHEME)
        return cls(**json.loads(rest)) if rest.startswith("{") else cls(table=rest)

    @property
    def path(self) -> str:
        """The text that `parse` reads; equal sources have the same."""
        if self.table is not None and self.stream is None:
            return f"{SCHEME}{self.table}"
        unset = {item.name: item.default for item in fields(self)}
        values = {name: value for name, value in asdict(self).items() if value != unset[name] and value != {}}
        return SCHEME + json.dumps(values, ensure_ascii=False, sort_keys=True)

    @property
    def job_id(self) -> str | None:
        """The id of the job that runs the query in one execution of an experiment; None lets BigQuery choose one."""
        if self.run is None:
            return None
        return f"rankbeam_{hashlib.sha256(replace(self, stream=None, number=None).path.encode()).hexdigest()[:32]}"

    def __str__(self) -> str:
        """The name of the source in messages.

        >>> str(TableSource(project="my-project", query="SELECT *  FROM search.qrels"))
        'bigquery://my-project (SELECT * FROM search.qrels)'
        """
        where = "" if self.number is None else f" (stream {self.number})"
        if self.table is not None:
            return f"{SCHEME}{self.table}{where}"
        return f"{SCHEME}{self.project} ({shortened(' '.join(self.query.split()))}){where}"


def pinned_path(path: str, run: str) -> str:
    """A path whose query, where it is one, runs once in a run, however often and wherever it is read."""
    if not is_table(path):
        return path
    source = TableSource.parse(path)
    return path if source.table is not None else replace(source, run=run).path
