"""A query, and the ranking that answers it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Query:
    """One query as a retriever receives it.

    Attributes:
        query_id: its identifier.
        text: text of the query.
    """

    query_id: str
    text: str


@dataclass(frozen=True)
class Ranking:
    """The results of a retriever for one query, best first.

    Attributes:
        doc_ids: identifiers; a document may have several ranks, one for each chunk.
        scores: the retriever's scores, one per result; the ranking is the order of `doc_ids`, not of the scores.
        texts: texts of the results; empty if the retriever returns none.
    """

    doc_ids: tuple[str, ...]
    scores: tuple[float, ...]
    texts: tuple[str, ...] = ()
