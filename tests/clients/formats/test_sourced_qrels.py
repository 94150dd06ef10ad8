"""Judgements whose header names a fourth column `source` are read as those without it."""

from pathlib import Path

import pytest
from support.inputs import write

from rankbeam.transforms.clients.formats.rows import read_qrels
from rankbeam.transforms.records.errors import InputError

ROWS = [("q1", "d1", 3.0), ("q1", "d2", 0.0), ("q2", "d1", 2.0)]


def test_the_source_is_read_over(tmp_path: Path) -> None:
    text = "query-id\tcorpus-id\tscore\tsource\n" + "".join(f"{q}\t{d}\t{g:g}\tpooled\n" for q, d, g in ROWS)
    (batch,) = read_qrels(write(tmp_path / "test.tsv", text))
    assert [(row["query_id"], row["doc_id"], row["grade"]) for row in batch.to_pylist()] == ROWS


@pytest.mark.parametrize("line", ["q1\td1\t1", "q1\td1\t1\ta\tb"])
def test_a_line_with_other_columns_is_refused(line: str, tmp_path: Path) -> None:
    path = write(tmp_path / "test.tsv", f"query-id\tcorpus-id\tscore\tsource\nq1\td1\t1\tevidence\n{line}\n")
    with pytest.raises(InputError, match=r"test\.tsv:3: has (fewer|more) than 4 columns"):
        list(read_qrels(path))
