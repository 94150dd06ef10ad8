"""The answers on a page, each with its claims, the judge's verdicts on them, and the texts behind the verdicts."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from rankbeam.pipelines.report.rankings import Cells, cut, queries_of
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.judge.steps import step_named
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records.errors import InputError

MOST_LETTERS_OF_AN_ANSWER, MOST_CLAIMS = 4_000, 40
_MOST_LETTERS_OF_ALL, _FEWEST_LETTERS, _MOST_LETTERS_OF_A_TEXT, _MOST_LETTERS_OF_A_REASON = 3_000_000, 60, 3_000, 300
_ANSWER_COLUMNS = (
    "config_id", "query_id", "sample", "status", "answer", "answer_hash", "reference", "reference_hash", "message",
    "contexts", "contexts_left_out", "citations", "input_tokens", "output_tokens", "cost", "model", "steps",
)  # fmt: skip
_CLAIM_COLUMNS = ("query_id", "text_hash", "position", "sample", "text", "quote_start", "quote_end", "items_hash")
_VERDICT_COLUMNS = (
    "query_id", "step", "items_hash", "right_hash", "position", "sample", "verdict", "grade", "reason", "is_sentinel",
)  # fmt: skip

_QUESTION = ("step", "query_id", "items_hash", "right_hash", "position")

Row = dict[str, Any]
Claims = dict[tuple[str, str], list[Row]]  # claims by query and text hash
Verdicts = dict[tuple[Any, ...], Row]
"""Verdicts by step, query and hash of the evidence; verdicts on claims also by claim."""


def read_answers(results: Results, ids: pa.Array, cells: Cells) -> Row | None:
    """The answers in some cells; only the first of several samples or judgements."""
    positions = queries_of(cells, ids)
    query_ids = pa.array(list(positions), ids.type)
    answers = [row for row in _rows(results, "answers", _ANSWER_COLUMNS, query_ids) if row["sample"] == 0]
    if not answers:
        return None
    owners = {row["config_id"]: place for place, row in enumerate(results.configurations)}
    page = _Page(*_claims_and_verdicts(results, query_ids), _texts(results, answers))
    lists: defaultdict[int, dict[int, Row]] = defaultdict(dict)
    for row in sorted(answers, key=lambda row: (owners[row["config_id"]], positions[row["query_id"]])):
        key = owners[row["config_id"]], positions[row["query_id"]]
        if key in cells:
            lists[key[0]][key[1]] = page.answer(row)
    room = min(_MOST_LETTERS_OF_A_TEXT, max(_FEWEST_LETTERS, _MOST_LETTERS_OF_ALL // max(1, len(page.places))))
    return {"texts": [cut(text, room) for text in page.places], "lists": lists}


def _claims_and_verdicts(results: Results, ids: pa.Array) -> tuple[Claims, Verdicts]:
    """The claims and the judge's verdicts about some queries, from the first samples."""
    rows = (row for row in _rows(results, "claims", _CLAIM_COLUMNS, ids) if row["sample"] == 0)
    claims = grouped(((row["query_id"], row["text_hash"]), row) for row in rows)
    rows = (row for row in _rows(results, "verdicts", _VERDICT_COLUMNS, ids) if row["sample"] == 0)
    votes = grouped((tuple(row[name] for name in _QUESTION), row) for row in rows if not row["is_sentinel"])
    verdicts: Verdicts = {}
    for row in map(_median, votes.values()):
        about = (row["items_hash"], row["position"]) if row["step"] == "support" else ()
        verdicts[row["step"], row["query_id"], row["right_hash"], *about] = row
    return {key: sorted(own, key=lambda row: row["position"]) for key, own in claims.items()}, verdicts


