"""`rankbeam.judge`: judge answers in memory or in a file, in one call."""

import hashlib
import json
import os
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, time
from typing import Any
from uuid import UUID

from rankbeam.pipelines.api.experiments import hide_line_numbers, read_experiment
from rankbeam.pipelines.api.inputs import Inputs, folder_of, is_path, of_python, reword_errors, table_of, text_path
from rankbeam.pipelines.api.result import Result
from rankbeam.pipelines.api.run import evaluate
from rankbeam.pipelines.experiment.file.criteria import read_criteria
from rankbeam.pipelines.plan.limits import check_plan
from rankbeam.pipelines.start import cases
from rankbeam.transforms.clients.formats.cases.tools import checked_columns
from rankbeam.transforms.clients.models.base import MODELS
from rankbeam.transforms.clients.storage import files, whole_files
from rankbeam.transforms.records.errors import InputError, shortened

_WRITING = threading.Lock()
_JUDGE = "service='openai:MODEL', or service='lexical' to try it without a model"
_SHAPE = "[{'question': …, 'answer': …, 'contexts': […]}]"


def judge(
    rows: Any,
    metrics: str | Sequence[str] = (),
    *,
    service: str | Mapping[str, Any] | None = None,
    embeddings: str | Mapping[str, Any] | None = None,
    criteria: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    columns: Mapping[str, str] | None = None,
    output: str | os.PathLike[str] = "out/judge",
    prices: Mapping[str, float] | None = None,
    max_cost: float | None = None,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    requests_per_minute: float | None = None,
    confirm: bool = False,
    **overrides: Any,
) -> Result:
    """Judge existing answers, as `rankbeam judge` does.

    The plan is printed on stderr before the first call. Verdicts are stored in the ledger in `output`, so judging the
    same rows again costs nothing.

    Args:
        rows: dicts, a DataFrame or an Arrow table, whose rows have question, answer, contexts and reference under the
            names of ragas, DeepEval and other tools; samples of ragas or test cases of DeepEval; or a file's path.
        metrics: for example `["Faithfulness", "AnswerRelevance"]`; by default all that the rows allow.
        service: the judge: `"openai:MODEL"` or another PROVIDER:MODEL, `"lexical"`, or a service as a dict; not needed
            for metrics that only compare texts, such as `TokenF1`.
        embeddings: the embedding model for similarity metrics, in the same form as `service`.
        criteria: your own questions, as in `judge: criteria:` of an experiment, or a YAML file of them; without
            `metrics`, they are judged.
        columns: other names or JMESPaths in the rows: `{"answer": "reply"}`.
        output: folder for results and ledger.
        prices: prices per million tokens, `{"input": 0.4, "output": 1.6}`, in any currency.
        max_cost: maximum cost of the calls at these prices, at which the run stops.
        max_calls: maximum calls in the plan; a larger plan is refused before any call.
        max_tokens: maximum tokens in the plan; a larger plan is refused before any call.
        requests_per_minute: each service's quota.
        confirm: if true, ask in the terminal before making the planned calls.
        **overrides: further keys of the experiment, such as `slices` or `statistics`.

    Raises:
        InputError: an input cannot be used, or the plan exceeds a limit; nothing has been paid.
        RankbeamError: the run failed.
    """
    if confirm and not (sys.stdin is not None and sys.stdin.isatty()):
        raise InputError("confirm=True needs a terminal to ask in; set max_cost, max_calls or max_tokens instead")
    if max_cost is not None and prices is None:
        raise InputError("max_cost needs prices={'input': …, 'output': …}, the prices per million tokens")
    if service is None and (criteria is not None or embeddings is not None or prices is not None or not metrics):
        raise InputError(f"name the judge: {_JUDGE}")
    inputs = Inputs(folder_of(output))
    stated = {cases.JUDGE: service, cases.EMBEDDER: embeddings}
    services = {name: _service(value) for name, value in stated.items() if value is not None}
    path, names = path_of(rows, inputs), [metrics] if isinstance(metrics, str) else list(metrics)
    questions = criteria if criteria is None or isinstance(criteria, Mapping) else read_criteria(text_path(criteria))
    with inputs.named(), reword_errors(_as_argument):
        experiment = cases.experiment_of(
            path, _columns(columns or {}), names, services, requests_per_minute, questions, prices, max_cost
        )
        experiment |= {} if is_path(rows) else {"name": cases.JUDGE}
        with hide_line_numbers(experiment, overrides):
            loaded = read_experiment(experiment, overrides, inputs.folder)
            check_plan(loaded, {"calls": max_calls, "tokens": max_tokens}, confirm=confirm)
        return evaluate(experiment, output=inputs.folder, **overrides)


