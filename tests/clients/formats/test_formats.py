"""Content of real files that every reader accepts, and the same content in every format."""

import itertools
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaigns import examples, in_campaigns
from support.inputs import (
    Judgement,
    beir_qrels,
    json_texts,
    qrels_table,
    run_table,
    tab_texts,
    texts_table,
    trec_qrels,
    trec_run,
    write,
    write_table,
)
from support.readers import BYTE_ORDER_MARK, HEADER, attributes, qrels, queries, read_corpus, run

from rankbeam.transforms.clients.formats.rows import read_run, run_tag
from rankbeam.transforms.clients.formats.texts import TextEntry
from rankbeam.transforms.clients.storage import files

DIRTY_QRELS = {
    "trec": (b"# pooled in 2019\n\nq1 0 d/1 1\r\n  \t\nq1\t0   d2 \t -1  \nq2 0 d2 0.5\n", "q1 0 d/1 1"),
    "beir": (b"query-id\tcorpus-id\tscore\r\n\nq1\td/1\t1\r\n \t \r\nq1\td2\t-1\nq2\td2\t0.5\n", "q1\td/1\t1"),
}


@pytest.mark.parametrize("name", ["qrels", "qrels.gz"])
@pytest.mark.parametrize("mark", [b"", BYTE_ORDER_MARK])
@pytest.mark.parametrize(("kind", "lines"), [("trec", [3, 5, 6]), ("beir", [3, 5, 6])])
def test_dirty_qrels(tmp_path: Path, name: str, mark: bytes, kind: str, lines: list[int]) -> None:
    path = write(tmp_path / name, mark + DIRTY_QRELS[kind][0])
    values = [("q1", "d/1", 1.0), ("q1", "d2", -1.0), ("q2", "d2", 0.5)]
    assert qrels(path) == [(*value, line) for value, line in zip(values, lines, strict=True)]


@pytest.mark.parametrize("name", ["run", "run.gz"])
@pytest.mark.parametrize("mark", [b"", BYTE_ORDER_MARK])
def test_a_dirty_run(tmp_path: Path, name: str, mark: bytes) -> None:
    content = (
        b"# system: a\n\nq1 Q0 d1 1 2.5 tag\r\n\t\nq1\tQ0  d2 \t2 1e-3 tag and more words\n"
        b"  q2 Q0 \xc3\xa9/\xe6\x97\xa5 1 -7\n# the end"
    )
    path = write(tmp_path / name, mark + content)
    assert run(path) == [("q1", "d1", 2.5, 3), ("q1", "d2", 0.001, 5), ("q2", "é/日", -7.0, 6)]


@pytest.mark.parametrize("line", ["# a parameter\n", "\n"])
def test_a_long_preamble_is_skipped(tmp_path: Path, line: str) -> None:
    assert run(write(tmp_path / "run", line * 100 + "q Q0 d 1 1 t\n")) == [("q", "d", 1.0, 101)]


@pytest.mark.parametrize("name", ["queries", "queries.gz"])
@pytest.mark.parametrize("mark", [b"", BYTE_ORDER_MARK])
def test_dirty_queries_in_tab_separated_text(tmp_path: Path, name: str, mark: bytes) -> None:
    content = '\r\nq 1\twho said "why"?\r\n\n日本/2\t  was\tist das  \nq3\t\nq4\tlast'
    path = write(tmp_path / name, mark + content.encode())
    assert queries(path) == [
        ("q 1", 'who said "why"?', 2),
        ("日本/2", "was\tist das", 4),
        ("q3", "", 5),
        ("q4", "last", 6),
    ]


@pytest.mark.parametrize("name", ["queries.jsonl", "queries.jsonl.gz"])
@pytest.mark.parametrize("mark", [b"", BYTE_ORDER_MARK])
def test_dirty_queries_in_json_lines(tmp_path: Path, name: str, mark: bytes) -> None:
    content = (
        '\n  {"_id": "q \\"1\\"/a", "text": "why\\nnot"}\r\n\r\n'
        '{"id": 7, "query": "with an int id"}\n{"_id": 0, "text": null}\n{"qid": "日本", "text": "\\ud83d\\ude00"}'
    )
    path = write(tmp_path / name, mark + content.encode())
    expected = [('q "1"/a', "why\nnot", 2), ("7", "with an int id", 4), ("0", "", 5), ("日本", "😀", 6)]
    assert queries(path) == expected


