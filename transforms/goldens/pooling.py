"""The pool of a question: the documents that several retrievers find for it, best first, to be graded."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rankbeam.transforms.clients.models.embeddings import Embed
from rankbeam.transforms.clients.retrievers.base import Retriever, RetrieverParameters
from rankbeam.transforms.clients.retrievers.remote import RemoteRetriever
from rankbeam.transforms.goldens.records.sources import SourceSpan


@dataclass(frozen=True)
class PoolRetriever:
    """A retriever that a pool is made with."""

    name: str
    kind: str
    parameters: RetrieverParameters
    embedder: Embed | None = None
    pool: str | None = None

    @property
    def remote(self) -> RemoteRetriever | None:
        """The parameters, where it is a service."""
        return self.parameters if isinstance(self.parameters, RemoteRetriever) else None


@dataclass(frozen=True)
class Ids:
    """Ids that retrievers give, as passages."""

    passages: Mapping[str, SourceSpan]
    first: Mapping[str, SourceSpan]

    @classmethod
    def of(cls, passages: Mapping[str, SourceSpan]) -> "Ids":
        """The ids of these passages."""
        first: dict[str, SourceSpan] = {}
        for span in passages.values():
            first.setdefault(span.doc_id, span)
        return cls(passages, first)

    def best(self, ids: Iterable[str], known: Iterable[SourceSpan] = ()) -> list[SourceSpan]:
        """The best passage of every document, best first; ids of no document here are left out."""
        chosen = {span.doc_id: span for span in known}
        best: dict[str, SourceSpan] = {}
        for name in ids:
            span = self.passages.get(name) or chosen.get(name) or self.first.get(name)
            if span is not None:
                best.setdefault(span.doc_id, span)
        return list(best.values())

    def unknown(self, ids: Iterable[str]) -> list[str]:
        """Ids that name nothing here."""
        return [name for name in ids if name not in self.passages and name not in self.first]


def interleaved(rankings: Sequence[Sequence[SourceSpan]], depth: int) -> list[SourceSpan]:
    """The first documents of several rankings in turn: all first ones, then all second ones, and so on.

    >>> a, b, c = (SourceSpan(name, 0, 1, "x") for name in "abc")
    >>> [span.doc_id for span in interleaved([[a, b], [c, a]], 3)]
    ['a', 'c', 'b']
    """
    chosen: dict[str, SourceSpan] = {}
    for rank in range(max(map(len, rankings), default=0)):
        for ranking in rankings:
            if rank < len(ranking):
                chosen.setdefault(ranking[rank].doc_id, ranking[rank])
    return list(chosen.values())[:depth]


Opened = Mapping[str, Retriever]
"""By name, retrievers that answer in process."""
