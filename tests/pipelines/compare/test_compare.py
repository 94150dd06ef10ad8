"""`rankbeam compare`: the numbers of the run itself, the same across two runs, and what is refused."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cli import Outcome, rankbeam
from support.finished import LEVELS, METRICS, QUERIES, finished, ranks
from support.finished import ranked as ranked
from support.inputs import trec_qrels, write
from support.runs import query_values

from rankbeam.pipelines.compare import scores as compare_scores
from rankbeam.pipelines.compare import show as compare_show
from rankbeam.pipelines.compare.compare import ComparisonQuestion, NamedComparison
from rankbeam.pipelines.compare.compare import compare as compare_runs
from rankbeam.pipelines.compare.show import as_text
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.show.tabular import Screen
from rankbeam.transforms.records.metrics import evaluation
from rankbeam.transforms.records.scores.comparisons import queries_for

NASTY = "a|b <i>\n\x1b[31m*c*"
KEYS = ("config_id", "slice", "metric")


@pytest.fixture(scope="module")
def today(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Three configurations, one of which has no answer to two queries, and none at all to one."""
    return finished(
        tmp_path_factory.mktemp("today"),
        {"base": ranks(1, 2, 3, 2), "better": ranks(1, 1, 2), "flaky": ranks(2, 5, q03=-1, q10=-1, q11=0)},
        "new",
        statistics={"replicates": 200, "pairs": "all"},
    )


