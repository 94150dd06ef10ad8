"""Judgements from users' clicks: thresholds turn the share of clicked impressions into a grade."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.clients.formats import sources
from rankbeam.transforms.clients.formats.recognise import Format, recognise
from rankbeam.transforms.clients.formats.sources import shown
from rankbeam.transforms.clients.formats.syntax import delimited, tables
from rankbeam.transforms.kernels.arrays import BoolArray
from rankbeam.transforms.records.columns import with_line
from rankbeam.transforms.records.errors import InputError

ROLE = "clicks"
COUNTS = pa.schema(
    [("query_id", pa.string()), ("doc_id", pa.string()), ("clicks", pa.int64()), ("impressions", pa.int64())]
)
HEADER = "query-id\tcorpus-id\tscore\n"


@dataclass(frozen=True)
class ClickGrades:
    """Judgements made of clicks."""

    judgements: pa.Table  # table of `query_id`, `doc_id` and `grade` (int64), by query and document
    too_few: int  # pairs of query and document left out because they have too few impressions
    by_grade: tuple[int, ...]  # number of judgements with each grade, from 0

    def lines(self) -> Iterator[str]:
        yield HEADER
        columns = (self.judgements[name].to_pylist() for name in ("query_id", "doc_id", "grade"))
        yield from (f"{query}\t{doc}\t{grade}\n" for query, doc, grade in zip(*columns, strict=True))


def grades_of(pattern: str, thresholds: Sequence[float], least: int) -> ClickGrades:
    """Grade pairs with at least `least` impressions; `thresholds` are the lowest shares of clicks for grades from 1."""
    batches = [batch for path in sources.expand(pattern) for batch in _checked_batches(path)]
    rows = pa.Table.from_batches(batches, with_line(COUNTS))
    sums = rows.group_by(["query_id", "doc_id"]).aggregate([("clicks", "sum"), ("impressions", "sum")])
    sums = sums.sort_by([("query_id", "ascending"), ("doc_id", "ascending")])
    enough = sums.filter(pc.greater_equal(sums["impressions_sum"], least))
    if not enough.num_rows:
        raise InputError(f"no query and document has {least:,} impressions", path=shown(pattern))
    shares = enough["clicks_sum"].to_numpy() / enough["impressions_sum"].to_numpy()
    grade = np.array([bisect_right(thresholds, share) for share in shares.tolist()], np.int64)
    judgements = pa.table({"query_id": enough["query_id"], "doc_id": enough["doc_id"], "grade": grade})
    by_grade = tuple(np.bincount(grade, minlength=len(thresholds) + 1).tolist())
    return ClickGrades(judgements, sums.num_rows - enough.num_rows, by_grade)


def _checked_batches(path: str) -> Iterator[pa.RecordBatch]:
    read = delimited.read if recognise(path, ROLE) is Format.SEPARATED else tables.read_rows
    for batch in read(path, ROLE, with_line(COUNTS)):
        clicks, impressions = (batch[name].to_numpy() for name in ("clicks", "impressions"))
        _refuse(path, batch, clicks < 0, "has a negative number of clicks")
        _refuse(path, batch, clicks > impressions, "has more clicks than impressions")
        yield batch


def _refuse(path: str, batch: pa.RecordBatch, is_wrong: BoolArray, problem: str) -> None:
    if is_wrong.any():
        raise InputError(problem, path=shown(path), line=batch["line"][int(np.argmax(is_wrong))].as_py())
