"""The rankings of one source, query by query, as arrays."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.kernels.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    StringArray,
    offsets_of,
    position_in_group,
    stable_order,
)
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.queries import Ranking

KIND = columns.RETRIEVED.field("documents").type  # the type of the array
_NONE = Ranking((), ())
_STEPS_TO_BE_CERTAIN = 20


def is_even(ranking: Ranking, top_k: int | None = None) -> bool:
    """Return whether a ranking has as many scores and texts as documents; texts may be absent."""
    length = len(ranking.doc_ids[:top_k])
    return len(ranking.scores[:top_k]) == length == len(ranking.texts[:top_k] or ranking.doc_ids[:top_k])


def is_whole(ranking: object) -> bool:
    """Return whether a plug-in returned a ranking, whose ids are texts, each with a score."""
    return isinstance(ranking, Ranking) and is_even(ranking) and all(isinstance(name, str) for name in ranking.doc_ids)


def documents_of(rankings: Sequence[Ranking | None], top_k: int | None = None) -> pa.ListArray:
    """Rankings as an array; a score that is not a number is null, and so is a ranking that is None."""
    filled = [ranking or _NONE for ranking in rankings]
    lengths = [len(ranking.doc_ids[:top_k]) for ranking in filled]
    ids, scores, texts = list[str](), list[float](), list[str | None]()
    for ranking, length in zip(filled, lengths, strict=True):
        ids += ranking.doc_ids[:top_k]
        scores += ranking.scores[:top_k]
        texts += ranking.texts[:top_k] or (None,) * length
    numbers = pa.array(scores, pa.float64(), from_pandas=True)
    flat = [pa.array(ids, pa.string()), numbers, pa.array(texts, pa.string())]
    return rankings_array(flat, lengths, [ranking is None for ranking in rankings])


def rankings_array(flat: Sequence[pa.Array], lengths: Sequence[int], are_null: Sequence[bool]) -> pa.ListArray:
    """Ids, scores and texts of all rankings as one array."""
    offsets = pa.array(np.cumsum([0, *lengths], dtype=np.int32))
    documents = pa.StructArray.from_arrays(list(flat), fields=list(KIND.value_type))
    mask = pa.array(are_null, pa.bool_()) if any(are_null) else None
    return pa.ListArray.from_arrays(offsets, documents, mask=mask)


def rankings_in(documents: pa.ListArray) -> Iterator[Ranking]:
    """The rankings of an array without nulls."""
    for ranking in documents.to_pylist():
        doc_ids, scores, texts = ([hit[name] for hit in ranking] for name in ("doc_id", "score", "text"))
        numbers = tuple(math.nan if score is None else score for score in scores)
        yield Ranking(tuple(doc_ids), numbers, () if None in texts else tuple(texts))


@dataclass(frozen=True)
class RetrievedRows:
    """The rows of one source whose queries are judged."""

    query: IntArray
    doc_id: StringArray  # Arrow strings [m]
    score: FloatArray  # float64[m]; NaN if the source gives none
    text: StringArray | None  # Arrow strings [m]; None if the source has none
    unjudged: int  # number of the source's further queries, which have no judgements

    @classmethod
    def of(cls, queries: pa.RecordBatch, batches: Sequence[pa.RecordBatch]) -> "RetrievedRows":
        table = pa.Table.from_batches(batches, batches[0].schema if batches else columns.RANKINGS).combine_chunks()
        position = pc.index_in(table["query_id"], value_set=queries["query_id"])
        unjudged = len(pc.unique(table["query_id"].filter(position.is_null()))) if position.null_count else 0
        known = np.flatnonzero(position.is_valid().to_numpy())
        query = position.drop_null().to_numpy().astype(np.int64)
        order = stable_order(query, queries.num_rows)
        lists = _one_chunk(table["documents"]).take(pa.array(known[order]))
        documents = lists.flatten()
        return cls(
            query=np.repeat(query[order], lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)),
            doc_id=documents.field("doc_id"),
            score=documents.field("score").to_numpy(zero_copy_only=False),  # null becomes NaN
            text=documents.field("text") if "text" in documents.type.names else None,
            unjudged=unjudged,
        )

    def without_self(self, query_ids: StringArray) -> "RetrievedRows":
        """The rows whose document's id is not their query's id."""
        is_other = pc.not_equal(self.doc_id, query_ids.take(pa.array(self.query)))
        return self.only(is_other.to_numpy(zero_copy_only=False))

    def first_without_score(self) -> int | None:
        """The first row without a score; None if all rows have one."""
        without = np.isnan(self.score)
        return int(np.argmax(without)) if without.any() else None

    def falls(self, sign: int) -> bool:
        """Return whether scores, with a sign, certainly fall with the rank in all rankings."""
        step = sign * np.diff(self.score)[np.diff(self.query) == 0]
        return bool((step < 0).sum() >= _STEPS_TO_BE_CERTAIN and not (step > 0).any())

    def first(self, count: int, queries: int) -> "RetrievedRows":
        """The first rows of every query."""
        return self.only(position_in_group(self.query, queries) < count)

    def only(self, mask: BoolArray) -> "RetrievedRows":
        """Some of the rows; the mask is bool[m]."""
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def take(self, row: IntArray) -> "RetrievedRows":
        """Some of the rows, int64[≤ m], in a given order."""
        if np.array_equal(row, np.arange(len(self.query))):
            return self
        rows = pa.array(row)
        text = None if self.text is None else self.text.take(rows)
        return replace(self, query=self.query[row], doc_id=self.doc_id.take(rows), score=self.score[row], text=text)


def by_query(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of a run as one row per query, in order of each query's first row.

    >>> rows = pa.record_batch([["a", "b", "a"], ["x", "y", "z"], [3.0, 2.0, 1.0]], schema=columns.RUN)
    >>> [(row["query_id"], len(row["documents"])) for row in by_query(rows).to_pylist()]
    [('a', 2), ('b', 1)]
    """
    query_id, doc_id, score = (rows[name] for name in columns.RUN.names)
    begins = np.flatnonzero(np.concatenate([[len(query_id) > 0], _differs_from_last(query_id)]))
    names = query_id.take(pa.array(begins))
    offsets = np.append(begins, len(query_id))
    encoded = names.dictionary_encode()
    if len(encoded.dictionary) < len(names):  # the rows of some query are not contiguous
        code = np.repeat(encoded.indices.to_numpy(), np.diff(offsets)).astype(np.int64)
        order = pa.array(stable_order(code, len(encoded.dictionary)))
        doc_id, score = doc_id.take(order), score.take(order)
        names, offsets = encoded.dictionary, offsets_of(code, len(encoded.dictionary))
    kind = columns.RANKINGS.field("documents").type
    documents = pa.StructArray.from_arrays([doc_id, score], fields=list(kind.value_type))
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), documents)
    return pa.RecordBatch.from_arrays([names, lists], schema=columns.RANKINGS)


def _differs_from_last(values: StringArray) -> np.ndarray:
    differs: np.ndarray = pc.not_equal(values[1:], values[:-1]).to_numpy(zero_copy_only=False)
    return differs


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
