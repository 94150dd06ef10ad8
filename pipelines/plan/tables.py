"""Forecast of what reading from BigQuery takes: bytes of tables, and of queries by a dry run."""

from dataclasses import dataclass

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.transforms.clients.bigquery.read_source import TableSource, is_table
from rankbeam.transforms.clients.formats.cases.source import file_of

_UNITS = ("bytes", "kB", "MB", "GB", "TB")


@dataclass(frozen=True)
class TablePlan:
    """A table, view or query of BigQuery that an experiment reads."""

    source: str
    bytes: int  # at most: all columns of a table, or what a query processes
    is_query: bool  # charged by these bytes, as queries and views are; tables go through the Storage Read API

    def line(self) -> str:
        """For people.

        >>> TablePlan("bigquery://my-project.search.qrels", 1_250_000, is_query=False).line()
        'bigquery://my-project.search.qrels: at most 1.2 MB, read by the Storage Read API'
        """
        price = "the query processes" if self.is_query else "at most"
        way = "by a dry run" if self.is_query else "read by the Storage Read API"
        return f"{self.source}: {price} {_size(self.bytes)}, {way}"


def table_plans(experiment: Experiment) -> tuple[TablePlan, ...]:
    """The sources in BigQuery, each once, in the order of the experiment."""
    paths = dict.fromkeys(file_of(path) for path in experiment.inputs())
    return tuple(_plan(path) for path in paths if is_table(path))


def _plan(path: str) -> TablePlan:
    from rankbeam.transforms.clients.bigquery.read import volume  # few experiments need it

    source = TableSource.parse(path)
    size, is_query = volume(source)
    return TablePlan(str(source), size, is_query)


def _size(number: int) -> str:
    """A number of bytes, in the unit that keeps it below 1,000.

    >>> _size(0), _size(999), _size(1_000), _size(2_340_000_000_000_000)
    ('0 bytes', '999 bytes', '1.0 kB', '2,340.0 TB')
    """
    value, unit = float(number), 0
    while value >= 1000 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:,.0f} {_UNITS[unit]}" if unit == 0 else f"{value:,.1f} {_UNITS[unit]}"
