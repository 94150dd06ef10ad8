"""Export a benchmark in the formats of other tools: Auto RAG Eval, ADK, BEIR, TREC, ragas, Vertex's evaluation, CSV."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from rankbeam.pipelines.goldens.folder import GoldensFolder
from rankbeam.transforms.clients.formats.cases.google import CaseTurn, case_of, eval_set, row_of
from rankbeam.transforms.clients.formats.recognise import QRELS_HEADER
from rankbeam.transforms.clients.formats.syntax import spreadsheets
from rankbeam.transforms.goldens.publishing import apply_reviews, judgements, query
from rankbeam.transforms.goldens.records.items import UNANSWERABLE, Golden, Review
from rankbeam.transforms.records.errors import InputError, did_you_mean

_COLUMNS = (
    "item_id", "question", "answer", "answerable", "type", "split", "difficulty", "doc_ids", "quotes", "reviewed",
)  # fmt: skip


@dataclass(frozen=True)
class ExportSelection:
    """Items of a benchmark to export."""

    name: str
    items: Sequence[Golden]
    reviews: Mapping[str, Review]
    documents: Mapping[str, Mapping[str, Any]]  # all documents of the benchmark, by id


def choose_items(folder: GoldensFolder, split: str | None, *, only_reviewed: bool) -> ExportSelection:
    items, about, reviews = folder.items(), folder.about(), folder.reviews()
    if split is not None and split not in about["splits"]:
        raise InputError(f"has no split {split!r}; {did_you_mean(split, about['splits'])}", path=folder.path)
    selected = [item for item in apply_reviews(items, reviews) if split in (None, item.split)]
    selected = [item for item in selected if not only_reviewed or item.made.item_id in reviews]
    if not selected:
        selecting = " that --split and --reviewed select" if items else ""
        raise InputError(f"has no question{selecting}", path=folder.path)
    return ExportSelection(about["name"], selected, reviews, folder.documents())


def auto_rag_eval(chosen: ExportSelection, path: str) -> dict[str, str]:
    """The `benchmark.json` of Google's Auto RAG Eval: its keys, plus the ids that it lacks."""
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


def adk_list(chosen: ExportSelection, path: str) -> dict[str, str]:
    """The list of questions that Auto RAG Eval writes for ADK; newer versions of ADK read it as one conversation."""
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


def beir(chosen: ExportSelection, path: str) -> dict[str, str]:
    """A folder with `corpus.jsonl`, `queries.jsonl` and `qrels/SPLIT.tsv`."""
    files = {
        f"{path}/corpus.jsonl": _lines(chosen.documents.values()),
        f"{path}/queries.jsonl": _lines(query(item, chosen.reviews) for item in chosen.items),
    }
    for split in sorted({item.split for item in chosen.items}):
        rows = [row[:3] for item in chosen.items if item.split == split for row in judgements(item)]
        quoted = next((doc_id for _, doc_id, _ in rows if doc_id.startswith('"')), None)
        if quoted is not None:
            problem = (
                f"BEIR's reader removes quotes: document ids must not begin with a quotation mark, as {quoted} does"
            )
            raise InputError(f"{problem}; export csv", path=path)
        files[f"{path}/qrels/{split}.tsv"] = _tabs([QRELS_HEADER[:3], *rows])
    return files


def trec(chosen: ExportSelection, path: str) -> dict[str, str]:
    """A folder with `topics.tsv` and `qrels.txt`."""
    rows = [(name, "0", doc_id, grade) for item in chosen.items for name, doc_id, grade, _ in judgements(item)]
    blank = next((doc_id for _, _, doc_id, _ in rows if doc_id.split() != [doc_id]), None)
    if blank is not None:
        problem = f"TREC's judgements cannot contain document ids with white space, such as {blank!r}; export beir"
        raise InputError(problem, path=path)
    topics = [(item.made.item_id, " ".join(item.made.question.split())) for item in chosen.items]
    judged = "".join(" ".join(map(str, row)) + "\n" for row in rows)
    return {f"{path}/topics.tsv": _tabs(topics), f"{path}/qrels.txt": judged}


def ragas(chosen: ExportSelection, path: str) -> dict[str, str]:
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


def vertex(chosen: ExportSelection, path: str) -> dict[str, str]:
    """JSON lines for Vertex AI's Gen AI evaluation service: prompt and reference, with the quotes as context."""
    rows = (
        {
            **row_of(item.made.item_id, CaseTurn(item.made.question, item.made.answer), ()),
            "context": "\n\n".join(piece.quote for piece in item.made.evidence),
        }
        for item in chosen.items
    )
    return {path: _lines(rows)}


def table(chosen: ExportSelection, path: str) -> dict[str, str]:
    """A table with one row for each item, safe in programs that may take cells for formulas."""
    rows = (dict(zip(_COLUMNS, _cells(item, chosen), strict=True)) for item in chosen.items)
    return {path: spreadsheets.as_csv(_COLUMNS, rows)}


def _cells(item: Golden, chosen: ExportSelection) -> list[str]:
    candidate = item.made
    answerable, is_reviewed = candidate.type != UNANSWERABLE, candidate.item_id in chosen.reviews
    words = ["true" if flag else "false" for flag in (answerable, is_reviewed)]
    quotes = "\n".join(piece.quote for piece in candidate.evidence)
    doc_ids = "\n".join(candidate.doc_ids)
    about = (candidate.type, item.split, item.difficulty)
    return [candidate.item_id, candidate.question, candidate.answer, words[0], *about, doc_ids, quotes, words[1]]


def _lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _tabs(rows: Iterable[Iterable[object]]) -> str:
    return "".join("\t".join(map(str, row)) + "\n" for row in rows)


def adk(chosen: ExportSelection, path: str) -> dict[str, str]:
    """The EvalSet of Google's Agent Development Kit, named like its file: a case per item, vital nuggets as rubrics.

    `adk eval` and ADK's web interface read it. They read a bare list of questions, which older tools wrote, as one
    conversation, in which every answer depends on the questions before it.
    """
    full, text = eval_set(path, chosen.name, [_case(item, chosen) for item in chosen.items])
    return {full: text}


def _case(item: Golden, chosen: ExportSelection) -> dict[str, Any]:
    candidate = item.made
    rubrics = [
        {
            "rubricId": f"{candidate.item_id}-{number}",
            "rubricContent": {"textProperty": f"The answer says: {nugget.text}"},
            "type": "FINAL_RESPONSE_QUALITY",
        }
        for number, nugget in enumerate(candidate.nuggets)
        if nugget.vital
    ]
    extra = {"rankbeam": {**query(item, chosen.reviews)["metadata"], "doc_ids": list(candidate.doc_ids)}}
    turn = CaseTurn(candidate.question, candidate.answer, ())
    return case_of(candidate.item_id, [turn], **({"rubrics": rubrics} if rubrics else {}), **extra)


FORMATS: Mapping[str, Callable[[ExportSelection, str], dict[str, str]]] = MappingProxyType(
    {
        "adk": adk,
        "adk_list": adk_list,
        "auto_rag_eval": auto_rag_eval,
        "beir": beir,
        "csv": table,
        "ragas": ragas,
        "trec": trec,
        "vertex": vertex,
    }
)
"""For each format, a function from the items and the output path to the contents of its files, by path."""
