"""As much of Looker as it takes to make the SQL of a query: fields, joins, filters. Fan-outs are not corrected."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import lkml
import yaml

TIMEFRAMES = {"raw", "time", "hour", "date", "week", "month"}
AGGREGATES = {
    "count": "COUNT(CASE WHEN {filter} THEN 1 END)",
    "count_distinct": "COUNT(DISTINCT {sql})",
    "sum": "SUM({sql})",
    "average": "AVG({sql})",
    "max": "MAX({sql})",
    "number": "{sql}",
    "string": "{sql}",
    "percentile": "APPROX_QUANTILES({sql}, 100)[OFFSET({percentile})]",  # as Looker writes it for BigQuery
}
JOINS = {"inner": "JOIN", "left_outer": "LEFT JOIN"}
REFERENCE = re.compile(r"\$\{(?:(\w+)\.)?(\w+)\}")
PARAMETER = re.compile(r"\{% parameter (?:(\w+)\.)?(\w+) %\}")
TEMPLATE = re.compile(r"\{% condition (\w+) %\}(.*?)\{% endcondition %\}", re.DOTALL)


@dataclass
class Project:
    """A LookML project.

    Attributes:
        folder: the folder of the project.
    """

    folder: Path

    @cached_property
    def model(self) -> dict[str, Any]:
        """The model."""
        (path,) = self.folder.glob("*.model.lkml")
        model: dict[str, Any] = lkml.load(path.read_text())
        return model

    @cached_property
    def views(self) -> dict[str, "View"]:
        """By name."""
        files = (lkml.load(path.read_text()) for path in sorted(self.folder.glob("views/*.view.lkml")))
        columns = lkml.load((self.folder / "columns.view.lkml").read_text())["views"]
        bases = {view["name"]: view for view in columns}
        return {view["name"]: View(extended(view, bases)) for file in files for view in file["views"]}

    @cached_property
    def explores(self) -> dict[str, dict[str, Any]]:
        """By name."""
        return {explore["name"]: explore for explore in self.model["explores"]}

    @cached_property
    def dashboards(self) -> dict[str, dict[str, Any]]:
        """By name."""
        files = (yaml.safe_load(path.read_text()) for path in sorted(self.folder.glob("dashboards/*.lookml")))
        return {dashboard["dashboard"]: dashboard for file in files for dashboard in file}

    def joins(self, explore: str) -> dict[str, dict[str, Any]]:
        """The joins of an explore by view."""
        return {join["name"]: join for join in self.explores[explore].get("joins", ())}

    def sql(
        self, explore: str, fields: Iterable[str], filters: Mapping[str, str] | None = None, *, derived: bool = False
    ) -> str:
        """The query that asks an explore for fields.

        Args:
            explore: its name.
            fields: as `view.field`.
            filters: filter expressions by field, beside the explore's own.
            derived: True for derived tables as Looker sends them; else the tables and views that they are made from.

        Raises:
            LookupError: there is no such explore, join or field.
        """
        names = list(fields)
        content = self.explores[explore]
        filter_values = dict(filters_of(content.get("always_filter", {}))) | dict(filters or {})
        chosen = {name: text for name, text in filter_values.items() if "type" in self.of(name).parameter(name)}
        templates = {
            name: text for name, text in filter_values.items() if name.partition(".")[2] in self.of(name).filters
        }
        conditions = {name: text for name, text in filter_values.items() if name not in templates | chosen}
        columns = [f"{self.expand(field)} AS {field.replace('.', '__')}" for field in names]
        where = [condition(self.expand(field), text) for field, text in conditions.items()]
        where += [self.replaced(content["sql_always_where"], explore)] if "sql_always_where" in content else []
        groups = [self.expand(field) for field in names if not self.field(field)["is_measure"]]
        always = [view for view, _ in REFERENCE.findall(content.get("sql_always_where", ""))]
        used = {*always, *(field.partition(".")[0] for field in (*names, *filter_values))}
        lines = [f"SELECT {', '.join(columns)}", f"FROM {self.source(explore, derived)} AS {explore}"]
        lines += list(self._joined(explore, used, derived))
        lines += [f"WHERE {' AND '.join(where)}"] if where else []
        text = "\n".join(lines + ([f"GROUP BY {', '.join(groups)}"] if groups else []))
        values = {name.partition(".")[2]: text for name, text in templates.items()}
        text = PARAMETER.sub(
            lambda match: chosen.get(f"{match[1]}.{match[2]}") or self.default(match[1], match[2]), text
        )
        return TEMPLATE.sub(lambda match: condition(match[2], values[match[1]]) if match[1] in values else "TRUE", text)

    def of_element(self, element: Mapping[str, Any], filters: Mapping[str, str]) -> str:
        """The query of an element of a dashboard, with values for what it listens to."""
        listened = {element["listen"][name]: text for name, text in filters.items() if name in element["listen"]}
        query = self.sql(element["explore"], element["fields"], element.get("filters", {}) | listened, derived=True)
        sorts = [part.partition(" ") for part in element["sorts"]]
        order = ", ".join(f"{name.replace('.', '__')} {way or 'asc'}" for name, _, way in sorts)
        return f"{query}\nORDER BY {order}\nLIMIT {element['limit']}"

    def default(self, view: str, parameter: str) -> str:
        """The value of a parameter that nobody sets."""
        return str(self.views[view].parameters[parameter]["default_value"])

    def source(self, name: str, derived: bool) -> str:
        """The source of a view in SQL: a table or view of BigQuery, or the query of a derived table."""
        query = self.views[name].query if derived else None
        return self.views[name].table if query is None else f"({query})"

    def _joined(self, explore: str, names: set[str], derived: bool) -> Iterator[str]:
        joins = self.joins(explore)
        needed = names | set(self.explores[explore].get("always_join", ()))
        if missing := needed - {explore, *joins}:
            raise LookupError(f"{explore} does not join {missing}")
        for name in reversed(joins):  # a join stands after those that it needs
            if name in needed:
                text = joins[name].get("sql") or joins[name]["sql_on"]
                needed |= {view for view, _ in REFERENCE.findall(text)} | set(joins[name].get("required_joins", ()))
        for name, join in joins.items():
            if name in needed:
                on = (
                    f"{JOINS[join['type']]} {self.source(name, derived)} AS {name} ON {join['sql_on']}"
                    if "sql_on" in join
                    else ""
                )
                yield self.replaced(join.get("sql") or on, name)

    def field(self, name: str) -> dict[str, Any]:
        """A field by `view.field`; also one that is only a filter or a parameter."""
        view, _, field = name.partition(".")
        return (self.views[view].filters | self.views[view].parameters | self.views[view].fields)[field]

    def of(self, name: str) -> "View":
        """The view of a field."""
        return self.views[name.partition(".")[0]]

    def expand(self, name: str) -> str:
        """The SQL of a field."""
        field = self.field(name)
        view = name.partition(".")[0]
        chosen = [condition(self.expand(f"{view}.{of}"), text) for of, text in filters_of(field)]
        template = AGGREGATES[field["type"]] if field["is_measure"] else "({sql})"
        sql, percentile = self.replaced(field.get("sql", ""), view), field.get("percentile")
        return template.format(sql=sql, filter=" AND ".join(chosen) or "TRUE", percentile=percentile)

    def replaced(self, sql: str, view: str) -> str:
        """SQL with its references expanded."""
        sql = PARAMETER.sub(lambda match: f"{{% parameter {match[1] or view}.{match[2]} %}}", sql)
        sql = sql.replace("${TABLE}", view)
        return REFERENCE.sub(lambda match: self.expand(f"{match[1] or view}.{match[2]}"), sql)


class View:
    """A view of LookML."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.content = content
        self.parameters = {parameter["name"]: parameter for parameter in content.get("parameters", ())}
        self.filters = {parameter["name"]: parameter for parameter in content.get("filters", ())}

    def parameter(self, name: str) -> dict[str, Any]:
        """A parameter; empty if there is none of that name, with or without the view's."""
        content: dict[str, Any] = self.parameters.get(name.rpartition(".")[2], {})
        return content

    @property
    def is_table(self) -> bool:
        """Return whether it reads a table, a view or a query; others have fields of nested values, or filters."""
        return bool({"sql_table_name", "derived_table"} & self.content.keys())

    @property
    def table(self) -> str:
        """The table or view that it reads, or whose query it has."""
        if "derived_table" in self.content:
            return str(self.content["base"]).removesuffix("_columns")
        match = re.fullmatch(r"`@\{dataset\}\.(\w+)`", self.content["sql_table_name"])
        if match is None:
            raise LookupError(self.content["sql_table_name"])
        return match[1]

    @property
    def query(self) -> str | None:
        """The query of a derived table, with bare names of tables."""
        query = self.content.get("derived_table", {}).get("sql")
        return None if query is None else re.sub(r"`@\{dataset\}\.(\w+)`", r"main.\1", query)

    @cached_property
    def fields(self) -> dict[str, dict[str, Any]]:
        """Dimensions, each timeframe of a group, and measures, by name."""
        by_name: dict[str, dict[str, Any]] = {}
        for group in self.content.get("dimension_groups", ()):
            by_name |= {f"{group['name']}_{frame}": group | {"is_measure": False} for frame in group["timeframes"]}
        for kind in ("dimensions", "measures"):
            for group in self.content.get(kind, ()):
                if group["name"] in by_name:
                    raise LookupError(f"{self.content['name']}.{group['name']} is there twice")
                by_name[group["name"]] = group | {"is_measure": kind == "measures"}
        return by_name


