"""Configurations with equal values: one row of a leaderboard, one member of a family of comparisons."""

import random
from pathlib import Path
from typing import Any

import pytest
from support.runs import query_values, rankbeam, run_experiment

from rankbeam.pipelines.results.run import Results

Row = dict[str, Any]
QUERIES = [f"q{i}" for i in range(60)]
CUTS = [3, 10, 40, 50]


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Two runs, each cut at several depths; RR@10 is blind to depths above 10, and R@40 to those above 40."""
    folder = tmp_path_factory.mktemp("sweep")
    draw = random.Random(7)
    folder.joinpath("qrels.txt").write_text("".join(f"{query} 0 good{i} 1\n" for query in QUERIES for i in range(4)))
    for name, luck in (("base", 0.05), ("new", 0.08)):
        lines = []
        for query in QUERIES:
            good = iter(f"good{i}" for i in range(4))
            named = [next(good, f"x{rank}") if draw.random() < luck else f"bad{rank}" for rank in range(60)]
            lines += [f"{query} Q0 {doc} {rank} {100 - rank} t\n" for rank, doc in enumerate(named)]
        folder.joinpath(f"{name}.run").write_text("".join(lines))
    runs = [{"name": name, "retriever": {"type": "run_file", "path": f"{name}.run"}} for name in ("base", "new")]
    experiment = {"dataset": {"qrels": "qrels.txt"}, "configurations": runs, "metrics": ["RR@10", "R@40"]}
    return run_experiment(folder, experiment | {"grid": {"top_k": CUTS}, "baseline": "base:top_k=10"})


def named(results: Results, rows: list[Row]) -> dict[tuple[str, str], Row]:
    """Rows by the configuration's name and the metric."""
    names = {row["config_id"]: row["name"] for row in results.configurations}
    return {(names[row["config_id"]], row["metric"]): row for row in rows if row["slice"] == "all"}


def holm(p_values: list[float]) -> list[float]:
    """Written from Holm (1979)."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted, reached = [0.0] * len(p_values), 0.0
    for place, index in enumerate(order):
        reached = max(reached, min(1.0, (len(p_values) - place) * p_values[index]))
        adjusted[index] = reached
    return adjusted


def test_a_configuration_names_the_first_that_has_its_values(sweep: Results) -> None:
    values, names = query_values(sweep), [row["name"] for row in sweep.configurations]
    ids = {row["config_id"]: row["name"] for row in sweep.configurations}
    rows = named(sweep, list(map(vars, sweep.means.values())))
    copies = 0
    for metric in ("RR@10", "R@40"):
        columns = {name: [values[name][query][metric] for query in QUERIES] for name in names}
        for place, name in enumerate(names):
            first = next((other for other in names[:place] if columns[other] == columns[name]), None)
            assert ids.get(rows[name, metric]["equal_to"]) == first
            copies += first is not None
    assert copies == 6  # RR@10 at 40 and 50, R@40 at 50, of two runs


def test_a_family_holds_a_hypothesis_once(sweep: Results) -> None:
    rows = named(sweep, sweep.table("comparisons").to_pylist())
    for metric, copies in (("RR@10", {"base:top_k=40", "base:top_k=50"}), ("R@40", set())):
        family: dict[tuple[float, ...], list[Row]] = {}
        for (name, of), row in rows.items():
            if of == metric and name in copies:  # the baseline's own values
                assert (row["difference"], row["ties"]) == (0.0, len(QUERIES))
                assert (row["p_value"], row["p_adjusted"], row["q_value"]) == (None, None, None)
            elif of == metric:
                values = query_values(sweep)[name]
                family.setdefault(tuple(values[query][metric] for query in QUERIES), []).append(row)
        expected = holm([rows[0]["p_value"] for rows in family.values()])
        for adjusted, equal in zip(expected, family.values(), strict=True):
            assert [row["p_adjusted"] for row in equal] == pytest.approx([adjusted] * len(equal), rel=1e-12)
        assert sum(map(len, family.values())) > len(family)


def test_equal_configurations_share_a_row_of_the_leaderboard(sweep: Results) -> None:
    shown = rankbeam("report", sweep.output)
    assert shown.exit_code == 0, shown.stderr
    page = (Path(sweep.output) / "report.html").read_text()
    assert "base (top_k 40, 50)" in page
    text = rankbeam("compare", sweep.output, "-m", "RR@10").stdout
    assert "base:top_k=40, base:top_k=50 are equal at every query" in text


def test_gates_still_know_every_configuration(sweep: Results, tmp_path: Path) -> None:
    gates = "gates:\n  - {metric: RR@10, value: difference_low, at_least: -0.1, configuration: 'base:top_k=50'}\n"
    (tmp_path / "gates.yaml").write_text(gates)
    outcome = rankbeam("gate", sweep.output, "--experiment", str(tmp_path / "gates.yaml"))
    assert outcome.exit_code == 0, outcome.stderr
    assert "met    base:top_k=50" in outcome.stdout


def test_none_of_equal_configurations_is_the_best(sweep: Results) -> None:
    folder = Path(sweep.output).parent
    (folder / "copy.run").write_text((folder / "new.run").read_text())
    shown = rankbeam("score", folder / "qrels.txt", folder / "new.run", folder / "copy.run", "-m", "RR@10").stdout
    assert "By RR@10, the configurations have equal values at every query." in shown
    assert "the best" not in shown
