"""Tools whose files rankbeam knows: the keys that identify a tool, and the paths of the parts of a case.

A path is a key, or a JMESPath expression; the first one with a value counts. Keys of ragas, DeepEval, AutoRAG and
Vertex's evaluation come from their source code, all others from the tools' documentation.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rankbeam.transforms.clients.formats.cases.google import NAME as VERTEX
from rankbeam.transforms.clients.storage.json_paths import check_path, names_in
from rankbeam.transforms.records.errors import InputError, did_you_mean, shortened

_SHOWN = 30  # characters shown before an error
FIELDS = ("id", "question", "answer", "contexts", "context_ids", "reference", "relevant", "config", "steps",
          "expected_steps")  # fmt: skip
"""The parts of a case, which `columns:` may name."""

Paths = Mapping[str, Sequence[str]]

QUESTIONS = ("question", "query", "input", "user_input", "prompt", "text")
ANSWERS = ("answer", "response", "output", "actual_output", "completion", "result")
CONTEXTS = ("contexts", "retrieved_contexts", "retrieval_context", "context", "documents", "sources")
REFERENCES = (
    "reference",
    "reference_answer",
    "ground_truth",
    "ideal",
    "expected",
    "expected_output",
    "expected_answer",
)
_IDS = ("query_id", "qid", "question_id")
_CONFIGS = ("config", "configuration")


@dataclass(frozen=True)
class Tool:
    """A tool's files."""

    name: str
    marks: tuple[frozenset[str], ...]  # any of these sets of keys identifies the tool
    paths: Paths
    joined: str = ""  # separator of contexts in one text
    own: tuple[str, ...] = field(default=())  # objects whose keys the user chooses: inputs, then outputs
    outputs: str = ""  # the part of a case that the only text of these outputs is
    lacks: frozenset[str] = frozenset()  # keys that the tool never writes; another one has the same marks


def _marks(*sets: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(keys.split()) for keys in sets)