STRANGE_IDS = (
    "a b",
    'say "hi"',
    "it's",
    "a/b\\c",
    "https://x.org/?q=1&r=2",
    "ü",
    "日本",
    "😀",
    "#1",
    "-",
    "007",
    "a,b",
)


def test_strange_ids_in_beir_files(tmp_path: Path) -> None:
    rows = [(query, doc, 1.0) for query, doc in zip(STRANGE_IDS, reversed(STRANGE_IDS), strict=True)]
    texts = [(name, "text") for name in STRANGE_IDS]
    assert [row[:3] for row in qrels(write(tmp_path / "qrels.tsv", beir_qrels(rows)))] == rows
    assert [row[:2] for row in queries(write(tmp_path / "queries.jsonl", json_texts(texts)))] == texts
    assert [row[:2] for row in queries(write(tmp_path / "queries.tsv", tab_texts(texts)))] == texts


def test_strange_ids_in_parquet(tmp_path: Path) -> None:
    rows = [(query, doc, 1.0) for query, doc in zip(STRANGE_IDS, reversed(STRANGE_IDS), strict=True)]
    texts = [(name, "text") for name in STRANGE_IDS]
    assert [row[:3] for row in qrels(write_table(tmp_path / "qrels", qrels_table(rows)))] == rows
    assert [row[:3] for row in run(write_table(tmp_path / "run", run_table(rows)))] == rows
    assert [row[:2] for row in queries(write_table(tmp_path / "queries", texts_table(texts)))] == texts


@pytest.mark.parametrize("header", [HEADER, "query_id\tcorpus_id\tscore\n", "Query-ID\tDoc-ID\tRelevance\r\n", ""])
def test_beir_qrels_with_and_without_a_header(tmp_path: Path, header: str) -> None:
    first = 1 + bool(header)
    path = write(tmp_path / "qrels.tsv", header + "q1\td1\t2\nq2\td2\t0")
    assert qrels(path) == [("q1", "d1", 2.0, first), ("q2", "d2", 0.0, first + 1)]


@pytest.mark.parametrize("header", ["corpus-id\tquery-id\tscore", "doc_id\tquery_id\tgrade\tsource"])
def test_judgements_below_a_header_in_another_order(tmp_path: Path, header: str) -> None:
    row = "1\t2\t0" + "\tpeople" * header.endswith("source")
    assert [row[:3] for row in qrels(write(tmp_path / "qrels.tsv", f"{header}\n{row}\n"))] == [("2", "1", 0.0)]


def test_a_header_alone_holds_no_judgement(tmp_path: Path) -> None:
    assert qrels(write(tmp_path / "qrels.tsv", HEADER)) == []


def test_trec_qrels_may_be_separated_by_tabs(tmp_path: Path) -> None:
    assert qrels(write(tmp_path / "qrels", "q1\t0\td1\t1\n")) == [("q1", "d1", 1.0, 1)]


QUESTIONS = ("what is 42", "windows update 2019", "who won 1998 2002", "boeing 747 400 747", "nan or nan", "2019")


@pytest.mark.parametrize("first", QUESTIONS)
def test_queries_may_hold_numbers(tmp_path: Path, first: str) -> None:
    path = write(tmp_path / "queries.tsv", f"q1\t{first}\nq2\tsomething else\n")
    assert queries(path) == [("q1", first, 1), ("q2", "something else", 2)]


def test_attributes_are_what_else_a_query_has(tmp_path: Path) -> None:
    content = (
        '{"_id": "1", "text": "a", "metadata": {"language": "de", "year": 2019, "new": true}, "intent": "buy"}\n'
        '{"_id": "2", "text": "b", "metadata": {}, "language": null, "tags": ["x", "é"]}\n'
    )
    expected = [{"intent": "buy", "language": "de", "new": "true", "year": "2019"}, {"tags": '["x", "é"]'}]
    assert attributes(write(tmp_path / "queries.jsonl", content)) == expected


def test_attributes_in_parquet(tmp_path: Path) -> None:
    languages = pa.array(["de", None]).dictionary_encode()
    columns = {"qid": ["1", "2"], "text": ["a", "b"], "language": languages, "year": [2019, 2020]}
    path = write_table(tmp_path / "queries.parquet", columns)
    assert attributes(path) == [{"language": "de", "year": "2019"}, {"year": "2020"}]


