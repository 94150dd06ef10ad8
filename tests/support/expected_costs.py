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
            parts = self.used(run_id, config_id) | self.from_ledger(run_id, config_id)
            yield self.run(run_id) | own | {"config_id": config_id} | parts

    def trade_off(self) -> Iterator[Row]:
        called = {row["run_id"] for row in self.tables["usage"]}
        priced = []
        for row in self.leaderboard():
            used, cost = self.used(row["run_id"], row["config_id"]), self.of_1000(row["run_id"], row["config_id"])
            if row["run_id"] in called and row["mean"] is not None and cost is not None:
                priced.append((row, used["calls"], cost))
        for row, calls, cost in priced:
            rivals = [
                (other, row["sign"] * theirs["mean"])
                for theirs, _, other in priced
                if all(theirs[name] == row[name] for name in ("run_id", "dialect", "metric"))
            ]
            point = (cost, row["sign"] * row["mean"])
            columns = (*self.run(row["run_id"]), "metric", "dialect", "configuration", "mean", "ci_low", "ci_high")
            yield {name: row[name] for name in (*columns, "queries", "position", "config_id")} | {
                "cost_of_1000_queries": cost, "calls": calls,
                "ledger_hits": self.ledger_hits(row["run_id"]),
                "is_front": not any(
                    other <= cost and mean >= point[1] and (other, mean) != point for other, mean in rivals
                ),
            }  # fmt: skip

    def ledger_hits(self, run_id: str) -> int:
        return next(int(row["ledger_hits"]) for row in self.tables["runs"] if row["run_id"] == run_id)

    def of_1000(self, run_id: str, config_id: str) -> float | None:
        """The cost of 1,000 queries, also of answers in the ledger."""
        used, known = self.used(run_id, config_id), self.from_ledger(run_id, config_id)
        unknown = used["cost"] is None or known["ledger_cost"] is None
        return None if unknown else ratio((used["cost"] + known["ledger_cost"]) * 1000, used["queries"])

    def calls_of_a_query(self, run_id: str, config_id: str) -> float | None:
        used, known = self.used(run_id, config_id), self.from_ledger(run_id, config_id)
        return ratio(used["calls"] + known["ledger_calls"], used["queries"])

    def from_ledger(self, run_id: str, config_id: str) -> Row:
        known = self._parts("from_ledger", run_id, config_id)
        costs = [item["cost"] for item in known]
        return {
            "ledger_calls": sum(item["ledger_hits"] if item["calls"] is None else item["calls"] for item in known),
            "ledger_cost": None if None in costs else float(sum(costs)),
        }

    def _parts(self, column: str, run_id: str, config_id: str) -> list[Row]:
        """One configuration's parts of the rows of usage."""
        rows = (row for row in self.tables["usage"] if row["run_id"] == run_id)
        return [part for row in rows for part in row[column] or () if part["config_id"] == config_id]

    def used(self, run_id: str, config_id: str) -> Row:
        """The calls of one configuration, added up over stages, pools and models."""
        used = self._parts("configurations", run_id, config_id)
        names = ("calls", "shared_calls", "input_tokens", "output_tokens")
        costs = [item["cost"] for item in used]
        totals = [
            sum(row[name] or 0 for name in ("queries", "failed", "undefined", "missing"))
            for row in self.tables["configuration_metrics"]
            if (row["run_id"], row["config_id"], row["slice"]) == (run_id, config_id, "all")
        ]
        return {name: sum(item[name] for item in used) for name in names} | {
            "queries": max(totals, default=None),
            "cost": None if None in costs else float(sum(costs)),
        }
