"""Clicks as judgements: plain Python, formats, and what is refused."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cli import rankbeam
from support.inputs import write

from rankbeam.transforms.clients.formats.clicks import grades_of
from rankbeam.transforms.clients.formats.rows import read_qrels
from rankbeam.transforms.records.errors import InputError

NAMES = ("query_id", "doc_id", "clicks", "impressions")
Row = tuple[str, str, int, int]

rows_of_clicks = st.lists(
    st.builds(
        lambda query, doc, clicks, more: (query, doc, clicks, clicks + more),
        st.sampled_from(["q1", "q2"]), st.sampled_from(["d1", "d2", "d3"]), st.integers(0, 30), st.integers(0, 60),
    ),
    min_size=1, max_size=20,
)  # fmt: skip


def csv_of(rows: list[Row]) -> str:
    return "\n".join([",".join(NAMES), *(",".join(map(str, row)) for row in rows)]) + "\n"


def test_missing_parts_of_a_table_of_clicks_are_a_warning(tmp_path: Path) -> None:
    path = write(tmp_path / "clicks-00000-of-00002.csv", csv_of([("q1", "d1", 5, 30)]))
    result = rankbeam("clicks", path, "--grades", "0.1", "--output", str(tmp_path / "qrels.tsv"))
    assert (result.status, "others are not read: clicks-00001-of-00002.csv" in result.stderr) == (0, True)


@given(rows_of_clicks, st.integers(1, 40))
def test_grades_are_those_of_plain_python(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Row], least: int
) -> None:
    path = write(tmp_path_factory.mktemp("clicks") / "c.csv", csv_of(rows))
    clicks, impressions = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for query, doc, clicked, seen in rows:
        clicks[query, doc] += clicked
        impressions[query, doc] += seen
    enough = [pair for pair in sorted(impressions.keys() | clicks.keys()) if impressions[pair] >= least]
    if not enough:
        with pytest.raises(InputError, match="no query and document has"):
            grades_of(str(path), [0.1, 0.5], least)
        return
    graded = grades_of(str(path), [0.1, 0.5], least)
    expected = [
        (*pair, sum(clicks[pair] / impressions[pair] >= threshold for threshold in (0.1, 0.5))) for pair in enough
    ]
    assert [tuple(row.values()) for row in graded.judgements.to_pylist()] == expected
    assert graded.by_grade == tuple(sum(grade == level for *_, grade in expected) for level in range(3))
    assert graded.too_few == len({(query, doc) for query, doc, *_ in rows}) - len(enough)


def test_the_command_writes_judgements_that_are_read_back(tmp_path: Path) -> None:
    rows = [("q1", "d 1", 30, 100), ("q1", "d2", 1, 100), ("q2", "d1", 3, 4), ("q1", "d 1", 30, 100)]
    pq.write_table(
        pa.table({name: [row[place] for row in rows] for place, name in enumerate(NAMES)}), tmp_path / "c.parquet"
    )
    out = str(tmp_path / "qrels.tsv")
    done = rankbeam("clicks", str(tmp_path / "c.parquet"), "--grades", "0.05,0.3", "--output", out)
    assert done.status == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"{out}: 2 judgements", "  grade 0 (from 0 of impressions): 1", "  grade 1 (from 0.05 of impressions): 0",
        "  grade 2 (from 0.3 of impressions): 1", "  left out, with fewer than 20 impressions: 1",
    ]  # fmt: skip
    assert "users click on the first results" in done.stderr
    (batch,) = read_qrels(out)
    assert [(row["query_id"], row["doc_id"], row["grade"]) for row in batch.to_pylist()] == [
        ("q1", "d 1", 2.0), ("q1", "d2", 0.0),
    ]  # fmt: skip
    again = rankbeam("clicks", str(tmp_path / "c.parquet"), "--grades", "0.05", "--output", out)
    assert again.status == 2
    assert "exists already" in again.stderr


@pytest.mark.parametrize("writer", [pa.ipc.new_stream, pa.ipc.new_file])
def test_clicks_are_read_from_arrow(tmp_path: Path, writer: Callable[..., Any]) -> None:
    table = pa.table(dict(zip(NAMES, [["q", "q"], ["d", "e"], [30, 2], [100, 100]], strict=True)))
    path = str(tmp_path / "c.arrow")
    with writer(path, table.schema) as opened:
        opened.write_table(table)
    assert grades_of(path, [0.05], 20).judgements["grade"].to_pylist() == [1, 0]


@pytest.mark.parametrize(
    ("content", "grades", "problem"),
    [
        (csv_of([("q", "d", 1, 9), ("q", "e", 9, 1)]), "0.1", "c.csv:3: has more clicks than impressions"),
        (csv_of([("q", "d", -1, 9)]), "0.1", "c.csv:2: has a negative number of clicks"),
        (csv_of([("q", "d", 1, 9)]), "0.1", "no query and document has 20 impressions"),
        ("query_id,doc_id,clicks\nq,d,1\n", "0.1", "c.csv: is not a file of clicks: CSV or TSV with a header"),
        (csv_of([("q", "d", 1, 99)]).replace(",1,", ",one,"), "0.1", "column clicks holds"),
        (csv_of([("q", "d", 1, 99)]), "0.3,0.1", "shares must ascend, and be above 0 and at most 1"),
        (csv_of([("q", "d", 1, 99)]), "0,0.1", "shares must ascend"),
        (csv_of([("q", "d", 1, 99)]), "high", "is not a list of numbers"),
    ],
)
def test_what_is_refused(tmp_path: Path, content: str, grades: str, problem: str) -> None:
    path, out = write(tmp_path / "c.csv", content), tmp_path / "q.tsv"
    done = rankbeam("clicks", str(path), "--grades", grades, "--output", str(out))
    assert done.status == 2
    assert problem in done.stderr.replace("\n", " ")
    assert not out.exists()
