"""Queries of a retriever that answers in process, dealt to several workers: the same rankings, one preparation."""

import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import apache_beam as beam
import pyarrow as pa
import pytest
from support.pipeline import run

from rankbeam.transforms.clients.retrievers.base import RetrieverParameters
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.dataset import DatasetSummary
from rankbeam.transforms.records.queries import Documents, Query, Ranking
from rankbeam.transforms.retrieve.local import RetrieveRankings

BUCKETS = 6


class Noted(RetrieverParameters):
    """Leaves a file in a folder whenever it is prepared or opened."""

    folder: str

    def prepare(self, documents: Documents) -> None:
        del documents
        self._note("prepared")

    def open(self, corpus: str | None) -> "Noted":
        del corpus
        self._note("opened")
        return self

    def retrieve(self, query: Query, top_k: int) -> Ranking:
        return Ranking(tuple(f"{query.text}-{n}" for n in range(top_k)), (1.0,) * top_k)

    def close(self) -> None:
        """There is nothing to release."""

    def _note(self, what: str) -> None:
        Path(self.folder, f"{what}-{uuid.uuid4().hex}").touch()


def judged() -> Iterator[tuple[int, pa.RecordBatch]]:
    for bucket in range(BUCKETS):
        rows = [{"query_id": f"q{bucket}-{n}", "text": f"t{n}", "attributes": [], "judgements": []} for n in range(3)]
        yield bucket, pa.RecordBatch.from_pylist(rows, schema=columns.JUDGED_QUERIES)


def retrieved(folder: Path, shares: int) -> tuple[list[object], Sequence[str]]:
    """The rankings, and what was noted."""
    (notes := folder / "notes").mkdir(parents=True)
    retrievers = {source: Noted(folder=str(notes)) for source in (0, 1)}

    def build(pipeline: beam.Pipeline) -> list[beam.PCollection]:
        summary = pipeline | "Summary" >> beam.Create([DatasetSummary()])
        searched = dict.fromkeys(retrievers, Documents(None))
        retrieve = RetrieveRankings(retrievers, {0: 2, 1: 3}, dict.fromkeys(retrievers), searched, summary, shares)
        return [(pipeline | beam.Create(list(judged())) | retrieve)[0]]

    (rankings,) = run(folder, build)
    listed = [(bucket, source, rows.to_pylist()) for bucket, (source, rows) in rankings]
    return sorted(listed, key=lambda row: row[:2]), [path.name.partition("-")[0] for path in notes.iterdir()]


@pytest.mark.parametrize("shares", [2, 4])
def test_each_share_opens_what_was_prepared_once(tmp_path: Path, shares: int) -> None:
    alone, noted = retrieved(tmp_path / "alone", 1)
    assert noted == ["opened"] * 2
    assert len(alone) == 2 * BUCKETS
    dealt, noted = retrieved(tmp_path / "dealt", shares)
    assert dealt == alone
    assert sorted(noted) == ["opened"] * 2 * shares + ["prepared"] * 2
