"""A pull request that adds a configuration and a query: what the baseline lacks is new where a gate says so."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml
from support.cli import Outcome, rankbeam
from support.finished import finished, ranks
from support.finished import ranked as ranked
from support.inputs import write

from rankbeam.pipelines.gates.checks import check
from rankbeam.pipelines.gates.gates import Gate
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.records.errors import InputError

MET, REFUSED, MISSED = 0, 2, 3
NO_LOSS = {"metric": "RR", "value": "difference", "at_least": 0.0}
OLD_QUERIES = [f"q{number:02}" for number in range(20)]


@pytest.fixture(scope="module")
def main(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return finished(tmp_path_factory.mktemp("main"), {"base": ranks(1, 2)}, "main", OLD_QUERIES, metrics=["RR"])


@pytest.fixture(scope="module")
def pull_request(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """One configuration more, one metric more, and four queries more."""
    folder = tmp_path_factory.mktemp("request")
    return finished(folder, {"base": ranks(1, 2), "added": ranks(1)}, "request", metrics=["RR", "P@1"])


def gate(run: Results, main: Results, folder: Path, gates: object, *arguments: object) -> Outcome:
    path = write(folder / "gates.yaml", yaml.safe_dump({"gates": gates}))
    return rankbeam(
        "gate", run.output, "--experiment", path, "--baseline", main.output, "--other-dataset", *map(str, arguments)
    )


def test_a_new_configuration_is_missed_unless_a_gate_skips_it(
    pull_request: Results, main: Results, tmp_path: Path
) -> None:
    missed = gate(pull_request, main, tmp_path, [NO_LOSS])
    assert missed.status == MISSED
    assert "the baseline run has no configuration of this name" in missed.stdout
    skipped = gate(pull_request, main, tmp_path, [{**NO_LOSS, "if_missing": "skip"}])
    assert skipped.status == MET
    assert [line.split()[:2] for line in skipped.stdout.splitlines()[2:]] == [["met", "base"], ["new", "added"]]
    assert skipped.stderr.splitlines()[-1] == "1 of 2 gate checks met, 1 new"


def test_a_new_metric_is_new_too_and_a_known_loss_is_still_missed(
    pull_request: Results, main: Results, tmp_path: Path
) -> None:
    of_base = {**NO_LOSS, "configuration": "base", "if_missing": "skip"}
    outcome = gate(pull_request, main, tmp_path, [{**of_base, "metric": "P@1"}], "--format", "json")
    (row,) = json.loads(outcome.stdout)["checks"]
    assert (row["state"], row["met"], row["found"]) == ("new", True, None)
    outcome = gate(pull_request, main, tmp_path, [{**of_base, "at_least": 0.5}], "--format", "json")
    (row,) = json.loads(outcome.stdout)["checks"]
    assert (outcome.status, row["state"], row["found"]) == (MISSED, "missed", 0.0)


def test_a_run_of_new_configurations_only(main: Results, tmp_path: Path) -> None:
    run = finished(tmp_path / "renamed", {"other": ranks(1)}, "renamed", OLD_QUERIES, metrics=["RR"])
    assert gate(run, main, tmp_path, [{**NO_LOSS, "if_missing": "skip"}]).status == MET
    refused = gate(run, main, tmp_path, [NO_LOSS])
    assert (refused.status, refused.stdout) == (REFUSED, "")
    assert "the runs have no configuration of the same name" in refused.stderr


def test_the_queries_that_both_have_are_compared_and_counted(
    pull_request: Results, main: Results, tmp_path: Path
) -> None:
    counts = "over the 20 queries that both runs have; 4 only in this run, 0 only in the baseline's"
    gates = [{**NO_LOSS, "configuration": "base"}]
    path = tmp_path / "summary.md"
    outcome = gate(pull_request, main, tmp_path, gates, "--format", "json", "--markdown", path)
    assert counts in outcome.stderr
    assert counts in path.read_text(encoding="utf-8").replace("\\", "")
    shared = {"both": 20, "only_run": 4, "only_other": 0, "reworded": 0, "rejudged": ""}
    assert json.loads(outcome.stdout)["queries"] == shared
    compared = rankbeam("compare", pull_request.output, main.output, "--other-dataset", "--format", "json")
    assert counts in compared.stderr
    assert {row["queries"] for row in json.loads(compared.stdout)["comparisons"]} == {20}


def test_junit_counts_what_is_new_as_skipped(pull_request: Results, main: Results, tmp_path: Path) -> None:
    path = tmp_path / "gates.xml"
    gate(pull_request, main, tmp_path, [{**NO_LOSS, "if_missing": "skip"}], "--junit", path)
    (suite,) = ET.parse(path).getroot()  # noqa: S314  our own file
    assert (suite.attrib["tests"], suite.attrib["failures"], suite.attrib["skipped"]) == ("2", "0", "1")
    (skipped,) = (child for case in suite for child in case)
    assert skipped.attrib["message"] == "new: the baseline run has no configuration of this name"


def test_if_missing_is_for_differences(pull_request: Results, main: Results, tmp_path: Path) -> None:
    refused = gate(pull_request, main, tmp_path, [{"metric": "RR", "at_least": 0.5, "if_missing": "skip"}])
    assert refused.status == REFUSED
    assert "gates[0]: has if_missing, which only applies to differences from another run" in refused.stderr


def test_a_baseline_of_another_dataset_is_refused_unless_it_is_asked_for(pull_request: Results, main: Results) -> None:
    gates = [Gate("RR", "difference", 0.0, True, "base")]
    with pytest.raises(InputError, match="different datasets"):
        check(pull_request, gates, main)
    (allowed,) = check(pull_request, gates, main, other_dataset=True)
    assert (allowed.is_met, allowed.measured) == (True, 0.0)


def test_slices_are_compared_with_those_of_the_baseline(pull_request: Results, main: Results) -> None:
    gates = [Gate("RR", "difference", 0.0, True, "base", name) for name in ("level=easy", "level=none")]
    missed, met = check(pull_request, gates, main, other_dataset=True)
    assert (met.slice, met.measured) == ("level=easy", 0.0)
    assert missed.reason.startswith("no query is in this slice")
    (alone,) = check(pull_request, gates[1:], main, other_dataset=True)
    assert alone.reason == missed.reason