def extended(view: Mapping[str, Any], bases: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """A view with what it extends: a field that both have has the parameters of both, its own first."""
    content = dict(view)
    for name in (name for names in content.pop("extends__all", ()) for name in names):
        base = bases[name]
        assert base["extension"] == "required"
        for kind in ("dimensions", "dimension_groups"):
            own = {field["name"]: field for field in content.get(kind, ())}
            content[kind] = [*({**field, **own.pop(field["name"], {})} for field in base.get(kind, ())), *own.values()]
        content |= {key: base[key] for key in ("sql_table_name", "derived_table") if key in base} | {"base": name}
    return content


def filters_of(content: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The filters of a measure, or of an explore's `always_filter`."""
    return [pair for group in content.get("filters__all", ()) for entry in group for pair in entry.items()]


def condition(sql: str, text: str) -> str:
    """Looker's filter expressions, those that we use.

    >>> condition("x", ">0"), condition("x", "worse")
    ('x > 0', "x = 'worse'")
    >>> condition("x", "90 days")
    'x >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL 90 DAY)'
    """
    if days := re.fullmatch(r"(\d+) days", text):
        return f"{sql} >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {days[1]} DAY)"
    if text == "yes":
        return sql
    if match := re.fullmatch(r"([<>]?)(\d+)", text):
        return f"{sql} {match[1] or '='} {match[2]}"
    return f"{sql} = '{text}'"
