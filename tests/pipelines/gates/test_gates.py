"""Gates: their file, their checks, and the report for CI."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.cli import Outcome, rankbeam
from support.finished import experiment, finished, ranks
from support.finished import ranked as ranked
from support.inputs import write

from rankbeam.pipelines.config.yaml_lines import load
from rankbeam.pipelines.experiment.load import load_experiment
from rankbeam.pipelines.gates.gates import Gate, KnownNames, located_gates
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.records.errors import InputError

MET, MISSED, REFUSED = 0, 3, 2
NASTY = "p|q <b>\n&'\"\x1b[31m\x85*x*"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return finished(
        tmp_path_factory.mktemp("run"),
        {
            "base": ranks(1, 2),
            "half:b=1": ranks(1, 2, 2),
            "half:b=2": ranks(2, q00=-1, q01=-1, q02=-1, q03=-1, q04=-1, q05=-1),
            "broken": ranks(-1),
        },
        metrics=["RR", "P@1"],
        gates=[{"metric": "RR", "at_least": 0.7, "configuration": "base"}],
    )


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return finished(
        tmp_path_factory.mktemp("earlier"), {"base": ranks(1), NASTY: ranks(1, 2)}, "earlier", metrics=["RR"]
    )


def gate(run: Results, folder: Path, gates: object, *arguments: object) -> Outcome:
    path = write(folder / "gates.yaml", yaml.safe_dump({"gates": gates}))
    return rankbeam("gate", run.output, "--experiment", path, *map(str, arguments))


def checks(run: Results, folder: Path, gates: Mapping[str, object], *arguments: object) -> dict[tuple[str, str], Any]:
    """The checks of one gate, by configuration and slice."""
    outcome = gate(run, folder, [gates], "--format", "json", *arguments)
    document = json.loads(outcome.stdout)
    assert document["met"] == all(row["met"] for row in document["checks"])
    assert outcome.status == (MET if document["met"] else MISSED)
    return {(row["configuration"], row["slice"]): row for row in document["checks"]}


# --- What is held against what -----------------------------------------------------------------------------------


def test_the_gates_of_the_experiment_itself(run: Results) -> None:
    outcome = rankbeam("gate", run.output)
    assert (outcome.status, outcome.stderr) == (MET, "1 of 1 gate check met\n")
    assert outcome.stdout.splitlines()[2].split() == ["met", "base", "all", "RR", "mean", "0.7500", "≥", "0.7", "+0.05"]


def test_means_and_the_ends_of_their_intervals(run: Results, tmp_path: Path) -> None:
    row = run.means[run.configurations[0]["config_id"], "all", "RR"]
    for value, column in (("mean", "mean"), ("low", "ci_low"), ("high", "ci_high")):
        limit = getattr(row, column)
        for bound, margin in (("at_least", 0.001), ("at_most", -0.001)):
            gate = {"metric": "recip_rank", "value": value, "configuration": "base"}
            at = checks(run, tmp_path, {**gate, bound: limit})["base", "all"]
            assert (at["found"], at["margin"], at["met"], at["metric"]) == (limit, 0.0, True, "RR")
            beyond = checks(run, tmp_path, {**gate, bound: limit + margin})["base", "all"]
            assert (beyond["met"], beyond["margin"]) == (False, pytest.approx(-0.001))


def test_every_configuration_by_default_and_cells_by_their_base_name(run: Results, tmp_path: Path) -> None:
    rows = checks(run, tmp_path, {"metric": "RR", "at_least": 0.6})
    assert {key[0]: row["met"] for key, row in rows.items()} == {
        "base": True,
        "half:b=1": True,
        "half:b=2": False,
        "broken": False,
    }
    rows = checks(run, tmp_path, {"metric": "RR", "configuration": "half", "at_least": 0.6})
    assert {key[0] for key in rows} == {"half:b=1", "half:b=2"}


@pytest.mark.parametrize(
    ("name", "slices"),
    [
        ("level=easy", ["level=easy"]),
        ("level", ["level=easy", "level=hard"]),
        ("level=*", ["level=easy", "level=hard"]),
        ("language", ["language=de", "language=en", "language=fr"]),
        ("language×level=*", [f"language={one}×level={two}" for one in ("de", "en", "fr") for two in ("easy", "hard")]),
    ],
)
def test_slices(run: Results, tmp_path: Path, name: str, slices: list[str]) -> None:
    rows = checks(run, tmp_path, {"metric": "RR", "at_least": 0.1, "configuration": "base", "slice": name})
    assert sorted(key[1] for key in rows) == slices
    config_id = run.configurations[0]["config_id"]
    assert {key[1]: row["found"] for key, row in rows.items()} == {
        row: run.means[config_id, row, "RR"].mean for row in slices
    }


def test_differences_from_the_baseline_of_the_run(run: Results, tmp_path: Path) -> None:
    names = {row["config_id"]: row["name"] for row in run.configurations}
    rows = [row for row in run.table("comparisons").to_pylist() if (row["slice"], row["metric"]) == ("all", "RR")]
    for value, column in (("difference_high", "ci_high"), ("difference_low", "ci_low"), ("difference", "difference")):
        checked = checks(run, tmp_path, {"metric": "RR", "value": value, "at_least": -0.15})
        assert {key[0]: check["found"] for key, check in checked.items()} == {
            names[row["config_id"]]: row[column] for row in rows
        }
    assert {key[0]: check["met"] for key, check in checked.items()} == {
        "half:b=1": True,
        "half:b=2": False,
        "broken": False,
    }


def test_failure_rates(run: Results, tmp_path: Path) -> None:
    rows = checks(run, tmp_path, {"value": "failure_rate", "at_most": 0.25})
    assert {key[0]: (row["found"], row["met"]) for key, row in rows.items()} == {
        "base": (0.0, True),
        "half:b=1": (0.0, True),
        "half:b=2": (0.25, True),
        "broken": (1.0, False),
    }
    rows = checks(run, tmp_path, {"value": "failure_rate", "at_most": 0.25, "slice": "language=fr"})
    assert rows["half:b=2", "language=fr"]["found"] == 1.0


@pytest.mark.parametrize(
    ("gate", "reason"),
    [
        ({"configuration": "broken"}, "no query was scored"),
        ({"configuration": "broken", "value": "difference"}, "too few queries that both have: 0"),
        ({"configuration": "base", "value": "low", "slice": "language=fr"}, "too few queries for an interval: 4"),
        (
            {"configuration": "half:b=1", "value": "difference", "slice": "language=fr"},
            "fewer than 10 queries of this slice can be compared",
        ),
        ({"configuration": "base", "slice": "language=it"}, "no query is in this slice; did you mean 'language=fr'?"),
    ],
)
@pytest.mark.parametrize("limit", [{"at_least": 0.0}, {"at_most": 1.0}], ids=str)
def test_what_has_no_value_misses(
    run: Results, tmp_path: Path, gate: dict[str, object], limit: dict[str, float], reason: str
) -> None:
    (row,) = checks(run, tmp_path, {"metric": "RR", **limit, **gate}).values()
    assert (row["found"], row["margin"], row["met"]) == (None, None, False)
    assert row["reason"].partition(";")[0] == reason.partition(";")[0]


def test_differences_from_another_run(run: Results, earlier: Results, tmp_path: Path) -> None:
    gate = {"metric": "RR", "value": "difference_low", "at_least": -0.1}
    rows = checks(run, tmp_path, gate, "--baseline", earlier.output)
    reason = "the baseline run has no configuration of this name"
    assert {key[0]: check["reason"] for key, check in rows.items()} == {
        "base": "",
        "half:b=1": reason,
        "half:b=2": reason,
        "broken": reason,
    }
    outcome = rankbeam("compare", run.output, earlier.output, "-m", "RR", "--format", "json")
    (row,) = json.loads(outcome.stdout)["comparisons"]
    assert rows["base", "all"]["found"] == row["ci_low"] < -0.1
    for name in ("level=easy", "level=hard"):
        gate = {"metric": "RR", "value": "difference", "at_least": -0.3, "slice": "level", "configuration": "base"}
        assert checks(run, tmp_path, gate, "--baseline", earlier.output)["base", name]["met"]
    gate = {"metric": "P@1", "value": "difference", "at_least": -1, "configuration": "base"}
    rows = checks(run, tmp_path, gate, "--baseline", earlier.output)
    assert rows["base", "all"]["reason"] == "the baseline run has no such metric"


def test_a_baseline_of_another_dataset(run: Results, tmp_path: Path) -> None:
    other = finished(tmp_path / "other", {"base": ranks(1)}, queries=["q00", "q01", "q02", "q03"], metrics=["RR"])
    gates = [{"metric": "RR", "value": "difference", "at_least": -1, "configuration": "base"}]
    outcome = gate(run, tmp_path, gates, "--baseline", other.output)
    assert (outcome.status, outcome.stdout) == (REFUSED, "")
    assert "different datasets" in outcome.stderr
    assert gate(run, tmp_path, gates, "--baseline", other.output, "--other-dataset").status == MET


# --- What is shown -----------------------------------------------------------------------------------------------


def test_the_table_shows_what_is_missed_first(run: Results, tmp_path: Path) -> None:
    outcome = gate(run, tmp_path, [{"value": "failure_rate", "at_most": 0.3}, {"metric": "RR", "at_least": 0.65}])
    assert (outcome.status, outcome.stderr) == (MISSED, "rankbeam: 3 of 8 gate checks missed\n")
    _, _, *rows = outcome.stdout.splitlines()
    assert [row.split()[:2] for row in rows] == [
        ["MISSED", "broken"],
        ["MISSED", "half:b=2"],
        ["MISSED", "broken"],
        *(["met", name] for name in ("base", "half:b=1", "half:b=2", "base", "half:b=1")),
    ]
    assert rows[1].split()[2:] == ["all", "RR", "mean", "0.5000", "≥", "0.65", "-0.15"]
    assert rows[2].split()[2:] == ["all", "RR", "mean", "–", "≥", "0.65", "–", "no", "query", "was", "scored"]


def test_junit(earlier: Results, tmp_path: Path) -> None:
    gates = [{"metric": "RR", "at_least": 0.9}, {"metric": "RR", "value": "low", "at_least": 0.1, "slice": "language"}]
    path = tmp_path / "gates.xml"
    assert gate(earlier, tmp_path, gates, "--junit", path).status == MISSED
    suites = ET.parse(path).getroot()  # noqa: S314  our own file
    (suite,) = suites
    assert [element.attrib[name] for element in (suites, suite) for name in ("tests", "failures")] == [
        "8",
        "3",
        "8",
        "3",
    ]
    cases = {(element.attrib["classname"], element.attrib["name"]): element for element in suite}
    assert len(cases) == 8
    clean = NASTY.replace("\x1b", "\ufffd")
    (failure,) = cases[clean, "RR mean ≥ 0.9"]
    assert failure.attrib["message"] == failure.text == "0.7500 is 0.15 below the limit of 0.9"
    (failure,) = cases["base", "RR low ≥ 0.1 over language=fr"]
    assert failure.text == "there is no value: too few queries for an interval: 4"
    assert list(cases["base", "RR low ≥ 0.1 over language=de"]) == []


def test_markdown(earlier: Results, tmp_path: Path) -> None:
    path = tmp_path / "summary.md"
    outcome = gate(earlier, tmp_path, [{"metric": "RR", "at_least": 0.9}], "--markdown", path)
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    assert (lines[0], len(lines)) == ("### rankbeam: 1 of 2 gate checks missed", 8)
    assert lines[4].startswith("| MISSED | p\\|q &lt;b&gt; &amp;'\" \\[31m \\*x\\* | all | RR mean | 0.7500 | ≥ 0.9 |")
    assert lines[7] == f"Run earlier of test in {earlier.output}.".replace("_", "\\_")
    assert outcome.stdout.startswith("gate ")
    printed = gate(earlier, tmp_path, [{"metric": "RR", "at_least": 0.9}], "--markdown", "-")
    assert (printed.status, printed.stdout) == (MISSED, text)
    both = gate(earlier, tmp_path, [{"metric": "RR", "at_least": 0.9}], "--markdown", "-", "--format", "json")
    assert both.status == REFUSED


# --- What is refused ---------------------------------------------------------------------------------------------

MISTAKES: list[tuple[object, str]] = [
    ({"metric": "RR"}, "gates[0]: has one limit, at_least or at_most"),
    ({"metric": "RR", "at_least": 0, "at_most": 1}, "gates[0]: has one limit, at_least or at_most"),
    ({"at_least": 0.5}, "gates[0]: needs a metric, as its value is mean"),
    ({"metric": "RR", "at_least": float("nan")}, "gates[0].at_least: must be a finite number"),
    ({"metric": "RR", "at_least": "0.5"}, "gates[0].at_least: must be a number, found '0.5'"),
    ({"metric": "RR", "at_last": 0.5}, "gates[0].at_last: unknown key; did you mean 'at_least'?"),
    ({"metric": "RR", "value": "median", "at_least": 0.5}, "gates[0].value: must be 'mean', 'low', 'high', "),
    ({"metric": "RRR", "at_least": 0.5}, "gates[0].metric: unknown metric 'RRR'; did you mean"),
    ({"metric": "P@2", "at_least": 0.5}, "gates[0].metric: P@2 is not one of the computed metrics; did you mean"),
    (
        {"metric": "RR", "at_least": 0.5, "configuration": "bass"},
        "gates[0].configuration: no configuration is named 'bass'; did you mean 'base'?",
    ),
    ({"metric": "RR", "at_least": 0.5, "slice": "lang"}, "gates[0].slice: results are not sliced by 'lang'; "),
    ({"metric": "RR", "at_least": 0.5, "slice": "leve=easy"}, "gates[0].slice: results are not sliced by 'leve'; "),
    (
        {"metric": "RR", "value": "difference", "at_least": 0, "configuration": "base"},
        "gates[0].value: the baseline 'base' is the only configuration, so there is no difference to check; keep",
    ),
    ("RR > 0.5", "gates[0]: must be a mapping of keys to values, found 'RR > 0.5'"),
]


OUTSIDE = [
    ({"metric": "RR", "at_least": 1e20}, "gates[0].at_least: no RR can be 1e+20: it is from 0 to 1"),
    ({"metric": "RR", "value": "low", "at_most": -0.1}, "gates[0].at_most: no RR can be -0.1: it is from 0 to 1"),
    (
        {"metric": "RR", "value": "difference_low", "at_least": -5},
        "gates[0].at_least: no difference of RR can be -5: it is from -1 to 1",
    ),
    ({"value": "failure_rate", "at_most": 1.5}, "gates[0].at_most: no share can be 1.5: it is from 0 to 1"),
    ({"metric": "RR", "value": "failure_rate", "at_most": 5}, "gates[0].at_most: no share can be 5: it is from 0 to 1"),
    ({"judge": "sentinels", "at_least": 90}, "gates[0].at_least: no share can be 90: it is from 0 to 1"),
]


@pytest.mark.parametrize(("content", "problem"), MISTAKES, ids=[str(content)[:40] for content, _ in MISTAKES])
def test_a_mistake_in_a_file_and_in_an_experiment(run: Results, tmp_path: Path, content: object, problem: str) -> None:
    outcome = gate(run, tmp_path, [content])
    assert (outcome.status, outcome.stdout) == (REFUSED, "")
    key = (
        problem.removeprefix("gates[0]").partition(":")[0].lstrip(".")
    )  # keys are written in the order of the alphabet
    line = 2 + (sorted(content).index(key) if isinstance(content, dict) and key in content else 0)
    assert outcome.stderr.startswith(f"rankbeam: {tmp_path}/gates.yaml:{line}: {problem}"), outcome.stderr
    text = yaml.safe_dump(
        {
            "name": "e",
            "output": {"path": "out"},
            **experiment(tmp_path, {"base": ranks(1), "other": ranks(2)}, metrics=["RR", "P@1"], gates=[content]),
        }
    )
    with pytest.raises(InputError) as caught:
        load_experiment(write(tmp_path / "e.yaml", text))
    assert f": {problem}" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("content", "problem"), OUTSIDE, ids=[str(content)[:40] for content, _ in OUTSIDE])
def test_a_limit_outside_of_the_range(run: Results, tmp_path: Path, content: object, problem: str) -> None:
    test_a_mistake_in_a_file_and_in_an_experiment(run, tmp_path, content, problem)


def test_all_mistakes_at_once(run: Results, tmp_path: Path) -> None:
    outcome = gate(
        run, tmp_path, [{"metric": "P@2", "at_least": 0, "slice": "x"}, {"metric": "nope", "at_most": 0}, {}]
    )
    assert outcome.status == REFUSED
    assert [word for word in outcome.stderr.split() if word.startswith("gates[")] == [
        "gates[0].metric:",
        "gates[0].slice:",
        "gates[1].metric:",
        "gates[2]:",
    ]


def test_gates_of_an_experiment(tmp_path: Path) -> None:
    gates = [{"metric": "map", "at_least": 0}, {"metric": "P.1,5", "value": "difference_low", "at_least": -0.01}]
    text = yaml.safe_dump(
        {
            "name": "e",
            "output": {"path": "out"},
            **experiment(tmp_path, {"base": ranks(1), "other": ranks(2)}, metrics=["AP", "P@1", "P@5"], gates=gates),
        }
    )
    assert load_experiment(write(tmp_path / "e.yaml", text)).gates == (
        Gate("AP", "mean", 0.0, at_least=True),
        Gate("P@1", "difference_low", -0.01, at_least=True),
        Gate("P@5", "difference_low", -0.01, at_least=True),
    )


@pytest.mark.parametrize(
    ("metric", "value", "limits"),
    [
        ("RR", "mean", (0.0, 1.0)),
        ("RR", "difference", (-1.0, 1.0)),
        ("NumRet", "mean", (0.0, 1e6)),
        ("NumRet", "difference", (-1e6, 1e6)),
        ("RR", "failure_rate", (0.0, 1.0)),
    ],
)
def test_limits_at_the_ends_of_a_range_and_those_of_counts(
    tmp_path: Path, metric: str, value: str, limits: tuple[float, float]
) -> None:
    gates = [{"metric": metric, "value": value, "at_least": limit} for limit in limits]
    text = yaml.safe_dump(
        {
            "name": "e",
            "output": {"path": "out"},
            **experiment(tmp_path, {"base": ranks(1), "other": ranks(2)}, metrics=["RR", "NumRet"], gates=gates),
        }
    )
    assert tuple(gate.limit for gate in load_experiment(write(tmp_path / "e.yaml", text)).gates) == limits


def test_files_without_gates(run: Results, earlier: Results, tmp_path: Path) -> None:
    for text in ("gates: []\n", "name: x\n", "- a\n", ""):
        outcome = rankbeam("gate", run.output, "--experiment", write(tmp_path / "none.yaml", text))
        assert (outcome.status, outcome.stdout) == (REFUSED, "")
        assert f"{tmp_path}/none.yaml: gates: there are no gates" in outcome.stderr
    assert "gates: there are no gates" in rankbeam("gate", earlier.output).stderr
    outcome = rankbeam("gate", run.output, "--experiment", write(tmp_path / "bad.yaml", b"gates: caf\xe9\n"))
    assert "bad.yaml:1: is not UTF-8" in outcome.stderr
    outcome = rankbeam("gate", run.output, "--baseline", "bigquery://search")
    assert (outcome.status, "write project.dataset" in outcome.stderr) == (REFUSED, True)


def test_a_whole_experiment_may_hold_the_gates(run: Results, tmp_path: Path) -> None:
    """Its files need not be there, where only the results are."""
    text = yaml.safe_dump({"dataset": {"qrels": "gone"}, "gates": [{"metric": "RR", "at_least": 0, "slice": "level"}]})
    outcome = rankbeam("gate", run.output, "--experiment", write(tmp_path / "whole.yaml", text))
    assert outcome.status == MISSED  # of the configuration without any answer
    assert "rankbeam: 2 of 8 gate checks missed" in outcome.stderr


def test_a_document_is_checked_twice_with_the_same_result() -> None:
    document, messages = load("gates: [{metric: '${env:UNSET_METRIC}', at_least: 0}]", "gates.yaml"), set()
    for _ in range(2):
        with pytest.raises(InputError) as caught:
            located_gates(document, KnownNames(["a"], ["RR"], [], "a"))
        messages.add(str(caught.value))
    assert len(messages) == 1
    assert not document.problems
