"""Views of costs: which configuration is worth its cost, where they were asked different numbers of queries."""

import duckdb
from support.outage import common, insert, small_tables  # noqa: F401  pytest finds it by name

RACED = {"dropped": (10, 3.0, 0.4), "best": (100, 20.0, 0.8), "worse": (100, 25.0, 0.7)}
"""Queries, total cost and mean of each configuration; a race asked the first one a tenth of the queries."""


def test_the_front_compares_costs_of_as_many_queries(
    small_tables: duckdb.DuckDBPyConnection,  # noqa: F811  the fixture
) -> None:
    own = common("r", 0)
    insert(small_tables, "runs", [own])
    names = [own | {"config_id": name, "name": name, "dialect": "rankbeam", "parts": []} for name in RACED]
    insert(small_tables, "configurations", names)
    means = [
        own | {"config_id": name, "slice": "all", "metric": "RR", "mean": mean, "queries": queries}
        | {"failed": 0, "undefined": 0, "missing": 0}
        for name, (queries, _, mean) in RACED.items()
    ]  # fmt: skip
    insert(small_tables, "configuration_metrics", means)
    used = [
        {"config_id": name, "calls": queries, "shared_calls": 0, "cost": cost}
        for name, (queries, cost, _) in RACED.items()
    ]
    insert(small_tables, "usage", [own | {"stage": "retrieve", "pool": "p", "configurations": used}])
    points = small_tables.execute(
        "SELECT configuration, cost_of_1000_queries, is_front FROM trade_off ORDER BY configuration"
    )
    assert points.fetchall() == [("best", 200.0, True), ("dropped", 300.0, False), ("worse", 250.0, False)]
