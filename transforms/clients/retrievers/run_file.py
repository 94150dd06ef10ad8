"""The `run_file` retriever: existing rankings, in a TREC or Parquet run, or in BigQuery."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from rankbeam.transforms.clients.bigquery.locations import Location
from rankbeam.transforms.clients.formats import rows, sources
from rankbeam.transforms.clients.retrievers.base import RetrieverParameters, Route
from rankbeam.transforms.clients.storage import files


class RunFile(RetrieverParameters):
    """Existing rankings; they are read in parallel, and no call is made.

    Attributes:
        path: TREC run (optionally gzipped), Parquet file, glob pattern of these, or folder of Parquet files; or a
            BigQuery table, `bigquery://project.dataset.table`, or query, as for the dataset.
        duplicates: treatment of a document that occurs twice in one ranking: "refuse" it, as trec_eval does, or
            "collapse" it to its best rank, for runs of chunks that have the ids of their documents.
    """

    path: Location
    duplicates: Literal["refuse", "collapse"] = "refuse"

    needs: ClassVar[tuple[str, ...]] = ()
    input_role: ClassVar[str | None] = "run"
    default_top_k: ClassVar[int | None] = None
    route: ClassVar[Route] = Route.READ

    def inputs(self) -> dict[str, str]:
        return {"path": self.path}

    def refuses_repeats(self, unit: str) -> bool:  # noqa: ARG002  a run has its own rule
        return self.duplicates == "refuse"

    def resolved(self, folder: str) -> "RunFile":
        return self.model_copy(update={"path": files.below(folder, self.path)})


def locate(path: str, query_id: str, doc_id: str) -> Iterator[tuple[str, int]]:
    """The files and lines in which a run lists a document for a query. It reads the run again; for messages only."""
    for name in sources.expand(path):
        for batch in rows.read_run(name):
            for row in batch.select(["query_id", "doc_id", "line"]).to_pylist():
                if (row["query_id"], row["doc_id"]) == (query_id, doc_id):
                    yield sources.shown(name), row["line"]
