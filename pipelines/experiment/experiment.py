"""An experiment that can be run."""

from dataclasses import dataclass, replace

from rankbeam.pipelines.gates.gates import Gate
from rankbeam.transforms.clients.bigquery.names import DatasetName
from rankbeam.transforms.clients.bigquery.read_source import pinned
from rankbeam.transforms.clients.retrievers.base import RetrieverParameters
from rankbeam.transforms.clients.retrievers.remote import RemoteRetriever
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.evaluation import Evaluation


@dataclass(frozen=True)
class Experiment:
    """An experiment that can be run.

    Attributes:
        name: its name.
        text: the YAML it came from.
        qrels, queries, corpus: paths, or tables and queries of BigQuery; None where there is none.
        retrievers: per source, its parameters with paths resolved.
        kinds: per source, the retriever's type.
        evaluation: configurations, metrics, sources and slices.
        output: the folder for all results.
        pools: the budget of every quota pool that some source uses, by its name.
        max_failure_rate: the share of a configuration's queries that may fail.
        ledger_path: the folder of the ledger, where the experiment names one.
        gates: thresholds that the results must keep.
        bigquery: the dataset that runs are loaded into.
        wait_for_lease_s: how long to wait for another run that makes calls with the same ledger; None for as long as
            it takes.
    """

    name: str
    text: str
    qrels: str
    queries: str | None
    corpus: str | None
    retrievers: tuple[RetrieverParameters, ...]
    kinds: tuple[str, ...]
    evaluation: Evaluation
    output: str
    pools: dict[str, Quota]
    max_failure_rate: float
    ledger_path: str | None = None
    gates: tuple[Gate, ...] = ()
    bigquery: DatasetName | None = None
    wait_for_lease_s: float | None = None

    @property
    def ledger(self) -> str:
        """The folder that keeps the answers of remote services."""
        return files.below(self.output, "ledger") if self.ledger_path is None else self.ledger_path

    @property
    def remote(self) -> dict[int, RemoteRetriever]:
        """The retrievers that are asked through the network, by source."""
        return {source: each for source, each in enumerate(self.retrievers) if isinstance(each, RemoteRetriever)}

    def accounts(self) -> dict[str, str]:
        """For each quota pool whose budget it is: its own name where a retriever names it, else type and scope.

        What an experiment calls a pool depends on its other retrievers; at the service it is the same budget.
        """
        return {
            self.evaluation.sources[source].pool or "": each.quota or f"{self.kinds[source]} {each.scope()}".strip()
            for source, each in reversed(self.remote.items())
        }

    @property
    def local(self) -> dict[int, RetrieverParameters]:
        """The retrievers that are asked in process, by source."""
        made = [each.path is not None or each.fusion is not None for each in self.evaluation.sources]
        return {
            source: each
            for source, each in enumerate(self.retrievers)
            if not made[source] and not isinstance(each, RemoteRetriever)
        }

    def inputs(self) -> list[str]:
        """The path of every file that is read."""
        own = [path for parameters in self.retrievers for path in parameters.inputs().values()]
        return [path for path in (self.qrels, self.queries, self.corpus, *own) if path is not None]

    @property
    def compared(self) -> tuple[tuple[str, str], ...]:
        """Role and path of the files that must share queries or documents with the judgements."""
        runs = [("run", each.path) for each in self.evaluation.sources if each.path is not None]
        return (*runs, *([] if self.corpus is None else [("corpus", self.corpus)]))

    def with_disjoint(self, allowed: bool) -> "Experiment":
        """The experiment, whose rankings and corpus may share no query, or no document, with the judgements, or not."""
        return replace(self, evaluation=replace(self.evaluation, allow_disjoint=allowed))

    def pinned(self, run: str) -> "Experiment":
        """The experiment with queries to BigQuery that are run once in an execution, wherever their rows are read.

        Args:
            run: names the execution.
        """
        sources = tuple(replace(each, path=_pinned(each.path, run)) for each in self.evaluation.sources)
        return replace(
            self,
            qrels=pinned(self.qrels, run),
            queries=_pinned(self.queries, run),
            corpus=_pinned(self.corpus, run),
            evaluation=replace(self.evaluation, sources=sources),
        )


def _pinned(path: str | None, run: str) -> str | None:
    return None if path is None else pinned(path, run)
