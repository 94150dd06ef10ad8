"""A query, the ranking that answers it, and the documents that a retriever in this process searches."""

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from rankbeam.transforms.records.chunking import Chunker, chunk_id
from rankbeam.transforms.records.errors import InputError


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


def mixed_lengths(first: int, second: int, service: str = "NAME", ledger: str = "OUT") -> InputError:
    """The error that a model's vectors cannot be compared; a service may answer with another model than before.

    >>> str(mixed_lengths(8, 32)).partition(";")[0]
    'NAME: embeddings have 8 and 32 components, so not all are from the same model'
    """
    low, high = sorted((first, second))
    command = f"rankbeam ledger {shlex.quote(ledger)} --clear --service {shlex.quote(service)}"
    return InputError(
        f"{service}: embeddings have {low:,} and {high:,} components, so not all are from the same model; "
        f"`{command}` deletes them, and the next run embeds these texts again"
    )


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
