"""Retrievers: the two classes that a type of retriever consists of, and how to add a type.

A retriever is two small things in one file: its parameters, a `RetrieverParameters` that an experiment's YAML
fills in, and what `open` returns, a `Retriever` that answers queries. One line registers it: the entry point
group `rankbeam.retrievers`, in this package's pyproject.toml or in that of any other installed package.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Any, ClassVar, Literal, Protocol, Self

from rankbeam.transforms.clients.parameters import Kind, Parameters
from rankbeam.transforms.records.corpora import SearchedCorpus
from rankbeam.transforms.records.documents import Documents
from rankbeam.transforms.records.queries import Query, Ranking


class Route(Enum):
    """Origin of a retriever's rankings."""

    READ = "read"
    """They exist already, in a file or a table."""
    OPENED = "opened"
    """In process, by what `open` returns."""
    CALLED = "called"
    """By calls to a service, each of which a quota pool pays for."""
    REPLAYED = "replayed"
    """They come with answers that a system gave earlier."""
    FUSED = "fused"
    """From the rankings of other configurations."""
    RERANKED = "reranked"
    """From the ranking of a retriever, by calls that score its texts."""


class Retriever(Protocol):
    """Answers queries, and is used from one thread.

    Where several workers share the queries of a configuration, each opens one of its own. A retriever may also have
    `warnings`, a sequence of texts for users, which the `runs` table stores, and `retrieve_all`, which is called
    instead of `retrieve`, with a list of queries, and returns a list of rankings and of such errors.
    """

    def retrieve(self, query: Query, top_k: int) -> Ranking:
        """The best results for a query, best first, at most `top_k` of them.

        Raises:
            CallError: there is no answer, after any retries; becomes a row of `failures`.
        """
        ...

    def close(self) -> None:
        """Release what `open` acquired."""
        ...


class RetrieverParameters(Parameters):
    """The parameters of one type of retriever, as an experiment gives them under `retriever:`.

    Attributes:
        query: text to search for: "last" is the query alone; "history" also includes the earlier messages of a
            conversation.
        needs: the files of the dataset that it requires: "queries", "corpus".
        input_role: role of its own input files, if rankbeam knows the format: "run".
        default_top_k: default of `top_k`; None means all results.
        route: origin of its rankings.
        has_distances: True if scores are distances. Then `vector_distance_threshold` can be set, and the ranking for a
            tighter one is derived from the answer to a looser one.
        most_results: the most results that one call returns; None where no limit is known.
        searches: the types of `corpora:` that `corpus` may name.
        appends_passages: whether a passage that a model writes for a query follows the query, as it should where words
            are compared, and does not replace it.
        service: the parameter that names the embedding model under `services:`; None if the type embeds nothing.
    """

    query: Literal["last", "history"] = "last"

    needs: ClassVar[tuple[str, ...]] = ("queries",)
    input_role: ClassVar[str | None] = None
    default_top_k: ClassVar[int | None] = 100
    route: ClassVar[Route] = Route.OPENED
    has_distances: ClassVar[bool] = False
    most_results: ClassVar[int | None] = None
    searches: ClassVar[frozenset[str]] = frozenset()
    service: ClassVar[str | None] = None
    appends_passages: ClassVar[bool] = False

    def decisive(self) -> dict[str, Any]:
        """The parameters that identify a configuration, as JSON values."""
        return {name: value for name, value in super().decisive().items() if (name, value) != ("query", "last")}

    @property
    def joins_history(self) -> bool:
        """True if it is asked the messages before a query, too."""
        return self.query == "history"

    @property
    def keeps_samples(self) -> bool:
        """True if several answers to one query are samples."""
        return False

    def open(self, corpus: str | None) -> Retriever:
        """Prepare to answer queries; called once per process, on the machine that does the work.

        Args:
            corpus: path of the dataset's corpus.
        """
        raise NotImplementedError(f"{type(self).__name__} has no open()")

    def search(self, documents: Documents) -> Retriever:
        """As `open`, for types that search what an experiment describes under `corpora:`."""
        return self.open(documents.path)

    def prepare(self, documents: Documents) -> None:
        """Keep what `search` needs and is slow to make; called once before it, where several processes search."""

    def searching(self, corpus: SearchedCorpus) -> Self:  # noqa: ARG002  for types that search what a service built
        """The same parameters, for a corpus of a service that an experiment describes under `corpora:`."""
        return self

    @property
    def lacks_corpus(self) -> bool:
        """True if it can search nothing, because no corpus is named."""
        return False

    def embedded(self, documents: Documents) -> Iterable[str]:  # noqa: ARG002  for types that embed texts
        """The texts of documents that the model embeds, for types that name one."""
        return ()

    def is_prefix(self) -> bool:
        """Return whether fewer results are the first of more, so that asking for the largest top_k serves all."""
        return True

    def refuses_repeats(self, unit: str) -> bool:
        """Return whether a document that stands twice in a ranking is an error, where the dataset's unit is this."""
        return unit == "chunk"


RETRIEVERS = Kind("retriever", "rankbeam.retrievers", RetrieverParameters)
"""The types of retrievers."""
