"""The summary of a report, and its plots of parameters, cutoffs, earlier runs and the dataset's own files."""

import json
import re
from collections import defaultdict
from pathlib import Path
from statistics import fmean

import pytest
import yaml
from support.data import REPOSITORY
from support.pages import Page
from support.plain_metrics import Judged, interpolated_precision
from support.runs import evaluated, rankbeam

from rankbeam.pipelines import report
from rankbeam.pipelines.report import values
from rankbeam.pipelines.report.card import card
from rankbeam.pipelines.report.curves import against_k, precision_recall
from rankbeam.pipelines.report.parameters import heat_maps, parameters, plot, sweeps
from rankbeam.pipelines.report.study import Study
from rankbeam.pipelines.report.verdict import verdict
from rankbeam.pipelines.results.run import Results

HELPDESK = REPOSITORY / "examples" / "helpdesk"
METRICS = ["nDCG@10", "P@5", "P@10", "R@5", "R@10"]


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of a grid with two parameters over the helpdesk collection."""
    folder = tmp_path_factory.mktemp("grid")
    experiment = {
        "name": "grid",
        "dataset": {role: str(HELPDESK / name) for role, name in FILES.items()},
        "configurations": [{"name": "bm25", "retriever": {"type": "bm25"}, "top_k": 20}],
        "grid": {"k1": [0.9, 1.5], "b": [0.3, 0.75]},
        "metrics": METRICS,
        "gates": [{"metric": "nDCG@10", "at_least": 0.99}],
        "output": {"path": str(folder / "out")},
        "statistics": {"replicates": 100},
    }
    path = folder / "grid.yaml"
    path.write_text(yaml.safe_dump(experiment))
    assert evaluated(path, "run-1").run["state"] == "missed"
    assert rankbeam("evaluate", path, "--run-id", "run-2").exit_code == 3  # the gate is missed
    return folder / "out"


FILES = {"queries": "queries.jsonl", "qrels": "qrels/test.tsv", "corpus": "corpus.jsonl"}


@pytest.fixture(scope="module")
def study(output: Path) -> Study:
    return Study(Results(str(output), "run-2"))


@pytest.fixture(scope="module")
def page(study: Study) -> Page:
    return Page.of(report.build(study.results))


@pytest.mark.long
def test_the_card_says_what_the_tables_say(study: Study) -> None:
    facts = {fact.label: fact for fact in card(study)}
    best = study.results.leaderboard()[0]
    row = next(
        comparison
        for comparison in study.results.comparisons
        if (comparison.config_id, comparison.slice, comparison.metric) == (best["config_id"], "all", "nDCG@10")
    )
    assert facts["Best by nDCG@10"].value == best["name"]
    assert facts["Won : lost"].value == f"{row.wins} : {row.losses}"
    assert "Gain" not in facts  # the decision above the card names it
    decision = verdict(study).replace("−", "-")
    assert f"{row.difference:+.4f}" in decision
    assert f"{row.ci_low:.4f}" in decision
    assert (facts["Gates"].value, facts["Gates"].tone) == ("missed", "bad")
    assert facts["Dataset"].value == "64 queries"
    assert study.results.run["dataset_fingerprint"][:8] in facts["Dataset"].note
    assert study.results.run["versions"]["commit"].startswith(facts["Commit"].value.removesuffix("-dirty"))


def test_labels_of_a_grid_stand_for_its_values_wherever_these_are_shown(tmp_path: Path) -> None:
    experiment = {
        "name": "labels",
        "dataset": {role: str(HELPDESK / name) for role, name in FILES.items()},
        "configurations": [{"name": "bm25", "retriever": {"type": "bm25"}, "top_k": 20}],
        "grid": {"k1": {"low": 0.9, "high": 1.5}, "top_k": {"short": 5, "long": 10}},
        "metrics": ["nDCG@10"],
        "output": {"path": str(tmp_path / "out")},
        "statistics": {"replicates": 0},
    }
    path = tmp_path / "labels.yaml"
    path.write_text(yaml.safe_dump(experiment, sort_keys=False))
    study = Study(evaluated(path, "r"))
    drawn = [plot(study, name, lines, "nDCG@10") for name, lines in sweeps(study).items()]
    assert {chart.across: sorted(label for label, _ in chart.legend) for chart in drawn if chart} == {
        "k1": ["bm25, top_k long", "bm25, top_k short"],
        "top_k": ["bm25, k1 high", "bm25, k1 low"],
    }
    assert {value for chart in drawn if chart for _, value, _, _ in chart.table} == {"low", "high", "short", "long"}
    for chart in drawn:
        assert chart is not None
        assert re.findall(r'class="tick" text-anchor="middle">(\w+)<', chart.picture) in (
            ["low", "high"],
            ["short", "long"],
        )
    page = report.build(study.results)
    assert {one.name: one.values for one in parameters(study)} == {
        "k1": ["low", "high"],
        "top_k": ["short", "long"],
    }
    for label in ("low", "high", "short", "long"):
        assert f">{label}</option>" in page


def test_every_parameter_has_a_column_and_every_pair_a_map(study: Study, page: Page) -> None:
    known = parameters(study)
    assert {parameter.name: parameter.values for parameter in known} == {"k1": ["0.9", "1.5"], "b": ["0.3", "0.75"]}
    (heat_map,) = heat_maps(study, "nDCG@10", known, is_swept=False)
    assert heat_maps(study, "nDCG@10", known, is_swept=True) == []  # the plot of the sweep shows the same means
    cells = {
        (f"{heat_map['row'].name}={value}", f"{heat_map['column'].name}={other}"): mean
        for value, line in heat_map["rows"]
        for other, (mean, _, _) in zip(heat_map["column"].values, line, strict=True)
    }
    for row in study.results.configurations:
        mean = study.results.means[row["config_id"], "all", "nDCG@10"].mean
        pair = set(row["name"].partition(":")[2].split(","))
        assert [shown for key, shown in cells.items() if set(key) == pair] == [f"{mean:.4f}"]
    filters = [attributes for _, attributes in page.elements if "data-parameter" in attributes]
    assert len(filters) == 2


def test_parameters_that_follow_the_type_of_the_retriever_are_no_filters(study: Study) -> None:
    """BM25's k1 and b beside a run file: only what varies within one type says more than the type."""
    rows = [
        {"retriever": {"type": "bm25", "k1": 0.9, "b": 0.75}, "top_k": 10},
        {"retriever": {"type": "bm25", "k1": 1.5, "b": 0.75}, "top_k": 10},
        {"retriever": {"type": "http", "url": "https://one", "timeout": 3}, "top_k": 20},
        {"retriever": {"type": "http", "url": "https://one", "timeout": 3}, "top_k": 10},
    ]
    mixed = Study(Results(study.results.output, study.results.run_id))
    for row, parameters_ in zip(mixed.results.configurations, rows, strict=True):
        row["parameters"] = json.dumps(parameters_)
    assert {parameter.name for parameter in parameters(mixed)} == {"type", "k1", "top_k"}


