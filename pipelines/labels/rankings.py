"""Labels of retrieved documents, which become judgements for metrics of rankings."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import median_low

from rankbeam.pipelines.labels.items import LabelTask, rows_of
from rankbeam.pipelines.results.corpus import corpus_texts
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.formats.recognise import QRELS_HEADER
from rankbeam.transforms.judge.steps.grade import GradeStep
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.holes import HUMAN
from rankbeam.transforms.records.labels import ADJUDICATED, Label, item_id_of, text_hash


def ranked_queries(run: Results, ids: Collection[str]) -> set[str]:
    """The queries for which a chosen configuration has a ranking."""
    columns = ("config_id", "query_id")
    return {row["query_id"] for row in rows_of(run, "rankings", columns, ids, "config_id")}


def ranking_tasks(run: Results, cutoff: int, ids: Collection[str], chosen: Sequence[str]) -> list[LabelTask]:
    """One task a query and document that is among the first of any chosen configuration.

    Raises:
        InputError: the text of a query or document is not known, so the query could not be labelled whole.
    """
    documents: defaultdict[str, dict[str, str | None]] = defaultdict(dict)
    for row in rows_of(run, "rankings", ("config_id", "query_id", "documents"), chosen):
        if row["config_id"] in ids:
            documents[row["query_id"]] |= {one["doc_id"]: one["text"] for one in row["documents"][:cutoff]}
    names = {doc_id for of_query in documents.values() for doc_id, text in of_query.items() if text is None}
    texts = {doc_id: text for doc_id, text in corpus_texts(run) if doc_id in names} if names else {}
    queries = {row["query_id"]: row["text"] for row in rows_of(run, "query_metrics", ("query_id", "text"), chosen)}
    return [
        _task(query_id, queries.get(query_id), doc_id, texts.get(doc_id) if text is None else text)
        for query_id, of_query in documents.items()
        for doc_id, text in of_query.items()
    ]


def _task(query_id: str, query: str | None, doc_id: str, text: str | None) -> LabelTask:
    if query is None or text is None:
        missing = f"query {query_id!r}" if query is None else f"document {doc_id!r}"
        raise InputError(f"the text of {missing} is not known; name the texts in dataset.queries and dataset.corpus")
    digest, step = text_hash(text), GradeStep()
    return LabelTask(
        item_id_of(step.name, query_id, None, digest), step.name, query_id, query, None, None, None, None, digest, text,
        None, step.people_question, step.decisions, doc_id,
    )  # fmt: skip


def judgements(tasks: Iterable[LabelTask], labels: Iterable[Label]) -> str:
    """The grades of the queries whose documents all have labels, as a file of judgements; "" where there are none.

    Of several annotators the grade is the median, and of two medians the lower; an adjudicated grade replaces them.
    """
    grades: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for label in labels:
        if label.step == GradeStep.name:
            grades[label.item_id][label.annotator] = int(label.decision)
    by_query: defaultdict[str, dict[str, LabelTask]] = defaultdict(dict)
    for task in tasks:
        if task.doc_id is not None:
            by_query[task.query_id][task.doc_id] = task
    rows = [
        (query_id, doc_id, str(_grade(grades[task.item_id])), HUMAN)
        for query_id, of_query in sorted(by_query.items())
        if all(task.item_id in grades for task in of_query.values())
        for doc_id, task in sorted(of_query.items())
    ]
    if wrong := [row for row in rows if any(mark in name for name in row[:2] for mark in "\t\r\n")]:
        raise InputError(f"{wrong[0][:2]}: an id with a tab or a line end cannot be written to a file of judgements")
    return "".join("\t".join(row) + "\n" for row in (QRELS_HEADER, *rows)) if rows else ""


def _grade(by_annotator: Mapping[str, int]) -> int:
    return by_annotator.get(ADJUDICATED, median_low(by_annotator.values()))
