"""What a retriever that answers in process searches."""

from dataclasses import dataclass

from rankbeam.transforms.records.chunk_ids import chunk_id
from rankbeam.transforms.records.chunking import Chunking


@dataclass(frozen=True)
class Documents:
    """Documents of a dataset, or chunks of them.

    Attributes:
        path: of the dataset's corpus; None where there is none.
        chunking: how they are cut; None where they are searched whole.
        as_documents: a chunk stands for its document, under that one's id; else it has an id of its own.
        with_texts: rankings carry the texts of chunks, since models read them.
        kept: the folder that keeps indexes of them; None where they are built for this run only.
    """

    path: str | None
    chunking: Chunking | None = None
    as_documents: bool = True
    with_texts: bool = False
    kept: str | None = None

    def name(self, doc_id: str, start: int, end: int) -> str:
        """The id under which a chunk is ranked."""
        return doc_id if self.as_documents else chunk_id(doc_id, start, end)
