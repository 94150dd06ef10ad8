"""Expected rows of every view, computed in plain Python from the rows of the tables."""

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cached_property
from itertools import starmap
from typing import Any

from support.expected_answers import ExpectedAnswers
from support.expected_costs import ExpectedCosts, ratio

from rankbeam.transforms.records.errors import FailureKind
from rankbeam.transforms.records.slices import grouping_of, value_of

Row = dict[str, Any]

MEANS = (
    "mean", "ci_low", "ci_high", "std_error", "joint_low", "joint_high", "may_be_best", "queries", "empty", "failed",
    "undefined", "missing", "lowest", "highest", "tie_lowest", "tie_highest",
)  # fmt: skip

STAGE_COLUMNS = (
    "stage", "slice", "metric", "configuration", "ci_low", "ci_high", "p_value", "p_adjusted", "queries", "wins",
    "ties", "losses", "config_id", "baseline_id",
)  # fmt: skip
PREVIOUS = ("previous_run_id", "previous_started_at", "previous_config_id")


def minus(left: float | None, right: float | None) -> float | None:
    """A difference; None where a side is."""
    return None if left is None or right is None else left - right


class Expected(ExpectedAnswers, ExpectedCosts):
    """The views of some tables."""

    def __init__(self, tables: Mapping[str, list[Row]]) -> None:
        self.tables = tables
        self.runs = {row["run_id"]: row for row in tables["runs"]}
        latest: dict[str, Row] = {}
        for row in sorted(tables["runs"], key=lambda row: (row["started_at"], row["run_id"])):
            latest[row["experiment"]] = row
        self.latest = {row["run_id"] for row in latest.values()}
        self.values = {
            (row["run_id"], row["config_id"], row["query_id"]): row
            | {"metrics": metrics_of(row), "statuses": {item["metric"]: item["status"] for item in row["metrics"]}}
            for row in tables["query_metrics"]
        }

    def __getattr__(self, name: str) -> Callable[[], Iterator[Row]]:
        """A view of the latest run of each experiment has the rows of the view of all runs that are of these."""
        if not name.startswith("latest_"):
            raise AttributeError(name)
        every = getattr(self, name.removeprefix("latest_"))
        return lambda: (row for row in every() if row["is_latest"])

    def run(self, run_id: str) -> Row:
        """The columns of a run that most views have."""
        row = self.runs[run_id]
        common = {name: row[name] for name in ("run_id", "experiment", "started_at")}
        return common | {"is_latest": run_id in self.latest}

    def shown(self, table: str) -> Iterator[Row]:
        """The rows of finished runs."""
        return (row for row in self.tables[table] if row["run_id"] in self.runs)

    @cached_property
    def configurations(self) -> dict[tuple[str, str], Row]:
        """By run and id."""
        return {(row["run_id"], row["config_id"]): row for row in self.shown("configurations")}

    @cached_property
    def means(self) -> dict[tuple[str, str, str], dict[str, Row]]:
        """By run, id and slice: by metric."""
        rows: dict[tuple[str, str, str], dict[str, Row]] = defaultdict(dict)
        for row in self.shown("configuration_metrics"):
            rows[row["run_id"], row["config_id"], row["slice"]][row["metric"]] = row
        return rows

    def run_history(self) -> Iterator[Row]:
        for row in self.runs.values():
            columns = ("finished_at", "state", "dataset_fingerprint", "calls", "ledger_hits", "failures")
            yield (
                self.run(row["run_id"])
                | {name: row[name] for name in columns}
                | {
                    "duration_s": (row["finished_at"] - row["started_at"]).total_seconds(),
                    "ledger_share": ratio(row["ledger_hits"], row["calls"] + row["ledger_hits"]),
                    "failures_per_call": ratio(row["failures"], row["calls"]),
                    "warnings": len(row["warnings"]),
                }
            )

    def run_choices(self) -> Iterator[Row]:
        good = {
            run_id for (run_id, _, name), by in self.means.items() if name == "all" and any(map(has_mean, by.values()))
        }
        for run_id in self.runs:
            ours = [row["run_id"] for row in self.in_order if row["experiment"] == self.runs[run_id]["experiment"]]
            last = [run for run in ours if run in good][-1:]
            yield self.run(run_id) | {"has_values": run_id in good, "is_last_good": [run_id] == last}

    @cached_property
    def in_order(self) -> list[Row]:
        """The rows of finished runs, the first that was started first."""
        return sorted(self.runs.values(), key=lambda row: (row["started_at"], row["run_id"]))

    def before(self, run_id: str) -> Iterator[Row]:
        """The earlier runs of an experiment over the same dataset, the last one first."""
        own = self.runs[run_id]
        for row in reversed(self.in_order[: self.in_order.index(own)]):
            if all(row[name] == own[name] for name in ("experiment", "dataset_fingerprint")):
                yield row

    def configuration_history(self) -> Iterator[Row]:
        for (run_id, _), row in self.configurations.items():
            earlier = (self.named(run["run_id"], row["name"]) for run in self.before(run_id))
            last = next((run for run in earlier if run is not None), {})
            names = ("config_id", "position", "retriever", "parameters", "derived_from", "dialect")
            more = {
                "configuration": row["name"],
                "dataset_fingerprint": self.runs[run_id]["dataset_fingerprint"],
            }
            previous = {f"previous_{name}": last.get(name) for name in ("run_id", "started_at", "config_id")}
            yield self.run(run_id) | {name: row[name] for name in names} | more | previous

    def named(self, run_id: str, name: str) -> Row | None:
        """The configuration of a run that has a name."""
        return next(
            (row for (run, _), row in self.configurations.items() if (run, row["name"]) == (run_id, name)), None
        )

    def previous(self, run_id: str, config_id: str, metric: str) -> Row:
        """The earlier row of means to compare with: by name, else by parameters; {} if none exists."""
        name = self.configurations[run_id, config_id]["name"]
        for same in ({"name": name}, {"config_id": config_id}):
            for run in self.before(run_id):
                for (of_run, of_id), row in self.configurations.items():
                    if of_run == run["run_id"] and same.items() <= row.items():
                        before = self.means[of_run, of_id, "all"].get(metric)
                        if before is not None and has_mean(before):
                            return before
        return {}

    def leaderboard(self) -> Iterator[Row]:
        yield from (drop(row, "slice") for row in self._ranked() if row["slice"] == "all")

    def slice_leaderboard(self) -> Iterator[Row]:
        for row in self._ranked():
            if row["slice"] != "all":
                yield row | {"attribute": grouping_of(row["slice"]), "value": value_of(row["slice"])}

    def _ranked(self) -> Iterator[Row]:
        for (run_id, config_id, name), by_metric in self.means.items():
            for metric, row in by_metric.items():
                configuration = self.configurations[run_id, config_id]
                others = [
                    by[metric]["mean"]
                    for (run, of_id, of), by in self.means.items()
                    if (run, of, self.configurations[run, of_id]["dialect"]) == (run_id, name, configuration["dialect"])
                ]
                sign = sign_of(metric)
                own = -math.inf if row["mean"] is None else sign * row["mean"]
                above = [other for other in others if other is not None and sign * other > own]
                yield self.run(run_id) | {column: row[column] for column in (*MEANS, "equal_to", "panel")} | {
                    "slice": name, "metric": metric, "config_id": config_id, "rank": 1 + len(above),
                    "configuration": configuration["name"], "position": configuration["position"],
                    "dialect": configuration["dialect"], "sign": sign,
                }  # fmt: skip

    def differences(self) -> Iterator[Row]:
        for row in self.shown("comparisons"):
            ours, theirs = (self.configurations[row["run_id"], row[name]] for name in ("config_id", "baseline"))
            yield row | self.run(row["run_id"]) | {
                "configuration": ours["name"], "baseline": theirs["name"], "position": ours["position"],
                "dialect": ours["dialect"], "baseline_id": theirs["config_id"],
            }  # fmt: skip

    def stages(self) -> Iterator[Row]:
        for row in self.differences():
            if row["stage"] is not None:
                own = {name: row[name] for name in (*self.run(row["run_id"]), *STAGE_COLUMNS)}
                both = [(row["run_id"], row[key]) for key in ("config_id", "baseline_id")]
                yield own | {
                    "without_stage": row["baseline"], "gain": row["difference"],
                    "further_calls": minus(*starmap(self.calls_of_a_query, both)),
                    "further_cost": minus(*starmap(self.of_1000, both)),
                }  # fmt: skip

    def per_query(self) -> Iterator[Row]:
        for row in self.shown("query_metrics"):
            columns = {name: row[name] for name in ("query_id", "text", "status", "slices", "config_id")}
            name = self.configurations[row["run_id"], row["config_id"]]["name"]
            for item in row["metrics"]:
                own = {"status": item["status"] or row["status"]}
                yield self.run(row["run_id"]) | columns | {"configuration": name} | item | own

    def side_by_side(self) -> Iterator[Row]:
        for pair in self.differences():
            if pair["slice"] == "all":
                columns = (*self.run(pair["run_id"]), "metric", "configuration", "baseline", "config_id", "baseline_id")
                theirs = (pair["run_id"], pair["baseline_id"], "baseline")
                for query in self._both(pair["run_id"], pair["config_id"], pair["metric"], theirs):
                    yield {name: pair[name] for name in columns} | query

    def query_changes(self) -> Iterator[Row]:
        for line in self.trend():
            columns = (*self.run(line["run_id"]), "configuration", "metric", "config_id", *PREVIOUS)
            theirs = (line["previous_run_id"], line["previous_config_id"], "previous")
            for query in self._both(line["run_id"], line["config_id"], line["metric"], theirs):
                yield {name: line[name] for name in columns} | query

    def _both(self, run_id: str, config_id: str, metric: str, theirs: tuple[str, str, str]) -> Iterator[Row]:
        other_run, other_id, name = theirs
        for (run, config, query_id), ours in self.values.items():
            if (run, config) == (run_id, config_id) and (other_run, other_id, query_id) in self.values:
                other = self.values[other_run, other_id, query_id]
                value, before = ours["metrics"].get(metric), other["metrics"].get(metric)
                yield {column: ours[column] for column in ("query_id", "text", "slices")} | {
                    "status": status_of(ours, metric), f"{name}_status": status_of(other, metric),
                    "value": value, f"{name}_value": before,
                    "difference": minus(value, before),
                }  # fmt: skip

    def regressions(self) -> Iterator[Row]:
        grouped: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
        for row in self.query_changes():
            grouped[row["run_id"], row["config_id"], row["metric"]].append(row)
        for line in self.trend():
            rows = grouped[line["run_id"], line["config_id"], line["metric"]]
            columns = ("configuration", "dialect", "metric", "config_id", "parameters_changed", *PREVIOUS)
            yield (
                self.run(line["run_id"])
                | {name: line[name] for name in columns}
                | verdict(rows, sign_of(line["metric"]))
            )

    def trend(self) -> Iterator[Row]:
        for (run_id, config_id), configuration in self.configurations.items():
            about = {
                "dataset_fingerprint": self.runs[run_id]["dataset_fingerprint"], "config_id": config_id,
                "configuration": configuration["name"], "dialect": configuration["dialect"],
            }  # fmt: skip
            means = [name for name in MEANS if not name.startswith(("joint", "tie", "may"))]
            for metric, row in self.means[run_id, config_id, "all"].items():
                last = self.previous(run_id, config_id, metric)
                yield self.run(run_id) | about | {name: row[name] for name in means} | {
                    "metric": metric, "sign": sign_of(metric), "previous_mean": last.get("mean"),
                    "change": minus(row["mean"], last.get("mean")),
                    "parameters_changed": config_id != last["config_id"] if last else None,
                    **{name: last.get(name.removeprefix("previous_")) for name in PREVIOUS},
                }  # fmt: skip

    def unanswered(self) -> Iterator[Row]:
        for (run_id, config_id), row in self.configurations.items():
            others = {row["derived_from"], *row["parts"]}
            for failure in self.shown("failures"):
                callers = {config_id} if failure["stage"] == "judge" else {config_id} | others
                if failure["run_id"] == run_id and failure["config_id"] in callers:
                    names = ("query_id", "stage", "kind", "attempts", "message", "metric")
                    columns = {name: failure[name] for name in names}
                    caller = self.configurations[run_id, failure["config_id"]]
                    yield self.run(run_id) | columns | {
                        "configuration": row["name"], "caller": caller["name"], "config_id": config_id,
                        "caller_id": caller["config_id"], "derived_from": row["derived_from"],
                    }  # fmt: skip

    def coverage(self) -> Iterator[Row]:
        for (run_id, config_id), row in self.configurations.items():
            queries_of = [values for (run, of, _), values in self.values.items() if (run, of) == (run_id, config_id)]
            panel, states = worst_panel(self.means[run_id, config_id, "all"].values(), queries_of)
            kinds = [
                failure["kind"]
                for failure in self.unanswered()
                if (failure["run_id"], failure["config_id"]) == (run_id, config_id)
            ]
            queries, empty = states.count("ok") + states.count("empty"), states.count("empty")
            origin = self.configurations[run_id, row["derived_from"]]["name"] if row["derived_from"] else None
            yield self.run(run_id) | {name: row[name] for name in ("retriever", "dialect", "position", "config_id")} | {
                "configuration": row["name"], "queries": queries, "empty": empty, "failed": states.count("failed"),
                "missing": states.count("missing"), "undefined": states.count("undefined"), "panel": panel,
                "not_asked": states.count("not_asked"), "dropped_at": row["dropped_at"],
                "empty_rate": ratio(empty, queries), "cut_from": origin, "failure_rate": failure_rate(states),
                **{f"failed_{kind.value}": None if origin else kinds.count(kind.value) for kind in FailureKind},
            }  # fmt: skip

    def monitoring(self) -> Iterator[Row]:
        names = {(row["run_id"], row["config_id"]): row["name"] for row in self.tables["configurations"]}
        for row in self.tables["monitor"]:
            name = names[row["run_id"], row["config_id"]]
            yield self.run(row["run_id"]) | drop(row, "run_id", "experiment", "started_at") | {"configuration": name}

    def failure_kinds(self) -> Iterator[Row]:
        grouped: dict[tuple[str, ...], list[Row]] = defaultdict(list)
        for row in self.unanswered():
            if row["derived_from"] is None or row["caller_id"] == row["config_id"]:
                grouped[row["run_id"], row["config_id"], row["caller_id"], row["stage"], row["kind"]].append(row)
        for rows in grouped.values():
            yield drop(rows[0], "query_id", "message", "metric", "derived_from") | {
                "failures": len(rows), "queries": len({row["query_id"] for row in rows}),
                "attempts": sum(row["attempts"] for row in rows), "example": min(row["message"] for row in rows),
            }  # fmt: skip

    def cost(self) -> Iterator[Row]:
        grouped: dict[tuple[datetime, str], list[Row]] = defaultdict(list)
        for row in self.run_history():
            hour = row["started_at"].astimezone(UTC).replace(minute=0, second=0, microsecond=0)
            grouped[hour, row["experiment"]].append(row)
        for (hour, experiment), rows in grouped.items():
            sums = {name: sum(row[name] for row in rows) for name in ("calls", "ledger_hits", "failures", "duration_s")}
            share = ratio(sums["ledger_hits"], sums["calls"] + sums["ledger_hits"])
            when = {"started_hour": hour, "started_day": hour.date(), "experiment": experiment}
            yield when | sums | {"runs": len(rows), "ledger_share": share}


