"""Collect the turns of traces into a folder: queries, answers, and an experiment over them."""

import hashlib
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import apache_beam as beam
import yaml
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from rankbeam.pipelines.local.messages import warn
from rankbeam.pipelines.local.runner import new_pipeline, on_this_machine, quiet_beam, refusals
from rankbeam.transforms.clients.bigquery.names import is_table
from rankbeam.transforms.clients.formats import sources
from rankbeam.transforms.clients.formats.traces.turns import Naming, SkipReason, Turn
from rankbeam.transforms.clients.local_folders import extracted
from rankbeam.transforms.clients.storage import files, matching
from rankbeam.transforms.records.errors import InputError, pluralize
from rankbeam.transforms.records.trajectories import as_json
from rankbeam.transforms.traces import (
    BARE,
    CUT,
    DUPLICATES,
    FAILED,
    OTHER_SCHEMA,
    OUTSIDE,
    PROMPTS,
    ROOTS,
    SELF,
    TIMELESS,
    TRACES,
    TURNS,
    UNKNOWN,
    UNSHOWN,
    Choice,
    WriteTurns,
    advice,
    day_of,
    turn_in,
)

_BUCKET_BYTES = 16 << 20
_PACKED = (".gz", ".parquet")  # spans are repetitive: unpacked, they take about ten times as much
_COUNTS, _COLLECTED = "counts.json", "collected.json"
_QUERIES, _ANSWERS, _PARTS = "queries.jsonl", "answers.jsonl", ".turns-"
_MOST_BUCKETS, _TABLE_BUCKETS = 4096, 256


@dataclass(frozen=True)
class TraceSummary:
    """Counts and properties of a source."""

    counts: Mapping[str, int]  # traces, turns, and traces without a turn by reason
    has_contexts: bool  # True if any turn has contexts with texts
    configurations: Sequence[str]  # names of the systems that answered
    in_conversations: bool

    def as_text(self) -> str:
        turns = self.counts.get(TURNS, 0)
        parts = [f"{turns:,} of {pluralize(self.counts.get(TRACES, 0), 'trace')} became queries"]
        known = (
            FAILED,
            OUTSIDE,
            DUPLICATES,
            ROOTS,
            PROMPTS,
            CUT,
            UNKNOWN,
            UNSHOWN,
            SELF,
            TIMELESS,
            BARE,
            *(reason.value for reason in SkipReason),
        )
        known += tuple(sorted(name for name in self.counts if name.startswith(OTHER_SCHEMA)))
        parts += [f"  {self.counts[name]:,} {name}" for name in known if self.counts.get(name)]
        parts += [f"  {line}" for line in advice(self.counts)]
        return "\n".join(parts)


def collect(source: str, output: str, naming: Naming, choice: Choice, service: Mapping[str, Any]) -> TraceSummary:
    """Read spans from a file, folder or pattern; write `queries.jsonl`, `answers.jsonl` and `experiment.yaml`.

    Files that people may have edited or made are not overwritten: an experiment stays; queries with references, and
    files that are not from traces, are refused.
    """
    if not files.is_local(output):
        raise InputError("is not a folder on this machine; write there, and copy the files", path=output)
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    queries, experiment = folder / _QUERIES, folder / "experiment.yaml"
    _refuse_foreign(queries, b'"conversation":')
    _refuse_foreign(folder / _ANSWERS, b'"span_id":')
    if queries.exists() and b'"reference":' in queries.read_bytes():
        problem = "has reference answers, which are never overwritten; choose another --output"
        raise InputError(problem, path=str(queries))
    for abandoned in folder.glob(f"{_PARTS}*"):  # by a killed process; no other one writes to the folder
        shutil.rmtree(abandoned, ignore_errors=True)  # it may be another user's
    collected = write_dataset(source, folder, naming, choice)
    warn(*sources.part_warnings(sources.expand(source)))
    if experiment.exists():
        warn(f"{experiment} exists already and is kept; delete it to get a new one")
    else:
        content = experiment_of(folder.name, collected, service)
        files.write(str(experiment), yaml.safe_dump(content, sort_keys=False, allow_unicode=True).encode())
    return collected


def _refuse_foreign(path: Path, key: bytes) -> None:
    """Refuse to overwrite a file whose first line lacks a key that all rows of `collect` have."""
    if not path.exists():
        return
    with path.open("rb") as lines:
        if key not in lines.readline():
            problem = "was not written by `rankbeam traces` and would be overwritten; choose another --output"
            raise InputError(problem, path=str(path))


def collected_once(source: str, naming: Naming, choice: Choice) -> tuple[Path, TraceSummary]:
    """The folder of a source's `queries.jsonl` and `answers.jsonl`, which is read once for each of its states."""
    state = sources.version(source)
    if is_table(source) and not any(stored for _, stored, _ in state):
        problem = "is a view or empty: BigQuery does not say when it changes; run `rankbeam traces`"
        raise InputError(problem, path=source)
    place = source if is_table(source) else files.absolute(source)

    def fill(part: Path) -> None:
        collected = write_dataset(source, part, naming, choice)
        (part / _COLLECTED).write_text(json.dumps(vars(collected)), encoding="utf-8")

    identity = [place, asdict(naming), asdict(choice)]
    folder = extracted("traces", identity, [_reader(), state], f"the traces of {source}", fill)
    return folder, TraceSummary(**json.loads((folder / _COLLECTED).read_text(encoding="utf-8")))


