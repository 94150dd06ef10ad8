"""Metrics of plug-ins and criteria of which lower values are better: each mirrors another one of the same run.

They order, decide and gate as the other one does; a run says so itself, so that it reads the same without the package.
"""

import json
import re
import shutil
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.plug_ins import install, run

MIRRORED = {
    "Far": "Near",
    "Unfit(judge=lexical)": "Fit(judge=lexical)",
    "Criterion(Flaw,judge=lexical)": "Criterion(Merit,judge=lexical)",
}
QUERIES = [f"q{number:02}" for number in range(24)]
PACKAGE = """
import numpy as np
from rankbeam import JudgedDefinition, MetricDefinition, Ties

def near(rankings):
    values = np.zeros(rankings.queries)
    hits = rankings.hit_grade > 0
    np.maximum.at(values, rankings.hit_query[hits], 1 / rankings.hit_rank[hits])
    return values

def fit(grades):
    return int(grades.sum()) / (3 * len(grades)) if len(grades) else 0.0

NEAR = MetricDefinition(near, ties=Ties.BY_GRADE)
FAR = MetricDefinition(lambda rankings: 1 - near(rankings), lower_is_better=True, ties=Ties.BY_GRADE)
FIT = JudgedDefinition(fit)
UNFIT = JudgedDefinition(lambda grades: 1 - fit(grades), lower_is_better=True)
"""
EXPERIMENT = """
name: mirrored
dataset: {queries: queries.jsonl, qrels: qrels.txt, corpus: corpus.jsonl}
services: {reader: {type: extractive}, words: {type: lexical}}
configurations:
  - {name: first, retriever: {type: run_file, path: first}, generate: {service: reader, contexts: 2}}
  - {name: second, retriever: {type: run_file, path: second}, generate: {service: reader, contexts: 2}}
  - {name: third, retriever: {type: run_file, path: third}, generate: {service: reader, contexts: 2}}
judge:
  service: words
  criteria:
    Merit: {question: "Does it help?", about: [query, context], scale: {no: 0, partly: 0.5, yes: 1}}
    Flaw:
      question: "Does it help?"
      about: [query, context]
      scale: {no: 1, partly: 0.5, yes: 0}
      lower_is_better: true
metrics: [Far, Near, Unfit, Fit, Flaw, Merit]
slices: [level]
statistics: {pairs: all}
gates: [{metric: Flaw, value: difference_high, at_most: 0.1}]
decide_by: Flaw
ties: true
output: {path: out}
"""
RANKS = {"first": (1, 3, 2, 2), "second": (1, 1, 2, 1), "third": (3, 3, 1, 3)}
"""The rank of the relevant document of a query, by its number modulo 4."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with the package, which `site` has and `absent` has not."""
    folder = tmp_path_factory.mktemp("lower")
    names = {"Near": "own:NEAR", "Far": "own:FAR"}
    install(folder / "site", {"rankbeam.metrics": names, "rankbeam.judged": {"Fit": "own:FIT", "Unfit": "own:UNFIT"}})
    (folder / "absent").mkdir()
    (folder / "site" / "own.py").write_text(PACKAGE)
    (folder / "e.yaml").write_text(EXPERIMENT)
    texts = {"d": "The word {} is here.", "x": "Nothing.", "y": "The word is here."}
    lines = defaultdict(list)
    for place, query in enumerate(QUERIES):
        lines["queries.jsonl"].append(json.dumps({"_id": query, "text": f"word {query}", "level": str(place % 2)}))
        lines["qrels.txt"].append(f"{query} 0 d{query} 1")
        lines["corpus.jsonl"] += [
            json.dumps({"_id": f"{letter}{query}", "text": text.format(query)}) for letter, text in texts.items()
        ]
        for name, ranks in RANKS.items():
            documents = [f"x{query}", f"y{query}"]
            documents.insert(ranks[place % 4] - 1, f"d{query}")
            scores = (2.0, 1.0, 1.0 if place % 3 else 0.5)
            lines[name] += [
                f"{query} Q0 {document} {rank} {score} t"
                for rank, (document, score) in enumerate(zip(documents, scores, strict=True), start=1)
            ]
    for name, rows in lines.items():
        (folder / name).write_text("\n".join(rows) + "\n")
    done = run(folder, "evaluate", "e.yaml")
    assert done.returncode in (0, 3), done.stderr
    return folder


