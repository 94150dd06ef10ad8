"""What a retriever that answers in process searches."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from rankbeam.transforms.records.chunk_ids import chunk_id
from rankbeam.transforms.records.chunking import Chunking


class Embeddings(Protocol):
    """The embeddings of texts that a model made."""

    @property
    def identity(self) -> str:
        """All of the model that decides a vector."""
        ...

    def of_queries(self) -> "Embeddings":
        """The embeddings of texts as queries, where the model embeds these in another way."""
        ...

    def vectors(self, texts: Iterable[str]) -> Iterator[npt.NDArray[np.float32] | None]:
        """The vector of each text; None for one that has none."""
        ...


@dataclass(frozen=True)
class Judgements:
    """Where it stands which documents are relevant.

    Attributes:
        qrels: path of the judgements.
        queries: path of the queries that are asked; None where these are the judged ones.
    """

    qrels: str
    queries: str | None = None


@dataclass(frozen=True)
class Documents:
    """Documents of a dataset, or chunks of them.

    Attributes:
        path: of the dataset's corpus; None where there is none.
        chunking: how they are cut; None where they are searched whole.
        as_documents: a chunk stands for its document, under that one's id; else it has an id of its own.
        with_texts: rankings carry the texts of chunks, since models read them.
        kept: the folder that keeps indexes of them, on any filesystem; None where each process builds its own.
        embeddings: of texts, where the retriever compares these; None where it needs none.
        judgements: of documents, which are compared with what there is; None where there are none.
    """

    path: str | None
    chunking: Chunking | None = None
    as_documents: bool = True
    with_texts: bool = False
    kept: str | None = None
    embeddings: Embeddings | None = None
    judgements: Judgements | None = None

    def name(self, doc_id: str, start: int, end: int) -> str:
        """The id under which a chunk is ranked."""
        return doc_id if self.as_documents else chunk_id(doc_id, start, end)

    def as_chunks(self) -> "Documents":
        """The same, where every chunk has an id of its own."""
        return replace(self, as_documents=False)