def test_documents_have_titles_and_may_be_empty(tmp_path: Path) -> None:
    content = '{"_id": "d/1", "title": "T", "text": "body", "url": "x"}\n{"_id": 2, "title": null, "text": ""}\n'
    expected = [TextEntry("d/1", "T", "body", {"url": "x"}, 1), TextEntry("2", "", "", {}, 2)]
    assert list(read_corpus(write(tmp_path / "corpus.jsonl", content))) == expected
    table = {"docno": ["d/1", "2"], "title": ["T", None], "contents": ["body", None], "url": ["x", None]}
    assert list(read_corpus(write_table(tmp_path / "corpus.parquet", table))) == expected


@pytest.mark.parametrize("text", ["0", "false"])
def test_a_text_of_another_type_is_kept(tmp_path: Path, text: str) -> None:
    assert queries(write(tmp_path / "queries.jsonl", f'{{"_id": "1", "text": {text}}}\n')) == [("1", text, 1)]


IDS = {
    "string": pa.array(["7", "8"]),
    "large_string": pa.array(["7", "8"], pa.large_string()),
    "string_view": pa.array(["7", "8"], pa.string_view()),
    "dictionary": pa.array(["7", "8"]).dictionary_encode(),
    "binary": pa.array([b"7", b"8"]),
    "int64": pa.array([7, 8]),
    "uint8": pa.array([7, 8], pa.uint8()),
    "double": pa.array([7.0, 8.0]),
}


@pytest.mark.parametrize("kind", IDS)
def test_ids_in_parquet_may_have_any_type(tmp_path: Path, kind: str) -> None:
    ids = IDS[kind]
    judged = write_table(tmp_path / "qrels.parquet", {"query-id": ids, "corpus-id": ids, "score": [1, 0]})
    table = write_table(tmp_path / "run.parquet", {"qid": ids, "docno": ids, "score": [0.5, 0.25]})
    texts = write_table(tmp_path / "queries.parquet", {"_id": ids, "text": pa.array(["a", "b"], pa.large_string())})
    assert qrels(judged) == [("7", "7", 1.0, 1), ("8", "8", 0.0, 2)]
    assert run(table) == [("7", "7", 0.5, 1), ("8", "8", 0.25, 2)]
    assert queries(texts) == [("7", "a", 1), ("8", "b", 2)]


def test_a_tag_is_read_from_the_first_line(tmp_path: Path) -> None:
    assert run_tag(write(tmp_path / "a.gz", "# c\nq Q0 d 1 1 my-tag more\nq Q0 e 2 1 other\n")) == "my-tag"
    assert run_tag(write(tmp_path / "b", "q Q0 d 1 1\n")) is None
    assert run_tag(write_table(tmp_path / "c", run_table([("q", "d", 1.0)]))) is None


# --- The same content in every format ----------------------------------------------------------------------------

WORDS = st.text(st.characters(exclude_categories=("C", "Z"), exclude_characters="#"), min_size=1, max_size=5)
NUMBERS = st.integers(-2, 4).map(float) | st.sampled_from([0.5, 1.25, -0.75, 1e-3, 1e6])
ROWS = st.lists(st.tuples(WORDS, WORDS, NUMBERS), min_size=1, max_size=20)


