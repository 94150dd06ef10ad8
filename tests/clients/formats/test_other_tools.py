"""Files that other tools write: ranx' JSON and Parquet, runs of MS MARCO, and CSV with a header."""

import csv
import gzip
import io
import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaigns import examples
from support.cli import rankbeam
from support.inputs import write, write_table
from support.readers import Reader, attributes, queries, read_corpus, refusal
from support.strategies import lists_up_to

from rankbeam.pipelines.experiment.dataset_checks import check
from rankbeam.pipelines.run.score import are_spans
from rankbeam.transforms.clients.formats.recognise import Format, recognise
from rankbeam.transforms.clients.formats.rows import read_qrels, read_run
from rankbeam.transforms.clients.formats.syntax import delimited as separated_values
from rankbeam.transforms.clients.formats.texts import read_queries
from rankbeam.transforms.records.errors import InputError

Rows = list[tuple[str, str, float]]
RUN: Rows = [("q_1", "doc_12", 0.9), ("q_1", "doc,25", 0.8), ("q_2", 'doc"11', 0.9)]
NESTED = {"q_1": {"doc_12": 0.9, "doc,25": 0.8}, "q_2": {'doc"11': 0.9}}
names = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=8)
ids = names.filter(lambda name: name == name.strip(" "))


def rows(reader: Reader, path: str) -> Rows:
    batches = [batch.drop_columns(["line"]) for batch in reader(path)]
    table = pa.Table.from_batches(batches)
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


# --- JSON of ranx --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("packed", [False, True])
def test_json_as_ranx_saves_it(tmp_path: Path, indent: int | None, packed: bool) -> None:
    content = json.dumps(NESTED, indent=indent).encode()
    path = write(tmp_path / "run.json", gzip.compress(content) if packed else content)
    assert recognise(path, "run") is recognise(path, "qrels") is Format.NESTED
    assert rows(read_run, path) == rows(read_qrels, path) == RUN


@given(nested=st.dictionaries(ids, st.dictionaries(ids, st.integers(0, 9), min_size=1), min_size=1))
def test_json_holds_what_was_saved(tmp_path_factory: pytest.TempPathFactory, nested: dict[str, dict[str, int]]) -> None:
    path = write(tmp_path_factory.mktemp("any") / "qrels.json", json.dumps(nested))
    assert rows(read_qrels, path) == [(q, d, float(grade)) for q, known in nested.items() for d, grade in known.items()]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"q1": {"d1": 1}, "q1": {"d2": 1}}', "the query 'q1' is given twice; keep one"),
        ('{"q1": {"d1": 1, "d1": 2}}', "the query 'q1', the document 'd1' is given twice; keep one"),
        ('{"q1": {"d1": "1"}}', "the query 'q1', the document 'd1': the score \"1\" is not a number"),
        ('{"q1": {"d1": true}}', "the query 'q1', the document 'd1': the score true is not a number"),
        ('{"q1": {"d1": {}}}', "the query 'q1', the document 'd1': the score \"{…}\" is not a number"),
        ('{"q1": {"d1": NaN}}', "the score is not a finite number"),
        ('{"q1": {"d1": 1}, "q2": 3}', "the query 'q2' has 3; an object of document id to number was expected"),
        ('{"q1": {"": 1}}', "the document id '' is empty"),
        ('{"q1": {"\\ud83d": 1}}', "an id holds half a character (a lone surrogate such as \\ud83d)"),
        ("{}", "the file is empty; it has no query"),
        ('{"q1": {"d1": 1}', "is not one JSON object of query id to document id to number"),
        ('{"q1": {"d1": 1}}\n{"q2": {"d1": 1}}\n', "Extra data; JSON lines are not read here"),
    ],
)
def test_json_that_is_no_run_is_refused(tmp_path: Path, content: str, problem: str) -> None:
    path = write(tmp_path / "run.json", content)
    error = refusal(read_run, path)
    assert error.path == path
    assert problem in error.problem


