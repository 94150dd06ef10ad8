"""One run, with the facts that several parts of its report need."""

import json
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.pipelines.report import words
from rankbeam.pipelines.report.values import QueryValues, read_values
from rankbeam.pipelines.results.leaderboard import distinct, flat_parameters
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.records.scores.rows import Comparison, ConfigurationMetric
from rankbeam.transforms.records.slices import ALL

LEADING = 16  # maximum number of configurations to compare with each other; the best ones are chosen

MOST_ROWS, MOST_SHOWN = 5_000, 100
"""Maximum rows of a table in the page's data, and of a table with pictures, of which each metric has two."""


INSIDE = "retriever."  # the component whose name is left out of parameters


class Pair(NamedTuple):
    """A comparison, and the positions of its configurations: the difference is `one` minus `other`."""

    one: int
    other: int
    row: Comparison


@dataclass(frozen=True)
class Study:
    """One run; configurations are named by their position in the experiment."""

    results: Results

    @cached_property
    def values(self) -> QueryValues:
        return read_values(self.results)

    @cached_property
    def metrics(self) -> list[str]:
        return self.results.metrics

    @cached_property
    def names(self) -> list[str]:
        return [row["name"] for row in self.results.configurations]

    @cached_property
    def ids(self) -> list[str]:
        return [row["config_id"] for row in self.results.configurations]

    @cached_property
    def titles(self) -> dict[int, str]:
        """The configurations, with one entry and one name for all that have equal values."""
        return {self.ids.index(row["config_id"]): row["name"] for row in self._distinct}

    @cached_property
    def members(self) -> dict[int, list[int]]:
        """The configurations behind each of `titles`."""
        return {self.ids.index(row["config_id"]): [*map(self.ids.index, row["config_ids"])] for row in self._distinct}

    @cached_property
    def _distinct(self) -> list[dict[str, Any]]:
        return distinct(self.results, self.ids[self.baseline])

    @cached_property
    def comparisons(self) -> list[Pair]:
        """The comparisons.

        If there are more than `MOST_ROWS`, slices are left out; if that is not enough, only pairs of leading
        configurations and pairs with the baseline remain.
        """
        table = self._comparison_table
        if table.num_rows > MOST_ROWS:
            table = table.filter(pc.equal(table["slice"], ALL))
        if table.num_rows > MOST_ROWS:
            leading = pa.array(
                sorted({self.ids[place] for name in self.metrics for place in self.order(name)[:LEADING]})
            )
            leads = [pc.is_in(table[name], value_set=leading) for name in ("config_id", "baseline")]
            table = table.filter(pc.or_(pc.and_(*leads), pc.equal(table["baseline"], self.ids[self.baseline])))
        places = {config_id: position for position, config_id in enumerate(self.ids)}
        rows = map(Comparison.of, table.to_pylist())
        return [Pair(places[row.config_id], places[row.baseline], row) for row in rows]

    @property
    def has_all_comparisons(self) -> bool:
        return len(self.comparisons) == int(self._comparison_table.num_rows)

    @cached_property
    def _comparison_table(self) -> pa.Table:
        return self.results.table("comparisons")

    @property
    def has_doubt(self) -> bool:
        """True if an interval rests on few queries."""
        means, pairs = self.results.means.values(), self.comparisons
        return any(row.is_unreliable for row in means) or any(pair.row.is_unreliable for pair in pairs)

    @cached_property
    def usage(self) -> list[dict[str, Any]]:
        return self.results.rows("usage")

    @cached_property
    def gates(self) -> list[dict[str, Any]]:
        return self.results.rows("gates")

    @cached_property
    def monitor(self) -> list[dict[str, Any]]:
        """The rows of `monitor`; none if the run was not compared with a baseline run."""
        return self.results.rows("monitor")

    @cached_property
    def parameters(self) -> list[dict[str, Any]]:
        """The parameters of every configuration, by path."""
        return [flat_parameters(json.loads(row["parameters"])) for row in self.results.configurations]

    @cached_property
    def _short(self) -> dict[str, str]:
        names = dict.fromkeys(name for name_values in self.parameters for name in name_values)
        lasts = Counter(name.rpartition(".")[2] for name in names)
        shorts = {name: name.rpartition(".")[2] for name in names}
        return {name: last if lasts[last] == 1 else name.removeprefix(INSIDE) for name, last in shorts.items()}

    def short(self, parameter: str) -> str:
        """A parameter's name without its component, if no other component has a parameter with this name."""
        return self._short.get(parameter, parameter.removeprefix(INSIDE))

    def written(self, parameter: str, value: Any) -> str:
        """A parameter's value as text: its label in the grid, if it has one."""
        label = self.results.labels.get(parameter.rpartition(".")[2], {}).get(json.dumps(value))
        return label or words.parameter(value)

    @cached_property
    def overall(self) -> dict[tuple[int, int, str], Comparison]:
        """The comparisons over all queries, by both configurations and the metric."""
        return {(one, other, row.metric): row for one, other, row in self.comparisons if row.slice == ALL}

    def compared(self, one: int, other: int, metric: str) -> tuple[Comparison | None, int]:
        """The comparison of two configurations in either direction, and the sign of `one` minus `other` in it."""
        row = self.overall.get((one, other, metric))
        return (self.overall.get((other, one, metric)), -1) if row is None else (row, 1)

    @cached_property
    def baseline(self) -> int:
        """The configuration that all others are compared with; the first if there are no comparisons."""
        table = self._comparison_table
        once = pc.and_(pc.equal(table["slice"], ALL), pc.equal(table["metric"], self.metrics[0]))
        compared = Counter(table["baseline"].filter(once).to_pylist())
        return self.ids.index(compared.most_common(1)[0][0]) if compared else 0

    @cached_property
    def confidence(self) -> str:
        """The confidence level of intervals, such as "95%"."""
        return words.percent(self.level)

    @property
    def level(self) -> float:
        return float(self.results.run["statistics"].get("confidence", 0.95))

    def mean(self, configuration: int, metric: str, name: str = ALL) -> ConfigurationMetric:
        return self.results.means[self.ids[configuration], name, metric]

    def is_cut_short(self, row: ConfigurationMetric) -> bool:
        """Return whether the metric of a mean reads more documents than `top_k` leaves."""
        return (row.config_id, row.metric) in self.results.cut_short

    def order(self, metric: str) -> list[int]:
        """The configurations, equal ones once, best first, failed ones last."""
        means, sign = {title: self.mean(title, metric).mean for title in self.titles}, self.results.sign_of(metric)
        return sorted(means, key=lambda name: (means[name] is None, -sign * (means[name] or 0.0), name))

    @property
    def pair(self) -> tuple[int, int]:
        """The two configurations that are compared initially: the best other one minus the baseline, as everywhere."""
        order = self.order(self.metrics[0])
        if order[0] != self.baseline:
            return order[0], self.baseline
        means = [self.mean(name, self.metrics[0]).mean for name in order]
        second = next((name for name, mean in zip(order, means, strict=True) if mean != means[0]), order[-1])
        return second, self.baseline

    def is_significant(self, row: Comparison) -> bool | None:
        """Return whether a comparison shows a difference; None if it was not tested."""
        return row.is_significant(self.level)
