"""Files that were read as something else, in silence or to a traceback: what `score` and `evaluate` say of them."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.cli import Outcome, rankbeam
from support.inputs import json_texts, trec_qrels, trec_run, write, write_table

ROWS = [("q1", "d1", 2.0), ("q1", "user", 1.0), ("q2", "d1", 1.0)]
NAMES = ("query_id", "doc_id", "score")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "qrels", trec_qrels(ROWS))
    write(tmp_path / "a.run", trec_run(ROWS))
    write(tmp_path / "queries.jsonl", json_texts([("q1", "alpha"), ("q2", "beta")]))
    write(tmp_path / "corpus.jsonl", json_texts([("d1", "alpha"), ("user", "beta")]))
    return tmp_path


def scored(folder: Path, qrels: str = "qrels", run: str = "a.run") -> Outcome:
    arguments = ["-m", "RR", "--replicates", "0", "--format", "csv"]
    return rankbeam("score", str(folder / qrels), str(folder / run), *arguments)


def evaluated(folder: Path, **names: str) -> Outcome:
    dataset = {"qrels": "qrels", "queries": "queries.jsonl", "corpus": "corpus.jsonl", **names}
    experiment = {
        "name": "small",
        "dataset": dataset,
        "configurations": [{"name": "bm25", "retriever": {"type": "bm25"}}],
        "metrics": ["RR"],
        "output": {"path": "out"},
    }
    return rankbeam("evaluate", write(folder / "e.yaml", json.dumps(experiment)))


def refused(outcome: Outcome) -> str:
    """The message of a refusal."""
    assert (outcome.status, outcome.stdout) == (2, ""), outcome.stderr
    return outcome.stderr[outcome.stderr.index("rankbeam: ") :].removeprefix("rankbeam: ").rstrip("\n")


def test_a_blank_in_a_document_id_of_a_run(folder: Path) -> None:
    run = write(folder / "b.run", "q1 Q0 d1 1 0.9 tag\nq1 Q0 user guide.md 2 0.8\n")
    assert refused(scored(folder, run="b.run")).startswith(f"{run}:2: the rank 'guide.md' is not a number")


def test_a_run_whose_lines_end_with_returns(folder: Path) -> None:
    run = write(folder / "b.run", trec_run(ROWS).replace("\n", "\r"))
    assert refused(scored(folder, run="b.run")) == (
        f"{run}:1: holds a carriage return without a line feed; end lines with LF"
    )


def test_a_corpus_whose_lines_end_with_returns(folder: Path) -> None:
    corpus = write(folder / "corpus.tsv", "d1\talpha\ruser\tbeta\r")
    assert refused(evaluated(folder, corpus="corpus.tsv")).startswith(f"{corpus}:1: holds several lines")


def test_judgements_joined_with_a_byte_order_mark(folder: Path) -> None:
    qrels = write(folder / "joined", trec_qrels(ROWS) + "\ufeffq3 0 d1 1\n")
    assert refused(scored(folder, qrels="joined")).startswith(f"{qrels}:4: contains a byte order mark")


def test_a_tag_that_is_not_utf8(folder: Path) -> None:
    run = write(folder / "b.run", b"q1 Q0 d1 1 0.9 caf\xe9\n")
    assert refused(scored(folder, run="b.run")).startswith(f"{run}:1: is not UTF-8")


def test_a_run_in_parquet_without_rows(folder: Path) -> None:
    run = write_table(folder / "b.run", {name: pa.array([], pa.string()) for name in NAMES})
    assert refused(scored(folder, run="b.run")) == f"{run}: the file is empty; a run was expected"


def test_a_column_that_stands_twice(folder: Path) -> None:
    pq.write_table(pa.table([["q1"], ["q1"], ["d1"], [1.0]], names=["query_id", *NAMES]), folder / "b.run")
    assert refused(scored(folder, run="b.run")) == f"{folder}/b.run: has two columns named 'query_id'; keep one"


def test_a_very_long_id(folder: Path) -> None:
    run = write(folder / "b.run", trec_run([*ROWS, ("q2", "x" * 1_000_000, 0.5)]))
    assert refused(scored(folder, run="b.run")) == f"{run}:4: the document id is longer than 8,192 bytes"


def test_a_query_that_is_nested_very_deeply(folder: Path) -> None:
    queries = write(
        folder / "deep.jsonl", '{"_id": "q1", "text": "a", "more": ' + "[" * 100_000 + "]" * 100_000 + "}\n"
    )
    assert refused(evaluated(folder, queries="deep.jsonl")) == (
        f"{queries}:1: is not valid JSON: it is nested too deeply"
    )


@pytest.mark.long
def test_titles_of_bytes_are_indexed_as_text(folder: Path) -> None:
    titles = pa.array(["café".encode(), b"beta"])
    write_table(folder / "corpus", {"_id": ["d1", "user"], "title": titles, "text": ["nothing", "nothing"]})
    write(folder / "french.jsonl", json_texts([("q1", "café"), ("q2", "alpha")]))
    outcome = evaluated(folder, corpus="corpus", queries="french.jsonl")
    assert outcome.status == 0
    assert "0.5000" in outcome.stdout  # of two queries one finds its document, at rank 1


@pytest.mark.long
def test_a_configuration_without_a_result_is_warned_of(folder: Path) -> None:
    write(folder / "other.jsonl", json_texts([("q1", "omega"), ("q2", "psi")]))
    outcome = evaluated(folder, queries="other.jsonl")
    assert (outcome.status, "warning: bm25: no result for any judged query\n" in outcome.stderr) == (0, True)
    (runs,) = (folder / "out" / "runs").glob("*/*.parquet")
    assert "bm25: no result for any judged query" in pq.read_table(runs).to_pylist()[0]["warnings"]