@pytest.mark.parametrize("keys", [("query-id", "corpus-id", "score"), ("query_id", "doc_id", "score")])
def test_json_lines_of_judgements_and_results(tmp_path: Path, keys: tuple[str, ...]) -> None:
    lines = [json.dumps({**dict(zip(keys, row, strict=True)), "more": [1]}) for row in RUN]
    path = write(tmp_path / "test.jsonl", "\n\n".join(lines))
    assert recognise(path, "run") is recognise(path, "qrels") is Format.JSON_ROWS
    assert not are_spans(path)
    assert rows(read_run, path) == rows(read_qrels, path) == RUN
    assert [line for batch in read_run(path) for line in batch["line"].to_pylist()] == [1, 3, 5]


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        ('{"qid": "q", "doc_id": "e"}', "test.jsonl:2: the score null is not a number"),
        ('{"qid": "q", "doc_id": "e", "score": "1"}', 'test.jsonl:2: the score "1" is not a number'),
        ('{"qid": "q", "doc_id": "e", "score": true}', "test.jsonl:2: the score true is not a number"),
        ('{"qid": "q", "doc_id": "e", "score": NaN}', "test.jsonl:2: the score is not a finite number"),
        (f'{{"qid": "q", "doc_id": "e", "score": 1{"0" * 400}}}', "test.jsonl:2: the score is not a finite number"),
        ('{"qid": "q", "score": 1}', "test.jsonl:2: the id is empty"),
        ('{"qid": "q ", "doc_id": "e", "score": 1}', "test.jsonl:2: the id begins or ends with white space"),
        ('{"qid": "\\ud83d", "doc_id": "e", "score": 1}', "test.jsonl:2: holds half a character"),
        ("[1]", "test.jsonl:2: expected a JSON object, found list"),
    ],
)
def test_a_wrong_json_line_is_refused(tmp_path: Path, second: str, problem: str) -> None:
    path = write(tmp_path / "test.jsonl", f'{{"qid": "q", "doc_id": "d", "score": 1}}\n{second}\n')
    assert problem in str(refusal(read_run, path))


def test_json_lines_are_no_run(tmp_path: Path) -> None:
    path = write(tmp_path / "queries.jsonl", '{"_id": "q1", "text": "a"}\n')
    assert "it looks like JSON lines" in str(refusal(read_run, path))


def test_parquet_as_ranx_saves_it(tmp_path: Path) -> None:
    names = ("q_id", "doc_id", "score")
    path = write_table(tmp_path / "run.parquet", dict(zip(names, map(list, zip(*RUN, strict=True)), strict=True)))
    check([path], "run")
    assert rows(read_run, path) == rows(read_qrels, path) == RUN


@pytest.mark.long
@pytest.mark.parametrize(("name", "is_part"), [("test-00000-of-00004", True), ("test-00000-of-00001", False)])
def test_one_of_several_files_is_read_with_a_warning(tmp_path: Path, name: str, is_part: bool) -> None:
    qrels = write_table(tmp_path / f"{name}.parquet", {"query_id": ["q"], "doc_id": ["d"], "grade": [1]})
    outcome = rankbeam("score", qrels, write(tmp_path / "run.json", '{"q": {"d": 1}}'), "-m", "P@1")
    assert outcome.status == 0
    stderr = " ".join(outcome.stderr.split())
    assert (
        f"{name}.parquet is one of several files, and others are not read: test-00001-of-00004" in stderr
    ) is is_part


def test_a_folder_without_one_of_its_parts_is_read_with_a_warning(tmp_path: Path) -> None:
    for part in (0, 2):
        columns = {"query_id": [f"q{part}"], "doc_id": ["d"], "grade": [1]}
        write_table(tmp_path / "qrels" / f"part-0000{part}-of-00003.parquet", columns)
    run = write(tmp_path / "run.json", '{"q0": {"d": 1}, "q2": {"d": 1}}')
    stderr = " ".join(rankbeam("score", str(tmp_path / "qrels"), run, "-m", "P@1").stderr.split())
    assert "part-00000-of-00003.parquet is one of several files, and others are not read: part-00001-of-00003" in stderr


# --- MS MARCO ------------------------------------------------------------------------------------------------------


