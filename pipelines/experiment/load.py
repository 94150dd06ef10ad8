"""The experiment: one YAML file that names a dataset, configurations, metrics and an output.

`file` reads each section by itself, from its schema to its value. `metrics` and `grid` turn them into metrics and
configurations, and `pools` sets the budgets of their calls. `needs` checks the sections against each other, and
`dataset_checks` against the files of the dataset. The document collects all problems, which are reported in one
message, each with its line, the value, and the nearest valid name.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from rankbeam.pipelines.config.references import refuse_problems
from rankbeam.pipelines.config.yaml_lines import YamlDocument
from rankbeam.pipelines.experiment.dataset_checks import notes_on_steps, wrong_dataset
from rankbeam.pipelines.experiment.experiment import DatasetSettings, Experiment
from rankbeam.pipelines.experiment.file.corpora import CORPUS
from rankbeam.pipelines.experiment.file.models import SPAN
from rankbeam.pipelines.experiment.file.output import output_of
from rankbeam.pipelines.experiment.file.read import ExperimentFile, read_file
from rankbeam.pipelines.experiment.file.services import ConfiguredService
from rankbeam.pipelines.experiment.grid.cells import ExpandedGrid
from rankbeam.pipelines.experiment.grid.grid import expand
from rankbeam.pipelines.experiment.metrics import AnyMetric, holes_of, metrics_of, race_of, unused_criteria
from rankbeam.pipelines.experiment.metrics import notes as notes_on_metrics
from rankbeam.pipelines.experiment.needs import unmet
from rankbeam.pipelines.experiment.pools import payments_of
from rankbeam.pipelines.gates.gates import Gate, KnownNames, gates_of
from rankbeam.transforms.clients.models.families import missing_roles
from rankbeam.transforms.clients.retrievers.applications.http import HttpApplication
from rankbeam.transforms.clients.storage import files, matching
from rankbeam.transforms.judge.metrics import JudgedMetric
from rankbeam.transforms.records.dataset import References
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.metrics.evaluation import Evaluation, Statistics


def load_experiment(path: str, output: str | None = None) -> Experiment:
    """Read an experiment, and check everything that can be checked before any work starts."""
    if Path(path).is_dir():
        raise InputError("is a folder; an experiment is a YAML file", path=path)
    (first, *_) = matching.expand(path)
    return parse_experiment(files.read_text(first, "an experiment is a YAML file", path), path, output)


def parse_experiment(text: str, path: str | None, output: str | None = None) -> Experiment:
    """Like `load_experiment`, but from the file's text; paths in it are relative to the folder of `path`."""
    file = read_file(text, path, output)
    located, model = file.located, file.model
    metrics = metrics_of(file)
    expanded = expand(file, metrics)
    calls, pools = payments_of(file, expanded)
    gates = _gates(file, metrics, expanded) if model.gates else ()
    located.problems.extend(unmet(file, metrics, expanded))
    race = race_of(file, metrics)
    located.problems.extend(wrong_dataset(file, expanded))
    located.problems.extend(_unset(file, expanded))
    ledger, shares_ledger, leases, bigquery = output_of(located, model.output)
    refuse_problems(located)
    sources = tuple(
        source.completed(located.folder, pool, model.output.rankings)
        for source, pool in zip(expanded.sources, pools, strict=True)
    )
    notes = (
        *located.notes,
        *notes_on_metrics(file, metrics),
        *notes_on_steps(file, metrics),
        *file.corpora.unused,
        *unused_criteria(file, metrics),
    )
    names = [configuration.name for configuration in expanded.configurations]
    statistics, answers = model.statistics.model_dump(exclude={"pairs"}), model.dataset.answers
    return Experiment(
        name=model.name,
        text=text,
        output=located.below(model.output.path) if output is None else output,
        dataset=DatasetSettings(
            qrels=_below(located, model.dataset.qrels),
            queries=_below(located, model.dataset.queries),
            corpus=_below(located, model.dataset.corpus),
            evidence=_below(located, model.dataset.evidence),
            references=None if answers is None else References(answers.attribute or "", _below(located, answers.path)),
            unit=model.dataset.unit,
        ),
        judged=tuple(metric for metric in metrics if isinstance(metric, JudgedMetric)),
        sources=sources,
        evaluation=Evaluation(
            configurations=expanded.configurations,
            metrics=tuple(metrics),
            sources=tuple(source.source for source in sources),
            slices=tuple(model.slices),
            baseline=0 if model.baseline is None else names.index(model.baseline),
            ties=model.ties,
            statistics=Statistics(**statistics, all_pairs=model.statistics.pairs == "all"),
            notes=(*notes, *_notes_on_services(expanded, calls.services)),
            spans=model.dataset.unit == SPAN,
            race=race,
            holes=holes_of(file),
            strata=None if file.judging is None else file.judging.strata,
        ),
        calls=replace(calls, ledger_path=ledger, shares_ledger=shares_ledger, leases_path=leases),
        judging=file.judging,
        is_private=model.output.private,
        gates=gates,
        bigquery=bigquery,
    )


def _gates(file: ExperimentFile, metrics: Iterable[AnyMetric], expanded: ExpandedGrid) -> tuple[Gate, ...]:
    """The gates; their names are checked only if the experiment has no problems."""
    model = file.model
    if file.located.problems:
        criteria = {} if model.judge is None else model.judge.criteria or {}
        return gates_of(file.located, model.gates, None, criteria)
    names = [configuration.name for configuration in expanded.configurations]
    baseline = model.baseline if model.baseline in names else names[0]
    known = KnownNames(names, [str(metric) for metric in metrics], model.slices, baseline)
    return gates_of(file.located, model.gates, known)


def _unset(file: ExperimentFile, expanded: ExpandedGrid) -> Iterator[InputError]:
    """Every reference without a value to a variable that affects requests, and every missing corpus."""
    located = file.located
    for retriever in (source.retriever for source in expanded.sources):
        for inside, problem in retriever.parameters.unset():
            yield located.error((*retriever.place, *inside), problem)
        if retriever.parameters.lacks_corpus:
            problem = "is missing; name an entry of corpora:, or give the full name of a corpus"
            yield located.error((*retriever.place, CORPUS), problem)
        if (corpus := retriever.corpus) is not None:
            for inside, problem in corpus.parameters.unset():
                yield located.error((*corpus.place, *inside), problem)


def _notes_on_services(expanded: ExpandedGrid, called: Mapping[str, ConfiguredService]) -> Iterator[str]:
    """Warnings about applications and models, before any call."""
    parameters = (cell.retriever.parameters for cell in expanded.cells)
    applications = [application for application in parameters if isinstance(application, HttpApplication)]
    yield from dict.fromkeys(note for application in applications for note in application.warnings())
    for name in sorted(called):
        yield from called[name].parameters.warnings()
    for name in sorted(expanded.embedders):
        yield from missing_roles(called[name].parameters)


def _below(located: YamlDocument, path: str | None) -> str | None:
    return None if path is None else located.below(path)
