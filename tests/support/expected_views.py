"""What every view should hold, computed in plain Python from the rows of the tables."""

import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from transforms.records.failures import FailureKind
from transforms.records.slices import grouping_of, value_of

Row = dict[str, Any]

MEANS = (
    "mean", "ci_low", "ci_high", "std_error", "joint_low", "joint_high", "may_be_best", "queries", "empty", "failed",
    "missing", "lowest", "highest", "tie_lowest", "tie_highest",
)  # fmt: skip


def ratio(part: float, whole: float) -> float | None:
    """A share; None of nothing."""
    return part / whole if whole else None


def minus(left: float | None, right: float | None) -> float | None:
    """A difference; None where a side is."""
    return None if left is None or right is None else left - right


class Expected:
    """The views of some tables."""

    def __init__(self, tables: Mapping[str, list[Row]]) -> None:
        self.tables = tables
        self.runs = {row["run_id"]: row for row in tables["runs"]}
        latest: dict[str, Row] = {}
        for row in sorted(tables["runs"], key=lambda row: (row["started_at"], row["run_id"])):
            latest[row["experiment"]] = row
        self.latest = {row["run_id"] for row in latest.values()}
        self.values = {
            (row["run_id"], row["config_id"], row["query_id"]): row | {"metrics": metrics_of(row)}
            for row in tables["query_metrics"]
        }

    def run(self, run_id: str) -> Row:
        """What most views say of a run."""
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
        found: dict[tuple[str, str, str], dict[str, Row]] = defaultdict(dict)
        for row in self.shown("configuration_metrics"):
            found[row["run_id"], row["config_id"], row["slice"]][row["metric"]] = row
        return found

    def run_history(self) -> Iterator[Row]:
        for row in self.runs.values():
            kept = ("finished_at", "state", "dataset_fingerprint", "calls", "ledger_hits", "failures")
            yield (
                self.run(row["run_id"])
                | {name: row[name] for name in kept}
                | {
                    "duration_s": (row["finished_at"] - row["started_at"]).total_seconds(),
                    "ledger_share": ratio(row["ledger_hits"], row["calls"] + row["ledger_hits"]),
                    "failures_per_call": ratio(row["failures"], row["calls"]),
                    "warnings": len(row["warnings"]),
                }
            )

    def configuration_history(self) -> Iterator[Row]:
        before: dict[tuple[str, str, str], Row] = {}
        for run in sorted(self.runs.values(), key=lambda row: (row["started_at"], row["run_id"])):
            for row in self.shown("configurations"):
                if row["run_id"] != run["run_id"]:
                    continue
                line = run["experiment"], run["dataset_fingerprint"], row["name"]
                last = before.get(line, {})
                kept = {
                    name: row[name] for name in ("config_id", "position", "retriever", "parameters", "derived_from")
                }
                previous = {f"previous_{name}": last.get(name) for name in ("run_id", "started_at", "config_id")}
                more = {"dataset_fingerprint": run["dataset_fingerprint"], "configuration": row["name"]}
                yield self.run(row["run_id"]) | kept | previous | more
                before[line] = row

    def leaderboard(self) -> Iterator[Row]:
        yield from (drop(row, "slice") for row in self._ranked() if row["slice"] == "all")

    def slice_leaderboard(self) -> Iterator[Row]:
        for row in self._ranked():
            if row["slice"] != "all":
                yield row | {"attribute": grouping_of(row["slice"]), "value": value_of(row["slice"])}

    def _ranked(self) -> Iterator[Row]:
        for (run_id, config_id, name), by_metric in self.means.items():
            for metric, row in by_metric.items():
                others = [by[metric]["mean"] for (run, _, of), by in self.means.items() if (run, of) == (run_id, name)]
                above = [other for other in others if other is not None and other > (row["mean"] or 0)]
                configuration = self.configurations[run_id, config_id]
                yield self.run(run_id) | {each: row[each] for each in MEANS} | {
                    "slice": name, "metric": metric, "config_id": config_id, "rank": 1 + len(above),
                    "configuration": configuration["name"], "position": configuration["position"],
                }  # fmt: skip

    def differences(self) -> Iterator[Row]:
        for row in self.shown("comparisons"):
            ours, theirs = (self.configurations[row["run_id"], row[name]] for name in ("config_id", "baseline"))
            yield row | self.run(row["run_id"]) | {
                "configuration": ours["name"], "baseline": theirs["name"], "position": ours["position"],
                "baseline_id": theirs["config_id"],
            }  # fmt: skip

    def per_query(self) -> Iterator[Row]:
        for row in self.shown("query_metrics"):
            kept = {name: row[name] for name in ("query_id", "text", "status", "slices", "config_id")}
            name = self.configurations[row["run_id"], row["config_id"]]["name"]
            for item in row["metrics"]:
                yield self.run(row["run_id"]) | kept | {"configuration": name} | item

    def side_by_side(self) -> Iterator[Row]:
        for pair in self.differences():
            if pair["slice"] == "all":
                kept = (*self.run(pair["run_id"]), "metric", "configuration", "baseline", "config_id", "baseline_id")
                theirs = (pair["run_id"], pair["baseline_id"], "baseline")
                for query in self._both(pair["run_id"], pair["config_id"], pair["metric"], theirs):
                    yield {name: pair[name] for name in kept} | query

    def query_changes(self) -> Iterator[Row]:
        for line in self.configuration_history():
            kept = (
                *self.run(line["run_id"]),
                "configuration",
                "config_id",
                *(key for key in line if "previous" in key),
            )
            for metric in self.means[line["run_id"], line["config_id"], "all"] if line["previous_run_id"] else ():
                theirs = (line["previous_run_id"], line["previous_config_id"], "previous")
                for query in self._both(line["run_id"], line["config_id"], metric, theirs):
                    yield {name: line[name] for name in kept} | {"metric": metric} | query

    def _both(self, run_id: str, config_id: str, metric: str, theirs: tuple[str, str, str]) -> Iterator[Row]:
        other_run, other_id, name = theirs
        for (run, config, query_id), ours in self.values.items():
            if (run, config) == (run_id, config_id) and (other_run, other_id, query_id) in self.values:
                other = self.values[other_run, other_id, query_id]
                value, before = ours["metrics"].get(metric), other["metrics"].get(metric)
                yield {each: ours[each] for each in ("query_id", "text", "status", "slices")} | {
                    f"{name}_status": other["status"], "value": value, f"{name}_value": before,
                    "difference": minus(value, before),
                }  # fmt: skip

    def regressions(self) -> Iterator[Row]:
        grouped: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
        for row in self.query_changes():
            grouped[row["run_id"], row["config_id"], row["metric"]].append(row)
        for rows in grouped.values():
            paired = [row for row in rows if row["difference"] is not None]
            differences = [row["difference"] for row in paired]
            mean, error = statistics.fmean(differences), statistics.stdev(differences) / len(differences) ** 0.5
            better, worse = sum(each > 0 for each in differences), sum(each < 0 for each in differences)
            few, low, high = len(paired) < 20, mean - 1.96 * error, mean + 1.96 * error
            sure = "worse" if high < 0 else "better" if low > 0 else "unclear"
            gone = ("query_id", "text", "status", "previous_status", "value", "previous_value", "slices")
            yield drop(rows[0], *gone) | {
                "mean": statistics.fmean(row["value"] for row in paired),
                "previous_mean": statistics.fmean(row["previous_value"] for row in paired),
                "difference": mean, "std_error": error,
                "ci_low": None if few else low, "ci_high": None if few else high,
                "verdict": "same" if better + worse == 0 else "unclear" if few else sure,
                "queries": len(paired), "unpaired": len(rows) - len(paired), "better": better, "worse": worse,
                "same": len(paired) - better - worse,
                "parameters_changed": rows[0]["config_id"] != rows[0]["previous_config_id"],
            }  # fmt: skip

    def trend(self) -> Iterator[Row]:
        for line in self.configuration_history():
            last = self.means.get((line["previous_run_id"], line["previous_config_id"], "all"), {})
            kept = (
                *self.run(line["run_id"]), "dataset_fingerprint", "configuration", "previous_run_id", "config_id",
            )  # fmt: skip
            means = [name for name in MEANS if not name.startswith(("joint", "tie", "may"))]
            for metric, row in self.means[line["run_id"], line["config_id"], "all"].items():
                before = last.get(metric, {}).get("mean")
                changed = line["config_id"] != line["previous_config_id"] if line["previous_config_id"] else None
                yield {name: line[name] for name in kept} | {name: row[name] for name in means} | {
                    "metric": metric, "previous_mean": before, "change": minus(row["mean"], before),
                    "parameters_changed": changed,
                }  # fmt: skip

    def coverage(self) -> Iterator[Row]:
        for (run_id, config_id), row in self.configurations.items():
            states = [each["status"] for (run, of, _), each in self.values.items() if (run, of) == (run_id, config_id)]
            caller = run_id, row["derived_from"] or config_id
            kinds = [each["kind"] for each in self.shown("failures") if (each["run_id"], each["config_id"]) == caller]
            queries, empty = states.count("ok") + states.count("empty"), states.count("empty")
            yield self.run(run_id) | {name: row[name] for name in ("retriever", "position", "config_id")} | {
                "configuration": row["name"], "queries": queries, "empty": empty, "failed": states.count("failed"),
                "missing": states.count("missing"), "empty_rate": ratio(empty, queries),
                "failure_rate": ratio(states.count("failed"), queries + states.count("failed")),
                **{f"failed_{kind.value}": kinds.count(kind.value) for kind in FailureKind},
            }  # fmt: skip

    def failure_kinds(self) -> Iterator[Row]:
        grouped: dict[tuple[str, ...], list[Row]] = defaultdict(list)
        for row in self.shown("failures"):
            grouped[row["run_id"], row["config_id"], row["stage"], row["kind"]].append(row)
        for (run_id, config_id, stage, kind), rows in grouped.items():
            yield self.run(run_id) | {
                "config_id": config_id, "stage": stage, "kind": kind,
                "configuration": self.configurations[run_id, config_id]["name"],
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


def metrics_of(row: Row) -> dict[str, float]:
    """The values of a query by metric."""
    return {item["metric"]: item["value"] for item in row["metrics"]}


def drop(row: Row, *names: str) -> Row:
    """A row without some columns."""
    return {name: value for name, value in row.items() if name not in names}
