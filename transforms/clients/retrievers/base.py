"""Retrievers: what can be asked, and how a further one is added.

A retriever is two small things in one file: its parameters, a `RetrieverParameters` that an experiment's YAML
fills in, and what `open` returns, a `Retriever` that answers queries. One line registers it: the entry point
group `rankbeam.retrievers`, in this package's pyproject.toml or in that of any other installed package.
"""

from collections.abc import Iterable
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel, ConfigDict

from rankbeam.transforms.records.queries import Query, Ranking


class Retriever(Protocol):
    """Answers queries. One is opened per process and configuration, and asked from one thread.

    It may also have `warnings`, a sequence of texts that users should see and that the `runs` table keeps.
    """

    def retrieve(self, query: Query, top_k: int) -> Ranking:
        """The best results for a query, best first, at most `top_k` of them.

        Raises:
            CallError: there is no answer, after whatever retries make sense; becomes a row of `failures`.
        """
        ...

    def close(self) -> None:
        """Let go of whatever `open` took."""
        ...


class RetrieverParameters(BaseModel):
    """The parameters of one type of retriever, as an experiment gives them under `retriever:`.

    A subclass is a pydantic model; its fields are the parameters. Unknown keys are refused.

    Attributes:
        needs: which files of the dataset it cannot do without: "queries", "corpus".
        input_role: what files of its own are, where rankbeam knows the format: "run".
        default_top_k: what `top_k` is when a configuration does not say; None means all there is.
        operational: parameters that change nothing about an answer; they are no part of a configuration's identity.
        added: parameters that the first release of this type did not have. They are part of a configuration's identity
            only where they differ from their default, so that configurations without them keep their `config_id`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    needs: ClassVar[tuple[str, ...]] = ("queries",)
    input_role: ClassVar[str | None] = None
    default_top_k: ClassVar[int | None] = 100
    operational: ClassVar[frozenset[str]] = frozenset()
    added: ClassVar[frozenset[str]] = frozenset()

    def decisive(self) -> dict[str, Any]:
        """The parameters that identify a configuration, as JSON values.

        >>> class First(RetrieverParameters):
        ...     added = frozenset({"suffix"})
        ...     prefix: str = ""
        ...     suffix: str = ""
        >>> First().decisive(), First(suffix="x").decisive()
        ({'prefix': ''}, {'prefix': '', 'suffix': 'x'})
        """
        given = self.model_dump(mode="json", exclude=set(self.operational))
        changed = self.model_dump(mode="json", include=set(self.added), exclude_defaults=True)
        return {name: value for name, value in given.items() if name not in self.added or name in changed}

    def inputs(self) -> dict[str, str]:
        """Files of its own that must exist: the parameter's name and the path."""
        return {}

    def unset(self) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """What `resolved` needs of this machine and does not find: where it stands below `retriever:`, and why not."""
        return ()

    def resolved(self, folder: str) -> "RetrieverParameters":  # noqa: ARG002  for subclasses that have paths
        """The same parameters for any machine: with relative paths taken as below `folder`; the default has none."""
        return self

    def open(self, corpus: str | None) -> Retriever:
        """Make ready to answer queries; called once per process, where the work is done.

        Args:
            corpus: path of the dataset's corpus.
        """
        raise NotImplementedError(f"{type(self).__name__} has no open()")
