"""Formats that are lines or tables: Auto RAG Eval, BEIR, TREC, ragas, Vertex's evaluation, CSV."""

import csv
import io
import json
from collections.abc import Iterable, Mapping
from typing import Any

from rankbeam.pipelines.goldens.export.items import Chosen
from rankbeam.transforms.clients.formats.cases.eval_sets import CaseTurn
from rankbeam.transforms.clients.formats.cases.vertex import row_of
from rankbeam.transforms.clients.formats.recognise import QRELS_HEADER
from rankbeam.transforms.clients.formats.spreadsheets import safe
from rankbeam.transforms.goldens.publishing import judgements, query
from rankbeam.transforms.goldens.records.items import Golden
from rankbeam.transforms.goldens.records.types import UNANSWERABLE
from rankbeam.transforms.records.errors import InputError

_COLUMNS = (
    "item_id", "question", "answer", "answerable", "type", "split", "difficulty", "doc_ids", "quotes", "reviewed",
)  # fmt: skip


def auto_rag_eval(chosen: Chosen, path: str) -> dict[str, str]:
    """The `benchmark.json` of Google's Auto RAG Eval; its keys, and the ids that it lacks besides."""
    rows = [
        {
            "context": "\n\n".join(piece.quote for piece in item.made.evidence),
            "Q&A Gen Profile": {"type": item.made.type, **dict(item.made.profile)},
            "Question": item.made.question,
            "Answer": item.made.answer,
            "item_id": item.made.item_id,
            "doc_ids": list(item.made.doc_ids),
        }
        for item in chosen.items
    ]
    return {path: json.dumps(rows, ensure_ascii=False, indent=4) + "\n"}


def adk_list(chosen: Chosen, path: str) -> dict[str, str]:
    """The list of questions that Auto RAG Eval writes for ADK; newer ADKs take it for one conversation."""
    rows = [
        {
            "query": item.made.question,
            "expected_tool_use": [],
            "reference": item.made.answer,
            "item_id": item.made.item_id,
            "doc_ids": list(item.made.doc_ids),
        }
        for item in chosen.items
    ]
    return {path: json.dumps(rows, ensure_ascii=False, indent=4) + "\n"}


def beir(chosen: Chosen, path: str) -> dict[str, str]:
    """A folder with `corpus.jsonl`, `queries.jsonl` and `qrels/SPLIT.tsv`."""
    files = {
        f"{path}/corpus.jsonl": _lines(chosen.documents.values()),
        f"{path}/queries.jsonl": _lines(query(item, chosen.reviews) for item in chosen.items),
    }
    for split in sorted({item.split for item in chosen.items}):
        rows = [row[:3] for item in chosen.items if item.split == split for row in judgements(item)]
        files[f"{path}/qrels/{split}.tsv"] = _tabs([QRELS_HEADER[:3], *rows])
    return files


def trec(chosen: Chosen, path: str) -> dict[str, str]:
    """A folder with `topics.tsv` and `qrels.txt`."""
    rows = [(name, "0", doc_id, grade) for item in chosen.items for name, doc_id, grade, _ in judgements(item)]
    blank = next((doc_id for _, _, doc_id, _ in rows if doc_id.split() != [doc_id]), None)
    if blank is not None:
        problem = f"TREC's judgements take no document id with a blank, such as {blank!r}; export beir"
        raise InputError(problem, path=path)
    topics = [(item.made.item_id, " ".join(item.made.question.split())) for item in chosen.items]
    judged = "".join(" ".join(map(str, row)) + "\n" for row in rows)
    return {f"{path}/topics.tsv": _tabs(topics), f"{path}/qrels.txt": judged}


def ragas(chosen: Chosen, path: str) -> dict[str, str]:
    """JSON lines with the columns of ragas' `SingleTurnSample`."""
    rows = (
        {
            "user_input": item.made.question,
            "reference": item.made.answer,
            "reference_contexts": [piece.quote for piece in item.made.evidence],
            "reference_context_ids": list(item.made.doc_ids),
            "query_id": item.made.item_id,
        }
        for item in chosen.items
    )
    return {path: _lines(rows)}


def vertex(chosen: Chosen, path: str) -> dict[str, str]:
    """JSON lines for Vertex AI's Gen AI evaluation service: prompt and reference, with the quotes as context."""
    rows = (
        {
            **row_of(item.made.item_id, CaseTurn(item.made.question, item.made.answer), ()),
            "context": "\n\n".join(piece.quote for piece in item.made.evidence),
        }
        for item in chosen.items
    )
    return {path: _lines(rows)}


def table(chosen: Chosen, path: str) -> dict[str, str]:
    """A table, one row an item, safe in programs that take a cell for a formula."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(_COLUMNS)
    writer.writerows([safe(cell) for cell in _cells(item, chosen)] for item in chosen.items)
    return {path: text.getvalue()}


def _cells(item: Golden, chosen: Chosen) -> list[str]:
    candidate = item.made
    answerable, is_reviewed = candidate.type != UNANSWERABLE, candidate.item_id in chosen.reviews
    words = ["true" if flag else "false" for flag in (answerable, is_reviewed)]
    quotes = "\n".join(piece.quote for piece in candidate.evidence)
    doc_ids = " ".join(candidate.doc_ids)
    about = (candidate.type, item.split, item.difficulty)
    return [candidate.item_id, candidate.question, candidate.answer, words[0], *about, doc_ids, quotes, words[1]]


def _lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _tabs(rows: Iterable[Iterable[object]]) -> str:
    return "".join("\t".join(map(str, row)) + "\n" for row in rows)
