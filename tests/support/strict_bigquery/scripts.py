"""Scripts: of SQL, the statements that rankbeam writes, and no others."""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from support.strict_bigquery.faults import Refusal
from support.strict_bigquery.tables import Row, Table

NAME = r"`([^`]+)`"
ROWS = re.compile(rf"SELECT [\w, ]+ FROM {NAME}")
RAISE = re.compile(r"SELECT ERROR\((?:'([^']*)'|CONCAT\('([^']*)', (\w+)\))\) FROM (.+) WHERE (.+)")
DELETE = re.compile(rf"DELETE FROM {NAME} WHERE (.+)")
LOOK = re.compile(r"SELECT name, MAX\(started_at\) AS began FROM \((.+)\) WHERE (.+) GROUP BY name")
NAMED = re.compile(rf"SELECT run_id, started_at, '(\w+)' AS name FROM {NAME}")
OWNER = re.compile(rf"SELECT experiment FROM {NAME} WHERE (.+) LIMIT 1")
INSERT = re.compile(rf"INSERT INTO {NAME} \((.+)\) SELECT (.+) FROM {NAME} WHERE (.+)")
CONDITION = re.compile(r"(\w+) (!?=) @(\w+)")
TEXT = re.compile(rf"{NAME}|(?<=ERROR\()'[^']*'|(?<=CONCAT\()'[^']*'")
LITERAL = re.compile(r"'|\"|\b\d+\b")


@dataclass
class View:
    """A table as a transaction sees it.

    Attributes:
        rows: rows at its beginning.
        deletions: the table's deletions at that moment.
        deletes: it deletes rows, be there any or not.
        deleted: ids of rows that it deletes.
        added: rows that it adds.
    """

    rows: list[Row]
    deletions: int
    deletes: bool = False
    deleted: set[int] = field(default_factory=set)
    added: list[Row] = field(default_factory=list)

    def visible(self) -> list[Row]:
        """The rows that the transaction sees."""
        return [row for row in self.rows if id(row) not in self.deleted] + self.added


