"""Tables of a run whose metrics each failed, or were undefined, at queries of their own."""

import csv
import io
import json
import re
from collections import Counter

import pytest
from support.judged import JUDGED, METRICS, NAMES, JudgedRun, judged_run

from rankbeam.pipelines.api.result import Result
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.show import as_csv, as_json, as_latex, as_markdown, as_text, as_trec

_LEFT_OUT = ("failed", "missing", "undefined")


@pytest.fixture(scope="module")
def judged() -> JudgedRun:
    return judged_run(1, replicates=20)


@pytest.fixture(scope="module")
def results(judged: JudgedRun, tmp_path_factory: pytest.TempPathFactory) -> Results:
    return Results(str(judged.write(tmp_path_factory.mktemp("judged"))), "judged")


def left_out(judged: JudgedRun) -> dict[str, list[str]]:
    """By configuration, for each metric how many queries have no value, counted one by one."""
    counted = {
        cell: Counter(status for status, _, _ in queries.values() if status in _LEFT_OUT)
        for cell, queries in judged.cells.items()
    }
    words = {cell: ", ".join(f"{of[kind]} {kind}" for kind in _LEFT_OUT if of[kind]) for cell, of in counted.items()}
    return {name: [words[name, metric] or "none" for metric in METRICS] for name in NAMES}


def test_every_table_says_for_each_metric_which_queries_its_mean_is_without(
    judged: JudgedRun, results: Results
) -> None:
    expected = left_out(judged)
    printed = as_text(results).partition("queries left out")[2].partition("\n\n")[0].splitlines()
    rows = {cells[0]: cells[1:] for cells in (re.split(r"\s{2,}", line.strip()) for line in printed)}
    assert {name: rows[name] for name in NAMES} == expected
    markdown = as_markdown(results).partition("| queries left out |")[2].split("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("| ").split("|")] for line in markdown]
    assert {name: counts for _, name, *counts in cells} == expected
    assert "Left out of the means: Faithfulness (a: 11 failed, 4 undefined, b: " in as_latex(results)


def test_bounds_of_failed_queries_are_shown_beside_a_metric_without_any_value(results: Results) -> None:
    printed = as_text(results).partition("had failed queries been answered")[2]
    (line,) = re.findall(r"retrieval-only.*", printed.partition("\n\n")[0])
    assert re.fullmatch(r"retrieval-only +missing +0\.\d{4} to 0\.\d{4} +missing +0\.\d{4} to 0\.\d{4}", line)


def test_csv_json_and_trec_have_the_values_of_every_query(judged: JudgedRun, results: Results) -> None:
    lines = csv.DictReader(io.StringIO("".join(as_csv(results, per_query=True))))
    values = {(row["configuration"], row["metric"], row["query_id"]): row["value"] for row in lines}
    document = json.loads("".join(as_json(results, per_query=True)))
    texts = {
        (row["configuration"], metric, row["query_id"]): value
        for row in document["per_query"]
        for metric, value in row["metrics"].items()
    }
    expected = {
        (name, metric, query): value
        for (name, metric), queries in judged.cells.items()
        for query, (_, value, _) in queries.items()
    }
    assert {place: texts.get(place) for place in expected} == expected
    assert texts.keys() <= expected.keys()
    assert {place: float(values[place]) if values.get(place) else None for place in expected} == expected
    rows = {
        (row["configuration"], row["metric"], row["query_id"]): (row["status"], row["value"], row["reason"])
        for row in Result(results).per_query().to_pylist()
    }
    absent = {place for place, (status, _, _) in rows.items() if status == "missing"}
    assert rows.keys() == expected.keys()
    assert {place: rows[place] for place in rows.keys() - absent} == {
        (name, metric, query): cell
        for (name, metric), queries in judged.cells.items()
        for query, cell in queries.items()
        if (name, metric, query) not in absent
    }
    assert {place[:2] for place in absent} == {("retrieval-only", metric) for metric in JUDGED}
    trec = "\n".join(as_trec(results, {}, per_query=True))
    assert "recip_rank" in trec
    assert "Faithfulness" not in trec  # trec_eval has no such metric
