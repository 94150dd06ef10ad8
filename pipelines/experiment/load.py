"""The experiment: one YAML file that names a dataset, configurations, metrics and an output.

All problems of a file are detected in one pass and reported in one message, each with its line, the value, and the
nearest valid name.
"""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rankbeam.pipelines.config.problems import problems_of, salvage
from rankbeam.pipelines.config.references import resolved, without_consequences
from rankbeam.pipelines.config.yaml_lines import Located, load
from rankbeam.pipelines.experiment import dataset_checks, needs
from rankbeam.pipelines.experiment.dataset_checks import missing_inputs, unknown_systems, wrong_inputs
from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.experiment.file.corpora import CORPUS, corpora_of, named_by, unused
from rankbeam.pipelines.experiment.file.criteria import criteria_of, unused_criteria
from rankbeam.pipelines.experiment.file.datasets import with_cases, with_documents, with_files, with_public_files
from rankbeam.pipelines.experiment.file.labels import labels_of, wrong_labels
from rankbeam.pipelines.experiment.file.models import ExperimentModel, StatisticsModel
from rankbeam.pipelines.experiment.file.providers import with_providers
from rankbeam.pipelines.experiment.file.services import services_of
from rankbeam.pipelines.experiment.file.template_files import Templates
from rankbeam.pipelines.experiment.file.traces import with_traces
from rankbeam.pipelines.experiment.grid import configurations
from rankbeam.pipelines.experiment.grid.components import ANSWERS, RERANK, REWRITE, Retrieving
from rankbeam.pipelines.experiment.grid.grid import GridContext
from rankbeam.pipelines.experiment.judging import (
    beyond_scores,
    by_judges,
    called_services,
    judging_of,
    race_of,
    with_judged,
)
from rankbeam.pipelines.experiment.metrics import holes_of, metrics_of, not_filled, with_holes
from rankbeam.pipelines.experiment.needs import AnyMetric
from rankbeam.pipelines.experiment.quotas import NAMES as CORPUS_POOLS
from rankbeam.pipelines.experiment.quotas import (
    above_window,
    corpus_quotas_of,
    pools_of,
    unpriced,
    unpriced_imports,
    wrong_batches,
)
from rankbeam.pipelines.gates.gates import KnownNames, gates_of
from rankbeam.transforms.clients.bigquery.names import DatasetName
from rankbeam.transforms.clients.models.families import missing_roles
from rankbeam.transforms.clients.retrievers.applications.http import HttpApplication
from rankbeam.transforms.clients.storage import files, matching
from rankbeam.transforms.judge.metrics import notes
from rankbeam.transforms.records.dataset import References
from rankbeam.transforms.records.errors import InputError, InputErrors
from rankbeam.transforms.records.metrics import other_tools
from rankbeam.transforms.records.metrics.dialects import Dialect, parse_dialect
from rankbeam.transforms.records.metrics.evaluation import Configuration, Evaluation, Statistics
from rankbeam.transforms.records.metrics.names import Metric
from rankbeam.transforms.records.suggestions import did_you_mean

_PLAIN_NAME = re.compile(r"\w[\w.-]*")


def load_experiment(path: str, output: str | None = None) -> Experiment:
    """Read an experiment and check everything that can be checked before any work starts."""
    if Path(path).is_dir():
        raise InputError("is a folder; an experiment is a YAML file", path=path)
    try:
        content = files.read_all(matching.expand(path)[0])
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError("is not UTF-8; an experiment is a YAML file", path=path, line=line) from error
    return parse_experiment(text, path, output)