class Script:
    """A script that is being run.

    Args:
        tables: all there are, and by which name.
        parameters: parameters of the query.
        lock: is held while tables are looked at or changed.
    """

    def __init__(self, tables: Callable[[str], Table], parameters: Mapping[str, Any], lock: Any) -> None:
        self._table, self._parameters, self._lock = tables, parameters, lock
        self._views: dict[str, View] | None = None

    def run(self, text: str, pause_s: float, statements: int | None) -> None:
        """Run it.

        Args:
            text: text of the script.
            pause_s: after every statement.
            statements: number of statements after which it dies; None for never.

        Raises:
            Refusal: a statement failed. What was done in an open transaction is undone.
        """
        parts = [line.removesuffix(";") for line in text.splitlines()]
        for number, part in enumerate(parts):
            if number == statements:
                raise Refusal("backendError", "the script died")
            if LITERAL.search(TEXT.sub("", part)):
                raise Refusal("invalidQuery", f"a literal, where only parameters are allowed: {part}")
            self._statement(part)
            time.sleep(pause_s)
        if self._views is not None:
            raise Refusal("invalidQuery", "the transaction was not committed")
        if unused := set(self._parameters) - set(re.findall(r"@(\w+)", text)):
            raise Refusal("invalidQuery", f"unused parameters: {unused}")

    def _statement(self, text: str) -> None:
        if text == "BEGIN TRANSACTION":
            if self._views is not None:
                raise Refusal("invalidQuery", "Transactions cannot be nested")
            self._views = {}
        elif text == "COMMIT TRANSACTION":
            views, self._views = self._views, None
            if views is None:
                raise Refusal("invalidQuery", "There is no transaction")
            self._commit(views)
        elif match := RAISE.fullmatch(text):
            for row in self._chosen(match[4], match[5]):
                raise Refusal("invalidQuery", f"{match[1] or match[2] + row[match[3]]} at [1:1]")
        elif match := DELETE.fullmatch(text):
            condition = match[2]
            self._change(match[1], lambda view: self._delete(view, condition))
        elif match := INSERT.fullmatch(text):
            self._insert(*match.groups())
        else:
            raise Refusal("invalidQuery", f"Syntax error: {text}")

    def look(self, query: str) -> list[tuple[str, datetime]]:
        """The answer to a query for the tables with some rows and for the latest start of their runs.

        Raises:
            Refusal: it is another query.
        """
        match = LOOK.fullmatch(query)
        if match is None:
            raise Refusal("invalidQuery", f"Syntax error: {query}")
        named = [NAMED.fullmatch(part) for part in match[1].split(" UNION ALL ")]
        chosen = [(part[1], self._chosen(f"`{part[2]}`", match[2])) for part in named if part]
        return [(name, max(row["started_at"] for row in rows)) for name, rows in chosen if rows]

    def owner(self, query: str) -> list[str] | None:
        """The answer to a query for the experiment of some run; None for another query."""
        match = OWNER.fullmatch(query)
        return match and [row["experiment"] for row in self._chosen(f"`{match[1]}`", match[2])][:1]

    def _chosen(self, source: str, condition: str) -> list[Row]:
        """The rows of a table, or of several, for which a condition holds."""
        queries = source.removeprefix("(").removesuffix(")").split(" UNION ALL ")
        names = [re.fullmatch(NAME, query) or ROWS.fullmatch(query) for query in queries]
        if not all(names):
            raise Refusal("invalidQuery", f"Syntax error: {source}")
        return [row for name in names if name for row in self._view(name[1]) if self._holds(row, condition)]

    def _view(self, name: str) -> list[Row]:
        return self._open(name).visible()

    def _open(self, name: str) -> View:
        with self._lock:
            table = self._table(name)
            fresh = View(list(table.rows), table.deletions)
        return fresh if self._views is None else self._views.setdefault(name, fresh)

    def _change(self, name: str, change: Callable[[View], None]) -> None:
        view = self._open(name)
        change(view)
        if self._views is None:  # every statement by itself
            self._commit({name: view})

    def _delete(self, view: View, condition: str) -> None:
        view.deletes = True
        hit = [row for row in view.visible() if self._holds(row, condition)]
        view.deleted |= {id(row) for row in hit}
        view.added = [row for row in view.added if id(row) not in view.deleted]

    def _insert(self, name: str, columns: str, selected: str, source: str, condition: str) -> None:
        if columns != selected:
            raise Refusal("invalidQuery", f"the columns differ: {columns}; {selected}")
        names = [column.strip("`") for column in columns.split(", ")]
        there = {column["name"]: column for column in self._table(name).columns}
        here = {column["name"]: column for column in self._table(source).columns}
        for column in names:
            if column not in there or there[column] != here.get(column):
                raise Refusal("invalidQuery", f"Column {column} is {here.get(column)}, and {there.get(column)}")
        absent = {column: None for column in there if column not in names}
        rows = self._chosen(f"`{source}`", condition)
        added = [absent | {column: row[column] for column in names} for row in rows]
        self._change(name, lambda view: view.added.extend(added))

    def _holds(self, row: Row, condition: str) -> bool:
        """Return whether any comparison of a group holds, or all of them."""
        both, either = condition.split(" AND "), condition.split(" OR ")
        return (
            all(self._is(row, comparison) for comparison in both)
            if len(both) > 1
            else any(self._is(row, comparison) for comparison in either)
        )

    def _is(self, row: Row, comparison: str) -> bool:
        match = CONDITION.fullmatch(comparison)
        if match is None or match[3] not in self._parameters:
            raise Refusal("invalidQuery", f"no condition with a parameter: {comparison}")
        return (row[match[1]] == self._parameters[match[3]]) == (match[2] == "=")

    def _commit(self, views: Mapping[str, View]) -> None:
        with self._lock:
            for name, view in views.items():
                if view.deletes and self._table(name).deletions != view.deletions:
                    text = f"Transaction is aborted due to concurrent update against table {name}."
                    raise Refusal("invalidQuery", text)
            for name, view in views.items():
                table = self._table(name)
                table.rows = [row for row in table.rows if id(row) not in view.deleted] + view.added
                table.deletions += view.deletes


def values_of(parameters: list[dict[str, Any]]) -> dict[str, Any]:
    """Named parameters as Python values."""
    read: dict[str, Callable[[str], Any]] = {"STRING": str, "TIMESTAMP": datetime.fromisoformat}
    return {
        parameter["name"]: read[parameter["parameterType"]["type"]](parameter["parameterValue"]["value"])
        for parameter in parameters
    }
