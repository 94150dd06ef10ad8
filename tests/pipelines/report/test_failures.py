"""Whose calls failed, and why: a fusion has the failed calls of its parts, and what is cut from another no calls."""

from pathlib import Path

import pytest
from support.finished import experiment, install, ranks
from support.inputs import write
from support.offline_experiment import answered
from support.pages import Page
from support.runs import run_experiment
from support.standin_answers import model
from support.standins import Faults, serve

from rankbeam.pipelines import report
from rankbeam.pipelines.report import coverage
from rankbeam.pipelines.report.study import Study
from rankbeam.transforms.clients.parameters import entry_points_of


def test_failures_stand_with_the_calls_and_with_the_fusion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch)
    path = experiment(tmp_path, {"a": ranks(1, 2, q01=-1, q02=-1), "b": ranks(1, q02=-2)}, grid={"top_k": [5, 20]})
    path["configurations"].append({"name": "fused", "retriever": {"type": "fusion", "parts": ["a", "b"]}})
    results = run_experiment(tmp_path, path)
    failures = coverage.failures(Study(results))
    assert (failures["kinds"], failures["total"]) == (["quota", "timeout"], 3)
    assert failures["counts"] == [("a:top_k=20", [2, 0]), ("b:top_k=20", [0, 1]), ("fused:top_k=20", [2, 1])]
    assert "3 failures, by kind; fusions and reranked" in Page.of(report.build(results)).text
    entry_points_of.cache_clear()


@pytest.mark.long
def test_failures_stand_with_what_is_reranked_and_with_fusions_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch)
    path = experiment(tmp_path, {"a": ranks(1, 2, q01=-1, q02=-1), "b": ranks(1, q02=-2)})
    path["dataset"]["corpus"] = write(tmp_path / "corpus.jsonl", '{"_id": "d", "text": "t"}\n')
    path["services"] = {"overlap": {"type": "lexical"}}
    reranked = path["configurations"][0] | {"name": "reranked", "rerank": {"service": "overlap", "depth": 20}}
    fused = {"name": "fused", "retriever": {"type": "fusion", "parts": ["reranked", "b"]}, "top_k": 20}
    path["configurations"] += [reranked, fused]
    failures = coverage.failures(Study(run_experiment(tmp_path, path)))
    assert failures["counts"] == [("a", [2, 0]), ("b", [0, 1]), ("reranked", [2, 0]), ("fused", [2, 1])]
    entry_points_of.cache_clear()


@pytest.mark.long
def test_judged_values_stand_with_their_own_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")
    with serve("openai", faults=Faults(rate=1.0, kinds=("internal",))) as server:
        services = {"reader": {"type": "extractive"}, "overlap": {"type": "lexical"}, "dead": model(server, "openai")}
        path = answered(tmp_path, metrics=["RR", "Faithfulness"], services=services)
        whole, cut = path["configurations"]
        cut |= {"top_k": 2, "generate": {"service": "dead", "contexts": 2}}
        other = whole | {"name": "other", "retriever": {"type": "bm25", "stemming": "none"}}
        fused = cut | {"name": "fused", "retriever": {"type": "fusion", "parts": [whole["name"], "other"]}}
        path["configurations"] += [other, fused]
        path["quotas"] = {"dead": {"attempts": 1, "give_up_after_s": 0.5}}
        results = run_experiment(tmp_path, path)
    assert [row["derived_from"] is None for row in results.configurations] == [True, False, True, True]
    assert coverage.failures(Study(results))["counts"] == [("first-3", [3]), ("fused", [3])]