def test_metrics_at_several_cutoffs_are_drawn_against_k(study: Study) -> None:
    assert [plot.title for plot in against_k(study)] == ["P against k", "R against k"]


def test_the_precision_recall_curve_is_the_interpolated_one_of_trec_eval(study: Study) -> None:
    qrels: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for line in (HELPDESK / FILES["qrels"]).read_text().splitlines()[1:]:
        query_id, doc_id, grade = line.split("\t")
        qrels[query_id][doc_id] = int(grade)
    drawn = precision_recall(study)
    assert drawn is not None
    rows = study.results.table("rankings", ["config_id", "query_id", "documents"]).to_pylist()
    for place, name in study.titles.items():
        judged = [
            Judged([qrels[row["query_id"]].get(document["doc_id"]) for document in row["documents"]], pool)
            for row in rows
            if row["config_id"] == study.ids[place]
            for pool in [list(qrels[row["query_id"]].values())]
        ]
        levels = [
            [interpolated_precision(query, recall=level / 10, rel=1.0) for query in judged] for level in range(11)
        ]
        expected = [f"{fmean(values):.4f}" for values in levels]
        assert [value for label, _, value, _ in drawn.table if label == name] == expected
    assert "iprec_at_recall" in drawn.title


def test_the_trend_has_a_point_for_every_run(page: Page, study: Study) -> None:
    assert "nDCG@10 over the runs of this folder" in page.text
    assert re.search(r"run-1 \(\d{4}-", page.text)
    assert "over the runs" not in Page.of(report.build(Results(study.results.output, "run-1"))).text


