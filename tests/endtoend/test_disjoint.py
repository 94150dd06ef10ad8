"""Ids that never meet: refused before work with one from each side, or, where answers were paid for, shown and said."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.campaigns import examples, in_campaigns
from support.cli import Outcome, rankbeam
from support.inputs import (
    json_texts,
    run_table,
    tab_texts,
    texts_table,
    trec_qrels,
    trec_run,
    write,
    write_table,
)
from support.remote import answers, dataset, rag, write_experiment
from support.standins import Standin, serve

from rankbeam.pipelines.experiment.dataset_checks import refuse_strange_answers
from rankbeam.pipelines.experiment.load import load_experiment
from rankbeam.transforms.clients.formats.overlap import disjoint_errors

QUERIES = 12
QRELS = [("q1", "doc1", 1.0), ("q2", "doc2", 1.0)]
ALLOWED = "--allow-disjoint"
Rows = Sequence[tuple[str, str, float]]


def put_run(folder: Path, rows: Rows, form: str) -> str:
    if form == "parquet":
        return write_table(folder / "a.parquet", run_table(rows))
    text = trec_run(rows)
    return write(folder / "a.run", gzip.compress(text.encode()) if form == "gzip" else text)


def put_corpus(folder: Path, ids: Sequence[str], form: str) -> str:
    rows = [(name, f"alpha beta {name}") for name in ids]
    if form == "parquet":
        return write_table(folder / "corpus.parquet", texts_table(rows))
    return write(folder / "corpus", json_texts(rows) if form == "json" else tab_texts(rows))


def scored(folder: Path, qrels: Rows, run: str, *more: str) -> Outcome:
    return rankbeam("score", write(folder / "qrels", trec_qrels(qrels)), run, "-m", "RR", *more)


def experiment(folder: Path, corpus: str, **more: object) -> str:
    """BM25 over a corpus of any format."""
    content = {
        "queries": write(folder / "queries", json_texts([("q1", "alpha"), ("q2", "beta")])),
        "qrels": write(folder / "qrels", trec_qrels(QRELS)),
        "corpus": corpus,
    }
    bm25 = {"name": "bm25", "retriever": {"type": "bm25"}, "top_k": 100}
    return write_experiment(folder, {"dataset": content, "configurations": [bm25], **more})


def test_judgements_of_chunks_are_not_compared_with_the_documents_that_are_cut(tmp_path: Path) -> None:
    searched: dict[str, object] = {
        "dataset": {
            "queries": write(tmp_path / "queries", json_texts([("q1", "alpha")])),
            "qrels": write(tmp_path / "qrels", trec_qrels([("q1", "doc1#0-5", 1.0)])),
            "corpus": put_corpus(tmp_path, ["doc1"], "json"),
            "unit": "chunk",
        },
        "configurations": [{"name": "bm25", "retriever": {"type": "bm25", "corpus": "words"}, "top_k": 9}],
        "corpora": {"words": {"type": "chunks", "by": "words", "chunk_size": 1}},
        "metrics": ["R@1"],
    }
    outcome = rankbeam("evaluate", write_experiment(tmp_path, searched))
    assert (outcome.status, "1.0000" in outcome.stdout) == (0, True), outcome.stderr


@pytest.mark.long
@pytest.mark.parametrize("form", ["trec", *in_campaigns("parquet", "gzip")])
def test_a_run_without_any_judged_query(tmp_path: Path, form: str) -> None:
    run = put_run(tmp_path, [(f"q{number}", f"d{number}", 1.0) for number in range(10)], form)
    refused = scored(tmp_path, [("x1", "d1", 1.0), ("x2", "d2", 1.0)], run, "--output", str(tmp_path / "out"))
    assert (refused.status, refused.stdout) == (2, "")
    assert f"rankbeam: {run}: has no query in common with the judgements in {tmp_path}/qrels" in refused.stderr
    assert "ids such as 'q0', the judgements such as 'x1'" in refused.stderr
    assert not (tmp_path / "out" / "runs").exists()
    allowed = scored(tmp_path, [("x1", "d1", 1.0), ("x2", "d2", 1.0)], run, ALLOWED, "--format", "csv")
    assert (allowed.status, allowed.stdout.splitlines()[1]) == (0, "a,all,RR,0.0")


@pytest.mark.parametrize("form", ["parquet", *in_campaigns("trec", "gzip")])
def test_a_run_without_any_judged_document(tmp_path: Path, form: str) -> None:
    run = put_run(tmp_path, [("q1", "d1", 1.0), ("q2", "d2", 1.0), ("q3", "d3", 1.0)], form)
    refused = scored(tmp_path, QRELS, run)
    assert (refused.status, refused.stdout) == (2, "")
    assert "has no document in common" in refused.stderr
    assert (
        "ids such as 'd1', the judgements such as 'doc1'; use the same ids, or add --allow-disjoint" in refused.stderr
    )
    allowed = scored(tmp_path, QRELS, run, ALLOWED)
    assert allowed.status == 0
    assert "no document that it retrieved is judged, so it scores 0" in allowed.stderr


def test_every_run_that_does_not_meet_the_judgements_is_named(tmp_path: Path) -> None:
    good = write(tmp_path / "good.run", trec_run(QRELS))
    bad = [write(tmp_path / f"bad{n}.run", trec_run([(f"q{n}", f"d{n}", 1.0)])) for n in (1, 2)]
    refused = rankbeam("score", write(tmp_path / "qrels", trec_qrels(QRELS)), bad[0], good, bad[1])
    assert refused.status == 2
    assert [line.removeprefix("rankbeam: ").partition(": ")[0] for line in refused.stderr.splitlines()[-2:]] == bad


def test_a_bad_run_is_not_one_of_other_ids(tmp_path: Path) -> None:
    # Every document is judged, but for the other query.
    outcome = scored(tmp_path, QRELS, put_run(tmp_path, [("q1", "doc2", 1.0), ("q2", "doc1", 1.0)], "trec"))
    assert outcome.status == 0
    assert "a: no document that it retrieved is judged for its query, so it scores 0\n" in outcome.stderr
    assert ALLOWED not in outcome.stderr


@pytest.mark.long
@pytest.mark.parametrize("form", ["parquet", *in_campaigns("json", "tabs")])
@pytest.mark.parametrize("command", ["validate", "evaluate"])
def test_a_corpus_without_any_judged_document(tmp_path: Path, form: str, command: str) -> None:
    path = experiment(tmp_path, put_corpus(tmp_path, ["d1", "d2"], form))
    refused = rankbeam(command, path)
    assert (refused.status, refused.stdout) == (2, "")
    assert "has no document in common with the judgements" in refused.stderr
    assert "ids such as 'd1', the judgements such as 'doc1'" in refused.stderr
    assert rankbeam(command, path, ALLOWED).status == 0
    assert rankbeam("validate", experiment(tmp_path, put_corpus(tmp_path, ["d1", "doc2"], form))).status == 0


def test_validate_reads_of_a_corpus_only_what_it_needs(tmp_path: Path) -> None:
    corpus = put_corpus(tmp_path, ["doc1", *(f"d{number}" for number in range(5_000))], "json")
    with Path(corpus).open("a") as file:
        file.write("what follows is not read\n")
    assert rankbeam("validate", experiment(tmp_path, corpus)).status == 0
    assert rankbeam("evaluate", experiment(tmp_path, corpus)).status == 2


def test_validate_compares_runs_too(tmp_path: Path) -> None:
    run = put_run(tmp_path, [("q1", "d1", 1.0)], "trec")
    more = [{"name": "run", "retriever": {"type": "run_file", "path": run}}]
    refused = rankbeam("validate", experiment(tmp_path, put_corpus(tmp_path, ["d1"], "json"), configurations=more))
    assert refused.status == 2
    assert [name in refused.stderr for name in ("a.run: has no", "corpus: has no")] == [True, True]


def remote(folder: Path, server: Standin, *more: dict[str, object], **dataset_more: str) -> str:
    content = {
        "dataset": dataset(folder, QUERIES) | dataset_more,
        "quotas": {"rag_engine": {"requests_per_minute": 60_000}},
    }
    configuration = {"name": "remote", "retriever": rag(server), "top_k": 20}
    return write_experiment(folder, {**content, "configurations": [configuration, *more]})


@pytest.mark.long
def test_files_that_do_not_meet_are_refused_before_a_call_is_made(tmp_path: Path) -> None:
    with serve("rag_engine", answers=answers(QUERIES)) as server:
        run = write(tmp_path / "other.run", trec_run([(f"q{n}", f"other{n}", 1.0) for n in range(QUERIES)]))
        file = {"name": "file", "retriever": {"type": "run_file", "path": run}}
        for path in (
            remote(tmp_path, server, file),
            remote(tmp_path, server, corpus=put_corpus(tmp_path, ["other"], "json")),
        ):
            for command in ("plan", "evaluate"):
                refused = rankbeam(command, path)
                assert refused.status == 2
                assert "has no document in common" in refused.stderr
        assert server.stats().calls == 0


@pytest.mark.long
def test_what_was_paid_for_is_shown_and_does_not_end_well(tmp_path: Path) -> None:
    rankings = {
        query: [document | {"id": f"x{document['id']}"} for document in ranking]
        for query, ranking in answers(QUERIES).items()
    }
    # The smallest ids, whatever the number of buckets and their order.
    examples_of_ids = "it has ids such as 'xdoc-0', the judgements such as 'doc-0'"
    with serve("rag_engine", answers=rankings) as server:
        path = remote(tmp_path, server)
        outcome = rankbeam("evaluate", path)
        assert outcome.status == 3
        assert "remote" in outcome.stdout
        assert examples_of_ids in outcome.stderr
        assert outcome.stderr.endswith("rankbeam: none of the retrieved documents is judged: remote\n")
        allowed = rankbeam("evaluate", path, ALLOWED, "--format", "json")
        (warning,) = json.loads(allowed.stdout)["warnings"]
        assert warning.endswith(examples_of_ids)
        assert (allowed.status, server.stats().calls) == (0, QUERIES)
        assert "no document that it retrieved is judged" in allowed.stderr


IDS = st.lists(st.sampled_from(["a", "b", "c", "é", "A", "aa"]), min_size=1, max_size=3)


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(judged=st.tuples(IDS, IDS), ranked=st.tuples(IDS, IDS))
def test_files_meet_where_sets_of_their_ids_do(
    tmp_path: Path, judged: tuple[list[str], list[str]], ranked: tuple[list[str], list[str]]
) -> None:
    rows = [
        [(query, doc, 1.0) for query, doc in zip(*(cycled(ids) for ids in pair), strict=True)]
        for pair in (judged, ranked)
    ]
    qrels, run = write(tmp_path / "qrels", trec_qrels(rows[0])), write(tmp_path / "run", trec_run(rows[1]))
    corpus = write(tmp_path / "corpus", tab_texts([(doc, "text") for doc in ranked[1]]))
    queries, documents = (set(one).isdisjoint(other) for one, other in zip(judged, ranked, strict=True))
    paths = [error.path for error in disjoint_errors(qrels, [("run", run), ("corpus", corpus)])]
    assert paths == [run] * (queries or documents) + [corpus] * documents


def cycled(ids: list[str]) -> list[str]:
    return (ids * 3)[:3] if len(ids) < 3 else ids


def test_without_stored_answers_queries_are_not_read_for_a_check_of_them(tmp_path: Path) -> None:
    write(tmp_path / "run", trec_run([("q1", "doc1", 1.0)]))
    write(tmp_path / "qrels", trec_qrels(QRELS))
    queries = write(tmp_path / "queries.tsv", "q1\tone\n")
    text = (
        "name: a\ndataset: {qrels: qrels, queries: queries.tsv}\nmetrics: [RR]\noutput: {path: out}\n"
        "configurations: [{name: a, retriever: {type: run_file, path: run}}]\n"
    )
    path = write(tmp_path / "experiment.yaml", text)
    experiment = load_experiment(path)
    Path(queries).unlink()
    refuse_strange_answers(experiment)