@pytest.fixture(scope="module")
def yesterday(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The same dataset; one metric and one name differ."""
    return finished(
        tmp_path_factory.mktemp("yesterday"),
        {"base": ranks(2, 2, 3, 2), "better": ranks(1, 1, 2, q05=-1), NASTY: ranks(4, 3)},
        "old",
        metrics=["nDCG@10", "RR", "AP"],
    )


@pytest.fixture(scope="module")
def smaller(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Another dataset: half of the queries."""
    return finished(tmp_path_factory.mktemp("smaller"), {"base": ranks(3), "other": ranks(1)}, "half", QUERIES[12:])


def compared(*arguments: object) -> dict[str, Any]:
    outcome = rankbeam("compare", *map(str, arguments), "--format", "json")
    assert outcome.status == 0, outcome.stderr
    document: dict[str, Any] = json.loads(outcome.stdout)
    return document


def refused(*arguments: object) -> str:
    outcome = rankbeam("compare", *map(str, arguments))
    assert (outcome.status, outcome.stdout) == (2, "")
    return outcome.stderr


def by_key(rows: list[dict[str, Any]], *more: str) -> dict[tuple[str, ...], dict[str, Any]]:
    by_keys = {tuple(row[key] for key in (*KEYS, *more)): row for row in rows}
    assert len(by_keys) == len(rows)
    return by_keys


def written(results: Results) -> dict[tuple[str, ...], dict[str, Any]]:
    rows = [row | {"baseline_id": row["baseline"]} for row in results.table("comparisons").to_pylist()]
    return by_key(rows, "baseline_id")


EVERY_SLICE = [
    word for name in ("all", "language", "level=easy", "level=*", "language×level") for word in ("--slice", name)
]


def test_rows_are_exactly_those_of_the_run(today: Results) -> None:
    rows = by_key(compared(today.output, "--all-pairs", *EVERY_SLICE)["comparisons"], "baseline_id")
    expected = written(today)
    assert rows.keys() == expected.keys()
    assert {key[1] for key in rows} > {"all", "language=de", "level=easy"}
    assert len({key[3] for key in rows}) == 2  # pairs with the baseline, and one without it
    names = {row["config_id"]: row["name"] for row in today.configurations}
    for key, row in expected.items():
        same = [name for name in row if name not in ("run_id", "experiment", "started_at", "baseline")]
        assert {name: rows[key][name] for name in same} == {name: row[name] for name in same}
        assert (rows[key]["configuration"], rows[key]["baseline"]) == (names[key[0]], names[key[3]])


def test_rows_do_not_depend_on_how_many_queries_and_pairs_are_taken_at_once(
    today: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare_scores, "_QUERIES_AT_ONCE", 5)
    monkeypatch.setattr(compare_scores, "_ROWS_READ", 7)
    monkeypatch.setattr(evaluation, "_PAIRS_AT_ONCE", 1)
    rows = by_key(compared(today.output, "--all-pairs", *EVERY_SLICE)["comparisons"], "baseline_id")
    expected = written(today)
    assert rows.keys() == expected.keys()
    for key, row in expected.items():
        assert {name: rows[key][name] for name in row if name in rows[key] and name != "baseline"} == {
            name: row[name] for name in row if name in rows[key] and name != "baseline"
        }


def test_the_options_of_statistics(today: Results) -> None:
    document = compared(today.output, "--confidence", "0.8", "--seed", "7", "--replicates", "0", "-m", "RR")
    chosen = {name: document["statistics"][name] for name in ("confidence", "seed", "replicates", "all_pairs")}
    assert chosen == {"confidence": 0.8, "seed": 7, "replicates": 0, "all_pairs": False}
    for row in document["comparisons"]:
        before = written(today)[row["config_id"], "all", "RR", row["baseline_id"]]
        assert row["difference"] == before["difference"]
        assert row["ci_high"] - row["ci_low"] < before["ci_high"] - before["ci_low"]


def test_metrics_and_baselines_by_name(today: Results) -> None:
    rows = compared(today.output, "--baseline", "better", "-m", "ndcg_cut_10", "-m", "RR")["comparisons"]
    assert [(row["metric"], row["configuration"], row["baseline"]) for row in rows] == [
        (metric, name, "better") for metric in ("nDCG@10", "RR") for name in ("base", "flaky")
    ]


def differences(one: dict[str, dict[str, float]], base: dict[str, dict[str, float]], metric: str) -> np.ndarray:
    return np.array([values[metric] - base[query][metric] for query, values in one.items() if values and base[query]])


def test_two_runs_by_name(today: Results, yesterday: Results) -> None:
    document = compared(today.output, yesterday.output)
    assert (document["run"]["run_id"], document["baseline_run"]["run_id"]) == ("new", "old")
    assert document["left_out"] == ["P@1", "AP"]
    assert document["configurations_left_out"] == ["flaky", NASTY]
    ours, theirs = query_values(today), query_values(yesterday)
    rows = document["comparisons"]
    assert [(row["metric"], row["configuration"]) for row in rows] == [
        (metric, name) for metric in ("RR", "nDCG@10") for name in ("base", "better")
    ]
    for row in rows:
        assert row["baseline"] == row["configuration"]
        expected = differences(ours[row["configuration"]], theirs[row["configuration"]], row["metric"])
        assert row["difference"] == pytest.approx(expected.mean(), abs=1e-12)
        assert (row["wins"], row["losses"]) == ((expected > 0).sum(), (expected < 0).sum())
        assert (row["queries"], row["unpaired"]) == ((24, 0) if row["configuration"] == "base" else (23, 1))
        assert row["ci_low"] <= row["difference"] <= row["ci_high"]
        assert row["p_adjusted"] >= row["p_value"]


def test_two_runs_against_one_configuration(today: Results, yesterday: Results) -> None:
    document = compared(today.output, yesterday.output, "--baseline", "better", "-m", "RR", "--slice", "level=easy")
    ours, theirs = query_values(today), query_values(yesterday)["better"]
    easy = [query for query in QUERIES if LEVELS[query] == "easy"]
    assert [row["configuration"] for row in document["comparisons"]] == ["base", "better", "flaky"]
    for row in document["comparisons"]:
        own = {query: ours[row["configuration"]][query] for query in easy}
        expected = differences(own, theirs, "RR")
        assert (row["queries"], row["difference"]) == (len(expected), pytest.approx(expected.mean(), abs=1e-12))
        assert row["unpaired"] == len(easy) - len(expected)


def test_a_run_against_itself_differs_in_nothing(today: Results, tmp_path: Path) -> None:
    again = finished(tmp_path, {"base": ranks(1, 2, 3, 2), "better": ranks(1, 1, 2)}, "again")
    rows = compared(again.output, today.output)["comparisons"]
    assert {row["configuration"] for row in rows} == {"base", "better"}
    for row in rows:
        assert (row["difference"], row["p_value"], row["ties"], row["verdict"]) == (0.0, None, 24, "equal")


@pytest.mark.long
def test_two_runs_of_one_folder(tmp_path: Path) -> None:
    finished(tmp_path, {"one": ranks(2), "two": ranks(3)}, "z-first")
    finished(tmp_path, {"one": ranks(1), "two": ranks(3)}, "a-second")
    out = tmp_path / "out"
    rows = compared(out, "--baseline-run-id", "z-first", "-m", "RR")["comparisons"]
    assert [(row["configuration"], row["difference"]) for row in rows] == [("one", 0.5), ("two", 0.0)]
    rows = compared(out, out, "--run-id", "z-first", "-m", "RR")["comparisons"]  # the other one is the latest
    assert [row["difference"] for row in rows] == [-0.5, 0.0]
    rows = compared(out, out, "-m", "RR")["comparisons"]  # and here the other one is the first
    assert [row["difference"] for row in rows] == [0.5, 0.0]
    message = refused(out, "--baseline-run-id", "a-second")
    assert "both are run 'a-second'; name another as --baseline-run-id" in message
    assert "holds no finished run 'b'; there are: a-second, z-first" in refused(out, "--run-id", "b")


# --- What is refused ---------------------------------------------------------------------------------------------


def test_different_datasets(today: Results, smaller: Results) -> None:
    message = refused(today.output, smaller.output)
    for run, count in ((today, 24), (smaller, 12)):
        assert f"{run.output} (run {run.run_id}) has {count} judged queries and {count} judgements" in message
        assert run.run["dataset_fingerprint"] in message
    assert "--other-dataset" in message


def test_datasets_that_differ_in_judgements_alone(tmp_path: Path, today: Results) -> None:
    qrels = write(tmp_path / "other", trec_qrels([(query, "d", 2.0) for query in QUERIES]))
    dataset = {"qrels": qrels, "queries": str(Path(today.output).parent / "queries.jsonl")}
    graded = finished(tmp_path, {"base": ranks(1), "other": ranks(2)}, dataset=dataset)
    assert "the runs have different datasets (only the judgements differ): " in refused(today.output, graded.output)


def test_different_datasets_all_the_same(today: Results, smaller: Results) -> None:
    (row,) = compared(today.output, smaller.output, "--other-dataset", "-m", "RR")["comparisons"]
    expected = differences(query_values(smaller)["base"], query_values(today)["base"], "RR")
    assert (row["configuration"], row["queries"], row["unpaired"]) == ("base", 12, 12)
    assert row["difference"] == pytest.approx(-expected.mean(), abs=1e-12)


def test_datasets_without_a_query_in_common(smaller: Results, tmp_path: Path) -> None:
    rest = finished(tmp_path, {"base": ranks(1)}, queries=QUERIES[:12])
    assert "the runs have no query in common" in refused(smaller.output, rest.output, "--other-dataset")


def test_names_that_there_are_not(today: Results, yesterday: Results) -> None:
    assert "no configuration is named 'bettr'; did you mean 'better'?" in refused(today.output, "--baseline", "bettr")
    message = refused(today.output, yesterday.output, "--baseline", "flaky")
    assert f"{yesterday.output}: no configuration is named 'flaky'" in message
    assert "no metric nDCG@5 to compare; did you mean 'nDCG@10'?" in refused(today.output, "-m", "nDCG@5")
    assert "no metric P@1 to compare" in refused(today.output, yesterday.output, "-m", "P@1")
    assert "unknown metric 'ndgc'" in refused(today.output, "-m", "ndgc@10")
    assert "no slice 'languag'; did you mean 'language'?" in refused(today.output, "--slice", "languag")
    assert "no slice 'language=dee'; did you mean 'language=de'?" in refused(today.output, "--slice", "language=dee")


def test_what_cannot_be_compared(today: Results, tmp_path: Path) -> None:
    one = finished(tmp_path, {"single": ranks(1)}, metrics=["AP"])
    assert "has no configuration but 'single'; name a second folder" in refused(one.output)
    assert "no metric in common: RR, nDCG@10, P@1 in one, AP in the other" in refused(today.output, one.output)
    two = finished(tmp_path / "two", {"single": ranks(1)})
    message = refused(today.output, two.output)
    assert "no configuration of the same name: base, better, flaky in one, single in the other" in message
    assert "--all-pairs compares the configurations of one run" in refused(today.output, two.output, "--all-pairs")
    assert "none: holds no finished run; there is no such folder" in refused(tmp_path / "none")
    assert refused("").startswith("rankbeam: '': holds no finished run")
    file = write(tmp_path / "a.run", "")
    assert "a.run: holds no finished run; it is a file, not the output folder of a run" in refused(file)
    assert "'bigquery://search' is not a BigQuery dataset" in refused(today.output, "bigquery://search")


# --- What is shown -----------------------------------------------------------------------------------------------


def shown(*arguments: object) -> Outcome:
    outcome = rankbeam("compare", *map(str, arguments))
    assert outcome.status == 0, outcome.stderr
    return outcome


def test_the_table_and_its_sentences(today: Results, yesterday: Results) -> None:
    head, _, *rows = shown(today.output, "-m", "RR").stdout.splitlines()
    columns = "metric configuration baseline difference 95% interval p p (Holm) wins/ties/losses queries (unpaired) "
    assert " ".join(head.split()) == columns + "effect size detectable"
    assert rows[0].split()[:4] == ["RR", "better", "base", "+0.2500"]
    assert "22 (2)" in rows[1]
    assert rows[3] == "RR, against base at 95% confidence: better is better; flaky is worse."
    outcome = shown(today.output, yesterday.output, "-m", "RR", "--confidence", "0.9")
    against = f"the same configuration of {yesterday.output} ({yesterday.named}) at 90% confidence"
    assert outcome.stdout.splitlines()[-1].startswith(f"RR, against {against}: ")
    unmatched = f"warning: only one of the runs has a configuration named 'flaky', {NASTY!r}; left out\n"
    assert outcome.stderr == unmatched
    problems = shown(today.output, yesterday.output).stderr
    assert problems == f"warning: only one of the runs has P@1, AP; left out\n{unmatched}"


def test_a_narrow_table_does_not_repeat_the_names_of_configurations(today: Results, yesterday: Results) -> None:
    def headings(other: Results | None, width: int) -> str:
        compared = compare_runs(today, other, ComparisonQuestion(metrics=("RR",), all_pairs=other is None))
        return as_text(compared, Screen(width)).partition("─")[0]

    assert "baseline" not in headings(yesterday, 90)
    sentences = as_text(compare_runs(today, yesterday, ComparisonQuestion()), Screen(90))
    assert " ".join(sentences.split()).count(yesterday.named) == 1  # for two metrics
    assert "baseline" in headings(yesterday, 200)
    assert "baseline" in headings(None, 90)


def test_more_comparisons_read_the_rows_no_more_often_and_need_no_more_sample_sizes(
    today: Results, yesterday: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Rows(list[NamedComparison]):
        def __iter__(self) -> Iterator[NamedComparison]:
            steps.append("rows")
            return super().__iter__()

    def counted(*arguments: Any) -> int | None:
        steps.append("size")
        return queries_for(*arguments)

    monkeypatch.setattr(compare_show, "queries_for", counted)
    actual = compare_runs(today, yesterday, ComparisonQuestion())
    rows = [replace(entry, row=replace(entry.row, wins=10)) for entry in actual.rows]  # enough to know their spread
    counts = []
    for times in (20, 60):
        steps: list[str] = []
        compare_show.sentences(replace(actual, rows=Rows(rows * times)))
        counts.append(Counter(steps))
    assert counts[0]["size"] > 0
    assert counts[0] == counts[1]


def test_slices_with_few_queries_are_said(today: Results) -> None:
    outcome = shown(today.output, "-m", "RR", "--slice", "language")
    assert outcome.stdout.splitlines()[2].split()[:3] == ["RR", "language=de", "better"]
    assert "language=fr" not in outcome.stdout
    assert "fewer than 10 queries (statistics.min_slice), so not compared: language=fr" in outcome.stderr


def test_what_is_not_known_is_a_dash(tmp_path: Path) -> None:
    run = finished(tmp_path, {"good": ranks(1), "broken": ranks(-1)}, metrics=["RR"])
    outcome = shown(run.output)
    row = outcome.stdout.splitlines()[2].split()
    assert row == ["RR", "broken", "good", "–", "–", "–", "–", "0/0/0", "0", "(24)", "–", "–"]
    assert outcome.stdout.splitlines()[-1].endswith(": broken has too few queries for a test.")
    (comparison,) = compared(run.output)["comparisons"]
    assert (comparison["difference"], comparison["verdict"], comparison["unpaired"]) == (None, "unknown", 24)


def test_csv_has_every_column(today: Results) -> None:
    rows = list(csv.DictReader(io.StringIO(shown(today.output, "--format", "csv").stdout)))
    expected = compared(today.output)["comparisons"]
    assert [list(row) for row in rows] == [list(row) for row in expected]
    assert [float(row["difference"]) for row in rows] == [row["difference"] for row in expected]
    assert {row["metric"] for row in rows} == set(METRICS)


def test_names_cannot_forge_what_is_shown(yesterday: Results) -> None:
    for form in ("table", "markdown"):
        printed = shown(yesterday.output, "-m", "RR", "--format", form).stdout
        assert "\x1b" not in printed
        assert len(printed.splitlines()) == 6  # heading, rule, two rows, an empty line and a sentence
    printed = shown(yesterday.output, "-m", "RR", "--format", "markdown").stdout
    head, rule, *rows = [line for line in printed.splitlines() if line.startswith("|")]
    assert [line.replace("\\|", "").count("|") for line in (head, rule, *rows)] == [head.count("|")] * 4
    assert "a\\|b &lt;i&gt;  \\[31m\\*c\\*" in rows[1]
    assert rule.startswith("| --- | --- | --- | ---: |")


def test_latex_has_the_rows_of_the_table_and_marks_significant_differences(yesterday: Results) -> None:
    document = shown(yesterday.output, "-m", "RR", "--format", "latex").stdout
    expected = compared(yesterday.output, "-m", "RR")["comparisons"]
    body = document.partition(r"\midrule")[2].partition(r"\bottomrule")[0].strip().splitlines()
    assert len(body) == len(expected)
    columns = re.search(r"begin{tabular}{(l+r+)}", document)
    assert columns is not None
    for line, row in zip(body, expected, strict=True):
        assert line.replace(r"\&", "").count(" & ") == len(columns[1]) - 1
        value = f"{abs(row['difference']):.4f}"
        assert (r"\textbf{$" in line) == (row["verdict"] in ("better", "worse"))
        assert value in line
    assert "\x1b" not in document
    assert r"a|b" not in document  # a bar is written as a command
    assert r"a\textbar{}b" in document
