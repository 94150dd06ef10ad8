"""Locate retrieved chunks in their documents, where evidence spans are the judgements and ids name documents only.

rankings ─► ids without a span ─► documents of the corpus ─► texts by bucket
    └────────────────────────────────────────────────────────────┴─► rankings of spans, `doc#start-end`
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.clients.formats import sources
from rankbeam.transforms.clients.storage import batches
from rankbeam.transforms.clients.storage.batches import SourceRows, Spilled, unspilled
from rankbeam.transforms.contexts import Request, SieveFn, documents_of, requests_of, sent
from rankbeam.transforms.kernels.locating import located_after
from rankbeam.transforms.records.chunking import chunk_id
from rankbeam.transforms.records.rankings.spans import without_place

_PLACES_KEPT = 1 << 16

batches.register()


@dataclass
class LocateChunks(beam.PTransform):
    """Rankings whose ids are those of chunks, where their places are known.

    The input are pairs of bucket and rows of a source. A result with a text has the place of that text in its document;
    one without a text is the whole document. Places count from the beginning of the document's text; a chunk may begin
    with its title, where a service searches titles, too. The corpus is only read where an id lacks a span.
    """

    corpus: str
    buckets: int

    def expand(self, rankings: beam.PCollection[SourceRows]) -> beam.PCollection[SourceRows]:
        requests_of_places = rankings | "WithoutPlace" >> beam.FlatMap(requests, self.buckets)
        sieve = requests_of_places | "Sieve" >> beam.CombineGlobally(SieveFn())
        documents = (
            rankings.pipeline
            | "Corpus" >> beam.Create(sources.expand(self.corpus))
            | "ReadDocuments" >> beam.FlatMap(documents_of, beam.pvalue.AsSingleton(sieve), self.buckets)
        )
        texts = (
            {"wanted": requests_of_places, "documents": documents}
            | "GroupByDocument" >> beam.CoGroupByKey()
            | "SendTexts" >> beam.FlatMap(sent)
        )
        return (
            {"rankings": rankings, "texts": texts}
            | "GroupTexts" >> beam.CoGroupByKey()
            | "Locate" >> beam.FlatMap(placed).with_output_types(SourceRows)
        )


def requests(element: tuple[int, tuple[int, pa.RecordBatch | Spilled]], buckets: int) -> Iterator[Request]:
    """The ids of documents that results name without a span, by the bucket of the documents."""
    bucket, (_, rows) = element
    doc_ids = pc.unique(unspilled(rows)["documents"].flatten().field("doc_id"))
    yield from requests_of(bucket, doc_ids.filter(pa.array(without_place(doc_ids))), buckets)


def placed(element: tuple[int, Mapping[str, Iterable[Any]]]) -> Iterator[SourceRows]:
    """The rankings of a bucket, with the places that were found."""
    bucket, parts = element
    known: dict[str, tuple[str, int]] = {}
    for batch in parts["texts"]:
        known |= {row["doc_id"]: (row["text"], row["prefix"]) for row in batch.to_pylist()}

    @lru_cache(_PLACES_KEPT)
    def name_of(doc_id: str, text: str | None) -> str:
        if doc_id not in known:
            return doc_id
        document, prefix = known[doc_id]
        place = (0, len(document) - prefix) if text is None else located_after(prefix, text, document)
        return doc_id if place is None or place[0] == place[1] else chunk_id(doc_id, *place)

    for source, rows in parts["rankings"]:
        yield bucket, (source, _renamed(rows, name_of))


def _renamed(rows: pa.RecordBatch, name_of: Callable[[str, str | None], str]) -> pa.RecordBatch:
    """Rankings with other names for their documents."""
    lists, field = rows["documents"], rows.schema.field("documents")
    items = lists.flatten()
    doc_ids = items.field("doc_id").to_pylist()
    texts = items.field("text").to_pylist() if "text" in items.type.names else [None] * len(doc_ids)
    names = pa.array(map(name_of, doc_ids, texts), pa.string())
    others = [items.field(column.name) for column in items.type if column.name != "doc_id"]
    structs = pa.StructArray.from_arrays([names, *others], fields=list(items.type))
    lengths = pc.fill_null(lists.value_lengths(), 0).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    documents = pa.ListArray.from_arrays(offsets, structs, mask=lists.is_null())
    return rows.set_column(rows.schema.get_field_index("documents"), field, documents)
