"""Gather the contexts of every configuration by query; answers and judgements are made from them.

rankings ─► items by bucket ─────────────────────────────► texts filled in ─► items
                 │ ids without a text                            ▲
                 └──────────────► documents of the corpus ───────┘

The same requests locate chunks in their documents if judgements are evidence spans and ids only name documents.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.clients.formats import sources, texts
from rankbeam.transforms.clients.storage import batches
from rankbeam.transforms.kernels import hashing
from rankbeam.transforms.kernels.arrays import HashArray, StringArray
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.kernels.locating import locate_after
from rankbeam.transforms.records.chunking import chunk_id, parse_chunk_id
from rankbeam.transforms.records.judging.items import (
    DOCUMENTS,
    batches_of,
    items_in,
    items_of,
    with_texts,
    without_text,
)
from rankbeam.transforms.records.metrics.evaluation import Evaluation
from rankbeam.transforms.records.rankings.contexts import contexts_of
from rankbeam.transforms.records.rankings.spans import without_place

_DOCUMENTS_AT_ONCE = 1000
_BITS = 1 << 24  # with a million requested ids, one in seventeen other documents passes

Bits = npt.NDArray[np.uint8]
Request = tuple[int, tuple[int, list[str]]]
"""A bucket of documents, the bucket of queries that requests some of its documents, and their ids."""

_PLACES_KEPT = 1 << 16

batches.register()


@dataclass
class GatherContexts(beam.PTransform):
    """Make batches of `ITEMS` by bucket from the input of `ScoreRankings` and, as "replayed", existing answers."""

    evaluation: Evaluation
    counts: Mapping[int, int | None]  # None for all results within its `top_k`
    corpus: str | None
    buckets: int

    def expand(self, parts: dict[str, beam.PCollection]) -> beam.PCollection[batches.Bucketed]:
        items = (
            parts
            | "GroupByBucket" >> beam.CoGroupByKey()
            | "Gather" >> beam.FlatMap(gather_items, self.evaluation, self.counts).with_output_types(batches.Bucketed)
        )
        if self.corpus is None:
            return items
        requests_of_texts = items | "WithoutText" >> beam.FlatMap(requests, self.buckets)
        return (
            {"items": items, "texts": requested_documents(requests_of_texts, self.corpus, self.buckets)}
            | "GroupTexts" >> beam.CoGroupByKey()
            | "FillIn" >> beam.FlatMap(fill_texts).with_output_types(batches.Bucketed)
        )


def requested_documents(
    requests: beam.PCollection[Request], corpus: str, buckets: int
) -> beam.PCollection[batches.Bucketed]:
    """The requested documents of a corpus, as `DOCUMENTS`, by bucket of the queries that request them."""
    sieve = requests | "Sieve" >> beam.CombineGlobally(SieveFn())
    documents = (
        requests.pipeline
        | "Corpus" >> beam.Create(sources.expand(corpus))
        | "ReadDocuments" >> beam.FlatMap(documents_of, beam.pvalue.AsSingleton(sieve), buckets)
    )
    return (
        {"wanted": requests, "documents": documents}
        | "GroupByDocument" >> beam.CoGroupByKey()
        | "SendTexts" >> beam.FlatMap(send_documents)
    )


def gather_items(
    element: tuple[int, Mapping[str, Iterable[Any]]], evaluation: Evaluation, counts: Mapping[int, int | None]
) -> Iterator[batches.Bucketed]:
    bucket, parts = element
    rows = grouped(chain.from_iterable(parts[name] for name in parts if name.startswith(batches.RANKINGS)))
    failures, replayed = grouped(parts.get(batches.FAILURES, ())), grouped(parts.get(batches.REPLAYED, ()))
    for queries in parts[batches.JUDGED]:
        contexts = contexts_of(queries, rows, failures, evaluation, counts, replayed)
        yield from ((bucket, batch) for batch in batches_of(items_of(queries, contexts)))


def requests(element: batches.Bucketed, buckets: int) -> Iterator[Request]:
    """The ids of documents whose texts a bucket's items lack, by bucket of the documents.

    An id such as `doc#0-120` may name a document or a chunk.
    """
    bucket, items = element
    names = without_text(items)
    owners = [span[0] for span in map(parse_chunk_id, names) if span is not None]
    yield from requests_of(bucket, pc.unique(pa.array([*names, *owners], pa.string())), buckets)


def requests_of(bucket: int, doc_ids: StringArray, buckets: int) -> Iterator[Request]:
    if len(doc_ids):
        document_buckets = hashing.buckets(doc_ids, buckets)
        for document in np.unique(document_buckets).tolist():
            yield document, (bucket, doc_ids.filter(pa.array(document_buckets == document)).to_pylist())


class SieveFn(beam.CombineFn):
    """Sets bits for the hashes of all requested ids: a document whose bit is not set was not requested.

    The number of bits is fixed, so this side input does not grow with the documents. A document that shares its bit
    with a requested one is read in vain, and `send_documents` leaves it out.
    """

    def create_accumulator(self) -> Bits:
        return np.zeros(_BITS // 8, np.uint8)

    def add_input(self, accumulator: Bits, element: Request) -> Bits:
        byte, bit = _place(hashing.hash_strings(pa.array(element[1][1], pa.string())))
        np.bitwise_or.at(accumulator, byte, bit)
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[Bits]) -> Bits:
        merged = self.create_accumulator()
        for accumulator in accumulators:
            merged |= accumulator
        return merged

    def extract_output(self, accumulator: Bits) -> Bits:
        return accumulator


def _place(hashes: HashArray) -> tuple[HashArray, Bits]:
    number = hashes % np.uint64(_BITS)
    return number >> np.uint64(3), np.uint8(1) << (number & np.uint64(7)).astype(np.uint8)


def documents_of(path: str, sieve: Bits, buckets: int) -> Iterator[batches.Bucketed]:
    """The requested documents of a file, with their titles, as `DOCUMENTS`, by bucket."""
    entries = texts.read_entries(path, "corpus") if sieve.any() else iter(())
    while part := list(islice(entries, _DOCUMENTS_AT_ONCE)):
        hashed = hashing.hash_strings(pa.array([entry.id for entry in part], pa.string()))
        byte, bit = _place(hashed)
        places = np.flatnonzero(sieve[byte] & bit).tolist()
        for bucket, rows in grouped((int(hashed[place]) % buckets, _row(part[place])) for place in places).items():
            yield bucket, pa.RecordBatch.from_pylist(rows, schema=DOCUMENTS)


def _row(entry: texts.TextEntry) -> dict[str, str | int]:
    text = entry.titled_text
    return {"doc_id": entry.id, "text": text, "prefix": len(text) - len(entry.text)}


def send_documents(element: tuple[int, Mapping[str, Iterable[Any]]]) -> Iterator[batches.Bucketed]:
    """The documents of a bucket, as `DOCUMENTS`, for every bucket of queries that requests them."""
    _, parts = element
    known = {row["doc_id"]: row for batch in parts["documents"] for row in batch.to_pylist()}
    for bucket, doc_ids in parts["wanted"]:
        rows = [known[doc_id] for doc_id in doc_ids if doc_id in known]
        if rows:
            yield bucket, pa.RecordBatch.from_pylist(rows, schema=DOCUMENTS)


def fill_texts(element: tuple[int, Mapping[str, Iterable[Any]]]) -> Iterator[batches.Bucketed]:
    """The items of a bucket with texts from the corpus; texts of chunks do not include the document's title."""
    bucket, parts = element
    known = _texts_by_id(parts["texts"])

    def text_of(doc_id: str) -> str | None:
        if doc_id in known:
            return known[doc_id][0]
        span = parse_chunk_id(doc_id)
        if span is None or span[0] not in known:
            return None
        document, prefix = known[span[0]]
        start, end = span[1] + prefix, span[2] + prefix
        return document[start:end] if end <= len(document) else None

    for batch in parts["items"]:
        full = (with_texts(item, text_of) for item in items_in(batch))
        yield from ((bucket, filled_batch) for filled_batch in batches_of(full))


