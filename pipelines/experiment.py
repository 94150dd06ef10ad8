"""The experiment: one YAML file that names a dataset, configurations, metrics and an output.

Everything wrong with a file is found in one pass and reported in one message, each problem with its line, the
value, and the nearest valid name.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pydantic import ValidationError

from pipelines import configurations, dataset_checks
from pipelines.gates import Gate, Known, gates_of
from pipelines.models import ExperimentModel, StatisticsModel
from pipelines.problems import problem_of, salvage
from pipelines.quotas import pools_of
from pipelines.yaml_lines import Located, Place, load
from transforms.clients import files
from transforms.clients.bigquery.names import DatasetName
from transforms.clients.bigquery.read_source import pinned
from transforms.clients.formats.check import check
from transforms.clients.remote import RemoteRetriever
from transforms.clients.retrievers import RetrieverParameters
from transforms.clients.run_file import RunFile
from transforms.records.calls import Quota
from transforms.records.dialects import Dialect, parse_dialect
from transforms.records.errors import InputError, InputErrors
from transforms.records.evaluation import Configuration, Evaluation, Source, Statistics
from transforms.records.metrics import Metric
from transforms.records.suggestions import did_you_mean
from transforms.records.trec_names import parse_metrics


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


def load_experiment(path: str) -> Experiment:
    """Read an experiment and check all that can be checked before any work starts.

    Args:
        path: the YAML file, on any of Beam's filesystems.

    Raises:
        InputErrors: every problem of the file, and every input file that is missing or of a wrong format.
    """
    try:
        content = files.read_all(files.expand(path)[0])
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError("is not UTF-8; an experiment is a YAML file", path=path, line=line) from error
    return parse_experiment(text, path)


def parse_experiment(text: str, path: str | None) -> Experiment:
    """As `load_experiment`, from the text of the file; paths in it are relative to the folder of `path`."""
    located = load(text, path)
    problems = [located.error(place, "is given twice; keep one") for place in located.repeated]
    model = _validated(located, problems)
    metrics = _metrics(located, model, problems)
    dialects = _dialects(located, model, problems)
    given = model.configurations or ()
    expanded = configurations.expand(located, given, model.grid, dialects, model.dataset.unit, problems)
    pools = pools_of(located, model.quotas, expanded.cells, expanded.primary, problems)
    known = None if problems else _known(model, metrics, expanded.configurations)
    gates = gates_of(located, model.gates or (), known, problems)
    folder = files.parent(path or "")
    problems += _missing(located, model, expanded.retrievers)
    wrong_inputs = list(_wrong_inputs(located, model, expanded, folder))
    if not wrong_inputs:
        wrong_inputs += dataset_checks.unknown_slices(located, model.slices, _below(folder, model.dataset.queries))
    problems += wrong_inputs
    problems += _unset(located, expanded)
    problems += _wrong_baseline(located, model, expanded.configurations)
    bigquery = _destination(located, model, problems)
    if problems:
        once = {str(problem): problem for problem in problems}  # a value of the grid is tried many times
        raise InputErrors(sorted(once.values(), key=lambda problem: problem.line or 0))
    return Experiment(
        name=model.name,
        text=text,
        qrels=files.below(folder, model.dataset.qrels),
        queries=_below(folder, model.dataset.queries),
        corpus=_below(folder, model.dataset.corpus),
        retrievers=tuple(parameters.resolved(folder) for parameters in expanded.retrievers),
        kinds=expanded.kinds,
        evaluation=Evaluation(
            configurations=expanded.configurations,
            metrics=metrics,
            sources=_completed(expanded, pools.names, folder, model.output.rankings),
            slices=tuple(model.slices),
            baseline=next((i for i, each in enumerate(expanded.configurations) if each.name == model.baseline), 0),
            ties=model.ties,
            statistics=_statistics(model.statistics),
        ),
        output=files.below(folder, model.output.path),
        pools=pools.quotas,
        max_failure_rate=model.max_failure_rate,
        ledger_path=_below(folder, model.output.ledger),
        gates=gates,
        bigquery=bigquery,
    )


def _validated(located: Located, problems: list[InputError]) -> ExperimentModel:
    """The experiment, or, with the problems added, what can be used of it."""
    if not isinstance(located.value, dict):
        raise InputErrors([located.error((), "an experiment is a mapping with name, dataset, configurations, output")])
    try:
        return ExperimentModel.model_validate(located.value)
    except ValidationError as error:
        problems += [problem_of(located, ExperimentModel, dict(each)) for each in error.errors()]
        return salvage(ExperimentModel, located.value)


def _metrics(located: Located, model: ExperimentModel, problems: list[InputError]) -> tuple[Metric, ...]:
    found: dict[Metric, None] = {}
    for i, name in enumerate(model.metrics or ()):
        try:
            found |= dict.fromkeys(parse_metrics([name]))
        except InputError as error:
            problems.append(located.error(("metrics", i), error.problem))
    return tuple(found)


def _dialects(located: Located, model: ExperimentModel, problems: list[InputError]) -> list[Dialect]:
    found = []
    for i, name in enumerate(model.dialects or ()):
        try:
            found.append(parse_dialect(name))
        except InputError as error:
            problems.append(located.error(("dialects", i), error.problem))
    return found


def _statistics(model: StatisticsModel) -> Statistics:
    return Statistics(model.replicates, model.confidence, model.seed, model.pairs == "all", model.min_slice)


def _missing(
    located: Located, model: ExperimentModel, retrievers: tuple[RetrieverParameters, ...]
) -> Iterator[InputError]:
    """The parts of the dataset that a retriever or a slice needs and that are not given."""
    given = located.value.get("dataset")
    for need in sorted({need for parameters in retrievers for need in parameters.needs}):
        if not isinstance(given, dict) or given.get(need) is None:
            yield located.error(("dataset", need), f"is missing; a configuration's retriever needs the {need}")
    if model.slices and isinstance(given, dict) and given.get("queries") is None:
        yield located.error(("slices",), "are by attributes of queries, and dataset.queries is missing")


def _wrong_baseline(located: Located, model: ExperimentModel, found: tuple[Configuration, ...]) -> Iterator[InputError]:
    names = [each.name for each in found]
    given = [str(each.name) for each in model.configurations or ()]
    broken = [name for name in given if not any(f"{one}:".startswith(f"{name}:") for one in names)]
    if model.baseline is None or model.baseline in names or model.baseline.partition(":")[0] in broken:
        return
    hint = did_you_mean(model.baseline, [*names, *broken])
    yield located.error(("baseline",), f"no configuration is named {model.baseline!r}; {hint}")


def _known(model: ExperimentModel, metrics: tuple[Metric, ...], found: tuple[Configuration, ...]) -> Known:
    """What gates can be about."""
    names = [each.name for each in found]
    baseline = model.baseline if model.baseline in names else names[0]
    return Known(names, [str(metric) for metric in metrics], model.slices, baseline)


def _completed(
    expanded: configurations.Expanded, pools: tuple[str | None, ...], folder: str, rankings: bool | None
) -> tuple[Source, ...]:
    paths = [each.resolved(folder).path if isinstance(each, RunFile) else None for each in expanded.retrievers]
    return tuple(
        replace(source, path=path, pool=pool, keep_rankings=path is None if rankings is None else rankings)
        for source, path, pool in zip(expanded.sources, paths, pools, strict=True)
    )


def _unset(located: Located, expanded: configurations.Expanded) -> Iterator[InputError]:
    """Every reference to a variable of this machine that has no value and decides what is asked."""
    for place, parameters in zip(expanded.places, expanded.retrievers, strict=True):
        for inside, problem in parameters.unset():
            yield located.error((*place, *inside), problem)


def _pinned(path: str | None, run: str) -> str | None:
    return None if path is None else pinned(path, run)


def _destination(located: Located, model: ExperimentModel, problems: list[InputError]) -> DatasetName | None:
    from transforms.clients.bigquery.tables import destination  # few experiments need it

    try:
        return None if model.output.bigquery is None else destination(model.output.bigquery)
    except InputError as error:
        problems.append(located.error(("output", "bigquery"), str(error)))
        return None


def _below(folder: str, path: str | None) -> str | None:
    return None if path is None else files.below(folder, path)


def _wrong_inputs(
    located: Located, model: ExperimentModel, expanded: configurations.Expanded, folder: str
) -> Iterator[InputError]:
    """Every input that is missing, of a wrong format or empty, and every table that cannot be read."""
    inputs: list[tuple[Place, str | None, str | None]] = [
        (("dataset", role), role, getattr(model.dataset, role)) for role in ("qrels", "queries", "corpus")
    ]
    for place, parameters in zip(expanded.places, expanded.retrievers, strict=True):
        inputs += [((*place, name), parameters.input_role, path) for name, path in parameters.inputs().items()]
    for place, role, pattern in inputs:
        try:
            paths = files.expand(files.below(folder, pattern)) if pattern else []
            if paths and role is not None:
                check(paths, role)
        except InputError as error:
            yield located.error(place, str(error))
