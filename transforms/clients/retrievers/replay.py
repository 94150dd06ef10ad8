"""Replayed answers: a system that rankbeam does not run, with the contexts that it answered from."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from rankbeam.transforms.clients.formats.cases.tools import checked_columns
from rankbeam.transforms.clients.formats.replay import ReplayReader
from rankbeam.transforms.clients.retrievers.base import RetrieverParameters, Route
from rankbeam.transforms.clients.storage import files

TRACES = "traces"  # the type of answers in traces, and the key of a dataset of traces


class Replay(RetrieverParameters):
    """Answers that exist already: `answers: {type: replay, path: …}` of a configuration.

    Attributes:
        path: file of JSON lines {query_id, answer, contexts?: [{doc_id?, text?}], config?, steps?: [{tool, args,
            status?, doc_ids?}], tokens?: {input, output}, seconds?}, or of another tool; by default the dataset's
            `file`.
        config: value of `config` that selects rows of the file; by default all rows are used.
        columns: keys or JMESPath expressions for `id`, `question`, `answer`, `contexts`, `context_ids`, `steps` and
            `config` in a row, if rankbeam does not recognise the file's tool.
        samples: treatment of several answers to one query: "refuse" them, or "keep" them as samples, whose values are
            averaged as those of `generate: {samples: N}`.
    """

    path: str
    config: str | None = None
    columns: Annotated[dict[str, str], AfterValidator(checked_columns)] = Field(default_factory=dict)
    samples: Literal["refuse", "keep"] = "refuse"

    added: ClassVar[frozenset[str]] = frozenset({"columns", "samples"})

    needs: ClassVar[tuple[str, ...]] = ("queries",)
    input_role: ClassVar[str | None] = "replay"
    default_top_k: ClassVar[int | None] = None
    route: ClassVar[Route] = Route.REPLAYED

    @property
    def keeps_samples(self) -> bool:
        return self.samples == "keep"

    @property
    def file(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """The path and how it is read: what is equal is read once for all systems in the file."""
        return self.path, tuple(sorted(self.columns.items()))

    @property
    def reader(self) -> ReplayReader:
        return ReplayReader(None if self.config is None else {self.config}, self.columns)

    @property
    def shown(self) -> str:
        return self.path if self.config is None else f"{self.path} (config {self.config!r})"

    def inputs(self) -> dict[str, str]:
        return {"path": self.path}

    def resolved(self, folder: str) -> "Replay":
        return self.model_copy(update={"path": files.below(folder, self.path)})


class Traced(Replay):
    """Answers in production traces: a file that was made of them is replayed.

    Attributes:
        source: path of the traces, and how they are read.
    """

    source: dict[str, Any]

    operational: ClassVar[frozenset[str]] = frozenset({"path"})

    @property
    def shown(self) -> str:
        return str(self.source["path"])