def _reader() -> str:
    """A hash of the code that reads traces, which a new commit may change."""
    code = Path(__file__)
    paths = [code, *sorted((code.parents[1] / "transforms").rglob("*.py"))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def write_dataset(source: str, folder: Path, naming: Naming, choice: Choice) -> TraceSummary:
    """Write `queries.jsonl` and `answers.jsonl`; refused if no trace has a question, or none has an answer."""
    with tempfile.TemporaryDirectory(dir=folder, prefix=_PARTS) as parts:
        _run_pipeline(source, parts, naming, choice)
        collected = _write_files(Path(parts), choice)
        if not collected.counts.get(TURNS):
            raise InputError(f"holds no question: {collected.as_text()}", path=source)
        if collected.counts[FAILED] == collected.counts[TURNS]:
            advice = "name the answer in outputs that are JSON with --answer PATH"
            raise InputError(f"holds no answer; {advice}: {collected.as_text()}", path=source)
        for name in (_QUERIES, _ANSWERS):  # of an earlier collection
            (Path(parts) / name).replace(folder / name)
    return collected


def experiment_of(name: str, collected: TraceSummary, service: Mapping[str, Any]) -> dict[str, Any]:
    """The experiment that judges the collected answers, by metrics that need no reference answer."""
    several = len(collected.configurations) > 1
    return {
        "name": name,
        "dataset": {"queries": "queries.jsonl"},
        "services": {"judge": dict(service)},
        "configurations": [{"name": "production", "answers": {"type": "replay", "path": "answers.jsonl"}}],
        "judge": {"service": "judge"},
        "metrics": ["AnswerRelevance", *(["Faithfulness"] if collected.has_contexts else [])],
        "slices": ["configuration"] if several else [],
        **({"statistics": {"cluster": "conversation"}} if collected.in_conversations else {}),
        "output": {"path": "out"},
    }


def _run_pipeline(source: str, folder: str, naming: Naming, choice: Choice) -> None:
    is_bigquery = is_table(source)
    stored = [] if is_bigquery else matching.version(source)
    sizes = {path: bytes_ * (10 if path.endswith(_PACKED) else 1) for path, bytes_, _ in stored}
    buckets = _TABLE_BUCKETS if is_bigquery else min(_MOST_BUCKETS, 1 + sum(sizes.values()) // _BUCKET_BYTES)
    # A collector has just opened a file that is empty; if all are, reading the first one says so.
    paths = [source] if is_bigquery else [path for path, size in sizes.items() if size] or list(sizes)
    options = PipelineOptions(["--runner=FnApiRunner"])
    with on_this_machine(options), quiet_beam(), refusals(), new_pipeline(FnApiRunner(), options) as pipeline:
        counts = pipeline | "Turns" >> WriteTurns(paths, folder, buckets, naming, choice)
        _ = counts | "WriteCounts" >> beam.Map(_write_counts, files.join(folder, _COUNTS))


def _write_counts(counts: Mapping[str, int], path: str) -> None:
    files.write(path, json.dumps(dict(counts)).encode())


def _turns(parts: Path) -> Iterator[Turn]:
    for path in sorted(parts.glob("turns-*.jsonl")):
        with path.open(encoding="utf-8") as lines:
            yield from map(turn_in, lines)


def _write_files(parts: Path, choice: Choice) -> TraceSummary:
    """Write the turns as queries and answers."""
    counts = Counter(json.loads((parts / _COUNTS).read_text(encoding="utf-8")))
    turns: Iterator[Turn] | list[Turn] = _turns(parts)
    if choice.sample is not None:
        turns = choice.chosen(turns)
    systems: dict[str, None] = {}
    conversations: Counter[str] = Counter()
    has_contexts = False
    queries, answers = parts / _QUERIES, parts / _ANSWERS
    with queries.open("w", encoding="utf-8") as query_lines, answers.open("w", encoding="utf-8") as answer_lines:
        for turn in turns:
            counts[TURNS] += 1
            query_lines.write(json.dumps(_query(turn), ensure_ascii=False) + "\n")
            systems |= {turn.configuration or "": None}
            conversations.update([] if turn.conversation is None else [turn.conversation])
            if turn.answer is None:
                counts[FAILED] += 1
                continue
            has_contexts = has_contexts or any(text for _, text in turn.contexts or ())
            answer_lines.write(json.dumps(_answer(turn), ensure_ascii=False) + "\n")
    skipped = sum(counts[reason.value] for reason in SkipReason)
    counts[OUTSIDE] = counts[TRACES] - skipped - counts[TURNS]
    in_conversations = len(conversations) > 1 and any(count > 1 for count in conversations.values())
    return TraceSummary(counts, has_contexts, tuple(systems), in_conversations)


def _query(turn: Turn) -> dict[str, Any]:
    known = {"configuration": turn.configuration, "conversation": turn.conversation or turn.trace_id}
    known |= {"day": day_of(turn) if turn.start_s else None, "model": turn.model}
    attributes = {name: value for name, value in known.items() if value is not None}
    return {"_id": turn.trace_id, "text": turn.question, "metadata": attributes}


def _answer(turn: Turn) -> dict[str, Any]:
    texts = [{"doc_id": name, "text": text} for name, text in turn.contexts or () if text is not None]
    complete = turn.contexts is not None and len(texts) == len(turn.contexts)
    contexts = {"contexts": texts} if complete else {}
    contexts |= {} if turn.steps is None else {"steps": as_json(turn.steps)}
    duration = {"seconds": round(turn.seconds, 6)} if turn.start_s and turn.seconds else {}
    used: dict[str, Any] = {**duration, "tokens": dict(turn.tokens), "span_id": turn.span_id}
    return {"query_id": turn.trace_id, "answer": turn.answer, **contexts, **used}
