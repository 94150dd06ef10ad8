"""Expected rows of the views of calls and costs, computed in plain Python from the rows of the tables."""

from collections.abc import Iterator, Mapping
from typing import Any

Row = dict[str, Any]


def ratio(part: float, whole: float) -> float | None:
    """A share; None of nothing."""
    return part / whole if whole else None


class ExpectedCosts:
    """The views of calls and costs; the class that has it makes the others."""

    tables: Mapping[str, list[Row]]
    configurations: Any
    run: Any
    leaderboard: Any

    def configuration_costs(self) -> Iterator[Row]:
        for (run_id, config_id), configuration in self.configurations.items():
            own = {"position": configuration["position"], "configuration": configuration["name"]}
            own["ledger_hits"] = self.ledger_hits(run_id)
            yield self.run(run_id) | own | {"config_id": config_id} | self.used(run_id, config_id)

    def trade_off(self) -> Iterator[Row]:
        called = {row["run_id"] for row in self.tables["usage"]}
        priced = []
        for row in self.leaderboard():
            used = self.used(row["run_id"], row["config_id"])
            if row["run_id"] in called and row["mean"] is not None and used["cost"] is not None:
                priced.append((row, used))
        for row, used in priced:
            rivals = [
                (self._of_1000(other), row["sign"] * theirs["mean"])
                for theirs, other in priced
                if all(theirs[name] == row[name] for name in ("run_id", "dialect", "metric"))
            ]
            point = (self._of_1000(used), row["sign"] * row["mean"])
            columns = (*self.run(row["run_id"]), "metric", "dialect", "configuration", "mean", "ci_low", "ci_high")
            yield {name: row[name] for name in (*columns, "queries", "position", "config_id")} | {
                "cost_of_1000_queries": self._of_1000(used), "calls": used["calls"],
                "ledger_hits": self.ledger_hits(row["run_id"]),
                "is_front": not any(
                    cost <= point[0] and mean >= point[1] and (cost, mean) != point for cost, mean in rivals
                ),
            }  # fmt: skip

    def ledger_hits(self, run_id: str) -> int:
        return next(int(row["ledger_hits"]) for row in self.tables["runs"] if row["run_id"] == run_id)

    @staticmethod
    def _of_1000(used: Row) -> float:
        return float(used["cost"] * 1000 / used["queries"])

    def used(self, run_id: str, config_id: str) -> Row:
        """The calls of one configuration, added up over stages, pools and models."""
        used = [
            item
            for row in self.tables["usage"]
            if row["run_id"] == run_id
            for item in row["configurations"] or ()
            if item["config_id"] == config_id
        ]
        names = ("calls", "shared_calls", "input_tokens", "output_tokens")
        costs = [item["cost"] for item in used if item["calls"]]
        totals = [
            sum(row[name] or 0 for name in ("queries", "failed", "undefined", "missing"))
            for row in self.tables["configuration_metrics"]
            if (row["run_id"], row["config_id"], row["slice"]) == (run_id, config_id, "all")
        ]
        return {name: sum(item[name] for item in used) for name in names} | {
            "queries": max(totals, default=None),
            "cost": None if None in costs else float(sum(costs)),
        }