def table(folder: Path, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(folder / "out" / name).to_pylist()
    return rows


@pytest.fixture(scope="module")
def values(folder: Path) -> dict[str, dict[str, dict[str, float]]]:
    """By metric and configuration, the value of each query."""
    names = {row["config_id"]: row["name"] for row in table(folder, "configurations")}
    values: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in table(folder, "query_metrics"):
        for metric in row["metrics"]:
            values[metric["metric"]][names[row["config_id"]]][row["query_id"]] = metric["value"]
    return values


def of_metric(rows: list[dict[str, Any]], metric: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {(row["config_id"], row.get("baseline"), row["slice"]): row for row in rows if row["metric"] == metric}


@pytest.mark.parametrize("lower", MIRRORED)
def test_means_and_comparisons_are_those_of_the_mirrored_metric(folder: Path, lower: str) -> None:
    means, pairs = table(folder, "configuration_metrics"), table(folder, "comparisons")
    higher = of_metric(means, MIRRORED[lower])
    assert len({row["mean"] for row in higher.values()}) > 3
    for key, row in of_metric(means, lower).items():
        other = higher[key]
        assert (row["lower_is_better"], other["lower_is_better"]) == (True, False)
        assert row["may_be_best"] == other["may_be_best"]
        ends = ("mean", "mean"), ("ci_low", "ci_high"), ("lowest", "highest"), ("tie_lowest", "tie_highest")
        for low, high in ends:
            expected = None if other[high] is None else pytest.approx(1 - other[high])
            assert row[low] == expected, low
    higher = of_metric(pairs, MIRRORED[lower])
    for key, row in of_metric(pairs, lower).items():
        other = higher[key]
        assert row["difference"] == pytest.approx(-other["difference"])
        assert [row[name] for name in ("wins", "ties", "losses")] == [
            other[name] for name in ("wins", "ties", "losses")
        ]
        assert row["p_adjusted"] == (None if other["p_adjusted"] is None else pytest.approx(other["p_adjusted"]))


@pytest.mark.parametrize("site", ["site", "absent"])
@pytest.mark.parametrize("lower", MIRRORED)
def test_a_stored_run_reads_the_same_without_the_package(
    folder: Path, values: dict[str, dict[str, dict[str, float]]], lower: str, site: str
) -> None:
    by_first = min(values["Far"], key=lambda name: fmean(values["Far"][name].values()))
    of_best = values[lower][by_first]
    highest = sorted(of_best, key=lambda query: (-of_best[query], query))[:3]
    worst = run(
        folder,
        "worst",
        "out",
        "-m",
        re.sub(",?judge=lexical|[()]", "", lower).removeprefix("Criterion"),
        "-n",
        "3",
        site=site,
    )
    assert worst.returncode == 0, worst.stderr
    assert worst.stdout.startswith(f"{by_first}: highest {lower}")
    assert re.findall(r"q\d\d(?=:)", worst.stdout) == highest
    if site == "absent" and not lower.startswith("Criterion"):
        refused = run(folder, "compare", "out", "-m", lower, site=site)
        assert (refused.returncode, "Traceback" in refused.stderr) == (2, False)
        assert f"out: no installed package defines {lower}, as when the run was made" in refused.stderr
        (folder / "gates.yaml").write_text(f"gates: [{{metric: '{lower}', at_most: 0.5}}]\n")
        gated = run(folder, "gate", "out", "--experiment", "gates.yaml", site=site)
        assert (gated.returncode, f"no installed package defines {lower}" in gated.stderr) == (2, True)
        return
    compared = run(folder, "compare", "out", "-m", lower, "--baseline", "third", "--format", "json", site=site)
    rows = {row["configuration"]: row for row in json.loads(compared.stdout)["comparisons"]}
    pairs = zip(values[lower]["second"].values(), values[lower]["third"].values(), strict=True)
    assert rows["second"]["wins"] == sum(one < other for one, other in pairs)
    assert rows["second"]["verdict"] == "better"


def test_the_report_and_the_gates_are_the_same_without_the_package(folder: Path) -> None:
    pages = []
    for site in ("site", "absent"):
        assert run(folder, "report", "out", "--output", f"{site}.html", site=site).returncode == 0
        pages.append((folder / f"{site}.html").read_text())
    assert pages[0] == pages[1]
    gates = [run(folder, "gate", "out", site=site).stdout for site in ("site", "absent")]
    assert gates[0] == gates[1] != ""


def test_the_run_decides_and_not_another_version_of_the_package(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "other")
    (tmp_path / "other" / "site" / "own.py").write_text(PACKAGE.replace(", lower_is_better=True", ""))
    rows = [
        run(place, "compare", "out", "-m", "Far", "--format", "csv").stdout for place in (folder, tmp_path / "other")
    ]
    assert rows[0] == rows[1] != ""
