"""Views of failures: which configuration lacks what for a failed call, and which one has counted it."""

import duckdb
from support.outage import common, insert, small_tables  # noqa: F401  pytest finds it by name

PARTS = {"base": (None, []), "cut": ("base", []), "other": (None, []), "fused": (None, ["base", "other"])}
FAILED = [("base", "retrieve", None)] + [
    (name, "judge", metric) for name in PARTS for metric in ("ClaimRecall", "Faithfulness")
]


def test_a_judged_value_fails_for_its_own_configuration_alone(
    small_tables: duckdb.DuckDBPyConnection,  # noqa: F811  the fixture
) -> None:
    own = common("r", 0)
    insert(small_tables, "runs", [own])
    configurations = [
        own | {"config_id": name, "name": name, "derived_from": origin, "parts": parts}
        for name, (origin, parts) in PARTS.items()
    ]
    insert(small_tables, "configurations", configurations)
    insert(
        small_tables,
        "failures",
        [
            own | {"config_id": name, "query_id": "q", "stage": stage, "kind": "quota", "attempts": 1, "metric": metric}
            for name, stage, metric in FAILED
        ],
    )
    judged = {(name, name, "judge", metric) for name, stage, metric in FAILED if stage == "judge"}
    called = {(name, "base", "retrieve", None) for name in ("base", "cut", "fused")}
    shown = small_tables.execute("SELECT configuration, caller, stage, metric FROM unanswered").fetchall()
    assert (len(shown), set(shown)) == (11, judged | called)
    kinds = small_tables.execute("SELECT configuration, caller, stage, failures FROM failure_kinds").fetchall()
    assert sorted(kinds) == [
        ("base", "base", "judge", 2),
        ("base", "base", "retrieve", 1),
        ("cut", "cut", "judge", 2),
        ("fused", "base", "retrieve", 1),
        ("fused", "fused", "judge", 2),
        ("other", "other", "judge", 2),
    ]
