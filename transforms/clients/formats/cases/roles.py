"""Cases in the roles of a dataset's files: queries, judgements, a system's answers; and a survey before any work."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import pyarrow as pa

from rankbeam.transforms.clients.formats.cases.objects import rows_in, state_of
from rankbeam.transforms.clients.formats.cases.read import SAMPLE_ROWS, Case, Layout, layout_of, read_cases
from rankbeam.transforms.clients.formats.cases.source import CaseSource
from rankbeam.transforms.clients.formats.syntax import json_lines
from rankbeam.transforms.clients.formats.syntax.lines import repeated_at
from rankbeam.transforms.kernels import hashing
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.conversations import TURN
from rankbeam.transforms.records.errors import InputError, pluralize, shortened
from rankbeam.transforms.records.trajectories import EXPECTED_STEPS, as_json, rows_of

REFERENCE = "reference"  # the attribute of queries that holds the reference answer
NOTES = {
    "joined": "contexts of {rows} are one text, split at each '|'; a '|' inside a context splits it, too",
    "several reference": "{rows} with several reference answers; the first one is used",
    "several answer": "{rows} with several answers; the first one is used",
    "other parts": "in {rows}, parts other than text, such as images, are left out",
    "text history": "{rows} with messages before the prompt as plain text; nothing shows who wrote them, so "
    "they are not used as history",
    "flattened": "in {rows}, alternatives among the relevant documents all count as relevant",
    "only outputs": "{rows} with only inputs and outputs, which are read as answers; if they are reference "
    "answers of a LangSmith dataset, name them: columns: {{reference: outputs.KEY}}",
    "scores": "{rows} with scores of another judge, such as faithfulness; they become attributes, not metrics",
}  # texts of the notes in `Case.notes`
_SCORES = frozenset(
    {"faithfulness", "answer_relevancy", "response_relevancy", "context_recall", "context_precision",
     "llm_context_precision_with_reference", "answer_correctness", "factual_correctness", "semantic_similarity"}
)  # fmt: skip


def queries_in(source: CaseSource) -> Iterator[Case]:
    """The cases of a file, each query once: several systems may have answered it."""
    first: dict[int, tuple[int, int, int]] = {}
    for case in read_cases(source):
        if not case.question:
            raise InputError("has no question", path=source.path, line=case.line)
        texts = [case.query_id, case.question, case.reference or ""]
        name, question, reference = hashing.hash_strings(pa.array(texts)).tolist()
        if name not in first:
            first[name] = question, reference, case.line
            yield case
        elif first[name][:2] != (question, reference if case.reference else first[name][1]):
            problem = f"query {shortened(repr(case.query_id))} has two questions or two reference answers"
            raise repeated_at(problem, [(source.path, first[name][2]), (source.path, case.line)], "keep one")


def read_queries(source: CaseSource) -> Iterator[tuple[str, str, Mapping[str, str], int]]:
    """Id, text, attributes and line of every query; the reference answer is an attribute."""
    for case in queries_in(source):
        gold = {} if case.reference is None else {REFERENCE: case.reference}
        if case.expected_steps is not None:
            gold[EXPECTED_STEPS] = json.dumps(as_json(case.expected_steps), ensure_ascii=False)
        yield case.query_id, case.question, {**case.attributes, **gold}, case.line


def read_qrels(source: CaseSource) -> Iterator[pa.RecordBatch]:
    """Read judgements: the relevant documents of every query, with grade 1."""
    rows = (
        {"query_id": case.query_id, "doc_id": doc_id, "grade": 1.0, "line": case.line}
        for case in queries_in(source)
        for doc_id in case.relevant or ()
    )
    yield from json_lines.in_batches(rows, columns.QRELS)


def read_replayed(source: CaseSource, configs: Set[str] | None) -> Iterator[pa.RecordBatch]:
    """Read answers as `columns.REPLAYED`; the answer is null if a row has none."""
    rows = (_replay_row(case) for case in read_cases(source) if configs is None or case.config in configs)
    yield from json_lines.in_batches(rows, columns.REPLAYED)


def _replay_row(case: Case) -> dict[str, Any]:
    contexts = None if case.contexts is None else [{"doc_id": name, "text": text} for name, text in case.contexts]
    known = {"query_id": case.query_id, "answer": case.answer, "contexts": contexts, "line": case.line}
    return {**known, "steps": rows_of(case.steps), "config": case.config}


@dataclass(frozen=True)
class Survey:
    """The counts of a file of cases."""

    layout: Layout
    rows: int
    configs: tuple[str, ...]  # systems that answered; one empty name if rows name no system
    answers: int
    contexts: int
    references: int
    judged: int  # rows with relevant documents
    has_ids: bool  # whether all contexts have ids
    repeated: int  # rows that repeat a query of the same system
    counts: dict[str, int]
    in_conversations: bool  # whether some question is a later turn

    def notes(self) -> Iterator[str]:
        for key, count in sorted(self.counts.items()):
            yield NOTES[key].format(rows=pluralize(count, "row"))
        if self.repeated and not self.answers:
            yield f"{pluralize(self.repeated, 'row')} with a question of an earlier row; each question is one query"


def survey_of(source: CaseSource) -> Survey:
    """Read a whole file of cases and count; each version of the file is read once."""
    return _survey(source.text, state_of(source.path))


@lru_cache(maxsize=16)
def _survey(text: str, version: object) -> Survey:  # noqa: ARG001  a file that has changed is read again
    source = CaseSource.parse(text)
    layout = layout_of(source, list(islice(rows_in(source.path), SAMPLE_ROWS)))
    counts, parts = Counter[str](), Counter[str]()
    seen: dict[tuple[str, str], None] = {}
    configs: dict[str, None] = {}
    without_ids = 0
    for case in read_cases(source):
        if not case.question:
            raise InputError("has no question", path=source.path, line=case.line)
        counts.update(case.notes)
        if not _SCORES.isdisjoint(name.lower().partition("(")[0] for name in case.attributes):
            counts["scores"] += 1
        configs.setdefault(case.config)
        seen.setdefault((case.config, case.query_id))
        stated = {
            "answers": case.answer,
            "contexts": case.contexts,
            "references": case.reference if case.expected_steps is None else case.expected_steps,
            "judged": case.relevant,
            "turns": case.attributes.get(TURN),
        }
        parts.update(["rows", *(name for name, value in stated.items() if value is not None)])
        without_ids += any(name is None for name, _ in case.contexts or ())
    return Survey(
        layout,
        parts["rows"],
        tuple(configs),
        parts["answers"],
        parts["contexts"],
        parts["references"],
        parts["judged"],
        bool(parts["contexts"]) and not without_ids,
        parts["rows"] - len(seen),
        dict(counts),
        bool(parts["turns"]),
    )
