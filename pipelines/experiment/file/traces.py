"""Production traces in an experiment: `dataset: {traces: …}` and `answers: {type: traces}`.

Both are replaced by the files that `rankbeam traces` writes: queries, and answers that are replayed.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import field_validator, model_validator

from rankbeam.pipelines.config.sections import Count, Section, Word, parse_part
from rankbeam.pipelines.config.yaml_lines import Place, YamlDocument, list_in, mapping_in
from rankbeam.transforms.clients.formats import sources
from rankbeam.transforms.clients.retrievers.replay import TRACES
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.clients.storage.json_paths import check_path
from rankbeam.transforms.records.conversations import CONVERSATION
from rankbeam.transforms.records.errors import InputError, InputErrors

if TYPE_CHECKING:
    from rankbeam.pipelines.traces import TraceSummary

_ORIGINS = ("queries", "file", "goldens", "beir", "ir_datasets")  # keys of the dataset that name queries


class TracesModel(Section):
    """`dataset.traces`, or answers with `type: traces`.

    Attributes:
        path: file or pattern of spans, or the table `bigquery://project.dataset.agent_events`; `answers` uses the
            dataset's by default.
        question: JMESPath of the question in inputs that are JSON, such as `messages[-1].content`.
        answer: JMESPath of the answer in outputs that are JSON.
        documents: JMESPath of the list of documents in results of tools.
        configuration: attribute that names the system that answered.
        sample: maximum number of traces, chosen by a hash of their ids; by default all.
        per_day: if true, `sample` limits the traces of each day (UTC).
        redact: regular expressions whose matches are replaced in all texts before they are stored.
        drop_self: if true, leave out retrieved documents that equal their question.
    """

    bare: ClassVar[tuple[str, type] | None] = ("path", str)

    path: Word | None = None
    question: Word | None = None
    answer: Word | None = None
    documents: Word | None = None
    configuration: Word = "service.version"
    sample: Count | None = None
    per_day: bool = False
    redact: list[str] = []  # noqa: RUF012  pydantic copies it
    drop_self: bool = False

    @field_validator("question", "answer", "documents")
    @classmethod
    def _valid_path(cls, value: str | None) -> str | None:
        check_path(value or "text")
        return value

    @field_validator("redact")
    @classmethod
    def _valid_patterns(cls, value: list[str]) -> list[str]:
        for pattern in value:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error
        return value

    @model_validator(mode="after")
    def _complete(self) -> "TracesModel":
        if self.path is None and self.model_fields_set:
            raise ValueError("path is missing; write these keys under dataset.traces, or add the path")
        if self.per_day and self.sample is None:
            raise ValueError("has per_day, which applies to sample, but no sample")
        return self

    def collected(self, located: YamlDocument) -> tuple[str, "TraceSummary"]:
        from rankbeam.pipelines.traces import collected_once  # few experiments need it, and Beam with it
        from rankbeam.transforms.clients.formats.traces.turns import Naming
        from rankbeam.transforms.traces import Choice

        naming = Naming(self.question, self.answer, self.configuration, self.documents)
        choice = Choice(self.sample, self.per_day, tuple(self.redact), self.drop_self)
        place, collected = collected_once(located.below(self.path or ""), naming, choice)
        return str(place), collected


def with_traces(located: YamlDocument) -> YamlDocument:
    """Replace traces, as dataset and as answers, by their queries and answers.

    Nothing else can be checked without them: their problems are raised at once.
    """
    dataset, items = located.value.get("dataset"), list_in(located.value, "configurations")
    answers = {_place(number): mapping_in(item, "answers") for number, item in enumerate(items)}
    traced = {place: entry for place, entry in answers.items() if entry.get("type") == TRACES}
    if not isinstance(dataset, dict) or not (traced or TRACES in dataset):
        return located
    models = {place: _model(located, place, entry) for place, entry in traced.items()}
    traces = _traces(located, dataset, models)
    origins = {place: model if traces is None or model.path else traces for place, model in models.items()}
    folders = _collected_folders(located, origins if traces is None else {_DATASET: traces, **origins})
    replayed = {place: _answers(model, folders[place][0]) for place, model in origins.items()}
    named = [
        {**item, "answers": replayed[place]} if (place := _place(number)) in replayed else item
        for number, item in enumerate(items)
    ]
    sections = {} if traces is None else _sections(located.value, *folders[_DATASET])
    return replace(located, value={**located.value, "configurations": named, **sections})


_DATASET: Place = ("dataset", TRACES)


def _place(number: int) -> Place:
    return "configurations", number, "answers"


def _model(located: YamlDocument, place: Place, value: Any) -> TracesModel:
    keys = {name: entry for name, entry in value.items() if name != "type"} if isinstance(value, dict) else value
    if (model := parse_part(TracesModel, keys, located, place)) is None:
        raise InputErrors(located.problems)
    return model


def _traces(
    located: YamlDocument, dataset: Mapping[str, Any], models: Mapping[Place, TracesModel]
) -> TracesModel | None:
    """The dataset's traces: those that it names, or those of the first answers if it names no queries."""
    twice = next((name for name in _ORIGINS if name in dataset), None)
    if TRACES in dataset:
        if twice is not None:
            raise located.refusal(("dataset", twice), "is given twice: the traces have their own queries; keep one")
        traces = _model(located, _DATASET, dataset[TRACES])
        if traces.path is None:
            raise located.refusal(_DATASET, "path is missing")
        return traces
    lacking = next((place for place, model in models.items() if model.path is None), None)
    if lacking is not None:
        problem = "path is missing, and the dataset names no traces; write dataset: {traces: PATH}"
        raise located.refusal(lacking, problem)
    return next(iter(models.values())) if twice is None else None


def _collected_folders(
    located: YamlDocument, places: Mapping[Place, TracesModel]
) -> dict[Place, tuple[str, "TraceSummary"]]:
    """The folder of queries and answers for each place; equal traces are read once."""
    collections: dict[str, tuple[str, TraceSummary]] = {}
    for place, model in places.items():
        key = model.model_dump_json()
        if key not in collections:
            try:
                collections[key] = model.collected(located)
            except InputError as error:
                raise located.refusal(place, str(error)) from error
            counts = "; ".join(map(str.strip, collections[key][1].as_text().splitlines()))
            located.notes.append(f"{model.path}: {counts}; queries and answers are in {collections[key][0]}")
            located.notes.extend(sources.part_warnings(sources.expand(located.below(model.path or ""))))
    return {place: collections[model.model_dump_json()] for place, model in places.items()}


def _answers(model: TracesModel, folder: str) -> dict[str, Any]:
    source = model.model_dump(exclude_defaults=True)
    return {"type": TRACES, "path": files.join(folder, "answers.jsonl"), "source": source}


def _sections(value: Mapping[str, Any], folder: str, counts: "TraceSummary") -> dict[str, Any]:
    """The traces' dataset, with conversations as clusters."""
    rest = {name: entry for name, entry in value["dataset"].items() if name != TRACES}
    sections: dict[str, Any] = {"dataset": {"queries": files.join(folder, "queries.jsonl"), **rest}}
    statistics = value.get("statistics") or {}
    if counts.in_conversations and isinstance(statistics, dict):
        sections["statistics"] = {"cluster": CONVERSATION, **statistics}
    return sections
