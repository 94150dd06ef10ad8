"""Write turns from files of spans: spans are grouped by trace, one bucket of traces at a time."""

import json
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from heapq import nsmallest
from itertools import chain
from typing import Any

import apache_beam as beam
import pyarrow as pa

from rankbeam.transforms.clients.formats.traces.agent_events import SCHEMA
from rankbeam.transforms.clients.formats.traces.spans import Span, read_spans
from rankbeam.transforms.clients.formats.traces.turns import Naming, SkipReason, Turn, turn_of
from rankbeam.transforms.clients.storage import batches, files
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.kernels.hashing import hash_string
from rankbeam.transforms.records.trajectories import in_rows

batches.register()

TRACES, TURNS, DUPLICATES = "traces", "turns", "spans that occur twice"
SELF = "documents that equal their question, left out (--drop-self)"
UNSHOWN = "documents that were retrieved, and are not in the prompt of the last inference"
FAILED, OUTSIDE, CUT = "without an answer", "not drawn", "with truncated documents, whose contexts are not given"
ROOTS = "further spans without a parent, whose questions and answers are left out"
"""Names of counts, in addition to those in `SkipReason`."""
PROMPTS = "questions that contain a retrieved document, as whole prompts do"
UNKNOWN = "whose contexts are unknown: no span states the documents that were retrieved"
TIMELESS = "whose root has no start, so that their day and duration are unknown"
BARE = "spans without any attribute, in traces without a question"
OTHER_SCHEMA = "spans of another version of the GenAI conventions, of which known attributes are read: "
REDACTED = "[redacted]"

_SPANS = pa.schema([("trace_id", pa.string()), ("span", pa.string())])
_FLUSH_BYTES = 16 << 20
_PROPOSING = 100  # traces per bucket whose JSON is searched for paths to propose
_NEWEST = "newest"
_LIKELY = {
    "input": ("question", "query", "user_input", "input", "prompt", "content", "text", "message"),
    "output": ("answer", "response", "output", "result", "content", "text", "message"),
}
_OPTIONS = {"input": "--question", "output": "--answer"}
_DEEPEST, _MOST_SHOWN = 4, 3
_AT = "with a text at "  # stands between option and path in a count's name


@dataclass(frozen=True)
class Choice:
    """Options for the sample of turns, and for texts to hide."""

    sample: int | None = None  # maximum number of turns, chosen by a hash of the trace's id; None for all
    per_day: bool = False  # take a sample of each day (UTC)
    redact: tuple[str, ...] = ()  # patterns whose matches are replaced in all texts
    drop_self: bool = False  # leave out documents that equal their question, apart from case and signs

    def chosen(self, turns: Iterable[Turn]) -> list[Turn]:
        """Sample turns, sorted by time; the given order is irrelevant, and a sample of samples is the sample of all."""
        groups = grouped((day_of(turn) if self.per_day else "", turn) for turn in turns)
        sample = chain.from_iterable(
            group if self.sample is None else nsmallest(self.sample, group, key=_draw_key) for group in groups.values()
        )
        return sorted(sample, key=lambda turn: (turn.start_s, turn.trace_id))

    def hidden(self, turn: Turn) -> Turn:
        if not self.redact:
            return turn
        hide = partial(re.compile("|".join(self.redact)).sub, REDACTED)
        return replace(
            turn,
            question=hide(turn.question),
            answer=turn.answer and hide(turn.answer),
            contexts=turn.contexts and tuple((name, text and hide(text)) for name, text in turn.contexts),
            steps=turn.steps and tuple(step.with_texts(hide) for step in turn.steps),
        )

    def without_self(self, turn: Turn) -> Turn:
        """The turn without documents that equal its question: a corpus may hold past questions."""
        question = _words(turn.question) if self.drop_self else []
        if not question or turn.contexts is None:
            return turn
        contexts = tuple((name, text) for name, text in turn.contexts if text is None or _words(text) != question)
        return replace(turn, contexts=contexts)


def _draw_key(turn: Turn) -> tuple[int, str]:
    return hash_string(turn.trace_id), turn.trace_id


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold())


def day_of(turn: Turn) -> str:
    return datetime.fromtimestamp(turn.start_s, UTC).date().isoformat()


@dataclass
class WriteTurns(beam.PTransform):
    """Read spans, and write the turns of each bucket of traces to a file in a folder; the output is the counts."""

    paths: Sequence[str]
    folder: str
    buckets: int
    naming: Naming = field(default_factory=Naming)
    choice: Choice = field(default_factory=Choice)

    def expand(self, pbegin: beam.pvalue.PBegin) -> beam.PCollection[Mapping[str, int]]:
        files_ = pbegin | "Files" >> beam.Create(list(self.paths), reshuffle=len(self.paths) > 1)
        read = files_ | "ReadSpans" >> beam.ParDo(ReadSpansFn(self.buckets)).with_outputs(_NEWEST, main="spans")
        newest = read[_NEWEST] | "Newest" >> beam.CombineGlobally(lambda ends: max(ends, default=0.0))
        return (
            read["spans"]
            | "ByBucket" >> beam.GroupByKey()
            | "WriteTurns"
            >> beam.Map(write_turns, beam.pvalue.AsSingleton(newest), self.folder, self.naming, self.choice)
            | "Count" >> beam.CombineGlobally(merged_counts)
        )


