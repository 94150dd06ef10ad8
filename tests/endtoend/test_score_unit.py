"""Saved rankings of chunks with the ids of their documents: `score --unit document` gives what a replay gives."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaigns import examples
from support.cli import rankbeam
from support.inputs import trec_qrels, trec_run, write
from support.runs import run_experiment

import rankbeam as api
from rankbeam.transforms.records.errors import InputError, InputErrors

METRICS = ["nDCG@3", "P@2", "R@3", "RR"]
RANKING = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=8)
RANKINGS = st.lists(RANKING, min_size=1, max_size=4)


def files(folder: Path, rankings: list[list[str]]) -> tuple[str, str]:
    """Judgements of documents a and c, and rankings of chunks in a run."""
    queries = [f"q{number}" for number in range(len(rankings))]
    qrels = write(folder / "qrels", trec_qrels([(query, doc, 1.0) for query in queries for doc in "ac"]))
    rows = [
        (query, doc, -float(rank)) for query, own in zip(queries, rankings, strict=True) for rank, doc in enumerate(own)
    ]
    return qrels, write(folder / "chunks.run", trec_run(rows))


def plain(ranking: list[str]) -> list[float]:
    """The metrics of one ranking of chunks, each document at the rank of its first chunk."""
    documents = list(dict.fromkeys(ranking))
    hits = [doc in "ac" for doc in documents]
    gain = sum(hit / math.log2(rank + 2) for rank, hit in enumerate(hits[:3]))
    first = next((1 / (rank + 1) for rank, hit in enumerate(hits) if hit), 0.0)
    return [gain / (1 + 1 / math.log2(3)), sum(hits[:2]) / 2, sum(hits[:3]) / 2, first]


@pytest.mark.long
@settings(max_examples=examples(20))
@given(RANKINGS)
def test_values_are_those_of_the_documents_in_the_order_of_their_best_chunks(
    tmp_path_factory: pytest.TempPathFactory, rankings: list[list[str]]
) -> None:
    qrels, run = files(tmp_path_factory.mktemp("unit"), rankings)
    result = api.score(qrels, [run], METRICS, unit="document", allow_disjoint=True, replicates=0)
    values = result.per_query()["value"].to_pylist()
    assert values == pytest.approx([value for ranking in rankings for value in plain(ranking)], abs=1e-12)


@pytest.mark.long
def test_a_replay_of_the_same_contexts_gives_the_same_values(tmp_path: Path) -> None:
    rankings = [list("abacb"), list("ffcf"), list("dd"), list("caca")]
    qrels, run = files(tmp_path, rankings)
    shown = rankbeam(
        "score", qrels, run, "--unit", "document", "--format", "csv", "-q", *(f"-m{name}" for name in METRICS)
    )
    answers = [
        {"query_id": f"q{number}", "answer": "A.", "contexts": [{"doc_id": doc, "text": doc} for doc in ranking]}
        for number, ranking in enumerate(rankings)
    ]
    queries = [{"_id": f"q{number}", "text": "t"} for number in range(len(rankings))]
    paths = {
        name: write(tmp_path / f"{name}.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
        for name, rows in (("answers", answers), ("queries", queries))
    }
    replayed = run_experiment(
        tmp_path,
        {
            "dataset": {"queries": paths["queries"], "qrels": qrels},
            "configurations": [{"name": "prod", "answers": {"type": "replay", "path": paths["answers"]}}],
            "metrics": METRICS,
        },
    )
    (row,) = replayed.configurations
    expected = {
        (query["query_id"], metric): value
        for query in replayed.query_metrics(row["config_id"])
        for metric, value in query["metrics"].items()
    }
    lines = [line.split(",") for line in shown.stdout.splitlines()[1:]]
    assert {(query, metric): float(value) for _, query, metric, value in lines if query != "all"} == expected


@pytest.mark.long
def test_repeated_chunks_are_refused_where_each_is_judged(tmp_path: Path) -> None:
    qrels, run = files(tmp_path, [list("aba")])
    for unit in ([], ["--unit", "chunk"]):
        refused = rankbeam("score", qrels, run, *unit)
        assert refused.status == 2
        assert "document 'a' occurs more than once in the ranking of query 'q0'" in refused.stderr
    refused = rankbeam("score", qrels, run, "--unit", "chunk", "--duplicates", "collapse")
    assert "--unit chunk judges every chunk, and --duplicates collapse drops some" in refused.stderr
    with pytest.raises((InputError, InputErrors), match="unit"):
        api.score(qrels, [run], METRICS, unit="span")


def test_evidence_has_its_own_unit(tmp_path: Path) -> None:
    line = {"query_id": "q0", "doc_id": "a", "start": 0, "end": 3, "quote": "abc"}
    evidence = write(tmp_path / "evidence.jsonl", json.dumps(line) + "\n")
    refused = rankbeam("score", evidence, files(tmp_path, [["a#0-3"]])[1], "--unit", "document")
    assert "evidence spans judge chunks of any size; remove --unit" in refused.stderr