def _median(rows: list[Row]) -> Row:
    """The verdict of the only judge, or the lower median of several judges' verdicts."""
    scale = step_named(rows[0]["step"]).scale if len(rows) > 1 else ()
    if not scale:
        return rows[-1]
    names = [row["verdict"] or str(row["grade"]) for row in rows]
    return sorted(rows, key=lambda row: scale.index(names[rows.index(row)]))[(len(rows) - 1) // 2]


@dataclass
class _Page:
    """Answers in the form that the page's script reads, with each long text stored once."""

    claims: Claims
    verdicts: Verdicts
    texts: dict[str, str]
    places: dict[str, int] = field(default_factory=dict)

    def answer(self, row: Row) -> Row:
        """One answer: its texts, contexts, claims, and the reference answer's claims."""
        query_id, contexts = row["query_id"], row["contexts"]
        hashes = [context["text_hash"] for context in contexts]
        kind = self.verdicts.get(("answer_kind", query_id, row["answer_hash"] or ""))
        return {
            "status": row["status"],
            "message": row["message"],
            "text": None if row["answer"] is None else cut(row["answer"], MOST_LETTERS_OF_AN_ANSWER),
            "reference": None if row["reference"] is None else self._place(row["reference"]),
            "kind": kind and [kind["verdict"], kind["grade"], self._reason(kind)],
            "contexts": [self._context(query_id, context, row["citations"]) for context in contexts],
            "leftOut": row["contexts_left_out"],
            "steps": None if row["steps"] is None else [self._place(_text(step)) for step in json.loads(row["steps"])],
            "claims": self._claims(query_id, row["answer_hash"], [*hashes, row["reference_hash"]]),
            "referenceClaims": self._claims(query_id, row["reference_hash"], [*hashes, row["answer_hash"]]),
            "tokens": [row["input_tokens"], row["output_tokens"]],
            "cost": row["cost"],
            "model": row["model"],
        }

    def _context(self, query_id: str, context: Row, citations: Sequence[str]) -> list[Any]:
        """Id, text, True if it is cited, and grade."""
        text = self.texts.get(context["text_hash"])
        grade = self.verdicts.get(("grade", query_id, context["text_hash"]))
        place = None if text is None else self._place(text)
        return [context["doc_id"], place, context["doc_id"] in citations, grade and grade["grade"]]

    def _claims(self, query_id: str, text_hash: str | None, evidence: list[str | None]) -> list[list[Any]]:
        """Each claim's text and position, and for each piece of evidence a verdict and a reason, or None."""
        claims = self.claims.get((query_id, text_hash or ""), [])
        return [
            [
                cut(claim["text"], _MOST_LETTERS_OF_A_REASON),
                claim["quote_start"],
                claim["quote_end"],
                [self._verdict(claim, item) for item in evidence],
            ]
            for claim in claims[:MOST_CLAIMS]
        ]

    def _verdict(self, claim: Row, evidence: str | None) -> list[Any] | None:
        key = ("support", claim["query_id"], evidence or "", claim["items_hash"], claim["position"])
        verdict = self.verdicts.get(key)
        return None if verdict is None else [verdict["verdict"], self._reason(verdict)]

    def _reason(self, verdict: Row) -> int | None:
        return None if verdict["reason"] is None else self._place(cut(verdict["reason"], _MOST_LETTERS_OF_A_REASON))

    def _place(self, text: str) -> int:
        return self.places.setdefault(text, len(self.places))


def _text(step: Row) -> str:
    """A call of a tool.

    >>> _text({"tool": "find", "args": {"q": "x"}, "status": "ok", "doc_ids": ["d1", "d2"]})
    'find({"q": "x"}) · ok · d1, d2'
    """
    parts = [f"{step['tool']}({json.dumps(step['args'], ensure_ascii=False)})", step.get("status")]
    return " · ".join(filter(None, [*parts, ", ".join(step.get("doc_ids") or ())]))


def _texts(results: Results, answers: Sequence[Row]) -> dict[str, str]:
    """The contexts' texts, by hash."""
    hashes = pa.array(sorted({context["text_hash"] for row in answers for context in row["contexts"]}), pa.string())
    rows = _rows(results, "texts", ("text_hash", "text"), hashes, by="text_hash")
    return {row["text_hash"]: row["text"] for row in rows}


def _rows(results: Results, name: str, columns: Sequence[str], ids: pa.Array, by: str = "query_id") -> Iterator[Row]:
    """The rows of a table with some ids; none if the run has no such table."""
    try:
        yield from results.stream(name, columns, ids, by)
    except InputError:
        return  # an older release wrote the run, or files were deleted; the rest of the report is not affected
