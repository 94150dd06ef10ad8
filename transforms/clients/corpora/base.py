"""Corpora: the parameters of an entry of `corpora:`, and how to add a type.

A type is a subclass of `CorpusParameters`, registered in the entry point group `rankbeam.corpora`. Retrievers that
answer in process search every type that is cut on this machine; others declare which types they search.
"""

from typing import Annotated, Any

from pydantic import Field, ValidationInfo, field_validator

from rankbeam.transforms.clients.parameters import Kind, Parameters
from rankbeam.transforms.records.chunking import Chunker
from rankbeam.transforms.records.corpora import SearchedCorpus

MOST_UNITS = 1_000_000


class CorpusParameters(Parameters):
    """The parameters that corpora of all types have; a subclass adds its own.

    Attributes:
        chunk_size: maximum size of a chunk, in the type's units.
        chunk_overlap: maximum overlap of a chunk with the previous one; less than `chunk_size`.
    """

    chunk_size: Annotated[int, Field(ge=1, le=MOST_UNITS)] = 512
    chunk_overlap: Annotated[int, Field(ge=0, le=MOST_UNITS)] = 0

    @field_validator("chunk_overlap")
    @classmethod
    def _progress(cls, value: int, info: ValidationInfo) -> int:
        if value >= info.data.get("chunk_size", MOST_UNITS + 1):
            raise ValueError(f"is not less than chunk_size, {info.data['chunk_size']}")
        return value

    @classmethod
    def is_cut_here(cls) -> bool:
        """Return whether documents are cut on this machine, so that retrievers in process can search the chunks."""
        return cls.chunking is not CorpusParameters.chunking

    def specification(self) -> dict[str, Any]:
        """Everything besides documents that affects its content, as JSON values: part of a configuration's identity."""
        return self.decisive()

    @property
    def needs(self) -> tuple[str, ...]:
        """The dataset's files from which the corpus is built."""
        return ("corpus",)

    @property
    def chunking(self) -> Chunker | None:
        """The chunker that cuts documents on this machine; None if a service cuts them."""
        return None

    def service_corpus(self, identity: str, resource: str = "") -> SearchedCorpus | None:  # noqa: ARG002  for types that a service builds
        """The corpus as searched by retrievers that call a service; None if no service has it.

        Args:
            identity: identity of the corpus.
            resource: name at the service; "" until it is built.
        """
        return None

    def described(self) -> str:
        """A short description, for people."""
        return f"chunks of at most {self.chunk_size:,}, {self.chunk_overlap:,} of them shared"


CORPORA = Kind("corpus", "rankbeam.corpora", CorpusParameters)  # the types of corpora
