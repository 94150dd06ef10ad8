"""The experiment: one YAML file that names a dataset, configurations, metrics and an output.

All problems of a file are detected in one pass and reported in one message, each with its line, the value, and the
nearest valid name.
"""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rankbeam.pipelines.config.references import resolved, with_providers, without_consequences
from rankbeam.pipelines.config.yaml_lines import Located, load, validated
from rankbeam.pipelines.experiment.dataset_checks import wrong_dataset
from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.experiment.file.corpora import CORPUS, corpora_of
from rankbeam.pipelines.experiment.file.criteria import criteria_of, unused_criteria
from rankbeam.pipelines.experiment.file.datasets import with_dataset
from rankbeam.pipelines.experiment.file.models import ExperimentModel, StatisticsModel
from rankbeam.pipelines.experiment.file.services import Services, services_of
from rankbeam.pipelines.experiment.file.template_files import Templates
from rankbeam.pipelines.experiment.grid.cells import Expanded
from rankbeam.pipelines.experiment.grid.combinations import GridContext
from rankbeam.pipelines.experiment.grid.grid import expand
from rankbeam.pipelines.experiment.judging import beyond_scores, by_judges, judging_of, race_of, with_judged
from rankbeam.pipelines.experiment.metrics import SPAN, AnyMetric, holes_of, metrics_of, unmet
from rankbeam.pipelines.experiment.metrics import notes as notes_on_metrics
from rankbeam.pipelines.experiment.quotas import payments_of
from rankbeam.pipelines.gates.gates import Gate, KnownNames, gates_of
from rankbeam.transforms.clients.bigquery.names import DatasetName
from rankbeam.transforms.clients.models.families import missing_roles
from rankbeam.transforms.clients.retrievers.applications.http import HttpApplication
from rankbeam.transforms.clients.storage import files, matching
from rankbeam.transforms.clients.storage.other_filesystems import problem_of_scheme
from rankbeam.transforms.judge.metrics import JudgedMetric
from rankbeam.transforms.records.dataset import References
from rankbeam.transforms.records.errors import InputError, InputErrors, did_you_mean
from rankbeam.transforms.records.metrics.evaluation import Configuration, Evaluation, Statistics

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
    problems, unresolved, notes = list[InputError](), list[InputError](), list[str]()
    located = _document(text, path, output, problems, unresolved)
    folder = files.parent(path or "")
    located = with_dataset(located, folder, problems, notes)
    if not isinstance(located.value, dict):
        raise InputErrors([located.error((), "an experiment is a mapping with name, dataset, configurations, output")])
    model = validated(ExperimentModel, located, problems)
    criteria = criteria_of(located, {} if model.judge is None else model.judge.criteria or {}, folder, problems)
    metrics = metrics_of(located, model, criteria, problems)
    services = services_of(located, model.services, folder, problems)
    corpora = corpora_of(located, model, problems)
    expanded = expand(GridContext(located, services, Templates(folder), corpora), model, problems)
    judging = judging_of(located, model.judge, services, folder, problems)
    metrics = by_judges(located, metrics, judging, services, problems)
    expanded = with_judged(expanded, metrics)
    pools = payments_of(located, model, expanded, judging, services, problems)
    gates = _gates(located, model, metrics, expanded.configurations, problems) if model.gates else ()
    problems += unmet(located, model, metrics, expanded)
    race = race_of(located, model, metrics, problems)
    problems += beyond_scores(located, metrics, expanded.configurations, judging, services)
    problems += wrong_dataset(located, model, expanded, criteria, folder, notes)
    problems += _unset(located, expanded)
    problems += _wrong_baseline(located, model, expanded.configurations)
    problems += _wrong_places(located, model)
    bigquery = _destination(located, model, problems)
    if problems:
        causes = without_consequences(problems, unresolved)
        once = {str(problem): problem for problem in causes}  # a value of the grid is tried many times
        raise InputErrors(sorted(once.values(), key=lambda problem: problem.line or 0))
    sources = expanded.completed(folder, pools.names, model.output.rankings)
    notes += (*notes_on_metrics(located, model, metrics), *corpora.unused, *unused_criteria(located, criteria, metrics))
    notes += _notes_on_services(expanded, services, pools.services)
    ledger_path, shares_ledger = ledger_of(model.output.ledger, folder)
    return Experiment(
        name=model.name,
        text=text,
        qrels=_below(folder, model.dataset.qrels),
        queries=_below(folder, model.dataset.queries),
        corpus=_below(folder, model.dataset.corpus),
        references=_references(model, folder),
        evidence=_below(folder, model.dataset.evidence),
        judged=tuple(metric for metric in metrics if isinstance(metric, JudgedMetric)),
        sources=sources,
        evaluation=Evaluation(
            configurations=expanded.configurations,
            metrics=tuple(metrics),
            sources=tuple(source.source for source in sources),
            slices=tuple(model.slices),
            baseline=next((i for i, entry in enumerate(expanded.configurations) if entry.name == model.baseline), 0),
            ties=model.ties,
            statistics=_statistics(model.statistics),
            notes=tuple(notes),
            spans=model.dataset.unit == SPAN,
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
        corpus_quotas=pools.corpora,
    )


def _document(
    text: str, path: str | None, output: str | None, problems: list[InputError], unresolved: list[InputError]
) -> Located:
    """The file with the values that it refers to; references without a value are also added to `unresolved`."""
    located = load(text, path)
    _set_output(located.value, output)
    problems += located.duplicate_keys()
    located = with_providers(located, problems)
    located = resolved(located, unresolved, [] if output is None else [("output", "path")])
    problems += unresolved
    return located


def _set_output(value: Any, output: str | None) -> None:
    """Name the folder for results: the option's, else out/NAME where the experiment states none."""
    section = (value.get("output") or {}) if isinstance(value, dict) else None
    if not isinstance(section, dict) or (output is None and "path" in section):
        return
    name = value.get("name")
    if output is not None or (name is not None and _PLAIN_NAME.fullmatch(str(name))):
        value["output"] = {**section, "path": output or f"out/{name}"}


def _wrong_places(located: Located, model: ExperimentModel) -> Iterator[InputError]:
    """Folders of the output that no filesystem has."""
    for key, place in (("path", model.output.path), ("ledger", model.output.ledger)):
        if (problem := problem_of_scheme(place or "")) is not None:
            yield located.error(("output", key), problem)


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


def _gates(
    located: Located,
    model: ExperimentModel,
    metrics: Iterable[AnyMetric],
    configurations: tuple[Configuration, ...],
    problems: list[InputError],
) -> tuple[Gate, ...]:
    """The gates; names in them are only compared with those of an experiment without problems."""
    if problems:
        criteria = {} if model.judge is None else model.judge.criteria or {}
        return gates_of(located, model.gates, None, problems, criteria)
    names = [configuration.name for configuration in configurations]
    baseline = model.baseline if model.baseline in names else names[0]
    known = KnownNames(names, [str(metric) for metric in metrics], model.slices, baseline)
    return gates_of(located, model.gates, known, problems)


def _unset(located: Located, expanded: Expanded) -> Iterator[InputError]:
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


def _notes_on_services(expanded: Expanded, services: Services, called: Iterable[str]) -> Iterator[str]:
    """Warnings about applications and models, before any call."""
    parameters = (cell.retriever.parameters for cell in expanded.cells)
    applications = [application for application in parameters if isinstance(application, HttpApplication)]
    yield from dict.fromkeys(note for application in applications for note in application.warnings())
    for name in sorted(called):
        yield from services.valid[name].parameters.warnings()
    for name in sorted(expanded.embedders):
        yield from missing_roles(services.valid[name].parameters)


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
