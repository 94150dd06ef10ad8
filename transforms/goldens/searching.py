"""A search through all passages: how hard a question's documents are to find, and what else may answer it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rankbeam.transforms.clients.retrievers.base import Retriever
from rankbeam.transforms.clients.retrievers.bm25 import Bm25
from rankbeam.transforms.clients.retrievers.index.analysis import STOP_WORDS
from rankbeam.transforms.goldens.grading import Pool
from rankbeam.transforms.records.goldens.items import Made
from rankbeam.transforms.records.goldens.sources import Span
from rankbeam.transforms.records.queries import Query

_PASSAGES = 1000  # of a ranking: enough for a hundred documents


@dataclass(frozen=True)
class Search:
    """bm25 over passages.

    Attributes:
        index: of the passages.
        passages: by id.
    """

    index: Retriever
    passages: Mapping[str, Span]

    @classmethod
    def of(cls, path: str, passages: Sequence[Span], language: str) -> "Search":
        """The search through passages that stand in a file.

        Args:
            path: of a corpus with one passage a line.
            passages: the same ones.
            language: of the texts.
        """
        stop_words = language if language in STOP_WORDS else "none"
        index = Bm25(stemming=language, stop_words=stop_words).open(path)
        return cls(index, {span.id: span for span in passages})

    def best(self, question: str) -> list[Span]:
        """The best passage of every document, best first."""
        ranking = self.index.retrieve(Query("", question), _PASSAGES)
        best: dict[str, Span] = {}
        for name in ranking.doc_ids:
            best.setdefault(self.passages[name].doc_id, self.passages[name])
        return list(best.values())

    def rank(self, best: Sequence[Span], doc_ids: Collection[str]) -> int | None:
        """The rank of the last of some documents, from 1; None where one was not found."""
        ranks = {span.doc_id: rank for rank, span in enumerate(best, start=1)}
        found = [ranks.get(doc_id) for doc_id in doc_ids]
        known = [rank for rank in found if rank is not None]
        return max(known) if known and len(known) == len(found) else None


@dataclass(frozen=True)
class Found:
    """What the search finds for an accepted question.

    Attributes:
        rank: of the documents that it rests on; None where one is not found, or there is none.
        pool: the passages of other documents, to be graded.
    """

    rank: int | None
    pool: Pool


def found_for(search: Search, items: Sequence[Made], depth: int) -> Iterator[Found]:
    """Search for questions.

    Args:
        search: through all passages.
        items: the questions.
        depth: how many documents of a ranking are pooled.
    """
    for made in items:
        best = search.best(made.question)
        others = tuple(span for span in best[:depth] if span.doc_id not in made.doc_ids)
        yield Found(search.rank(best, made.doc_ids), Pool(made.item_id, made.question, others))
