"""Thirty successes of thirty are not certain: what a user sees of metrics that are equal for every query."""

import json
from pathlib import Path

import pytest
from scipy import stats
from support.inputs import trec_qrels, trec_run, write
from support.runs import rankbeam

QUERIES = [f"q{number:02}" for number in range(30)]
EXACT = stats.binomtest(30, 30).proportion_ci(0.95, method="exact")


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that always succeeds at rank 1, one at rank 2, and one that never does."""
    folder = tmp_path_factory.mktemp("certainty")
    write(folder / "qrels.txt", trec_qrels([(query, "d", 1.0) for query in QUERIES]))
    for name, documents in (("first", "dx"), ("second", "xd"), ("never", "xy")):
        rows = [(query, doc, float(-place)) for query in QUERIES for place, doc in enumerate(documents)]
        write(folder / f"{name}.run", trec_run(rows))
    runs = [folder / f"{name}.run" for name in ("first", "second", "never")]
    options = [word for metric in ("Success@1", "RR", "NumRet") for word in ("-m", metric)]
    outcome = rankbeam("score", folder / "qrels.txt", *runs, *options, "--output", folder / "out", "--allow-disjoint")
    assert outcome.exit_code == 0, outcome.stderr
    write(folder / "shown.txt", outcome.stdout)
    return folder


def test_the_leaderboard_shows_how_far_they_reach(output: Path) -> None:
    shown = (output / "shown.txt").read_text()
    half_width = f"{1 - EXACT.low:.3f}"
    first, second, never = (line.split()[1:] for line in shown.splitlines()[2:5])
    assert first[:2] == ["1.0000", f"±{half_width}"]
    assert never[:2] == ["0.0000", f"±{half_width}"]
    low, high = stats.t.interval(0.95, 29, 0.5, stats.sem([0.5] * 30 + [0.0, 1.0]))
    assert second[2:4] == ["0.5000", f"±{(high - low) / 2:.3f}"]
    assert first[4:6] == ["2.0000", "30"]  # counts have no upper bound, and equal ones no interval
    picked = 0.05 / 4  # two runs are equal: four ends of intervals may be wrong, one as likely as another
    low = stats.beta.ppf(picked, 30, 1)
    assert f"Its mean is {low:.3f} to 1.000, corrected for picking the best of 2." in shown


@pytest.mark.parametrize(("limit", "met"), [(0.99, False), (EXACT.low - 1e-9, True), (EXACT.low + 1e-9, False)])
def test_a_gate_on_the_lower_end_does_not_pass_by_certainty(output: Path, limit: float, met: bool) -> None:
    gates = [{"metric": "Success@1", "configuration": "first", "value": "low", "at_least": limit}]
    write(output / "gates.yaml", json.dumps({"gates": gates}))
    outcome = rankbeam("gate", output / "out", "--experiment", output / "gates.yaml", "--format", "json")
    assert outcome.exit_code == (0 if met else 3)
    (check,) = json.loads(outcome.stdout)["checks"]
    assert (check["met"], check["found"]) == (met, pytest.approx(EXACT.low, rel=1e-9))


def test_a_gate_on_an_interval_that_cannot_be_known_is_missed(output: Path) -> None:
    gates = [{"metric": "NumRet", "configuration": "first", "value": "low", "at_least": 1}]
    write(output / "gates.yaml", json.dumps({"gates": gates}))
    outcome = rankbeam("gate", output / "out", "--experiment", output / "gates.yaml")
    assert outcome.exit_code == 3
    assert "30 equal values of a metric without an upper bound have no interval" in outcome.stdout


def test_differences_that_are_all_equal_have_intervals_too(output: Path) -> None:
    outcome = rankbeam("compare", output / "out", "-m", "RR", "--baseline", "first", "--format", "json")
    assert outcome.exit_code == 0, outcome.stderr
    rows = {row["configuration"]: row for row in json.loads(outcome.stdout)["comparisons"]}
    unseen = 1 - 0.025 ** (1 / 30)
    assert [rows["second"][end] for end in ("ci_low", "ci_high")] == pytest.approx(
        [-0.5 - unseen * 0.5, -0.5 + unseen * 1.5]
    )
    assert [rows["never"][end] for end in ("ci_low", "ci_high")] == pytest.approx([-1.0, -1.0 + unseen * 2.0])