class ReadSpansFn(beam.DoFn):
    """Reads files of spans, and divides the spans by their traces' buckets."""

    def __init__(self, buckets: int) -> None:
        self._buckets = buckets

    def process(self, path: str) -> Iterator[Any]:
        waiting: defaultdict[int, list[tuple[str, str]]] = defaultdict(list)
        waiting_bytes, newest = 0, 0.0
        for span in read_spans(path):
            text = json.dumps(vars(span), default=str)
            waiting[hash_string(span.trace_id) % self._buckets].append((span.trace_id, text))
            waiting_bytes += len(text)
            newest = max(newest, span.end_s)
            if waiting_bytes >= _FLUSH_BYTES:
                yield from _flush(waiting)
                waiting_bytes = 0
        yield from _flush(waiting)
        yield beam.pvalue.TaggedOutput(_NEWEST, newest)


def _flush(waiting: dict[int, list[tuple[str, str]]]) -> Iterator[tuple[int, pa.RecordBatch]]:
    for bucket, rows in waiting.items():
        names, spans = zip(*rows, strict=True)
        yield bucket, pa.RecordBatch.from_arrays([pa.array(names), pa.array(spans)], schema=_SPANS)
    waiting.clear()


def merged_counts(counts: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    total: Counter[str] = Counter()
    for part in counts:
        total.update(part)
    return dict(total)


def write_turns(
    element: tuple[int, Iterable[pa.RecordBatch]], newest_s: float, folder: str, naming: Naming, choice: Choice
) -> Mapping[str, int]:
    bucket, parts = element
    read = (Span(**json.loads(text.as_py())) for part in parts for text in part.column("span"))
    traces = grouped((span.trace_id, span) for span in read)
    counts: Counter[str] = Counter({TRACES: len(traces)})
    turns, unanswered = [], 0
    for spans in traces.values():
        counts.update(f"{OTHER_SCHEMA}{span.attributes[SCHEMA]}" for span in spans if SCHEMA in span.attributes)
        turn = turn_of(spans, newest_s, naming)
        if isinstance(turn, SkipReason):
            counts[turn.value] += 1
            if turn is SkipReason.JSON_QUESTION and counts[turn.value] <= _PROPOSING:
                counts.update(proposals(spans, "input"))
            counts[BARE] += sum(not span.attributes for span in spans) if turn is SkipReason.NO_QUESTION else 0
        else:
            counts[DUPLICATES] += turn.duplicates
            counts[ROOTS] += len({span.span_id for span in spans if span.parent_id == ""}) - 1
            counts[CUT] += turn.is_cut
            counts[UNSHOWN] += turn.unshown
            counts[PROMPTS] += turn.is_prompt
            counts[TIMELESS] += not turn.start_s
            counts[UNKNOWN] += turn.contexts is None and turn.answer is not None and not turn.is_cut
            if turn.answer is None and naming.answer is None and (unanswered := unanswered + 1) <= _PROPOSING:
                counts.update(proposals(spans, "output"))
            turns.append(choice.without_self(turn))
            counts[SELF] += len(turn.contexts or ()) - len(turns[-1].contexts or ())
    sample = [choice.hidden(turn) for turn in choice.chosen(turns)]
    lines = "".join(json.dumps(asdict(turn), ensure_ascii=False) + "\n" for turn in sample)
    files.write(part_path(folder, bucket), lines.encode("utf-8", "replace"))
    return counts


def part_path(folder: str, bucket: int) -> str:
    return files.join(folder, f"turns-{bucket:05}.jsonl")


def turn_in(line: str) -> Turn:
    value = json.loads(line)
    contexts, steps = value.pop("contexts"), in_rows(value.pop("steps"))
    return Turn(contexts=None if contexts is None else tuple(map(tuple, contexts)), steps=steps, **value)


def text_paths(value: Any, depth: int = 0) -> Iterator[str]:
    """The JMESPaths of the texts in an object; in a list, only the last entry counts.

    >>> list(text_paths({"model": "m", "messages": [{"content": "Hi"}], "my key": "x", "n": 1}))
    ['model', 'messages[-1].content', '"my key"']
    """
    if not isinstance(value, Mapping) or depth == _DEEPEST:
        return
    for key, inner in value.items():
        name = key if key.isidentifier() and key.isascii() else json.dumps(key)
        if isinstance(inner, list) and inner:
            name, inner = f"{name}[-1]", inner[-1]
        if isinstance(inner, str) and inner.strip():
            yield name
        yield from (f"{name}.{path}" for path in text_paths(inner, depth + 1))


def proposals(spans: Sequence[Span], part: str) -> Counter[str]:
    """Count the paths of texts in the JSON inputs or outputs (`part`) of a trace's roots."""
    counts = Counter[str]()
    for value in (span.attributes.get(f"{part}.value") for span in spans if span.parent_id == ""):
        try:
            parsed = json.loads(value) if isinstance(value, str) else value
        except (ValueError, RecursionError):
            continue
        last = parsed[-1] if isinstance(parsed, list) and parsed else None
        paths = text_paths(parsed) if last is None else (f"[-1].{path}" for path in text_paths(last))
        counts.update(f"{_OPTIONS[part]} {_AT}{path}" for path in paths)
    return counts


def advice(counts: Mapping[str, int]) -> Iterator[str]:
    """Propose the likeliest paths: common names first, then the most frequent."""
    for part, option in _OPTIONS.items():
        prefix = f"{option} {_AT}"
        known = {name.removeprefix(prefix): count for name, count in counts.items() if name.startswith(prefix)}
        likely = _LIKELY[part]
        order = sorted(known, key=lambda path: (_likeliness(path, likely), -known[path], path))
        for path in order[:_MOST_SHOWN]:
            yield f"try {option} '{path}': a text in {known[path]:,} {part}s of a sample"


def _likeliness(path: str, likely: Sequence[str]) -> int:
    last = path.rpartition(".")[2].removesuffix("[-1]").strip('"')
    return likely.index(last) if last in likely else len(likely)
