"""A query, and the ranking that answers it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Query:
    """One query as a retriever sees it.

    Attributes:
        query_id: its identifier.
        text: what is asked.
    """

    query_id: str
    text: str


@dataclass(frozen=True)
class Ranking:
    """What a retriever returns for one query, best first.

    Attributes:
        doc_ids: identifiers; one document may stand at several ranks, once a chunk.
        scores: the retriever's scores, one a document; the order of `doc_ids` counts, not theirs.
        texts: what each result says; empty where the retriever has none.
    """

    doc_ids: tuple[str, ...]
    scores: tuple[float, ...]
    texts: tuple[str, ...] = ()