def test_ranks_of_three_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "run.tsv", "q1\td7\t1\nq1\td3\t2\nq2\td3\t1\n")
    assert recognise(path, "run") is Format.MS_MARCO_RUN
    assert rows(read_run, path) == [("q1", "d7", -1.0), ("q1", "d3", -2.0), ("q2", "d3", -1.0)]


@pytest.mark.parametrize("third", ["0", "1.5", "-3"])
def test_what_is_no_rank_is_refused(tmp_path: Path, third: str) -> None:
    path = write(tmp_path / "run.tsv", f"q1\td7\t1\nq1\td3\t{third}\n")
    assert str(refusal(read_run, path)).startswith(f"{path}:2: the rank is not a whole number from 1")


@pytest.mark.parametrize("third", ["12.5", "25", "1.0"])
def test_scores_of_three_columns_are_not_taken_for_ranks(tmp_path: Path, third: str) -> None:
    path = write(tmp_path / "run.tsv", f"q1\td7\t{third}\n")
    assert "is not a run" in str(refusal(read_run, path))


# --- CSV -----------------------------------------------------------------------------------------------------------


def separated(path: Path, header: str, table: Rows, separator: str = ",") -> str:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=separator)
        writer.writerow(header.split())
        writer.writerows((query, document, number, "more") for query, document, number in table)
    return str(path)


@pytest.mark.parametrize("separator", [",", "\t"])
@pytest.mark.parametrize(
    ("reader", "role", "header"),
    [
        (read_run, "run", "q_id doc_id score tag"),
        (read_run, "run", "qid docno score tag"),
        (read_qrels, "qrels", "query_id doc_id relevance by"),
    ],
)
def test_values_below_a_header(tmp_path: Path, reader: Reader, role: str, header: str, separator: str) -> None:
    path = separated(tmp_path / "rows.csv", header, RUN, separator)
    check([path], role)
    assert rows(reader, path) == RUN


@given(table=st.lists(st.tuples(ids, ids, st.floats(allow_nan=False, allow_infinity=False)), min_size=1))
def test_csv_holds_what_was_written(tmp_path_factory: pytest.TempPathFactory, table: Rows) -> None:
    assert rows(read_run, separated(tmp_path_factory.mktemp("any") / "r", "q_id doc_id score x", table)) == table


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("q_id,doc_id,score\nq1,d1,0.5\nq1,d2,high\n", ":3: column score holds string"),
        ("q_id,doc_id,score\nq1,d1,0.5\nq1,d2\n", ":3: cannot be read: Expected 3 columns, got 2"),
        ("q_id,doc_id,score\nq1,d1,0.5\nq1,,0.5\n", ":3: the doc_id is empty"),
        ("q_id,doc_id,score\nq1,d1,inf\n", ":2: the score is not a finite number"),
        ("q_id,doc_id,score\n", ": the file has a header and no row below it"),
        ("q_id,doc_id,score,score\nq1,d1,1,2\n", ": has two columns named 'score'; keep one"),
        (b"q_id,doc_id,score\nq1,caf\xe9,1\n", "is not UTF-8; convert the file"),
        ('q_id,doc_id,score\nq1,d1,1\nq1,d2,"9.', ":3: begins a quoted cell that does not end; is the file cut short?"),
        ('q_id,doc_id,score\nq1,"d1"x,1\n', ":2: has text behind a quote that ends a cell"),
        ('q_id,doc_id,score\nq1,d"1,1\n', ":2: has a quote inside a cell"),
        ('q_id,doc_id,score\nq1,d0,1\nq1,"d1,1\nq1,"d2",1\n', ":3: begins a quoted cell that does not end in its line"),
        ('q_id,doc_id,score\nq1,"d1,1\nq1,d2",1\n', ":2: begins a quoted cell that does not end in its line"),
    ],
)
def test_csv_that_is_no_run_is_refused(tmp_path: Path, content: str | bytes, problem: str) -> None:
    path = write(tmp_path / "run.csv", content)
    error = str(refusal(read_run, path))
    assert error.startswith(path)
    assert problem in error


