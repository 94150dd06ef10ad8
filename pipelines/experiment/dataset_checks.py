"""Check the content of a dataset's files on this machine, reading little.

BigQuery tables are left to the run: reading them here would cost money.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

import pyarrow as pa

from rankbeam.pipelines.config.yaml_lines import Place, YamlDocument
from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.experiment.file.generate import TemplateFile
from rankbeam.pipelines.experiment.file.models import ExperimentModel
from rankbeam.pipelines.experiment.file.read import ExperimentFile
from rankbeam.pipelines.experiment.grid.cells import Cell, ExpandedGrid, PlannedSource
from rankbeam.pipelines.experiment.metrics import AnyMetric
from rankbeam.transforms.clients.bigquery.names import is_table
from rankbeam.transforms.clients.formats import overlap, replay, sources, texts
from rankbeam.transforms.clients.formats.cases.source import is_cases
from rankbeam.transforms.clients.formats.recognise import ROLES, TABLES, Format, recognise
from rankbeam.transforms.clients.formats.replay import configs_until
from rankbeam.transforms.clients.formats.syntax import json_lines, tables
from rankbeam.transforms.clients.retrievers.applications.http import HttpApplication
from rankbeam.transforms.clients.retrievers.replay import Replay
from rankbeam.transforms.judge.metrics import JudgedMetric
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records.conversations import CONVERSATION, HISTORY, TURN, history_of, problem_of_turn
from rankbeam.transforms.records.errors import InputError, InputErrors, did_you_mean, pluralize
from rankbeam.transforms.records.judging.criteria import Criterion, statements_of
from rankbeam.transforms.records.judging.steps import Need
from rankbeam.transforms.records.slices import attributes_of
from rankbeam.transforms.records.stages import RewriteKind
from rankbeam.transforms.records.trajectories import EXPECTED_STEPS

_MOST_RECOGNISED = 100


def refuse_disjoint(experiment: Experiment) -> None:
    """Compare the judgements with the runs and the corpus: ids that never meet would score 0."""
    others = [(role, path) for role, path in experiment.compared if not is_table(path)]
    qrels = experiment.dataset.qrels
    problems = [] if qrels is None or is_table(qrels) else overlap.disjoint_errors(qrels, others)
    if problems:
        raise InputErrors(problems)
    refuse_strange_answers(experiment)


def refuse_strange_answers(experiment: Experiment) -> None:
    """Refuse answers in files that share no query with the experiment: each query would fail."""
    replays = {replay.path: replay for replay in experiment.replayed.values() if not is_table(replay.path)}
    if replays and experiment.dataset.queries is not None and not experiment.evaluation.allow_disjoint:
        answers = ((replay.shown, _rows(replay)) for replay in replays.values())
        overlap.refuse_strange_answers(experiment.dataset.queries, answers)


def _rows(replay: Replay) -> Iterator[pa.RecordBatch]:
    return (batch for path in sources.expand(replay.path) for batch in replay.reader(path))


def wrong_dataset(file: ExperimentFile, expanded: ExpandedGrid) -> list[InputError]:
    """Problems with the dataset's files, and with their use in the experiment; warnings are added to `notes`."""
    located, model = file.located, file.model
    if wrong := list(_wrong_inputs(file, expanded.sources)):
        return wrong
    queries = None if model.dataset.queries is None else located.below(model.dataset.queries)
    wrong += _unknown_systems(located, expanded.sources)
    try:
        attributes = _attributes_in(queries, _named_attributes(model, expanded))
        if attributes is not None:
            wrong += _unknown_placeholders(located, expanded.sources, attributes)
            wrong += _wrong_history(located, model, expanded, attributes)
        wrong += _wrong_rubrics(located, file.criteria.values(), queries)
        wrong += _unknown_attributes(located, model, expanded.templates, attributes)
        if model.dataset.conversations:
            file.located.notes.extend(_conversation_notes(expanded.templates, queries))
    except InputError as error:
        wrong.append(error)
    return wrong


def notes_on_steps(file: ExperimentFile, metrics: Iterable[AnyMetric]) -> Iterator[str]:
    """A warning if metrics compare expected steps, and no reference answer has any."""
    judged = (metric for metric in metrics if isinstance(metric, JudgedMetric))
    names = [str(metric) for metric in judged if Need.EXPECTED_STEPS in metric.definition.needs]
    answers = file.model.dataset.answers
    stated = None if answers is None else answers.path or file.model.dataset.queries
    if not names or answers is None or stated is None or is_table(stated):
        return
    path, misnamed = file.located.below(stated), 0
    for keys in _keys_of_references(path) if answers.path else (entry.attributes for _, entry in _entries(path)):
        if EXPECTED_STEPS in keys:
            return
        misnamed += "steps" in keys
    rows = pluralize(misnamed, "row has", "rows have")
    advice = f"; {rows} steps, which are those of answers; rename the key" if misnamed else ""
    yield f"{path}: no reference answer has {EXPECTED_STEPS}, so there is no value of {', '.join(names)}{advice}"


