"""Large files are read in pieces: the same numbers, and refusals that name the line of the whole file."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.cli import rankbeam
from support.inputs import trec_qrels, trec_run, write
from support.runs import run_experiment, without_run

from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.run import buckets
from rankbeam.transforms.clients.formats import pieces

QUERIES, DEPTH = 60, 10
ROWS = [
    (f"q{query}", f"d{(query * 7 + rank) % 40}", float(DEPTH - rank))
    for query in range(QUERIES)
    for rank in range(DEPTH)
]
JUDGED = [(query, doc, float(score > 5)) for query, doc, score in ROWS if score > 3]
TABLES = ("query_metrics", "configuration_metrics", "rankings")


def evaluated(folder: Path, run: Path, qrels: Path) -> Results:
    retriever = {"type": "run_file", "path": str(run)}
    experiment = {"dataset": {"qrels": str(qrels)}, "metrics": ["nDCG@10", "AP"]}
    return run_experiment(folder, {**experiment, "configurations": [{"name": "run", "retriever": retriever}]})


@pytest.fixture
def text(tmp_path: Path) -> tuple[Path, Path]:
    """A run and judgements as text."""
    write(tmp_path / "a.run", trec_run(ROWS))
    write(tmp_path / "beir.tsv", "query-id\tcorpus-id\tscore\n" + "".join(f"{q}\t{d}\t{g:g}\n" for q, d, g in JUDGED))
    return tmp_path / "a.run", tmp_path / "beir.tsv"


@pytest.mark.long
def test_pieces_of_text_and_parquet_give_the_same_numbers(
    tmp_path: Path, text: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, qrels = text
    whole = evaluated(tmp_path / "whole", run, qrels)
    packed = tmp_path / "packed" / "a.run"
    packed.parent.mkdir()
    packed.write_bytes(gzip.compress(run.read_bytes()))
    columns = dict(zip(("query_id", "doc_id", "score"), zip(*ROWS, strict=True), strict=True))
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    parquet = tmp_path / "parquet" / "a.run"
    parquet.parent.mkdir()
    pq.write_table(table, parquet, row_group_size=70)
    monkeypatch.setattr(pieces, "PIECE_BYTES", 500)
    assert len(pieces.pieces_of(str(run), "run")) == -(-run.stat().st_size // 500)
    assert len(pieces.pieces_of(str(parquet), "run")) > 5
    assert len(pieces.pieces_of(str(packed), "run")) == 1
    for name, path in (("text", run), ("groups", parquet), ("gzip", packed)):
        other = evaluated(tmp_path / name, path, qrels)
        assert other.run["dataset_fingerprint"] == whole.run["dataset_fingerprint"]
        for table_name in TABLES:
            ours, theirs = whole.table(table_name), other.table(table_name)
            names = [column for column in ours.column_names if column != "config_id"]
            assert without_run(ours.select(names)) == without_run(theirs.select(names)), (name, table_name)


def test_a_refusal_names_the_line_of_the_whole_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    qrels = write(tmp_path / "qrels", trec_qrels(JUDGED))
    lines = trec_run(ROWS).splitlines(keepends=True)
    lines[411] = "q41 Q0 d1 2 high tag\n"
    good, run = write(tmp_path / "good.run", trec_run(ROWS)), write(tmp_path / "a.run", "".join(lines))
    monkeypatch.setattr(pieces, "PIECE_BYTES", 500)
    outcome = rankbeam("score", qrels, good, run)
    assert outcome.status == 2
    assert f"{run}:412: the score 'high' is not a number" in outcome.stderr


def test_a_row_of_parquet_is_named_by_its_number_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    qrels = write(tmp_path / "qrels", trec_qrels(JUDGED))
    scores = [score for *_, score in ROWS]
    scores[300] = float("inf")
    ids = {"query_id": [query for query, *_ in ROWS], "doc_id": [doc for _, doc, _ in ROWS]}
    pq.write_table(pa.table({**ids, "score": scores}), tmp_path / "a.parquet", row_group_size=70)
    good = write(tmp_path / "good.run", trec_run(ROWS))
    monkeypatch.setattr(pieces, "PIECE_BYTES", 500)
    outcome = rankbeam("score", qrels, good, str(tmp_path / "a.parquet"))
    assert outcome.status == 2
    assert f"{tmp_path}/a.parquet:301: the score is not a finite number" in outcome.stderr


@pytest.mark.campaign
def test_what_score_reads_while_it_starts_is_not_read_again_in_pieces(
    text: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, qrels = text
    counted = rankbeam("score", str(qrels), str(run), "--format", "csv").stdout
    monkeypatch.setattr(pieces, "PIECE_BYTES", 500)
    monkeypatch.setattr(buckets, "_LARGE_BYTES", 0)
    begun: list[str] = []

    def read_blocks(path: str, begin: int, end: int) -> Iterator[bytes]:
        begun.append(path)
        yield from in_pieces(path, begin, end)

    in_pieces = pieces.read_blocks
    monkeypatch.setattr(pieces, "read_blocks", read_blocks)
    assert rankbeam("score", str(qrels), str(run), "--format", "csv").stdout == counted
    assert begun == []
    monkeypatch.setattr(buckets, "_LARGE_BYTES", 1 << 30)
    assert rankbeam("score", str(qrels), str(run), "--format", "csv").stdout == counted
    assert set(begun) == {str(qrels), str(run)}


@pytest.mark.parametrize("at", [0, 1])
def test_a_file_that_is_replaced_between_two_of_its_pieces_is_refused(
    at: int, text: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The score was that of both versions together, without a word."""
    path, (qrels, run) = text[at], reversed(text)
    monkeypatch.setattr(pieces, "PIECE_BYTES", 500)
    in_pieces, begun = pieces.read_blocks, list[str]()

    def read_blocks(name: str, begin: int, end: int) -> Iterator[bytes]:
        begun.append(name)
        if begun.count(str(path)) == 2 and begun[-1] == str(path):
            path.with_suffix(".new").write_bytes(path.read_bytes().replace(b"q1", b"q0"))
            path.with_suffix(".new").replace(path)
        yield from in_pieces(name, begin, end)

    monkeypatch.setattr(pieces, "read_blocks", read_blocks)
    outcome = rankbeam("score", str(qrels), str(run), "--format", "csv")
    assert outcome.status != 0
    assert f"{path}: was replaced or changed while it was read; run again" in outcome.stderr
