"""The experiment: one YAML file that names a dataset, configurations, metrics and an output.

Everything wrong with a file is found in one pass and reported in one message, each problem with its line, the
value, and the nearest valid name.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from pipelines import configurations
from pipelines.problems import problem_of, salvage
from pipelines.yaml_lines import Located, Place, load
from transforms.clients import files
from transforms.clients.formats.recognise import recognise
from transforms.clients.retrievers import RetrieverParameters
from transforms.clients.run_file import RunFile
from transforms.records.dialects import Dialect, parse_dialect
from transforms.records.errors import InputError, InputErrors
from transforms.records.evaluation import Configuration, Evaluation, Source
from transforms.records.metrics import Metric
from transforms.records.suggestions import did_you_mean
from transforms.records.trec_names import parse_metrics

_MOST_CHECKED = 100
DEFAULT_METRICS = ("nDCG@10", "R@100", "RR@10", "AP")


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class DatasetModel(_Model):
    """`dataset:`, paths relative to the experiment file, or on any of Beam's filesystems.

    Attributes:
        qrels: judgements: TREC, BEIR or Parquet.
        queries: JSON lines, TREC topics or Parquet; needed by whatever is asked.
        corpus: documents: JSON lines, tab separated text or Parquet; needed by whatever indexes them.
        unit: what the judgements judge. With "document", several chunks of one document count as that document, at
            the best of their ranks; with "chunk", an id names one chunk and must not stand twice in a ranking.
    """

    qrels: Annotated[str, Field(min_length=1)]
    queries: Annotated[str, Field(min_length=1)] | None = None
    corpus: Annotated[str, Field(min_length=1)] | None = None
    unit: Literal["document", "chunk"] = "document"


class ConfigurationModel(_Model):
    """One item of `configurations:`.

    Attributes:
        name: for people; every configuration has its own.
        retriever: `type` and that type's parameters.
        top_k: results per query.
    """

    name: Annotated[str, Field(min_length=1)]
    retriever: dict[str, Any]
    top_k: Annotated[int, Field(ge=1)] | None = None


class OutputModel(_Model):
    """`output:`.

    Attributes:
        path: the folder for all results.
        rankings: whether the rankings themselves are written, not only their scores. By default those are that were
            asked for; those of an existing run stand in its file.
    """

    path: Annotated[str, Field(min_length=1)]
    rankings: bool | None = None


class ExperimentModel(_Model):
    """The whole file.

    Attributes:
        name: of the experiment.
        dataset: what is asked and judged.
        configurations: the systems under test.
        grid: parameters and their values; every configuration is repeated for each combination.
        metrics: names, as ir_measures or trec_eval write them.
        slices: attributes of queries to average by, besides all queries.
        ties: also find how far each value depends on the order of documents with equal scores.
        dialects: tools by whose rules every configuration is scored, side by side.
        baseline: name of the configuration the others are compared with; the first by default.
        output: where results go.
    """

    name: Annotated[str, Field(min_length=1)]
    dataset: DatasetModel
    configurations: Annotated[list[ConfigurationModel], Field(min_length=1)]
    grid: dict[str, list[Any]] = Field(default_factory=dict)
    metrics: Annotated[list[str], Field(min_length=1)] = list(DEFAULT_METRICS)
    slices: list[str] = Field(default_factory=list)
    ties: bool = False
    dialects: list[str] = Field(default_factory=list)
    baseline: str | None = None
    output: OutputModel

    @field_validator("slices", "dialects")
    @classmethod
    def _once(cls, value: list[str], info: ValidationInfo) -> list[str]:
        if len(set(value)) != len(value):
            raise ValueError("names an attribute twice" if info.field_name == "slices" else "names a dialect twice")
        return value


@dataclass(frozen=True)
class Experiment:
    """An experiment that can be run.

    Attributes:
        name: its name.
        text: the YAML it came from.
        qrels, queries, corpus: paths; None where there is none.
        retrievers: per source, its parameters with paths resolved.
        evaluation: configurations, metrics, sources and slices.
        output: the folder for all results.
    """

    name: str
    text: str
    qrels: str
    queries: str | None
    corpus: str | None
    retrievers: tuple[RetrieverParameters, ...]
    evaluation: Evaluation
    output: str

    def inputs(self) -> list[str]:
        """The path of every file that is read."""
        own = [path for parameters in self.retrievers for path in parameters.inputs().values()]
        return [path for path in (self.qrels, self.queries, self.corpus, *own) if path is not None]


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
    folder = files.parent(path or "")
    problems += _missing(located, model, expanded.retrievers)
    problems += _wrong_inputs(located, model, expanded, folder)
    problems += _wrong_baseline(located, model, expanded.configurations)
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
        evaluation=Evaluation(
            configurations=expanded.configurations,
            metrics=metrics,
            sources=_completed(expanded.sources, expanded.retrievers, folder, model.output.rankings),
            slices=tuple(model.slices),
            baseline=next((i for i, each in enumerate(expanded.configurations) if each.name == model.baseline), 0),
            ties=model.ties,
        ),
        output=files.below(folder, model.output.path),
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


def _completed(
    sources: tuple[Source, ...], retrievers: tuple[RetrieverParameters, ...], folder: str, rankings: bool | None
) -> tuple[Source, ...]:
    paths = [each.resolved(folder).path if isinstance(each, RunFile) else None for each in retrievers]
    return tuple(
        replace(source, path=path, keep_rankings=path is None if rankings is None else rankings)
        for source, path in zip(sources, paths, strict=True)
    )


def _below(folder: str, path: str | None) -> str | None:
    return None if path is None else files.below(folder, path)


def _wrong_inputs(
    located: Located, model: ExperimentModel, expanded: configurations.Expanded, folder: str
) -> Iterator[InputError]:
    """Every input file that is missing or of a wrong format."""
    inputs: list[tuple[Place, str | None, str | None]] = [
        (("dataset", role), role, getattr(model.dataset, role)) for role in ("qrels", "queries", "corpus")
    ]
    for place, parameters in zip(expanded.places, expanded.retrievers, strict=True):
        inputs += [((*place, name), parameters.input_role, path) for name, path in parameters.inputs().items()]
    for place, role, pattern in inputs:
        try:
            for path in files.expand(files.below(folder, pattern))[:_MOST_CHECKED] if pattern else ():
                if role is not None:
                    recognise(path, role)
        except InputError as error:
            yield located.error(place, str(error))