def costly(value: Any) -> Any:
    """The rows, with two metrics of which lower values are better: `Cost`, in rows that do not say so, and AP."""
    if isinstance(value, dict):
        known = {"nDCG@10": None, "AP": True}.get(value.get("metric"), False)
        return {name: known if name == "lower_is_better" else costly(part) for name, part in value.items()}
    if isinstance(value, list):
        return [costly(part) for part in value]
    return "Cost" if value == "nDCG@10" else value


def sign_of(metric: str) -> int:
    return -1 if metric in ("Cost", "AP") else 1


def verdict(rows: list[Row], sign: int) -> Row:
    """The summary of the changes of queries."""
    paired = [row for row in rows if row["difference"] is not None]
    differences = [row["difference"] for row in paired]
    better, worse = (sum(way * difference > 0 for difference in differences) for way in (sign, -sign))
    counts = {
        "queries": len(paired), "unpaired": len(rows) - len(paired), "better": better, "worse": worse,
        "same": len(paired) - better - worse,
    }  # fmt: skip
    if not paired:
        names = ("mean", "previous_mean", "difference", "std_error", "ci_low", "ci_high")
        return counts | dict.fromkeys(names) | {"verdict": "nothing to compare"}
    mean = statistics.fmean(differences)
    error = statistics.stdev(differences) / len(paired) ** 0.5 if len(paired) > 1 else None
    few = len(paired) < 20
    low, high = (None, None) if few or error is None else (mean - 1.96 * error, mean + 1.96 * error)
    sure = "unclear" if not low or not high or low < 0 < high else "better" if sign * low > 0 else "worse"
    return counts | {
        "mean": statistics.fmean(row["value"] for row in paired),
        "previous_mean": statistics.fmean(row["previous_value"] for row in paired),
        "difference": mean, "std_error": error, "ci_low": low, "ci_high": high,
        "verdict": "same" if better + worse == 0 else sure,
    }  # fmt: skip


def worst_panel(means: Iterable[Row], queries: list[Row]) -> tuple[str, list[str]]:
    """The group of metrics of which most queries failed, and the status of every query there."""
    judged = sorted(mean["metric"] for mean in means if mean["panel"] != "retrieval")
    panels = {"retrieval": [query["status"] for query in queries]}
    panels |= {metric: [status_of(query, metric) for query in queries] for metric in judged}
    return max(panels.items(), key=lambda panel: -1.0 if (rate := failure_rate(panel[1])) is None else rate)


def failure_rate(states: list[str]) -> float | None:
    """The share of queries that failed, of those that were to be scored."""
    return ratio(states.count("failed"), sum(state != "missing" for state in states))


def status_of(row: Row, metric: str) -> str:
    """The status of a query for a metric."""
    status: str = row["statuses"].get(metric) or row["status"]
    return status


def has_mean(row: Row) -> bool:
    """Return whether any query was scored."""
    return row["mean"] is not None


def metrics_of(row: Row) -> dict[str, float]:
    """The values of a query by metric."""
    return {item["metric"]: item["value"] for item in row["metrics"]}


def drop(row: Row, *names: str) -> Row:
    """A row without some columns."""
    return {name: value for name, value in row.items() if name not in names}
