"""Rankings as one list array, as `columns.RETRIEVED` holds them."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from rankbeam.transforms.records import columns
from rankbeam.transforms.records.queries import Ranking

KIND = columns.RETRIEVED.field("documents").type
"""The type of the array."""


def is_even(ranking: Ranking, top_k: int | None = None) -> bool:
    """Return whether a ranking has as many scores and texts as documents; texts may be absent."""
    length = len(ranking.doc_ids[:top_k])
    return len(ranking.scores[:top_k]) == length == len(ranking.texts[:top_k] or ranking.doc_ids[:top_k])


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
    return listed(flat, lengths, [ranking is None for ranking in rankings])


def listed(flat: Sequence[pa.Array], lengths: Sequence[int], are_null: Sequence[bool]) -> pa.ListArray:
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


_NONE = Ranking((), ())