def parse_experiment(text: str, path: str | None, output: str | None = None) -> Experiment:
    """As `load_experiment`, from the text of the file; paths in it are relative to the folder of `path`."""
    located = load(text, path)
    _set_output(located.value, output)
    problems = [located.error(place, "is given twice; keep one") for place in located.repeated]
    unresolved: list[InputError] = []
    located = with_providers(located, problems)
    located = resolved(located, unresolved, [] if output is None else [("output", "path")])
    problems += unresolved
    folder, case_notes = files.parent(path or ""), list[str]()
    located = with_traces(located, folder, problems, case_notes)
    located = with_cases(located, folder, problems, case_notes)
    located = with_public_files(with_files(located, folder, problems), problems)
    located = with_documents(located, folder, problems, case_notes)
    model = _validated(located, problems)
    given_criteria = {} if model.judge is None else model.judge.criteria or {}
    criteria = criteria_of(located, given_criteria, folder, problems)
    metrics = metrics_of(located, model, criteria, list(given_criteria), problems)
    metrics = with_holes(located, model, metrics, problems)
    dialects = _dialects(located, model, problems)
    services = services_of(located, model.services, folder, problems)
    entries = model.configurations or ()
    searched = named_by([entry.retriever for entry in entries])
    corpora = corpora_of(located, model.corpora, searched, problems)
    problems += wrong_labels(located)
    context = GridContext(located, services, Templates(folder), corpora, labels_of(located.value.get("grid")))
    expanded = configurations.expand(context, entries, model.grid, dialects, model.dataset.unit, problems)
    judging = judging_of(located, model.judge, services, folder, problems)
    metrics, unknown_judges = by_judges(metrics, located, judging, services)
    problems += unknown_judges
    judged = tuple(metric for metric in metrics if not isinstance(metric, Metric))
    embedders = {cell.retriever.embedder.name for cell in expanded.cells if cell.retriever.embedder is not None}
    rerankers = [source.reranker for source in expanded.sources if source.reranker is not None]
    reranking = {entry.service.name: entry.max_output_tokens for entry in rerankers if entry.service is not None}
    rewriters = [cell.rewriter for cell in expanded.cells if cell.rewriter is not None]
    rewriting = {entry.service.name: entry.parameters.max_output_tokens for entry in rewriters}
    used = called_services(expanded.configurations, judging) | embedders | {*reranking, *rewriting}
    corpus_quotas = corpus_quotas_of(located, model.quotas, problems)
    of_calls = {name: quota for name, quota in model.quotas.items() if name not in CORPUS_POOLS}
    retrieving, of_sources = ([part.retriever for part in parts] for parts in (expanded.cells, expanded.sources))
    pools = pools_of(located, of_calls, retrieving, of_sources, services, used, problems)
    problems += above_window(located, pools, expanded.configurations, judging, {RERANK: reranking, REWRITE: rewriting})
    problems += wrong_batches(located, pools, services, is_raced=model.race is not None)
    if model.max_cost is not None:
        problems += unpriced(located, pools, services)
        problems += unpriced_imports(located, expanded.sources, corpus_quotas)
    known = None if problems else _known(model, metrics, expanded.configurations)
    race = race_of(located, model, metrics, problems)
    gates = gates_of(located, model.gates or (), known, problems)
    problems += missing_inputs(located, model, expanded.sources)
    problems += needs.unmet(located, model, metrics, expanded.cells)
    problems += needs.wrong_unit(located, model, metrics)
    problems += beyond_scores(located, metrics, expanded.configurations, judging, services)
    unusable = list(wrong_inputs(located, model, expanded.sources, folder))
    if not unusable:
        queries = _below(folder, model.dataset.queries)
        unusable += unknown_systems(located, expanded.sources, folder)
        unusable += dataset_checks.unknown_placeholders(located, expanded.sources, queries)
        if model.dataset.conversations:
            unusable += dataset_checks.requests_without_history(located, expanded.sources, queries)
            case_notes += [] if unusable else dataset_checks.conversation_notes(expanded.templates, queries)
        unusable += dataset_checks.rewrites_without_history(located, expanded.cells, queries)
        unusable += dataset_checks.wrong_rubrics(located, criteria.values(), queries)
        answers = None if model.dataset.answers is None else model.dataset.answers.attribute
        unusable += dataset_checks.unknown_attributes(
            located, model.slices, model.statistics.cluster, expanded.templates, queries, answers
        )
    problems += unusable
    problems += _unset(located, expanded)
    problems += _wrong_baseline(located, model, expanded.configurations)
    bigquery = _destination(located, model, problems)
    if problems:
        causes = without_consequences(problems, unresolved)
        once = {str(problem): problem for problem in causes}  # a value of the grid is tried many times
        raise InputErrors(sorted(once.values(), key=lambda problem: problem.line or 0))
    ledger_path, shares_ledger = ledger_of(model.output.ledger, folder)
    sources = tuple(
        entry.completed(folder, pool, model.output.rankings)
        for entry, pool in zip(expanded.sources, pools.names, strict=True)
    )
    answered = {
        position
        for position, cell in enumerate(expanded.cells)
        if cell.generator is not None or cell.retriever.role == ANSWERS
    }
    return Experiment(
        name=model.name,
        text=text,
        qrels=_below(folder, model.dataset.qrels),
        queries=_below(folder, model.dataset.queries),
        corpus=_below(folder, model.dataset.corpus),
        references=_references(model, folder),
        evidence=_below(folder, model.dataset.evidence),
        judged=judged,
        sources=sources,
        evaluation=Evaluation(
            configurations=with_judged(expanded.configurations, answered, judged),
            metrics=tuple(metrics),
            sources=tuple(source.source for source in sources),
            slices=tuple(model.slices),
            baseline=next((i for i, entry in enumerate(expanded.configurations) if entry.name == model.baseline), 0),
            ties=model.ties,
            statistics=_statistics(model.statistics),
            notes=(
                *case_notes,
                *notes(model.metrics or ()),
                *other_tools.notes(model.metrics or ()),
                *needs.notes(model, metrics),
                *not_filled(located, model, metrics),
                *unused(located, corpora, searched),
                *unused_criteria(located, criteria, metrics),
                *dict.fromkeys(note for entry in expanded.cells for note in _of_application(entry.retriever)),
                *(note for name in sorted(used) for note in services.valid[name].parameters.warnings()),
                *(note for name in sorted(embedders) for note in missing_roles(services.valid[name].parameters)),
            ),
            spans=model.dataset.unit == needs.SPAN,
            race=race,
            holes=holes_of(located, model),
            strata=None if judging is None else judging.strata,
        ),
        output=files.below(folder, model.output.path) if output is None else output,
        pools=pools.quotas,
        budgets=pools.budgets,
        services={name: services.valid[name].paid_by(pool) for name, pool in pools.services.items()},
        judging=judging,
        max_cost=model.max_cost,
        max_failure_rate=model.max_failure_rate,
        ledger_path=ledger_path,
        shares_ledger=shares_ledger,
        leases_path=data_folder("leases") if model.output.leases == USER else None,
        is_private=model.output.private,
        is_fresh=model.fresh is not None,
        gates=gates,
        bigquery=bigquery,
        unit=model.dataset.unit,
        corpus_quotas=corpus_quotas,
    )