@settings(max_examples=examples(50))
@given(rows=ROWS, packed=st.booleans())
def test_every_format_has_the_same_judgements(
    rows: list[Judgement], packed: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, ending = tmp_path_factory.mktemp("qrels"), ".gz" if packed else ""
    paths = [
        write(folder / f"trec{ending}", trec_qrels(rows)),
        write(folder / f"beir{ending}", beir_qrels(rows)),
        write_table(folder / "parquet", qrels_table(rows)),
    ]
    assert [[row[:3] for row in qrels(path)] for path in paths] == [rows] * 3


@settings(max_examples=examples(50))
@given(rows=ROWS)
def test_every_format_has_the_same_run(rows: list[Judgement], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("run")
    paths = [write(folder / "trec", trec_run(rows)), write_table(folder / "parquet", run_table(rows))]
    assert [[row[:3] for row in run(path)] for path in paths] == [rows] * 2


TEXTS = st.text(st.characters(exclude_categories=("C", "Zl", "Zp")), max_size=20).map(str.strip)


@settings(max_examples=examples(50))
@given(rows=st.lists(st.tuples(WORDS, TEXTS), min_size=1, max_size=20))
def test_every_format_has_the_same_queries(
    rows: list[tuple[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("queries")
    paths = [
        write(folder / "tab", tab_texts([("first", "a question"), *rows])),
        write(folder / "json", json_texts([("first", "a question"), *rows])),
        write_table(folder / "parquet", texts_table([("first", "a question"), *rows])),
    ]
    assert [[row[:2] for row in queries(path)][1:] for path in paths] == [rows] * 3


# --- Many blocks, fast and slow ----------------------------------------------------------------------------------

# Each is said once every so many lines, so that some blocks of a file are even and others are not.
SPELLED = {
    "even": "{query} Q0 {doc} 1 {score} tag\n",
    "tabs": "{query}\tQ0\t{doc}\t1\t{score}\ttag\r\n",
    "blanks": "  {query} Q0  {doc} 1 {score} tag \n",
    "more words": "{query} Q0 {doc} 1 {score} tag and more\n",
    "no tag": "{query} Q0 {doc} 1 {score}\n",
    "comment": "# c\n{query} Q0 {doc} 1 {score} tag\n",
    "empty line": "\n{query} Q0 {doc} 1 {score} tag\n",
}


@pytest.mark.long
@pytest.mark.parametrize("kind", SPELLED)
@pytest.mark.parametrize("seldom", [True, *in_campaigns(False)])
def test_a_run_of_many_blocks_is_read_the_same_however_it_is_spelled(tmp_path: Path, kind: str, seldom: bool) -> None:
    name = "d" * 1000  # long ids fill several blocks with few lines
    rows = [(f"q{number // 1000}", f"{name}{number}", number / 7) for number in range(3 * files.BLOCK_BYTES // 1000)]
    odd = {len(rows) // 2} if seldom else set(range(len(rows)))
    lines = [
        SPELLED[kind if number in odd else "even"].format(query=query, doc=doc, score=repr(score))
        for number, (query, doc, score) in enumerate(rows)
    ]
    before = [line.count("\n") for line in lines]
    table = run(write(tmp_path / "run", "".join(lines)))
    assert [row[:3] for row in table] == rows
    assert [row[3] for row in table] == list(itertools.accumulate(before))


def test_judgements_below_a_header_are_numbered_on_from_it(tmp_path: Path) -> None:
    rows = [(f"q {number}", "d" * 1000, float(number)) for number in range(2 * files.BLOCK_BYTES // 1000)]
    table = qrels(write(tmp_path / "qrels.tsv", "\n \n" + beir_qrels(rows)))
    assert table == [(*row, line) for line, row in enumerate(rows, 4)]


def test_ids_that_look_like_nothing_are_kept(tmp_path: Path) -> None:
    names = ["NA", "N/A", "null", "NULL", "nan", "None", "true", "d#1", '"q"', "-"]
    rows = [(query, doc, 1.0) for query, doc in zip(names, reversed(names), strict=True)]
    assert [row[:3] for row in qrels(write(tmp_path / "trec", trec_qrels(rows)))] == rows
    assert [row[:3] for row in qrels(write(tmp_path / "beir", beir_qrels(rows)))] == rows
    assert [row[:3] for row in run(write(tmp_path / "run", trec_run(rows)))] == rows


@pytest.mark.parametrize("kind", ["trec", "parquet"])
def test_a_reader_that_is_left_early_leaves_no_thread(tmp_path: Path, kind: str) -> None:
    rows = [(f"q{number}", "d" * 1000, 1.0) for number in range(5 * files.BLOCK_BYTES // 1000)]
    path = tmp_path / "run"
    batches = read_run(write(path, trec_run(rows)) if kind == "trec" else write_table(path, run_table(rows)))
    first = next(batches)
    batches.close()  # type: ignore[attr-defined]  # what a loop does that is left
    assert first["line"][0].as_py() == 1
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("ahead")] == []


def test_parquet_of_many_small_row_groups_comes_in_few_batches(tmp_path: Path) -> None:
    rows = [(f"q{number}", f"d{number}", number / 7) for number in range(5000)]
    pq.write_table(pa.table(run_table(rows)), tmp_path / "run", row_group_size=10)
    batches = list(read_run(str(tmp_path / "run")))
    assert [row[:3] for row in run(str(tmp_path / "run"))] == rows
    assert [batch.num_rows for batch in batches] == [5000]
