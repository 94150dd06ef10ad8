"""Replayed answers: a system that rankbeam does not run, with the contexts that it answered from."""

from typing import ClassVar

from rankbeam.transforms.clients.retrievers.base import RetrieverParameters, Route
from rankbeam.transforms.clients.storage import files


class Replay(RetrieverParameters):
    """Answers that exist already: `answers: {type: replay, path: …}` of a configuration.

    Attributes:
        path: file of JSON lines {query_id, answer, contexts?: [{doc_id?, text}], config?}.
        config: value of `config` that selects lines of the file; by default all lines are used.
    """

    path: str
    config: str | None = None

    needs: ClassVar[tuple[str, ...]] = ("queries",)
    input_role: ClassVar[str | None] = "replay"
    default_top_k: ClassVar[int | None] = None
    route: ClassVar[Route] = Route.REPLAYED

    @property
    def shown(self) -> str:
        """For messages."""
        return self.path if self.config is None else f"{self.path} (config {self.config!r})"

    def inputs(self) -> dict[str, str]:
        """The answers."""
        return {"path": self.path}

    def resolved(self, folder: str) -> "Replay":
        """The same answers, their path taken as below `folder` when it is relative."""
        return self.model_copy(update={"path": files.below(folder, self.path)})