def _set_output(value: Any, output: str | None) -> None:
    """Name the folder for results: the option's, else out/NAME where the experiment states none."""
    section = (value.get("output") or {}) if isinstance(value, dict) else None
    if not isinstance(section, dict) or (output is None and "path" in section):
        return
    name = value.get("name")
    if output is not None or (name is not None and _PLAIN_NAME.fullmatch(str(name))):
        value["output"] = {**section, "path": output or f"out/{name}"}


def _validated(located: Located, problems: list[InputError]) -> ExperimentModel:
    """The experiment, or, with the problems added, what can be used of it."""
    if not isinstance(located.value, dict):
        raise InputErrors([located.error((), "an experiment is a mapping with name, dataset, configurations, output")])
    try:
        return ExperimentModel.model_validate(located.value)
    except ValidationError as error:
        problems += problems_of(located, ExperimentModel, error)
        return salvage(ExperimentModel, located.value)


def _dialects(located: Located, model: ExperimentModel, problems: list[InputError]) -> list[Dialect]:
    dialects = []
    for i, name in enumerate(model.dialects or ()):
        try:
            dialects.append(parse_dialect(name))
        except InputError as error:
            problems.append(located.error(("dialects", i), error.problem))
    return dialects


def _references(model: ExperimentModel, folder: str) -> References | None:
    answers = model.dataset.answers
    return None if answers is None else References(answers.attribute or "", _below(folder, answers.path))


