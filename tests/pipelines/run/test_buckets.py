"""Numbers of buckets: none outgrows memory, whatever the run, and small runs have few."""

import gzip
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.inputs import json_texts, trec_qrels, trec_run, write
from support.remote import write_experiment

from rankbeam.pipelines.experiment.load import load_experiment
from rankbeam.pipelines.run.buckets import buckets_of, number_of, queries_in

MB, TB = 1 << 20, 1 << 40
BYTES = st.integers(0, 100 * TB)


@given(largest=BYTES, rest=BYTES)
def test_no_bucket_outgrows_memory(largest: int, rest: int) -> None:
    buckets = number_of(largest, largest + rest)
    assert (largest + rest) / buckets <= 64 * MB
    assert buckets >= 4


@given(largest=BYTES, rest=BYTES, more=BYTES)
def test_more_data_have_no_fewer_buckets(largest: int, rest: int, more: int) -> None:
    assert number_of(largest, largest + rest) <= number_of(largest + more, largest + rest + more)
    assert number_of(largest, largest + rest) <= number_of(largest, largest + rest + more)


def calls_of(folder: Path, queries: int, configurations: int, top_k: int) -> int:
    """Buckets of an experiment whose file of queries has the size of this number of 64-byte queries."""
    path = write(folder / "queries.jsonl", json_texts([("q1", "alpha")]))
    write(folder / "qrels", trec_qrels([("q1", "d1", 1.0)]))
    http = {"type": "http", "method": "GET", "results": "results", "id": "id"}
    retrievers = [
        {"name": f"c{n}", "retriever": {**http, "url": f"http://localhost/{n}?q={{query}}"}, "top_k": top_k}
        for n in range(configurations)
    ]
    base = {"dataset": {"queries": "queries.jsonl", "qrels": "qrels"}, "configurations": retrievers}
    experiment = load_experiment(write_experiment(folder, base))
    os.truncate(path, 64 * queries)  # a sparse file
    return buckets_of(experiment)


@pytest.mark.parametrize(
    ("queries", "configurations", "top_k", "expected"),
    [
        (1_000, 1, 10, 4),
        (1_000_000, 1, 100, 763),
        (1_000_000, 10, 10, 763),  # as many results
        (10_000_000, 1, 100, 4096),  # 15 MB each
        (10_000_000, 40, 100, 38_729),  # 40 billion results: 64 MB each
    ],
)
def test_queries_configurations_and_results_count(
    tmp_path: Path, queries: int, configurations: int, top_k: int, expected: int
) -> None:
    assert calls_of(tmp_path, queries, configurations, top_k) == pytest.approx(expected, rel=0.01)


def test_many_runs_count_together(tmp_path: Path) -> None:
    write(tmp_path / "qrels", trec_qrels([("q1", "d1", 1.0)]))
    names = [f"r{n}" for n in range(40)]
    paths = {name: write(tmp_path / name, trec_run([("q1", "d1", 1.0)])) for name in names}
    configurations = [{"name": run, "retriever": {"type": "run_file", "path": run}} for run in names]
    base = {"dataset": {"qrels": "qrels"}, "configurations": configurations}
    experiment = load_experiment(write_experiment(tmp_path, base))
    for path in paths.values():
        os.truncate(path, 400 * MB)
    assert buckets_of(experiment) == 251  # 50 were enough for one of them, and a bucket had 320 MB


@pytest.mark.long
def test_deep_judgements_are_not_counted_as_queries(tmp_path: Path) -> None:
    deep = [(f"q{query}", f"d{document}", 1.0) for query in range(1_000) for document in range(100)]
    write(tmp_path / "qrels", trec_qrels(deep))
    names = [f"r{n}" for n in range(120)]
    for name in names:
        write(tmp_path / name, trec_run([("q1", "d1", 1.0)]))
    configurations = [{"name": name, "retriever": {"type": "run_file", "path": name}} for name in names]
    base = {
        "dataset": {"qrels": "qrels"},
        "configurations": configurations,
        "metrics": ["nDCG", "RR", "AP", "P@5", "R"],
    }
    experiment = load_experiment(write_experiment(tmp_path, base))
    assert queries_in(experiment.dataset.qrels or "") == pytest.approx(1_000, rel=0.1)
    assert buckets_of(experiment) == 4
    (tmp_path / "packed").write_bytes(gzip.compress((tmp_path / "qrels").read_bytes()))
    assert queries_in(str(tmp_path / "packed")) >= 1_000
    write(tmp_path / "qrels", trec_qrels(sorted(deep, key=lambda judgement: judgement[1])))
    assert queries_in(experiment.dataset.qrels or "") >= 10_000
    assert buckets_of(experiment) > 4


@pytest.mark.parametrize(("answers", "expected"), [("replay", 4), ("http", 31)])
def test_small_files_of_answers_and_few_queries_of_an_application_have_few_buckets(
    tmp_path: Path, answers: str, expected: int
) -> None:
    queries = write(tmp_path / "queries.jsonl", json_texts([("q1", "alpha")]))
    write(tmp_path / "answers.jsonl", '{"query_id": "q1", "answer": "beta", "contexts": ["gamma"]}\n')
    kinds = {
        "replay": {"type": "replay", "path": "answers.jsonl"},
        "http": {
            "type": "http",
            "url": "http://localhost/ask",
            "body": {"question": "{query}"},
            "answer": "answer",
            "results": "sources",
            "text": "text",
        },
    }
    base = {
        "dataset": {"queries": "queries.jsonl"},
        "services": {"overlap": {"type": "lexical"}},
        "configurations": [{"name": "a", "answers": kinds[answers]}],
        "judge": {"service": "overlap"},
        "metrics": ["Faithfulness"],
    }
    experiment = load_experiment(write_experiment(tmp_path, base))
    os.truncate(queries, 64 * 1000)
    assert buckets_of(experiment) == expected