def plain_problem(content: str, *, is_text: bool) -> bool:
    """Return whether a quote is wrong, by a machine that reads letter by letter, as RFC 4180 describes cells."""
    state = "begin"  # of a cell; or in a plain one, in a quoted one, behind a quote in it
    for letter in content:
        if state == "quoted":
            if letter == "\n" and not is_text:
                return True
            state = "behind" if letter == '"' else "quoted"
        elif letter in ",\r\n":
            state = "begin"
        elif letter == '"':
            if state == "plain":
                return True
            state = "quoted"
        elif state == "behind":
            return True
        else:
            state = "plain"
    return state == "quoted"


@pytest.mark.long
@pytest.mark.parametrize("is_text", [False, True])
@settings(max_examples=examples(500))
@given(content=lists_up_to(200, st.sampled_from('"",\na')).map("".join), size=st.sampled_from([1, 2, 63, 64, 65, 1000]))
def test_quotes_are_strict_wherever_blocks_end(
    tmp_path_factory: pytest.TempPathFactory, content: str, size: int, is_text: bool
) -> None:
    path = write(tmp_path_factory.getbasetemp() / "quotes.csv", content)
    stream = separated_values._StrictQuotes(io.BytesIO(content.encode()), path, is_text=is_text)
    try:
        read = b"".join(iter(lambda: stream.read(size), b""))
    except InputError:
        assert plain_problem(content, is_text=is_text)
    else:
        assert read.decode() == content
        assert not plain_problem(content, is_text=is_text)


def test_a_quote_in_text_separated_by_tabs_is_a_letter(tmp_path: Path) -> None:
    assert queries(write(tmp_path / "q.tsv", 'q1\t5" pipe\nq2\t"a\n')) == [("q1", '5" pipe', 1), ("q2", '"a', 2)]


def test_a_header_above_text_separated_by_tabs_is_no_query(tmp_path: Path) -> None:
    path = write(tmp_path / "q.tsv", 'qid\tquery\tintent\n1\t"5"" pipe"\thow_to\n')
    assert queries(path) == [("1", '5" pipe', 2)]
    assert "3: has a quote inside a cell" in str(
        refusal(read_queries, write(tmp_path / "p", 'id\ttext\n1\ta\n2\t5" pipe\n'))
    )


def test_queries_and_documents_as_csv(tmp_path: Path) -> None:
    path = write(tmp_path / "q.csv", '\ufeffquery_id,query,intent\n007,"How, and\nwhen?",how_to\n8,Why?,\n')
    assert queries(path) == [("007", "How, and\nwhen?", 2), ("8", "Why?", 3)]
    assert attributes(path) == [{"intent": "how_to"}, {"intent": ""}]
    corpus = write(tmp_path / "c.csv", "doc_id,title,text\nd1,Ä,a b\n")
    assert [(document.id, document.title, document.text) for document in read_corpus(corpus)] == [("d1", "Ä", "a b")]
    assert str(refusal(read_queries, write(tmp_path / "no.csv", "id,text\n"))).endswith("no row below it")


def test_score_gives_the_same_numbers_for_every_format(tmp_path: Path) -> None:
    qrels = write(
        tmp_path / "qrels", "".join(f"{query} 0 {doc} 1\n" for query, doc, _ in [("q_1", "b", 0), ("q_2", "a", 0)])
    )
    table: Rows = [("q_1", "a", 3.0), ("q_1", "b", 2.0), ("q_2", "a", 1.0)]
    lines = "".join(f"{query} Q0 {doc} 1 {score} t\n" for query, doc, score in table)
    marco = "q_1\ta\t1\nq_1\tb\t2\nq_2\ta\t1\n"
    nested = {"q_1": {"a": 3.0, "b": 2.0}, "q_2": {"a": 1.0}}
    runs = [
        write(tmp_path / "trec", lines),
        write(tmp_path / "json", json.dumps(nested)),
        write(tmp_path / "marco", marco),
        separated(tmp_path / "csv", "q_id doc_id score x", table),
    ]
    outcome = rankbeam("score", qrels, *runs, "-m", "RR", "--format", "json")
    board = json.loads(outcome.stdout)["leaderboard"]
    assert [row["slices"]["all"]["RR"]["mean"] for row in board] == [0.75] * 4
