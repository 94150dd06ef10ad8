"""ReadDataset and `judge`, through a real pipeline: what is joined, counted, warned of and refused."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaigns import examples, in_campaigns
from support.inputs import (
    Judgement,
    Text,
    beir_qrels,
    json_texts,
    qrels_table,
    tab_texts,
    texts_table,
    trec_qrels,
    trec_run,
    write,
    write_table,
)
from support.pipeline import run

from rankbeam.transforms.read import ReadDataset, above_max_rel, judge
from rankbeam.transforms.read_files import read_runs
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.dataset import DatasetSummary
from rankbeam.transforms.records.errors import InputError

Judged = dict[str, tuple[str | None, list[tuple[str, float]]]]

QRELS = [("q1", "a", 1.0), ("q1", "b", 0.0), ("q2", "a", 2.5), ("q3", "c", -1.0), ("q10", "é/日", 3.0)]
TEXTS = [("q1", "one"), ("q2", "two"), ("q3", "three"), ("q10", "zehn"), ("q4", "not judged")]
JUDGED: Judged = {
    "q1": ("one", [("a", 1.0), ("b", 0.0)]),
    "q10": ("zehn", [("é/日", 3.0)]),
    "q2": ("two", [("a", 2.5)]),
    "q3": ("three", [("c", -1.0)]),
}


def read(
    folder: Path, qrels: str, queries: str | None = None, *, buckets: int = 3, slices: tuple[str, ...] = ()
) -> tuple[list[tuple[int, Judged]], DatasetSummary]:
    """The outputs of ReadDataset: the judged queries of each bucket, and the summary."""
    judged, (summary,) = run(folder, lambda pipeline: pipeline | ReadDataset(qrels, queries, buckets, slices))
    return sorted(((bucket, as_dict(batch)) for bucket, batch in judged), key=lambda part: part[0]), summary


def as_dict(batch: pa.RecordBatch) -> Judged:
    pools = [[(item["doc_id"], item["grade"]) for item in pool] for pool in batch["judgements"].to_pylist()]
    texts = batch["text"].to_pylist()
    return dict(zip(batch["query_id"].to_pylist(), zip(texts, pools, strict=True), strict=True))


def joined(parts: Sequence[tuple[int, Judged]]) -> Judged:
    return {query: value for _, part in parts for query, value in part.items()}


# --- What is joined and counted ----------------------------------------------------------------------------------


IRRELEVANT = "1 judged query without a relevant document, so no ranking can find one: 'q3'"


def test_queries_meet_their_judgements(tmp_path: Path) -> None:
    qrels = write(tmp_path / "qrels", trec_qrels(reversed(QRELS)))
    parts, summary = read(tmp_path, qrels, write(tmp_path / "queries", tab_texts(TEXTS)))
    assert joined(parts) == JUDGED
    assert (summary.queries, summary.judged, summary.judgements) == (5, 4, 5)


def test_without_queries_the_judged_ones_are_taken(tmp_path: Path) -> None:
    parts, summary = read(tmp_path, write(tmp_path / "qrels", trec_qrels(QRELS)))
    assert joined(parts) == {query: (None, pool) for query, (_, pool) in JUDGED.items()}
    assert (summary.queries, summary.judged, summary.judgements) == (None, 4, 5)
    assert list(summary.warnings()) == [IRRELEVANT]


def test_a_repeated_judgement_counts_once_and_is_counted(tmp_path: Path) -> None:
    qrels = write(tmp_path / "qrels", trec_qrels([*QRELS, ("q1", "a", 1.0), ("q1", "a", 1.0), ("q2", "a", 2.5)]))
    parts, summary = read(tmp_path, qrels, write(tmp_path / "queries", tab_texts(TEXTS)))
    assert joined(parts) == JUDGED
    assert (summary.judgements, summary.repeated) == (5, 3)
    assert "3 judgements given more than once with the same grade, counted once" in summary.warnings()


def test_strangers_on_both_sides_are_counted_with_examples(tmp_path: Path) -> None:
    unknown = [(f"x{number}", "a", 1.0) for number in (5, 3, 1, 4)] + [("x1", "b", 1.0)]
    texts = write(tmp_path / "queries", json_texts([*TEXTS, ("q0", "x")]))
    parts, summary = read(tmp_path, write(tmp_path / "qrels", trec_qrels([*QRELS, *unknown])), texts)
    assert joined(parts) == JUDGED
    assert list(summary.warnings()) == [
        "4 judged queries not among the queries, left out: 'x1', 'x3', 'x4'",
        "2 queries without judgements, not asked: 'q0', 'q4'",
        IRRELEVANT,
    ]


def test_grades_above_max_rel_are_counted(tmp_path: Path) -> None:
    reading = ReadDataset(write(tmp_path / "qrels", trec_qrels(QRELS)), None, 3, max_rel=2.0)
    _, (summary,) = run(tmp_path, lambda pipeline: pipeline | reading)
    (text,) = above_max_rel(summary, 2.0, "ERR(max_rel=2)@5")
    assert text == (
        "2 judgements have grades above 2, which ERR(max_rel=2)@5 counts as 2; set its option max_rel=3 (60 at most), "
        "or lower the grades"
    )
    assert "above_max_rel" not in summary.as_json()


def test_queries_without_text_are_counted(tmp_path: Path) -> None:
    texts = write(tmp_path / "queries", json_texts([("q1", ""), ("q2", "two"), ("q4", "")]))
    _, summary = read(tmp_path, write(tmp_path / "qrels", trec_qrels(QRELS[:3])), texts)
    assert "1 judged query without text" in summary.warnings()


def test_rows_of_a_run_are_marked_with_their_source(tmp_path: Path) -> None:
    rows = [("q1", "a", 0.5), ("q2", "b", -1.0), ("q1", "c", 0.25), ("q3", "a", 1e-3)]
    write(tmp_path / "run.1.gz", trec_run(rows[:2]))
    write(tmp_path / "run.2", trec_run(rows[2:]))
    (part,) = run(tmp_path, lambda pipeline: [pipeline | read_runs({7: str(tmp_path / "run.*")}, 2)])
    batches = [batch for _, (_, batch) in part]
    assert {source for _, (source, _) in part} == {7}
    read = [
        (row["query_id"], *document.values())
        for batch in batches
        for row in batch.to_pylist()
        for document in row["documents"]
    ]
    assert sorted(read) == sorted(rows)
    home = {query: bucket for bucket, (_, batch) in part for query in batch["query_id"].to_pylist()}
    assert all(home[query] == bucket for bucket, (_, batch) in part for query in batch["query_id"].to_pylist())


# --- What is refused ---------------------------------------------------------------------------------------------


def refusal(folder: Path, qrels: str, queries: str | None = None, slices: tuple[str, ...] = ()) -> InputError:
    with pytest.raises(InputError) as caught:
        read(folder, qrels, queries, slices=slices)
    return caught.value


def test_two_grades_are_refused_naming_both_lines(tmp_path: Path) -> None:
    qrels = write(tmp_path / "qrels", "# pooled\n" + trec_qrels([*QRELS, ("q1", "a", 2.0)]))
    error = refusal(tmp_path, qrels)
    assert str(error).startswith(f"{qrels}:7: document 'a' has two grades for query 'q1'")
    assert "line 2" in str(error)


def test_two_grades_in_two_files_are_refused_naming_both(tmp_path: Path) -> None:
    first = write(tmp_path / "qrels.1", trec_qrels(QRELS))
    second = write(tmp_path / "qrels.2", beir_qrels([("q2", "a", 2.0)]))
    error = refusal(tmp_path, str(tmp_path / "qrels.*"))
    assert str(error).startswith(f"{second}:2: document 'a' has two grades for query 'q2'")
    assert f"{first}:3" in str(error)


@pytest.mark.parametrize("text", ["one", "another"])
def test_a_query_given_twice_is_refused_naming_both_lines(tmp_path: Path, text: str) -> None:
    queries = write(tmp_path / "queries", "\n" + json_texts([*TEXTS, ("q1", text)]))
    error = refusal(tmp_path, write(tmp_path / "qrels", trec_qrels(QRELS)), queries)
    assert str(error).startswith(f"{queries}:7: query 'q1' is given more than once")
    assert "line 2" in str(error)


def test_a_bad_line_is_refused_as_the_reader_says_it(tmp_path: Path) -> None:
    qrels = write(tmp_path / "qrels", trec_qrels(QRELS) + "q1 0 z nan\n")
    assert str(refusal(tmp_path, qrels)) == f"{qrels}:6: the grade is not a finite number"


def test_no_overlap_is_refused_with_ids_of_both_sides(tmp_path: Path) -> None:
    qrels = write(tmp_path / "qrels", trec_qrels([("301", "a", 1.0), ("302", "a", 0.0)]))
    queries = write(tmp_path / "queries", tab_texts(TEXTS))
    error = str(refusal(tmp_path, qrels, queries))
    assert error.startswith(f"{qrels}: ")
    assert all(word in error for word in (queries, "'301'", "'302'", "'q1'", "'q10'"))


@pytest.mark.parametrize("content", ["query-id\tcorpus-id\tscore\n", None])
def test_qrels_without_a_judgement_are_refused(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "qrels"
    qrels = write_table(path, qrels_table([])) if content is None else write(path, content)
    error = str(refusal(tmp_path, qrels))
    assert error.startswith(f"{qrels}: ")
    assert "None" not in error
    assert "no judgement" in error or "empty" in error


def test_queries_without_a_row_are_refused(tmp_path: Path) -> None:
    queries = write_table(tmp_path / "queries", texts_table([]))
    error = str(refusal(tmp_path, write(tmp_path / "qrels", trec_qrels(QRELS)), queries))
    assert queries in error
    assert "'q1'" in error


SLICED = '{"_id": "q1", "text": "a", "metadata": {"language": "de", "intent": "buy"}}\n{"_id": "q2", "text": "b"}\n'


def test_slices_are_by_attributes_of_any_query(tmp_path: Path) -> None:
    qrels, queries = write(tmp_path / "qrels", trec_qrels(QRELS)), write(tmp_path / "queries", SLICED)
    _, summary = read(tmp_path, qrels, queries, slices=("language", "intent"))
    assert summary.attributes == ("intent", "language")


def test_a_slice_by_an_unknown_attribute_is_refused_with_the_nearest(tmp_path: Path) -> None:
    qrels, queries = write(tmp_path / "qrels", trec_qrels(QRELS)), write(tmp_path / "queries", SLICED)
    error = str(refusal(tmp_path, qrels, queries, slices=("intent", "langauge")))
    assert error == f"{queries}: no query has the attribute 'langauge' to slice by; did you mean 'language'?"


# --- The same, however it is given -------------------------------------------------------------------------------


def _trec(folder: Path, qrels: Sequence[Judgement], texts: Sequence[Text]) -> tuple[str, str]:
    return write(folder / "qrels.gz", trec_qrels(qrels)), write(folder / "queries.tsv", tab_texts(texts))


def _beir(folder: Path, qrels: Sequence[Judgement], texts: Sequence[Text]) -> tuple[str, str]:
    return write(folder / "qrels.tsv", beir_qrels(qrels)), write(folder / "queries.jsonl", json_texts(texts))


def _parquet(folder: Path, qrels: Sequence[Judgement], texts: Sequence[Text]) -> tuple[str, str]:
    return write_table(folder / "qrels", qrels_table(qrels)), write_table(folder / "queries", texts_table(texts))


def _split(folder: Path, qrels: Sequence[Judgement], texts: Sequence[Text]) -> tuple[str, str]:
    write(folder / "qrels.1", trec_qrels(qrels[:2]))
    write(folder / "qrels.2", beir_qrels(qrels[2:]))
    write(folder / "queries.1.gz", json_texts(texts[:1]))
    write(folder / "queries.2", tab_texts(texts[1:]))
    return str(folder / "qrels.*"), str(folder / "queries.*")


def _reversed(folder: Path, qrels: Sequence[Judgement], texts: Sequence[Text]) -> tuple[str, str]:
    return _trec(folder, qrels[::-1], texts[::-1])


REPEATED = [*QRELS, ("x", "a", 1.0), ("q1", "a", 1.0)]


@pytest.mark.parametrize("form", [_trec, _beir, _parquet, _split, _reversed])
@pytest.mark.parametrize("buckets", [3, *in_campaigns(1)])
def test_neither_format_nor_order_nor_files_nor_buckets_matter(
    tmp_path: Path, form: Callable[[Path, Sequence[Judgement], Sequence[Text]], tuple[str, str]], buckets: int
) -> None:
    expected, summary = read(tmp_path, *_trec(tmp_path / "trec", REPEATED, TEXTS), buckets=buckets)
    assert joined(expected) == JUDGED
    assert read(tmp_path, *form(tmp_path / "other", REPEATED, TEXTS), buckets=buckets) == (expected, summary)
    _, apart = read(tmp_path, *form(tmp_path / "other", REPEATED, TEXTS), buckets=16)
    assert (apart, apart.fingerprint) == (summary, summary.fingerprint)


@pytest.mark.parametrize(
    ("qrels", "texts"),
    [
        ([*QRELS[1:], ("q1", "a", 2.0)], TEXTS),
        ([*QRELS[1:], ("q1", "A", 1.0)], TEXTS),
        (QRELS[1:], TEXTS),
        ([*QRELS, ("q2", "b", 0.0)], TEXTS),
        ([("q1", "a", 0.0), ("q1", "b", 1.0), *QRELS[2:]], TEXTS),
        (QRELS, [("q1", "two"), ("q2", "one"), *TEXTS[2:]]),
        (QRELS, [("q1", "One"), *TEXTS[1:]]),
    ],
)
def test_the_fingerprint_tells_datasets_apart(qrels: list[Judgement], texts: list[Text]) -> None:
    assert fingerprint(qrels, texts) != fingerprint(QRELS, TEXTS)


def fingerprint(qrels: Sequence[Judgement], texts: Sequence[Text]) -> str:
    return judge([queries_batch(texts)], [qrels_batch(qrels)])[1].fingerprint


def qrels_batch(rows: Sequence[Judgement]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(qrels_table(rows), schema=columns.QRELS)


def queries_batch(rows: Sequence[Text]) -> pa.RecordBatch:
    names, texts = [row[0] for row in rows], [row[1] for row in rows]
    return pa.RecordBatch.from_pydict(
        {"query_id": names, "text": texts, "attributes": [[]] * len(rows)}, schema=columns.QUERIES
    )


# --- judge, against plain Python ---------------------------------------------------------------------------------

NAMES = st.sampled_from(["q1", "q2", "q10", "Q", "ü", "😀"])
POOLS = st.dictionaries(st.tuples(NAMES, st.sampled_from(["a", "b", "é"])), st.sampled_from([-1.0, 0.0, 0.5, 2.0]))


@settings(max_examples=examples(200))
@given(pool=POOLS, texts=st.dictionaries(NAMES, st.sampled_from(["", "text"])), data=st.data())
def test_judge_joins_as_plain_python_does(
    pool: dict[tuple[str, str], float], texts: dict[str, str], data: st.DataObject
) -> None:
    rows = [(query, doc, grade) for (query, doc), grade in pool.items()]
    again = data.draw(st.lists(st.sampled_from(rows))) if rows else []
    given_rows = data.draw(st.permutations([*rows, *again]))
    split = data.draw(st.integers(0, len(given_rows)))
    batches = [qrels_batch(given_rows[:split]), qrels_batch(given_rows[split:])]
    judged, summary = judge([queries_batch(list(texts.items()))], batches)

    known = sorted({query for query, _, _ in rows} & set(texts), key=str.encode)
    expected = {
        query: (texts[query], sorted([(doc, grade) for name, doc, grade in rows if name == query])) for query in known
    }
    assert list(as_dict(judged).items()) == list(expected.items())
    unknown = sorted({query for query, _, _ in rows} - set(texts))
    unjudged = sorted(set(texts) - {query for query, _, _ in rows})
    relevant = {query for query, _, grade in rows if grade > 0}
    irrelevant = [query for query in known if query not in relevant]
    assert summary == DatasetSummary(
        queries=len(texts),
        irrelevant=len(irrelevant),
        irrelevant_ids=tuple(irrelevant[:3]),
        judged=len(known),
        judgements=sum(query in texts for query, _, _ in rows),
        repeated=sum(query in texts for query, _, _ in again),
        without_text=sum(not texts[query] for query in known),
        unjudged=len(unjudged),
        unjudged_ids=tuple(unjudged[:3]),
        unknown=len(unknown),
        unknown_ids=tuple(unknown[:3]),
        highest_grade=max([0.0, *(grade for name, _, grade in rows if name in texts)]),
        fractional=sum(name in texts and not grade.is_integer() for name, _, grade in rows),
        qrels_hash=summary.qrels_hash,
        texts_hash=summary.texts_hash,
    )
    assert fingerprint(rows, list(texts.items())) == summary.fingerprint


SUMMARIES = st.builds(
    lambda pool, texts: judge([queries_batch(list(texts.items()))], [qrels_batch([(*k, v) for k, v in pool.items()])])[
        1
    ],
    POOLS,
    st.dictionaries(NAMES, st.just("text")),
)


@given(one=SUMMARIES, two=SUMMARIES, three=SUMMARIES)
def test_summaries_merge_in_any_order(one: DatasetSummary, two: DatasetSummary, three: DatasetSummary) -> None:
    assert one.merge(two) == two.merge(one)
    assert one.merge(two).merge(three) == one.merge(two.merge(three))
    assert one.merge(DatasetSummary()) == DatasetSummary().merge(one) == one