def _texts_by_id(parts: Iterable[pa.RecordBatch]) -> dict[str, tuple[str, int]]:
    """The text of each document by id, beginning with the title, and the length of the part before the text proper."""
    return {row["doc_id"]: (row["text"], row["prefix"]) for batch in parts for row in batch.to_pylist()}


@dataclass
class LocateChunks(beam.PTransform):
    """Replace document ids in rankings by chunk ids if the chunks' places in the documents are known.

    The inputs are pairs of a bucket and a source's rows. A result with a text gets the place of that text in its
    document; a result without a text is the whole document. Places count from the beginning of the document's text; a
    chunk may begin with the title if a service also searches titles. The corpus is only read if an id lacks a span.
    """

    corpus: str
    buckets: int

    def expand(self, rankings: beam.PCollection[batches.SourceRows]) -> beam.PCollection[batches.SourceRows]:
        requests_of_places = rankings | "WithoutPlace" >> beam.FlatMap(place_requests, self.buckets)
        return (
            {"rankings": rankings, "texts": requested_documents(requests_of_places, self.corpus, self.buckets)}
            | "GroupTexts" >> beam.CoGroupByKey()
            | "Locate" >> beam.FlatMap(locate_results).with_output_types(batches.SourceRows)
        )


def place_requests(
    element: tuple[int, tuple[int, pa.RecordBatch | batches.SpilledBatch]], buckets: int
) -> Iterator[Request]:
    """The ids of documents in results without a span, by bucket of the documents."""
    bucket, (_, rows) = element
    doc_ids = pc.unique(batches.unspill_batch(rows)["documents"].flatten().field("doc_id"))
    yield from requests_of(bucket, doc_ids.filter(pa.array(without_place(doc_ids))), buckets)


def locate_results(element: tuple[int, Mapping[str, Iterable[Any]]]) -> Iterator[batches.SourceRows]:
    """The rankings of a bucket, with the known places in their ids."""
    bucket, parts = element
    known = _texts_by_id(parts["texts"])

    @lru_cache(_PLACES_KEPT)
    def name_of(doc_id: str, text: str | None) -> str:
        if doc_id not in known:
            return doc_id
        document, prefix = known[doc_id]
        place = (0, len(document) - prefix) if text is None else locate_after(prefix, text, document)
        return doc_id if place is None or place[0] == place[1] else chunk_id(doc_id, *place)

    for source, rows in parts["rankings"]:
        yield bucket, (source, _rename_documents(rows, name_of))


def _rename_documents(rows: pa.RecordBatch, name_of: Callable[[str, str | None], str]) -> pa.RecordBatch:
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