def _keys_of_references(pattern: str) -> Iterator[Set[str]]:
    for path in sources.expand(pattern):
        for line, text in json_lines.numbered_lines(path):
            yield json_lines.parse_object(path, line, text).keys()


def _named_attributes(model: ExperimentModel, expanded: ExpandedGrid) -> set[str]:
    """Query attributes that any part of the experiment uses."""
    answers = None if model.dataset.answers is None else model.dataset.answers.attribute
    applications = (source.retriever.parameters for source in expanded.sources)
    names = {name for slice_ in model.slices for name in attributes_of(slice_)}
    names |= {name for template in expanded.templates for name in template.attributes}
    names |= {name for item in applications if isinstance(item, HttpApplication) for name in item.attributes}
    uses_history = model.dataset.conversations or any(map(_is_joined, expanded.cells))
    optional = (answers, model.statistics.cluster, HISTORY if uses_history else None)
    return names | {name for name in optional if name is not None}


def _unknown_attributes(
    located: YamlDocument, model: ExperimentModel, templates: Mapping[TemplateFile, bool], known: Set[str] | None
) -> Iterator[InputError]:
    """Attributes that slices, clusters or templates name, but that no query has."""
    slices, cluster = model.slices, model.statistics.cluster
    answers = None if model.dataset.answers is None else model.dataset.answers.attribute
    if known is not None and answers is not None:
        if answers not in known and not (is_cases(model.dataset.queries or "") and EXPECTED_STEPS in known):
            yield located.error(("dataset", "answers"), _no_attribute(answers, known))
        known = known - {answers}
    for template, without_contexts in templates.items():
        yield from template.problems(known, without_contexts)
    if known is None:
        return
    for place, attribute in enumerate(slices):
        for name in attributes_of(attribute):
            if name not in known:
                yield located.error(("slices", place), _no_attribute(name, known))
    if cluster is not None and cluster not in known:
        yield located.error(("statistics", "cluster"), _no_attribute(cluster, known))


def _no_attribute(name: str, known: Set[str]) -> str:
    hint = did_you_mean(name, known) if known else "they have no attributes"
    return f"no query has the attribute {name!r}; {hint}"


def _entries(queries: str | None) -> Iterator[tuple[str, texts.TextEntry]]:
    """Queries in files, each with its path; none for a table."""
    if queries is not None and not is_table(queries):
        yield from texts.entries_in(queries, "queries")


def _attributes_in(queries: str | None, names: Set[str]) -> set[str] | None:
    """Query attributes; files are read until every name has been seen once. None if a table may hold others."""
    if queries is None:
        return None
    if is_table(queries):
        return tables.attributes_of_queries(queries) if names else set()
    known: set[str] = set()
    for _, entry in _entries(queries) if names else ():
        known |= entry.attributes.keys()
        if names <= known:
            break
    return known


def _wrong_rubrics(located: YamlDocument, criteria: Iterable[Criterion], queries: str | None) -> Iterator[InputError]:
    """Wrong rubrics: an attribute that no query has, or a value that is not a list of statements."""
    named = {criterion.rubrics: criterion.name for criterion in criteria if criterion.rubrics is not None}
    if not named or queries is None or is_table(queries):
        return
    known: set[str] = set()
    for path, entry in _entries(queries):
        known |= entry.attributes.keys()
        for attribute in named.keys() & entry.attributes.keys():
            try:
                statements_of(entry.attributes[attribute])
            except ValueError as error:
                yield InputError(f"{attribute} {error}", path=path, line=entry.line)
                return
    for attribute in named.keys() - known:
        place = ("judge", "criteria", named[attribute], "rubrics", "attribute")
        yield located.error(place, _no_attribute(attribute, known))


def _unknown_systems(located: YamlDocument, sources: Sequence[PlannedSource]) -> Iterator[InputError]:
    """Systems without any answer in their file."""
    named = [
        (replay.file, (retriever.place, replay, replay.config))
        for retriever in (source.retriever for source in sources)
        if isinstance(replay := retriever.parameters, Replay) and replay.config is not None
    ]
    for systems in grouped(named).values():
        _, replay, _ = systems[0]
        try:
            configs = configs_until(located.below(replay.path), {config for *_, config in systems}, replay.reader)
        except InputError as error:
            yield error
            continue
        for place, _, config in systems:
            if config not in configs:
                hint = did_you_mean(config, configs) if configs else "no line has the key config"
                problem = f"no answer in {replay.path} has the config {config!r}; {hint}"
                yield located.error((*place, "config"), problem)


def _unknown_placeholders(
    located: YamlDocument, sources: Sequence[PlannedSource], names: Set[str]
) -> Iterator[InputError]:
    """Attributes that requests to applications contain, but that no query has."""
    for retriever in (source.retriever for source in sources):
        if isinstance(retriever.parameters, HttpApplication):
            for name in sorted({*retriever.parameters.attributes} - names):
                hint = did_you_mean(name, ["query", "query_id", "attempt", *names])
                yield located.error(retriever.place, f"contains {{{name}}}, but no query has this attribute; {hint}")


