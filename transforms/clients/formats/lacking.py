"""Documents that are judged relevant and that the corpus lacks: no retriever finds them, so recall has a limit below 1.

Ids are compared by their hashes, 8 bytes each, and files are read as streams.
"""

from collections.abc import Iterator
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.clients.bigquery.read_source import is_table
from rankbeam.transforms.clients.formats import rows, sources, texts
from rankbeam.transforms.kernels import hashing
from rankbeam.transforms.kernels.arrays import HashArray, StringArray
from rankbeam.transforms.records.documents import Judgements

_EXAMPLES = 3
_NONE: HashArray = np.empty(0, np.uint64)


def hashed(doc_ids: StringArray) -> HashArray:
    """Hashes of the ids of a corpus, as `lacking` takes them."""
    return np.unique(hashing.hash_strings(doc_ids))


def lacking(judgements: Judgements | None, corpus: HashArray) -> Iterator[str]:
    """A warning that names some of the relevant documents that a corpus lacks; nothing where it has them all.

    Judgements in BigQuery are not read again for this.
    """
    if judgements is None or is_table(judgements.qrels):
        return
    queries = _query_hashes(judgements.queries)
    relevant, missing, examples = _NONE, _NONE, set[str]()
    for doc_ids in _relevant(judgements.qrels, queries):
        hashes = hashing.hash_strings(doc_ids)
        is_missing = ~_among(hashes, corpus)
        relevant, missing = np.union1d(relevant, hashes), np.union1d(missing, hashes[is_missing])
        examples = set(sorted({*examples, *doc_ids.filter(pa.array(is_missing)).to_pylist()})[:_EXAMPLES])
    if len(missing):
        some = ", ".join(map(repr, sorted(examples)))
        yield (
            f"{len(missing):,} of {len(relevant):,} documents that are judged relevant are not in the corpus, such as "
            f"{some}: no retriever finds them, which limits recall"
        )


def _relevant(qrels: str, queries: HashArray | None) -> Iterator[StringArray]:
    """The documents that judgements of queries that are asked call relevant."""
    for path in sources.expand(qrels):
        for batch in rows.read_qrels(path):
            is_relevant = pc.greater(batch["grade"], 0.0)
            if queries is not None:
                is_relevant = pc.and_(is_relevant, pa.array(_among(hashing.hash_strings(batch["query_id"]), queries)))
            yield batch["doc_id"].filter(is_relevant)


def _query_hashes(queries: str | None) -> HashArray | None:
    """The hashes of the queries to ask; None for the judged ones, and for a table of BigQuery."""
    if queries is None or is_table(queries):
        return None
    parts = (hashed(batch["query_id"]) for path in sources.expand(queries) for batch in texts.read_queries(path))
    return reduce(np.union1d, parts, _NONE)


def _among(hashes: HashArray, known: HashArray) -> np.ndarray:
    """Return for each hash whether it is among some sorted ones."""
    if not len(known):
        return np.zeros(len(hashes), bool)
    return np.asarray(known[np.searchsorted(known, hashes).clip(max=len(known) - 1)] == hashes)