def test_documents_have_titles_and_texts_and_the_relevant_ones_that_are_missed_are_listed(
    page: Page, study: Study
) -> None:
    rankings, ids = page.data["rankings"], page.data["ids"]
    titles = {doc_id: title for doc_id, _, title in rankings["documents"]}
    assert titles["billing-download-invoices"] == "Find and download invoices"
    assert all(text for _, text, _ in rankings["documents"])
    retrieved: dict[str, set[str]] = {}
    for row in study.results.table("rankings", ["query_id", "documents"]).to_pylist():
        retrieved.setdefault(row["query_id"], set()).update(document["doc_id"] for document in row["documents"])
    relevant: dict[str, set[str]] = {}
    for line in (HELPDESK / FILES["qrels"]).read_text().splitlines()[1:]:
        query_id, doc_id, grade = line.split("\t")
        if float(grade) > 0:
            relevant.setdefault(query_id, set()).add(doc_id)
    expected = {query: missed for query in ids if (missed := relevant[query] - retrieved[query])}
    assert {ids[int(query)]: count for query, (_, _, count) in rankings["unretrieved"].items()} == {
        query: len(missed) for query, missed in expected.items()
    }
    for query, (places, _, count) in rankings["unretrieved"].items():
        named = {rankings["documents"][place][0] for place in places}
        assert named <= expected[ids[int(query)]]
        assert len(named) == min(count, 10)
    assert page.data["attributes"]["h001"]["answer"].startswith("All past invoices are PDFs")


def test_provenance_is_recorded_without_secrets(page: Page, output: Path) -> None:
    versions = Results(str(output), "run-2").run["versions"]
    assert versions["command"].startswith("rankbeam evaluate ")
    assert versions["command"].endswith("--run-id run-2")
    assert versions["dataset.corpus"] == str(HELPDESK / "corpus.jsonl")
    assert versions["command"] in page.text


def test_a_run_is_compared_with_one_of_another_folder(output: Path, tmp_path: Path) -> None:
    place = tmp_path / "report.html"
    arguments = ("report", output, "--run-id", "run-2", "--baseline-run-id", "run-1", "--output", place)
    assert rankbeam(*arguments).exit_code == 0
    text = Page.of(place.read_text()).text
    assert "Differences are from run run-1 of grid" in text
    assert "are equal at every query" in text


def test_a_run_whose_files_are_gone_still_has_a_report(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {name: word for name, word in study.results.run["versions"].items() if not name.startswith("dataset.")}
    results = Results(study.results.output, "run-2")
    monkeypatch.setitem(results.__dict__, "run", study.results.run | {"versions": versions})
    data = Page.of(report.build(results)).data
    assert data["rankings"]["unretrieved"] == data["attributes"] == {}


def test_values_are_read_some_rows_at_a_time(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "_ROWS_AT_ONCE", 3)
    read, rows = values.read_values(study.results), study.results.table("query_metrics").to_pylist()
    assert read.ids.to_pylist() == sorted({row["query_id"] for row in rows})
    places = {query_id: place for place, query_id in enumerate(read.ids.to_pylist())}
    for row in rows:
        configuration, place = study.ids.index(row["config_id"]), places[row["query_id"]]
        by_metric = {item["metric"]: item["value"] for item in row["metrics"]}
        assert read.values[:, configuration, place].tolist() == [by_metric[metric] for metric in study.metrics]
        assert read.rows.slice(place, 1).to_pylist() == [{"text": row["text"], "slices": row["slices"]}]