def _is_joined(cell: Cell) -> bool:
    """Return whether a query is joined with the messages before it, by a model or as they are."""
    is_rewritten = cell.rewriter is not None and cell.rewriter.parameters.kind is RewriteKind.STANDALONE
    return is_rewritten or cell.retriever.parameters.query == HISTORY


def _wrong_history(
    located: YamlDocument, model: ExperimentModel, expanded: ExpandedGrid, known: Set[str]
) -> Iterator[InputError]:
    """Applications that would get later turns without earlier ones, and configurations without a history to join."""
    for retriever in (source.retriever for source in expanded.sources) if model.dataset.conversations else ():
        parameters = retriever.parameters
        if isinstance(parameters, HttpApplication) and not parameters.takes_history and HISTORY in known:
            problem = (
                "queries have a history, but the request does not contain {history}; later turns cannot be sent to "
                "an application that keeps the history itself"
            )
            yield located.error(retriever.place, problem)
    for cell in expanded.cells if HISTORY not in known else ():
        retriever, rewriter = cell.retriever, cell.rewriter
        if retriever.parameters.query == HISTORY:
            problem = "history needs queries with a history, but no query has one"
            yield located.error((*retriever.place, "query"), problem)
        if rewriter is not None and rewriter.parameters.kind is RewriteKind.STANDALONE:
            yield located.error(rewriter.place, "kind: standalone needs queries with a history, but no query has one")


def _conversation_notes(templates: Iterable[TemplateFile], queries: str | None) -> Iterator[str]:
    """Warnings about conversations: prompts without their history, and turns that the queries lack."""
    turns: defaultdict[str, set[str]] = defaultdict(set)
    has_history = False
    for path, entry in _entries(queries):
        if (problem := problem_of_turn(entry.attributes)) is not None:
            raise InputError(problem, path=path, line=entry.line)
        has_history |= bool(history_of(entry.attributes))
        if entry.attributes.keys() >= {CONVERSATION, TURN}:
            turns[entry.attributes[CONVERSATION]].add(entry.attributes[TURN])
    for template in templates if has_history else ():
        if HISTORY not in template.attributes:
            name = "rankbeam's own template" if template.path is None else template.path
            yield f"{name} lacks {{history}}: the model answers later turns without the earlier messages"
    gaps = {name: gap for name, numbers in sorted(turns.items()) if (gap := _first_gap(numbers)) is not None}
    if gaps:
        name, gap = next(iter(gaps.items()))
        lacking = pluralize(len(gaps), "conversation lacks", "conversations lack")
        yield f"{lacking} a turn, such as turn {gap} of {name!r}; the others are evaluated"


def _first_gap(numbers: Set[str]) -> int | None:
    """The first missing turn before a later one."""
    last = max((int(number) for number in numbers if number.isdecimal()), default=0)
    return next((number for number in range(1, last) if str(number) not in numbers), None)


def _wrong_inputs(file: ExperimentFile, planned: Sequence[PlannedSource]) -> Iterator[InputError]:
    """Every input that is missing, empty or in a wrong format, and every table that cannot be read."""
    model = file.model
    inputs: list[tuple[Place, str | None, str | None]] = [
        (("dataset", role), role, getattr(model.dataset, role)) for role in ("qrels", "queries", "corpus", "evidence")
    ]
    if model.dataset.answers is not None:
        inputs.append((("dataset", "answers", "path"), "answers", model.dataset.answers.path))
    notes: dict[str, None] = {}  # one file may have several roles
    for retriever in (source.retriever for source in planned):
        named = retriever.parameters.inputs()
        inputs += [((*retriever.place, name), retriever.parameters.input_role, path) for name, path in named.items()]
    for place, role, pattern in inputs:
        try:
            paths = sources.expand(file.located.below(pattern)) if pattern else []
            if paths and role is not None:
                check(paths, role)
            notes |= dict.fromkeys(sources.part_warnings(paths))
        except InputError as error:
            yield file.located.error(place, str(error))
    file.located.notes.extend(notes)


def check(paths: Sequence[str], role: str) -> None:
    if role == "replay":
        for path in paths[:_MOST_RECOGNISED]:
            replay.is_own(path)  # refuses a file that does not hold answers, by its beginning
        return
    formats = [recognise(path, role) for path in paths[:_MOST_RECOGNISED]]
    if formats[0] in TABLES:
        tables.find_columns(paths[0], role)  # other files usually belong to the same table, and are checked when read
        is_file = formats[0] is not Format.BIGQUERY
        if is_file and all(form is formats[0] for form in formats) and not any(map(tables.has_rows, paths)):
            others = "" if len(paths) == 1 else ", and so are the others"
            raise InputError(f"the file is empty{others}; {ROLES[role].expected} expected", path=paths[0])
