"""Read cases: take values from the paths of a tool or of the user, check them, and bring them to one form."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

import jmespath.exceptions

from rankbeam.transforms.clients.formats.cases import tools
from rankbeam.transforms.clients.formats.cases.google import calls_in, messages_before, messages_in, plain, turns_of
from rankbeam.transforms.clients.formats.cases.objects import Row, Shape, rows_in, shape_of
from rankbeam.transforms.clients.formats.cases.source import CaseSource
from rankbeam.transforms.clients.formats.cases.tools import FIELDS, Tool, only_text_in, refusing_types, tool_of
from rankbeam.transforms.clients.formats.syntax.ids import as_text, hashed_id, json_id
from rankbeam.transforms.clients.storage.json_paths import is_numpy, keys_of, parse_literal, value_at
from rankbeam.transforms.records.errors import InputError, did_you_mean, pluralize, shortened
from rankbeam.transforms.records.trajectories import EXPECTED_STEPS, AgentSteps, has_steps, steps_in

SAMPLE_ROWS = 1_000  # rows whose keys identify the tool
_MISSING = ("nan", "NaN", "None", "null")  # cells that pandas and Python write to CSV for a missing value
_TEXT_KEYS = ("text", "content", "page_content", "document.content", "document.text", "contents", "context", "snippet")
_ID_KEYS = ("doc_id", "id", "document_id", "document.id", "metadata.doc_id", "metadata.id", "source")
_MARKED = re.compile(r"deepeval_source=(?P<source>.*?),deepeval_context=(?P<text>.*)", re.DOTALL)
"""A context with its source, as DeepEval writes it."""
_SEPARATOR = re.compile(r"[\[,;|\n]")  # in a text, a sign of several ids
_LIST = re.compile(r"""\s*\[\s*["']""")  # the beginning of a list of texts; spreadsheets cut cells short
_LONGEST_ATTRIBUTE = 1_000
STEPS = ("steps", EXPECTED_STEPS)  # parts of a case that hold an agent's steps

Context = tuple[str | None, str | None]  # id and text of a context; one of them may be None


@dataclass(frozen=True)
class Case:
    """One row: a question with its answer, contexts and judgements."""

    line: int
    query_id: str
    question: str
    answer: str | None
    contexts: tuple[Context, ...] | None  # None if the row does not state them
    reference: str | None
    relevant: tuple[str, ...] | None
    config: str
    attributes: Mapping[str, str]
    notes: tuple[str, ...] = ()  # notes for users, as keys of `roles.NOTES`
    steps: AgentSteps | None = None
    expected_steps: AgentSteps | None = None


@dataclass(frozen=True)
class Layout:
    """The tool and the paths of one file's rows."""

    tool: Tool
    shape: Shape
    columns: Mapping[str, str] = field(default_factory=dict)
    guessed: Mapping[str, str] = field(default_factory=dict)  # paths of the only text among a user's keys

    def paths(self, name: str) -> Sequence[str]:
        if name in self.columns:
            return (self.columns[name],)
        return (*self.tool.paths.get(name, ()), *([self.guessed[name]] if name in self.guessed else []))


def read_cases(source: CaseSource) -> Iterator[Case]:
    return (case for _, case in read_rows(source))


def read_rows(source: CaseSource) -> Iterator[tuple[dict[str, Any], Case]]:
    """Read the rows of a file, each with its case; a row of ADK has one case for each turn of its conversation."""
    rows = rows_in(source.path)
    if not (head := list(islice(rows, SAMPLE_ROWS))) and shape_of(source.path) is Shape.TABLE:
        return  # one of several streams of a table
    layout = layout_of(source, head)
    for line, row in chain(head, rows):
        with refusing_types(source.path, line, row, layout.tool.name):
            turns = turns_of(row) if layout.tool.name == "ADK" else (row,)
            cases = [(row, case_of(source, layout, line, turn)) for turn in turns]
        yield from cases


def layout_of(source: CaseSource, head: Sequence[Row]) -> Layout:
    if not head:
        raise InputError("the file has no rows", path=source.path)
    keys = {key: None for _, row in head for key in row}
    tool = tool_of(keys)
    values = []
    for line, row in head:
        with refusing_types(source.path, line, row, tool.name):
            values.append(plain(tool.name, row)[0])
    layout = Layout(tool, shape_of(source.path), source.columns, _guess_paths(tool, values))
    known = [name for name in FIELDS if any(_has(row, path) for path in layout.paths(name) for row in values)]
    for name, path in source.columns.items():
        if name not in known:
            problem = f"columns: no row has {path!r} for the {name}; {did_you_mean(path, keys)}"
            raise InputError(problem, path=source.path)
    if "resourceSpans" in keys:
        problem = f"holds spans of traces; first run: rankbeam traces {source.path} --output DIR"
        raise InputError(problem, path=source.path, line=head[0][0])
    if "question" not in known and "id" not in known:
        named = shortened(", ".join(_shown_keys(tool, values)), 300)
        problem = f"no key of these rows is known as the question; name it: columns: {{question: KEY}}; keys: {named}"
        raise InputError(problem, path=source.path, line=head[0][0])
    return layout


def _has(row: Mapping[str, Any], path: str) -> bool:
    try:
        return value_at(row, path) is not None
    except jmespath.exceptions.JMESPathError:
        return True  # the value has another type: its row is refused


def _guess_paths(tool: Tool, values: Sequence[dict[str, Any]]) -> dict[str, str]:
    rows = [{name: parse_literal(row.get(name)) for name in tool.own} for row in values]
    inside = zip(("question", tool.outputs), tool.own, strict=False)
    result = {part: only_text_in(rows, name) for part, name in inside if part}
    return {part: path for part, path in result.items() if path is not None}


def _shown_keys(tool: Tool, values: Sequence[dict[str, Any]]) -> list[str]:
    inner = {f"{name}.{key}": None for row in values for name in tool.own if isinstance(row.get(name), dict)
             for key in row[name]}  # fmt: skip
    return list(inner or {key: None for row in values for key in row})


def case_of(source: CaseSource, layout: Layout, line: int, row: Mapping[str, Any]) -> Case:
    reading = _CaseRow(source, layout, line, *plain(layout.tool.name, row))
    question, history, last = reading.question()
    answer = reading.text("answer")
    stated = dict(reading.values("id"))
    if (problem := tools.contradiction(stated)) is not None:
        raise reading.refuse(problem)
    name = next(iter(stated.values()), None)
    query_id = hashed_id(question, history) if name is None else json_id(source.path, line, name)
    contexts = reading.contexts()
    reference, relevant = reading.reference(), reading.relevant()
    attributes = reading.attributes()
    if history:
        attributes["history"] = json.dumps(history, ensure_ascii=False)
    steps, expected_steps = (reading.steps(name) for name in STEPS)
    texts = (query_id, question, answer, last, contexts, reference, relevant, attributes, steps, expected_steps)
    is_named = not layout.columns.keys().isdisjoint(("answer", "reference"))
    if not is_named and tools.has_only_outputs(layout.tool, row):
        reading.notes.append("only outputs")
    json.dumps(texts, ensure_ascii=False, default=vars).encode()  # raises an error for a lone surrogate
    return Case(
        line, query_id, question, last if answer is None else answer, contexts, reference, relevant,
        as_text(reading.value("config")).strip(), attributes, tuple(reading.notes), steps, expected_steps,
    )  # fmt: skip


@dataclass
class _CaseRow:
    """A row that is being read."""

    source: CaseSource
    layout: Layout
    line: int
    row: Mapping[str, Any]
    notes: list[str] = field(default_factory=list)

    def refuse(self, problem: str) -> InputError:
        return InputError(problem, path=self.source.path, line=self.line)

    def value(self, name: str) -> Any:
        """The first value at the paths of a part; None if there is no value."""
        return next((value for _, value in self.values(name)), None)

    def values(self, name: str) -> Iterator[tuple[str, Any]]:
        for path in self.layout.paths(name):
            try:
                value = value_at(self.row, path)
            except jmespath.exceptions.JMESPathError as error:
                raise self.refuse(f"{name}: {path} does not fit the row: {str(error).splitlines()[0]}") from error
            if not self._is_missing(value):
                yield path, value

    def _is_missing(self, value: Any) -> bool:
        if isinstance(value, float) and math.isnan(value):
            return True
        return value is None or (self.layout.shape is Shape.CSV and value in _MISSING)

    def text(self, name: str) -> str | None:
        """A text; None if it is missing or blank."""
        path, value = next(self.values(name), (name, None))
        if isinstance(value, list) and value and all(isinstance(entry, str) for entry in value):
            self._count_further(name, value)
            value = value[0]
        is_guessed = name == "question" and name not in self.layout.columns
        if is_guessed and self.layout.shape is Shape.CSV and isinstance(parsed := parse_literal(value), dict):
            value = parsed
        if isinstance(value, bool | int | float):
            value = as_text(value)
        if value is not None and not isinstance(value, str):
            keys = [f"{path}.{key}" for key in value] if isinstance(value, dict) else []
            advice = f"name the text in it: columns: {{{name}: PATH}}"
            advice += f", such as one of {shortened(', '.join(keys), 200)}" if keys else ""
            raise self.refuse(f"{name}: expected a text, found {tools.kind_of(value)}; {advice}")
        return value if value and value.strip() else None

    def _count_further(self, name: str, value: Sequence[str]) -> None:
        self.notes += [f"several {name}"] * (len(value) > 1)

    def question(self) -> tuple[str, list[dict[str, str]], str | None]:
        """The question, the messages before it, and the last answer if a conversation ends with one."""
        value = self.value("question")
        talk = self._as_list(value) if isinstance(value, list | str) else None
        if talk and all(isinstance(entry, dict) for entry in talk):
            return self._last_turn(talk)
        question = self.text("question")
        if question is None and self.value("id") is None:
            raise self.refuse("has no question")
        return question or "", messages_before(self.row) if self.layout.tool.name == "ADK" else [], None

    def _last_turn(self, talk: Sequence[Mapping[str, Any]]) -> tuple[str, list[dict[str, str]], str | None]:
        content = messages_in(talk)
        places = [place for place, entry in enumerate(content) if entry["role"] == "user"]
        if not places:
            raise self.refuse("has a conversation without a message of the user")
        last = places[-1]
        answer = "\n".join(entry["text"] for entry in content[last + 1 :] if entry["text"].strip()) or None
        return content[last]["text"], content[:last], answer

    def _as_list(self, value: Any) -> list[Any] | None:
        """A list, which CSV may hold as JSON or as a Python literal; None for other values."""
        if isinstance(value, str) and value.lstrip().startswith("["):
            value = self._parse_text(value)
        return value if isinstance(value, list) else None

    def _parse_text(self, text: str) -> Any:
        if self.layout.shape not in (Shape.CSV, Shape.TABLE):
            return text
        value = parse_literal(text)
        if isinstance(value, str) and is_numpy(text):
            raise self.refuse("holds the printed form of a NumPy array; write lists as JSON")
        return value

    def contexts(self) -> tuple[Context, ...] | None:
        """The contexts with their ids; None if the row has neither."""
        texts, ids = self.value("contexts"), self._ids("context_ids")
        if texts is None:
            return None if ids is None else tuple((entry, None) for entry in ids)
        listed = self._as_list(texts)
        if listed is None and isinstance(texts, str):
            if self.layout.shape is Shape.CSV and _LIST.match(texts):
                raise self.refuse(
                    "contexts: begin as a list does, but are neither JSON nor a Python literal; cut short?"
                )
            listed = self._split(texts)
        if listed is None:
            raise self.refuse(f"contexts: expected a list, found {tools.kind_of(texts)}")
        result = [self._context(place, entry) for place, entry in enumerate(listed)]
        if ids is None:
            return tuple(result)
        if len(ids) != len(result):
            raise self.refuse(f"has {pluralize(len(result), 'context')} and {pluralize(len(ids), 'id')} of contexts")
        return tuple((name, text) for name, (_, text) in zip(ids, result, strict=True))

    def _split(self, text: str) -> list[str]:
        """Split a text into contexts; DeepEval joins them."""
        joined = self.layout.tool.joined
        if not text.strip():
            return []
        if not joined or joined not in text:
            return [text]
        self.notes.append("joined")
        return text.split(joined)

    def _context(self, place: int, value: Any) -> Context:
        if isinstance(value, str):
            marked = _MARKED.fullmatch(value)
            return (None, value) if marked is None else (marked["source"], marked["text"])
        if not isinstance(value, dict):
            raise self.refuse(f"contexts.{place}: expected a text or an object, found {tools.kind_of(value)}")
        text = next((entry for key in _TEXT_KEYS if isinstance(entry := value_at(value, key), str)), None)
        names = (value_at(value, key) for key in _ID_KEYS)
        name = next((entry for entry in names if isinstance(entry, str | int) and entry != ""), None)
        if text is None:
            raise self.refuse(f"contexts.{place}: has no text; its keys: {shortened(', '.join(value), 200)}")
        return None if name is None else json_id(self.source.path, self.line, name), text

    def _ids(self, name: str) -> list[str] | None:
        value = self.value(name)
        listed = self._as_list(value)
        if value is not None and listed is None:
            raise self.refuse(f"{name}: expected a list, found {tools.kind_of(value)}")
        return None if listed is None else [json_id(self.source.path, self.line, entry) for entry in listed]

    def reference(self) -> str | None:
        """The reference answer; the first of several."""
        listed = self._as_list(self.value("reference"))
        if listed is None or not all(isinstance(entry, str) for entry in listed):
            return self.text("reference")
        content = [entry for entry in listed if entry.strip()]
        self._count_further("reference", content)
        return content[0] if content else None

    def relevant(self) -> tuple[str, ...] | None:
        """The ids of relevant documents; alternatives among them are refused unless `flatten` is set."""
        value = self.value("relevant")
        if value is None or value == "":
            return None
        if isinstance(value, int | float) or (isinstance(value, str) and not _SEPARATOR.search(value)):
            value = [value]
        elif (listed := self._as_list(value)) is None:
            raise self.refuse(f'relevant: expected a list of ids, found {tools.kind_of(value)}; write ["d1", "d2"]')
        else:
            value = listed
        if self.layout.tool.name == "AutoRAG" and not any(isinstance(entry, list) for entry in value):
            value = [value]  # AutoRAG reads a list without inner lists as one group
        groups = [entry if isinstance(entry, list) else [entry] for entry in value]
        if any(len(group) > 1 for group in groups):
            if not self.source.flatten:
                raise self.refuse(
                    "relevant: one of several documents is enough, which judgements cannot express; with "
                    "dataset: {groups: flatten}, each of them counts as relevant"
                )
            self.notes.append("flattened")
        names = [json_id(self.source.path, self.line, entry) for group in groups for entry in group]
        return tuple(dict.fromkeys(names))

    def steps(self, name: str) -> AgentSteps | None:
        """An agent's steps; a value other than a list of objects is ignored unless `columns` names it."""
        value = parse_literal(self.value(name))
        if value is None and name == "steps" and self.layout.tool.name == "ragas":
            value = calls_in(self._as_list(self.value("question")), self.value("expected_steps"))
        stored = isinstance(value, dict) and self.layout.tool.name == "ADK"
        if value is None or not (stored or has_steps(value) or name in self.layout.columns):
            return None
        try:
            return steps_in(value)
        except ValueError as error:
            raise self.refuse(f"{name}: {error}") from error

    def attributes(self) -> dict[str, str]:
        """The other keys with short values, including those in `metadata` and in Auto RAG Eval's profile."""
        parts = [part for part in FIELDS if part not in STEPS or self.steps(part) is not None]
        used = {name for part in parts for path in self.layout.paths(part) for name in (path, *keys_of(path))}
        inner = [parse_literal(self.row.get(key)) for key in ("metadata", "Q&A Gen Profile")]
        others = {key: value for key, value in self.row.items() if key not in used}
        for entry in inner:
            others |= entry if isinstance(entry, dict) else {}
        texts = {key: as_text(value) for key, value in others.items() if isinstance(value, str | int | float | bool)}
        return {key: text for key, text in texts.items() if len(text) <= _LONGEST_ATTRIBUTE and text not in ("", "NaN")}
