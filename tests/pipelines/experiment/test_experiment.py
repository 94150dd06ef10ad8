# ruff: noqa: F811  fixtures are named as what they give
"""Experiment files: what a good one means, and every mistake of a bad one in one message."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.experiment_files import (
    BM25,
    GOOD,
    changed,
    folder,  # noqa: F401  pytest finds it by name
    load,
)
from support.inputs import write

from rankbeam.pipelines.experiment.load import load_experiment
from rankbeam.transforms.clients.retrievers.lexical import Bm25

# --- What a good file means --------------------------------------------------------------------------------------


def test_a_good_file(folder: Path) -> None:
    experiment = load(folder, GOOD)
    evaluation = experiment.evaluation
    assert (experiment.name, experiment.text, experiment.output) == ("helpdesk", GOOD, f"{folder}/out")
    data = f"{folder}/data"
    assert (experiment.dataset.qrels, experiment.dataset.queries, experiment.dataset.corpus) == (
        f"{data}/qrels.tsv", f"{data}/queries.jsonl", f"{data}/corpus.jsonl",
    )  # fmt: skip
    assert [str(metric) for metric in evaluation.metrics] == ["nDCG@10", "AP", "P@5"]
    assert (evaluation.slices, evaluation.baseline) == (("language",), 0)
    assert [item.keep_rankings for item in evaluation.sources] == [item.path is None for item in evaluation.sources]
    bm25, old = evaluation.configurations
    assert (bm25.name, bm25.source, bm25.retriever, bm25.top_k, bm25.derived_from) == ("bm25", 0, "bm25", 100, None)
    assert (old.name, old.source, old.retriever, old.top_k, old.derived_from) == ("old", 1, "run_file", None, None)
    assert json.loads(bm25.parameters)["retriever"]["b"] == 0.4
    assert json.loads(bm25.parameters)["top_k"] == 100
    assert [source.path for source in evaluation.sources] == [None, f"{data}/old.run"]
    assert experiment.sources[0].retriever.parameters == Bm25(b=0.4)


def test_paths_are_below_the_folder_of_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder / "e.yaml", GOOD)
    monkeypatch.chdir(folder)
    assert load_experiment("e.yaml").dataset.qrels == "data/qrels.tsv"
    monkeypatch.chdir(folder.parent)
    assert load_experiment(f"{folder.name}/e.yaml").dataset.qrels == f"{folder.name}/data/qrels.tsv"


def test_a_grid_over_top_k_is_one_source(folder: Path) -> None:
    evaluation = load(folder, GOOD + "grid: {top_k: [5, 20, 10]}\n").evaluation
    names = [f"{name}:top_k={top_k}" for name in ("bm25", "old") for top_k in (5, 20, 10)]
    assert [configuration.name for configuration in evaluation.configurations] == names
    assert [configuration.source for configuration in evaluation.configurations] == [0, 0, 0, 1, 1, 1]
    assert [source.top_k for source in evaluation.sources] == [20, 20]
    for first in (0, 3):
        small, large, middle = evaluation.configurations[first : first + 3]
        assert (small.derived_from, large.derived_from, middle.derived_from) == (large.config_id, None, large.config_id)
    assert len({configuration.config_id for configuration in evaluation.configurations}) == 6


def test_a_grid_over_parameters_is_one_source_a_combination(folder: Path) -> None:
    evaluation = load(folder, GOOD + "grid: {k1: [0.9, 1.2], top_k: [10, 5]}\n").evaluation
    assert [configuration.name for configuration in evaluation.configurations] == [
        "bm25:k1=0.9,top_k=10",
        "bm25:k1=0.9,top_k=5",
        "bm25:k1=1.2,top_k=10",
        "bm25:k1=1.2,top_k=5",
        "old:top_k=10",
        "old:top_k=5",
    ]
    assert [configuration.source for configuration in evaluation.configurations] == [0, 0, 1, 1, 2, 2]
    assert [
        json.loads(configuration.parameters)["retriever"].get("k1") for configuration in evaluation.configurations[::2]
    ] == [
        0.9,
        1.2,
        None,
    ]


def test_configurations_that_differ_in_top_k_share_a_source(folder: Path) -> None:
    more = BM25 + "    top_k: 5\n  - name: other\n    top_k: 7\n    retriever: {b: 0.4, type: bm25}\n"
    first, second, _ = load(folder, changed(BM25, more)).evaluation.configurations
    assert (first.source, second.source) == (0, 0)
    assert (first.derived_from, second.derived_from) == (second.config_id, None)


def test_all_of_a_run_is_what_its_prefixes_are_derived_from(folder: Path) -> None:
    text = GOOD.replace(
        "metrics:", "  - {name: cut, top_k: 1000000, retriever: {path: data/old.run, type: run_file}}\nmetrics:"
    )
    _, whole, cut = load(folder, text).evaluation.configurations
    assert (whole.derived_from, cut.derived_from, whole.source == cut.source) == (None, whole.config_id, True)


SAME = [
    GOOD.replace("{type: bm25, b: 0.4}", "{b: 0.4, type: bm25}"),
    GOOD.replace("b: 0.4}", "b: 0.4, k1: 1.2, method: lucene}"),
    GOOD.replace("b: 0.4}", "b: 0.4, k1: 1.20}\n    top_k: 100"),
    GOOD.replace("name: helpdesk", "name: another").replace("[nDCG@10, map, P.5]", "[RR]"),
    GOOD.replace("name: bm25", "name: renamed").replace("slices: [language]\n", "baseline: old\n"),
    GOOD.replace("{path: out}", "{path: elsewhere, rankings: false}"),
    GOOD.replace(BM25, "").replace("metrics:", BM25 + "metrics:"),
]


@pytest.mark.parametrize("text", SAME)
def test_the_config_id_depends_on_nothing_else(folder: Path, text: str) -> None:
    ids = {
        configuration.retriever: configuration.config_id
        for configuration in load(folder, GOOD).evaluation.configurations
    }
    assert {
        configuration.retriever: configuration.config_id
        for configuration in load(folder, text).evaluation.configurations
    } == ids


def test_a_whole_number_is_the_same_as_with_a_fraction(folder: Path) -> None:
    ids = [load(folder, changed("b: 0.4", f"b: 0.4, k1: {k1}")).evaluation for k1 in ("1", "1.0")]
    assert ids[0].configurations == ids[1].configurations


@pytest.mark.parametrize(
    "parameter", ["b: 0.5", "b: 0.4, k1: 1.3", "b: 0.4, method: robertson", "b: 0.4, fields: [text]"]
)
def test_the_config_id_depends_on_every_parameter(folder: Path, parameter: str) -> None:
    before, after = (load(folder, text).evaluation.configurations for text in (GOOD, changed("b: 0.4", parameter)))
    assert before[0].config_id != after[0].config_id
    assert before[1].config_id == after[1].config_id


def test_the_config_id_does_not_change_between_versions(folder: Path) -> None:
    # Dashboards select by it. A new parameter with a default would change it: then this number may change too.
    assert load(folder, GOOD).evaluation.configurations[1].config_id == "f69f17037663"


@pytest.mark.parametrize(("line", "place"), [("baseline: old\n", 1), ("baseline: bm25\n", 0), ("", 0)])
def test_the_baseline(folder: Path, line: str, place: int) -> None:
    assert load(folder, GOOD + line).evaluation.baseline == place


def test_defaults(folder: Path) -> None:
    text = GOOD.replace("metrics: [nDCG@10, map, P.5]\nslices: [language]\n", "")
    evaluation = load(folder, text).evaluation
    assert [str(metric) for metric in evaluation.metrics] == ["nDCG@10", "R@100", "RR@10", "AP"]
    assert evaluation.slices == ()


@pytest.mark.parametrize(("unit", "bm25", "old"), [("document", False, True), ("chunk", True, True)])
def test_repeated_documents_are_refused_where_they_cannot_be(folder: Path, unit: str, bm25: bool, old: bool) -> None:
    sources = load(folder, changed("dataset:\n", f"dataset:\n  unit: {unit}\n")).evaluation.sources
    assert [source.refuse_repeats for source in sources] == [bm25, old]


@pytest.mark.parametrize(
    ("unit", "corpus", "roles"),
    [
        ("document", ", corpus: local", ["run", "corpus"]),
        ("chunk", "", ["run", "corpus"]),
        ("chunk", ", corpus: local", ["run"]),
    ],
)
def test_judged_chunks_are_not_compared_with_the_documents_that_they_are_cut_from(
    folder: Path, unit: str, corpus: str, roles: list[str]
) -> None:
    text = changed("dataset:\n", f"corpora: {{local: {{type: chunks, chunk_size: 4}}}}\ndataset:\n  unit: {unit}\n")
    experiment = load(folder, text.replace("b: 0.4", f"b: 0.4{corpus}"))
    assert [role for role, _ in experiment.compared] == roles


def test_parameters_may_be_merged_and_overridden(folder: Path) -> None:
    text = GOOD.replace("{type: bm25, b: 0.4}", "&base {type: bm25, b: 0.4}")
    text = text.replace("metrics:", "  - {name: sharp, retriever: {<<: *base, b: 0.9}}\nmetrics:")
    evaluation = load(folder, text).evaluation
    assert [
        json.loads(configuration.parameters)["retriever"].get("b") for configuration in evaluation.configurations
    ] == [0.4, None, 0.9]


def test_a_stage_leaves_the_cost_of_stages_before_it_to_their_usage(folder: Path) -> None:
    calls = replace(load(folder, GOOD).calls, max_cost=10.0, spent={"retrieve": 3.0, "judge": 2.0})
    assert [calls.budget(stage) for stage in ("embed", "retrieve", "judge")] == [5.0, 5.0, 8.0]