def _as_argument(error: InputError) -> InputError:
    problem = error.problem.replace("judge: {service: NAME}", _JUDGE)
    problem = problem.replace("judge: {service: NAME, embeddings: NAME}", "embeddings='openai:MODEL'")
    return InputError(problem, path=error.path, line=error.line)


def _service(service: str | Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(service, str | Mapping):
        problem = f"a service is {type(service).__name__}; name a PROVIDER:MODEL or 'lexical', or give a dict"
        raise InputError(problem)
    return dict(service) if isinstance(service, Mapping) else cases.service_of(service, sorted(MODELS.types))


def _columns(columns: Mapping[str, str]) -> dict[str, str]:
    try:
        return checked_columns(columns)
    except ValueError as error:
        raise InputError(f"columns: {error}") from error


def path_of(rows: Any, inputs: Inputs) -> str:
    """The path of a file with rows; rows in memory are written to a folder below the output, named by their content."""
    if is_path(rows):
        return str(os.fspath(rows))
    values = table_of(rows, "rows", _SHAPE).to_pylist() if hasattr(rows, "__arrow_c_stream__") else rows
    columns = list(values.values()) if isinstance(values, Mapping) else []
    if columns and all(isinstance(column, list) for column in columns) and len({*map(len, columns)}) == 1:
        values = [dict(zip(values, row, strict=True)) for row in zip(*columns, strict=True)]
    if not isinstance(values, Iterable) or isinstance(values, Mapping | bytes):
        raise InputError(f"rows are {type(rows).__name__}; give a path, a DataFrame, an Arrow table or {_SHAPE}")
    lines = [_line(number, row) for number, row in enumerate(values, start=1)]
    if not lines:
        raise InputError("rows: none given; give at least one")
    content = b"".join(lines)
    path = files.join(inputs.folder, "rows", hashlib.sha256(content).hexdigest()[:16], "answers.jsonl")
    with _WRITING:  # another thread may be reading the same rows
        if not files.exists(path) or files.read_all(path) != content:
            whole_files.put(path, content)
    inputs.labels[path] = "rows"
    return path


def _line(number: int, row: Any) -> bytes:
    row = row.model_dump() if hasattr(row, "model_dump") else row  # samples of ragas, test cases of DeepEval
    if not isinstance(row, Mapping):
        raise InputError(f"rows: row {number} is {type(row).__name__}; use {_SHAPE}")
    try:
        return _json(dict(row)) + b"\n"
    except UnicodeEncodeError as error:
        half = "half a character (a lone surrogate such as \\ud83d)"
        raise InputError(f"rows: row {number}: the value of {_invalid_key(row)!r} holds {half}; remove it") from error
    except (TypeError, ValueError) as error:
        problem = f"cannot be written as JSON: {_invalid_key(row)!r}: {error}; change it, or leave it out"
        raise InputError(f"rows: row {number} {problem}") from error


def _invalid_key(row: Mapping[Any, Any]) -> Any:
    """The first key whose value JSON cannot represent."""
    for key, value in row.items():
        try:
            _json({key: value})
        except (TypeError, ValueError):
            return key
    return None


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, default=_as_plain).encode()


def _as_plain(value: Any) -> Any:
    """Dates and UUIDs of a DataFrame or a model as texts, and NumPy's numbers and arrays as Python's."""
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, UUID):  # the ids of LangSmith
        return str(value)
    plain = of_python(value)
    if plain is value:
        raise TypeError(f"{shortened(repr(value), 60)} is {type(value).__name__}")
    return plain