def _under(prefixes: Iterable[str], names: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{prefix}.{name}" for prefix in prefixes for name in names)


def _adk(*places: tuple[str, str]) -> tuple[str, ...]:
    """The path of the first Content that exists, with its texts joined."""
    texts = (f"{path}.parts[?text && !thought].text" for place in places for path in _spellings(*place))
    return (f"join('', not_null({', '.join(texts)}, `[]`))",)


def _spellings(prefix: str, inside: str) -> tuple[str, str]:
    path = f"{prefix}{inside}"
    return path, re.sub(r"_([a-z])", lambda match: match[1].upper(), path)


def _with_last_turn(*names: str) -> tuple[str, ...]:
    return (*names, *_under(["turns[-1]"], names))


def _if_text(*names: str) -> tuple[str, ...]:
    """Values that count if they are a text, and otherwise are objects with the user's keys."""
    return tuple(f"[{name}][?type(@) == 'string'] | [0]" for name in names)


_LAST_OF_CHAT = "[-1].content"
_ITEMS = ("item", "datasource_item.item", "datasource_item")
_EXPECTED = ("expectedOutput", "expected_output")
_RESULT = "eval_metric_result_per_invocation[-1]."

OWN = "rankbeam"  # the "tool" of rankbeam's own lines

TOOLS = (
    Tool(
        OWN,
        _marks("query_id answer"),
        {"id": ("query_id",), "question": ("question", "query"), "answer": ("answer",), "contexts": ("contexts",),
         "reference": REFERENCES, "config": ("config",), "steps": ("steps",),
         "expected_steps": ("expected_steps",)},
    ),
    Tool(
        "AutoRAG",
        _marks("qid query retrieval_gt", "qid query generation_gt", "generated_texts"),
        {"id": ("qid",), "question": ("query",), "answer": ("generated_texts",), "contexts": ("retrieved_contents",),
         "context_ids": ("retrieved_ids",), "reference": ("generation_gt",), "relevant": ("retrieval_gt",),
         "config": _CONFIGS},
    ),
    Tool(
        "ragas",
        _marks("user_input"),
        {"id": ("query_id", "id"), "question": ("user_input",), "answer": ("response",),
         "contexts": ("retrieved_contexts",), "context_ids": ("retrieved_context_ids",),
         "reference": ("reference",), "relevant": ("reference_context_ids",), "config": _CONFIGS,
         "expected_steps": ("reference_tool_calls",)},
    ),
    Tool(
        "Langfuse, dataset",
        _marks("input expectedOutput datasetId", "input expected_output dataset_id"),
        {"id": ("id",), "question": (*_under(["input"], QUESTIONS), *_if_text("input")),
         "reference": (*_under(_EXPECTED, (*REFERENCES, *ANSWERS)), *_if_text(*_EXPECTED))},
        own=("input", *_EXPECTED),
        lacks=frozenset(("actual_output", "actualOutput")),  # DeepEval's test cases can have a dataset_id of the user
    ),
    Tool(
        "Langfuse, experiment",
        _marks("item output evaluations"),
        {"id": ("item.id",), "question": (*_under(["item.input"], QUESTIONS), *_if_text("item.input")),
         "answer": (*_under(["output"], ANSWERS), *_if_text("output")), "contexts": _under(["output"], CONTEXTS),
         "reference": (*_under(["item.expected_output"], (*REFERENCES, *ANSWERS)),
                       *_if_text("item.expected_output"))},
        own=("item", "output"),
    ),
    Tool(
        "DeepEval",
        _marks("input actual_output", "input expected_output", "input retrieval_context", "input actualOutput",
               "input expectedOutput", "input retrievalContext", "turns scenario", "turns expected_outcome",
               "turns expectedOutcome", "turns metricsData"),
        {"question": ("input", "turns"), "answer": ("actual_output", "actualOutput"),
         "contexts": _with_last_turn("retrieval_context", "retrievalContext"), "config": _CONFIGS,
         "reference": ("expected_output", "expectedOutput", "expected_outcome", "expectedOutcome"),
         "steps": _with_last_turn("tools_called", "toolsCalled"),
         "expected_steps": ("expected_tools", "expectedTools")},
        joined="|",
    ),
    Tool(
        "promptfoo",
        _marks("vars response", "vars provider"),
        {"question": _under(["vars"], QUESTIONS), "answer": ("response.output",),
         "contexts": ("metadata.context", "response.metadata.context", *_under(["vars"], CONTEXTS)),
         "reference": _under(["vars"], REFERENCES),
         "config": ("join(' ', [provider.label || provider.id || provider, prompt.label || ''])",)},
        own=("vars",),
    ),
    Tool(
        "OpenAI evals",
        _marks("item sample", "datasource_item sample", "item"),
        {"id": _under(_ITEMS, _IDS), "question": (*_under(_ITEMS, QUESTIONS), f"sample.input{_LAST_OF_CHAT}"),
         "answer": ("sample.output_text", f"sample.output{_LAST_OF_CHAT}", "sample.choices[0].message.content",
                    *_under(_ITEMS, ANSWERS[:1])),
         "contexts": _under(_ITEMS, CONTEXTS), "reference": _under(_ITEMS, REFERENCES), "config": ("sample.model",)},
        own=("item", "datasource_item"),
    ),
    Tool(
        "Phoenix",
        _marks("attributes.input.value"),
        {"question": ("attributes.input.value",), "answer": ("attributes.output.value",),
         "contexts": ("attributes.reranker.output_documents", "attributes.retrieval.documents"),
         "reference": ("reference", "expected"), "config": _CONFIGS},
    ),
    Tool(
        "Phoenix, experiment",
        _marks("example_id input reference_output"),
        {"id": ("example_id",), "question": (*_under(["input"], QUESTIONS), *_if_text("input")),
         "answer": (*_under(["output"], ANSWERS), *_if_text("output")), "contexts": _under(["output"], CONTEXTS),
         "reference": (*_under(["reference_output"], (*REFERENCES, *ANSWERS)), *_if_text("reference_output")),
         "config": _CONFIGS},
        own=("input",),
    ),
    Tool(
        "Phoenix, dataset",  # examples, whose outputs are reference answers
        _marks("node_id input output", "example_id input output metadata"),
        {"id": ("node_id", "example_id"), "question": (*_under(["input"], QUESTIONS), *_if_text("input")),
         "reference": (*_under(["output"], (*REFERENCES, *ANSWERS)), *_if_text("output"))},
        own=("input", "output"),
        outputs="reference",
    ),
    Tool(
        "MLflow",
        _marks("inputs expectations", "trace_id request response trace_metadata"),
        {"question": (*_under(["inputs", "request"], QUESTIONS), *_if_text("inputs", "request")),
         "answer": (*_under(["outputs", "response"], ANSWERS), *_if_text("outputs", "response")),
         "contexts": _under(["outputs", "response"], CONTEXTS),
         "reference": ("expectations.expected_response", '"expected_response/value"'),
         "relevant": ("expectations.expected_retrieved_context[].doc_uri",), "config": _CONFIGS},
        own=("inputs", "request"),
    ),
    Tool(
        "LangSmith, dataset",  # examples, whose outputs are reference answers
        _marks("inputs outputs dataset_id"),
        {"id": ("id",), "question": _under(["inputs"], QUESTIONS),
         "reference": _under(["outputs"], (*REFERENCES, *ANSWERS))},
        own=("inputs", "outputs"),
        outputs="reference",
    ),
    Tool(
        "LangSmith",
        _marks("inputs outputs", "inputs reference_outputs"),
        {"id": ("example_id", "reference_example_id"), "question": _under(["inputs"], QUESTIONS),
         "answer": (*_under(["outputs"], ANSWERS), *_if_text("outputs")),
         "contexts": _under(["outputs", "inputs"], CONTEXTS),
         "reference": (*_under(["reference_outputs", "reference", "outputs"], REFERENCES),
                       *_under(["reference_outputs", "reference"], ANSWERS)),
         "config": ("session_name", "experiment")},
        own=("inputs", "outputs", "reference_outputs", "reference"),
        outputs="answer",
    ),
    Tool(
        "Inspect",
        _marks("epoch input target output"),
        {"id": ("id",), "question": ("input",), "answer": ("output.completion",),
         "contexts": ("metadata.contexts", "metadata.context"), "reference": ("target",)},
    ),
    Tool(
        "TruLens",
        _marks("record_id app_id input"),
        {"question": ("input",), "answer": ("output",), "config": ("app_version", "app_id")},
    ),
    Tool(
        "Auto RAG Eval",
        _marks("Question Answer", "query expected_tool_use"),
        {"id": ("item_id",), "question": ("Question", "query"), "reference": ("Answer", "reference"),
         "relevant": ("doc_ids",)},
    ),
    Tool(
        "ADK",
        _marks("conversation evalId", "conversation eval_id", "eval_metric_result_per_invocation",
               "evalMetricResultPerInvocation"),
        {"id": ("eval_id", "evalId"),
         "question": _adk(("conversation[-1].", "user_content"), (_RESULT, "actual_invocation.user_content")),
         "answer": _adk((_RESULT, "actual_invocation.final_response")),
         "reference": _adk(("conversation[-1].", "final_response"), (_RESULT, "expected_invocation.final_response")),
         "steps": _spellings(_RESULT, "actual_invocation.intermediate_data"),
         "expected_steps": (*_spellings("conversation[-1].", "intermediate_data"),
                            *_spellings(_RESULT, "expected_invocation.intermediate_data"))},
    ),
    Tool(
        "ragas before 0.2",
        _marks("question ground_truth", "question ground_truths", "question contexts answer"),
        {"id": ("id", *_IDS), "question": ("question",), "answer": ("answer",), "contexts": ("contexts",),
         "reference": ("ground_truth", "ground_truths", *REFERENCES), "config": _CONFIGS},
    ),
    Tool(
        VERTEX,
        _marks("prompt response", "prompt reference", "prompt responses", "request response", "agent_data"),
        {"id": (*_IDS, "eval_case_id", "evalCaseId"), "question": ("prompt",), "answer": ("response",),
         "contexts": ("contexts", "context"), "reference": ("reference",), "config": (*_CONFIGS, "candidate_name"),
         "steps": ("predicted_trajectory", "intermediate_events"), "expected_steps": ("reference_trajectory",)},
    ),
)  # fmt: skip
"""Known tools; the first one whose marks match a file counts."""

COMMON = Tool(
    "common names",
    (),
    {"id": _IDS, "question": QUESTIONS, "answer": ANSWERS, "contexts": CONTEXTS,
     "context_ids": ("context_ids", "retrieved_ids", "doc_ids"), "reference": REFERENCES, "config": _CONFIGS},
)  # fmt: skip
"""Names in common use, for files of no known tool."""


@contextmanager
def refusing_types(path: str, line: int, row: Mapping[str, Any], tool: str) -> Iterator[None]:
    """Refuse a row whose values have other types than its tool writes."""
    try:
        yield
    except UnicodeEncodeError as error:
        before = error.object[max(0, error.start - _SHOWN) : error.start]
        problem = f"holds half a character (a lone surrogate such as \\ud83d) after {before!r}"
        raise InputError(problem, path=path, line=line) from error
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        keys = shortened(", ".join(map(str, row)), 200)
        problem = f"is not a row as {tool} writes it: {type(error).__name__}: {error}; its keys: {keys}"
        raise InputError(problem, path=path, line=line) from error


def tool_of(keys: Iterable[str]) -> Tool:
    """The tool that wrote rows with these keys, or the names in common use."""
    known = {key for name in keys for key in (name, name.partition(".")[0] if name.startswith(_FLAT) else name)}
    matching = (tool for tool in TOOLS if not tool.lacks & known and any(mark <= known for mark in tool.marks))
    return next(matching, COMMON)


_EXAMPLE = {"id", "inputs", "outputs", "metadata", "split", "created_at"}
_FLAT = ("inputs.", "outputs.", "reference.", "reference_outputs.", "input.", "output.", "metadata.")
"""Prefixes of columns in tables of LangSmith and Phoenix, which have one for each key of these objects."""


def has_only_outputs(tool: Tool, row: Mapping[str, Any]) -> bool:
    """Return whether a row may be an example of a LangSmith dataset, whose outputs are reference answers."""
    return tool.name == "LangSmith" and {name.partition(".")[0] for name in row} <= _EXAMPLE


def contradiction(ids: Mapping[str, Any]) -> str | None:
    """The problem of a row with different ids under names in common use; None if they agree.

    >>> contradiction({"query_id": "a", "qid": "b"})
    "has different ids, query_id 'a' and qid 'b'; name the one to use: columns: {id: query_id}"
    """
    common = {path: value for path, value in ids.items() if path.rpartition(".")[2] in _IDS}
    if len({str(value) for value in common.values()}) < 2:
        return None
    stated = " and ".join(f"{path} {shortened(repr(value))}" for path, value in common.items())
    return f"has different ids, {stated}; name the one to use: columns: {{id: {next(iter(common))}}}"


def kind_of(value: Any) -> str:
    return {"dict": "an object", "list": "a list", "str": "a text"}.get(
        type(value).__name__, shortened(repr(value), 60)
    )


def only_text_in(rows: Iterable[Mapping[str, Any]], name: str) -> str | None:
    """The path of the only text in an object with a user's keys; None if it has several texts, or no text."""
    keys = {key for row in rows if isinstance(row.get(name), dict) for key in row[name]}
    texts = {
        key for row in rows if isinstance(row.get(name), dict) for key in keys if isinstance(row[name].get(key), str)
    }
    return f'{name}."{next(iter(texts))}"' if len(texts) == 1 else None


def checked_columns(columns: Mapping[str, str]) -> dict[str, str]:
    """The `columns:` of an experiment, refused if a name or a path is invalid."""
    if not isinstance(columns, Mapping):
        raise ValueError("must be a mapping of names to keys or JMESPath expressions")
    for name, path in columns.items():
        if name not in FIELDS:
            raise ValueError(f"names {name!r}; {did_you_mean(name, FIELDS)}")
        if not isinstance(path, str):
            raise ValueError(f"{name} must be a key or a JMESPath expression in quotes, found {path!r}")
        check_path(path if names_in(path) is not None or any(entry in path for entry in "[(|*@&") else f'"{path}"')
    return dict(columns)
