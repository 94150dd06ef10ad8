"""A query, the ranking that answers it, and the documents that a retriever in this process searches."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from rankbeam.transforms.records.chunking import Chunker, chunk_id


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


class Embeddings(Protocol):
    """The embeddings of texts that a model made."""

    @property
    def identity(self) -> str:
        """Everything about the model that decides a vector."""
        ...

    def of_queries(self) -> "Embeddings":
        """The embeddings of texts as queries, if the model embeds queries differently."""
        ...

    @property
    def is_kept(self) -> bool:
        """True if the vectors are stored already, and need not be computed."""
        ...

    def vectors(self, texts: Iterable[str], cut: list[int]) -> Iterator[npt.NDArray[np.float32] | None]:
        """The vector of each text, or None; at the end, `cut` gets the number of texts that the model sees in part."""
        ...

    def cut_warning(self, what: str, cut: int, total: int) -> str:
        """The warning that the model sees `cut` of `total` texts, such as "queries", only in part."""
        ...


@dataclass(frozen=True)
class Judgements:
    """The source of the relevant documents' ids."""

    qrels: str
    queries: str | None = None  # path of the queries to ask; None for the judged ones


@dataclass(frozen=True)
class Documents:
    """Documents of a dataset, or chunks of them."""

    path: str | None
    chunking: Chunker | None = None  # None if they are searched whole
    as_documents: bool = True
    with_texts: bool = False
    index_folder: str | None = None
    embeddings: Embeddings | None = None
    judgements: Judgements | None = None
    is_rewritten: bool = False  # whether texts other than the queries are searched for

    def name(self, doc_id: str, start: int, end: int) -> str:
        return doc_id if self.as_documents else chunk_id(doc_id, start, end)

    def as_chunks(self) -> "Documents":
        """The same documents, with an id for every chunk."""
        return replace(self, as_documents=False)