def _statistics(model: StatisticsModel) -> Statistics:
    values = model.model_dump(exclude={"pairs"})
    return Statistics(**values, all_pairs=model.pairs == "all")


def _wrong_baseline(
    located: Located, model: ExperimentModel, configurations: tuple[Configuration, ...]
) -> Iterator[InputError]:
    names = [configuration.name for configuration in configurations]
    named = [str(configuration.name) for configuration in model.configurations or ()]
    broken = [name for name in named if not any(f"{one}:".startswith(f"{name}:") for one in names)]
    if model.baseline is None or model.baseline in names or model.baseline.partition(":")[0] in broken:
        return
    hint = did_you_mean(model.baseline, [*names, *broken])
    yield located.error(("baseline",), f"no configuration is named {model.baseline!r}; {hint}")


def _known(
    model: ExperimentModel, metrics: Iterable[AnyMetric], configurations: tuple[Configuration, ...]
) -> KnownNames:
    names = [configuration.name for configuration in configurations]
    baseline = model.baseline if model.baseline in names else names[0]
    return KnownNames(names, [str(metric) for metric in metrics], model.slices, baseline)


def _unset(located: Located, expanded: configurations.Expanded) -> Iterator[InputError]:
    """Every reference to a variable of this machine that has no value and decides what is asked."""
    for retriever in (source.retriever for source in expanded.sources):
        for inside, problem in retriever.parameters.unset():
            yield located.error((*retriever.place, *inside), problem)
        if retriever.parameters.lacks_corpus:
            problem = "is missing; name an entry of corpora:, or give the full name of a corpus"
            yield located.error((*retriever.place, CORPUS), problem)
        if (corpus := retriever.corpus) is not None:
            for inside, problem in corpus.parameters.unset():
                yield located.error((*corpus.place, *inside), problem)


def _of_application(retriever: Retrieving) -> Iterator[str]:
    """Warnings about an application, before it is asked."""
    if isinstance(retriever.parameters, HttpApplication):
        yield from retriever.parameters.warnings()


def _destination(located: Located, model: ExperimentModel, problems: list[InputError]) -> DatasetName | None:
    from rankbeam.transforms.clients.bigquery.tables import destination  # few experiments need it

    try:
        return None if model.output.bigquery is None else destination(model.output.bigquery)
    except InputError as error:
        problems.append(located.error(("output", "bigquery"), str(error)))
        return None


def _below(folder: str, path: str | None) -> str | None:
    return None if path is None else files.below(folder, path)


USER = "user"
LEDGER = "RANKBEAM_LEDGER"
"""The variable that names the ledger of experiments that name none: a folder, or "user"."""


def data_folder(name: str) -> str:
    """A folder below the user's data folder."""
    folder = os.environ.get("XDG_DATA_HOME", "").strip()
    return str((Path(folder) if folder else Path.home() / ".local" / "share") / "rankbeam" / name)


def ledger_of(path: str | None, folder: str) -> tuple[str | None, bool]:
    """The ledger that an experiment names, and whether it is one on this machine for all of the user's runs."""
    if path is not None and path != USER:
        return files.below(folder, path), False
    variable = os.environ.get(LEDGER, "").strip()
    if path is None and not variable:
        return None, False
    named = variable if variable not in ("", USER) else data_folder("ledger")
    return files.absolute(named), files.is_local(named)
