"""Names of services in a ledger: those of the experiment file, for models and for retrievers."""

from pathlib import Path

import pytest
from support.cli import rankbeam
from support.racing import QUERIES, calls, experiment, systems
from support.runs import evaluated

from rankbeam.pipelines.experiment.load import load_experiment


@pytest.mark.long
def test_a_ledger_is_cleared_of_one_retriever_by_the_name_of_its_configuration(tmp_path: Path) -> None:
    with systems("best", "worst") as servers:
        path = experiment(tmp_path, servers)
        evaluated(path)
        shown = rankbeam("ledger", path)
        cleared = rankbeam("ledger", path, "--clear", "--service", "worst", "--yes")
        evaluated(path)
        assert calls(servers) == {"best": QUERIES, "worst": 2 * QUERIES}
    assert "\nservices best, worst\n" in shown.stdout
    assert f"cleared {QUERIES} answers" in cleared.stdout


def test_a_retriever_has_another_name_than_a_model_or_another_retriever(tmp_path: Path) -> None:
    retriever = {"type": "http", "url": "http://127.0.0.1:9/search", "results": "hits", "id": "id"}
    configurations = [
        {"name": "plain", "retriever": {**retriever, "version": "3"}, "top_k": 10},
        {"name": "m", "retriever": {**retriever, "version": "4"}, "top_k": 10},
        {
            "name": "more",
            "retriever": retriever,
            "top_k": 10,
            "rewrite": {"kind": "multi_query", "n": 1, "service": "m"},
        },
    ]
    services = {"m": {"type": "openai", "model": "x", "base_url": "http://127.0.0.1:9"}}
    path = experiment(tmp_path, {}, configurations=configurations, services=services)
    names = load_experiment(path).called_names
    assert sorted(names.values()) == ["m (http 1)", "more", "more (http 4)", "plain"]
