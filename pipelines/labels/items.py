"""Tasks for people from a run's tables: about verdicts, ranked documents, and a user's own criteria."""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median_low
from typing import Any

from rankbeam.pipelines.experiment.file.criteria import CriterionModel, criteria_of
from rankbeam.pipelines.results.corpus import corpus_texts, histories, stored_texts, texts_of_queries
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.formats.recognise import QRELS_HEADER
from rankbeam.transforms.judge.metrics import JudgedMetric
from rankbeam.transforms.judge.panel import places_of
from rankbeam.transforms.judge.steps import step_named
from rankbeam.transforms.judge.steps.criterion import input_of
from rankbeam.transforms.judge.steps.grade import GradeStep
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records.errors import InputError, InputErrors
from rankbeam.transforms.records.holes import HUMAN
from rankbeam.transforms.records.judging.criteria import STATEMENT, Criterion, criteria_in
from rankbeam.transforms.records.judging.items import Gold
from rankbeam.transforms.records.judging.steps import JudgedCase, JudgeQuestion
from rankbeam.transforms.records.labels import ADJUDICATED, Label, item_id_of, text_hash

Row = dict[str, Any]
_ANSWER = ("config_id", "query_id", "answer", "reference", "contexts")


@dataclass(frozen=True)
class LabelTask:
    """One decision to make, for one of the texts that make its claim.

    `probability` is None if somebody chose the query. Tasks from older releases have no question and no decisions;
    the step's are used instead.
    """

    item_id: str
    step: str
    query_id: str
    query: str
    owner_hash: str | None
    position: int | None
    left_hash: str | None
    left_text: str | None
    right_hash: str
    right_text: str
    probability: float | None
    question: str | None = None
    decisions: tuple[str, ...] = ()
    doc_id: str | None = None
    history: str | None = None
    drawn_by: str | None = None
    items_hash: str | None = None
    drawn_for: str | None = None

    @property
    def instruction(self) -> str:
        return self.question or step_named(self.step).people_question

    @property
    def choices(self) -> tuple[str, ...]:
        return tuple(self.decisions or step_named(self.step).decisions)


def with_histories(run: Results, tasks: Sequence[LabelTask]) -> list[LabelTask]:
    """The tasks with the earlier turns of their queries' conversations, if the query is shown."""
    known = dict(histories(run, {task.query_id for task in tasks}))
    return [replace(task, history=known.get(task.query_id) if task.query else None) for task in tasks]


def ranked_queries(run: Results, ids: Collection[str]) -> set[str]:
    columns = ("config_id", "query_id")
    return {row["query_id"] for row in run.stream("rankings", columns, ids, "config_id")}


def ranking_tasks(run: Results, cutoff: int, ids: Collection[str], chosen: Sequence[str]) -> list[LabelTask]:
    """One task for each query and document that any chosen configuration ranks first, with all its passages."""
    documents: defaultdict[str, defaultdict[str, dict[str, None]]] = defaultdict(lambda: defaultdict(dict))
    for row in run.stream("rankings", ("config_id", "query_id", "documents"), chosen):
        if row["config_id"] in ids:
            first = list(dict.fromkeys(document["doc_id"] for document in row["documents"]))[:cutoff]
            for document in row["documents"]:
                if document["doc_id"] in first:
                    passages = documents[row["query_id"]][document["doc_id"]]
                    if document["text"] is not None:
                        passages[document["text"]] = None
    names = {doc_id for group in documents.values() for doc_id, passages in group.items() if not passages}
    texts = {doc_id: text for doc_id, text in corpus_texts(run) if doc_id in names} if names else {}
    queries = texts_of_queries(run, chosen)
    return [
        _ranking_task(query_id, queries.get(query_id), doc_id, "\n\n".join(passages) or texts.get(doc_id))
        for query_id, group in documents.items()
        for doc_id, passages in group.items()
    ]


def _ranking_task(query_id: str, query: str | None, doc_id: str, text: str | None) -> LabelTask:
    if query is None or text is None:
        missing = f"query {query_id!r}" if query is None else f"document {doc_id!r}"
        raise InputError(f"the text of {missing} is not known; name the texts in dataset.queries and dataset.corpus")
    digest, step = text_hash(text), GradeStep()
    return LabelTask(
        item_id_of(step.name, query_id, None, digest), step.name, query_id, query, None, None, None, None, digest, text,
        None, step.people_question, step.decisions, doc_id,
    )  # fmt: skip


def judgements(tasks: Iterable[LabelTask], labels: Iterable[Label]) -> str:
    """The grades for queries whose documents all have labels, as a file of judgements; "" if there are none.

    With several annotators, the grade is the (lower) median; an adjudicated grade replaces it.
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
        (query_id, doc_id, str(_final_grade(grades[task.item_id])), HUMAN)
        for query_id, query_tasks in sorted(by_query.items())
        if all(task.item_id in grades for task in query_tasks.values())
        for doc_id, task in sorted(query_tasks.items())
    ]
    if wrong := [row for row in rows if any(mark in name for name in row[:2] for mark in "\t\r\n")]:
        raise InputError(f"{wrong[0][:2]}: an id with a tab or a line end cannot be written to a file of judgements")
    return "".join("\t".join(row) + "\n" for row in (QRELS_HEADER, *rows)) if rows else ""


def _final_grade(by_annotator: Mapping[str, int]) -> int:
    return by_annotator.get(ADJUDICATED, median_low(by_annotator.values()))


def compares_answers(run: Results, metric: JudgedMetric) -> bool:
    return metric.is_criterion and bool(_criterion_settings(run, metric).get("pairs"))


def with_criterion_of(run: Results, metric: JudgedMetric) -> JudgedMetric:
    """The metric with its criterion as the run judged it."""
    located = replace(run.experiment_file, problems=[])
    (name,) = criteria_in([str(metric)])
    model = CriterionModel.model_validate({**_criterion_settings(run, metric), "examples": None})
    criteria = criteria_of(located, {name: model}, ".")
    if located.problems:
        hint = "the file with its question is looked up in this folder; run the command in the experiment's folder"
        raise InputErrors([*located.problems, InputError(f"{metric} cannot be labelled; {hint}")])
    question = text_hash(criteria[name].question)
    if not list(run.stream("texts", ("text_hash",), [question], "text_hash")):
        problem = f"{metric} was judged by another question: its file has changed; restore the file or evaluate again"
        raise InputError(problem, path=run.output)
    return replace(metric, criterion=criteria[name])


def _criterion_settings(run: Results, metric: JudgedMetric) -> Row:
    (name,) = criteria_in([str(metric)])
    settings = run.judge_settings["criteria"][name]
    return {"question": settings} if isinstance(settings, str) else dict(settings)


def criterion_tasks(run: Results, metric: JudgedMetric, ids: Collection[str], chosen: Sequence[str]) -> list[LabelTask]:
    """The tasks for some queries and configurations, each once."""
    criterion = metric.criterion
    assert criterion is not None  # noqa: S101  the caller bound it
    result: dict[str, LabelTask] = {}
    for query_id, case in _cases(run, metric, criterion, ids, chosen):
        for question in _questions(criterion, case):
            task = _criterion_task(criterion, query_id, case.query, question)
            result.setdefault(task.item_id, task)
    return list(result.values())


def _cases(
    run: Results, metric: JudgedMetric, criterion: Criterion, ids: Collection[str], chosen: Sequence[str]
) -> Iterator[tuple[str, JudgedCase]]:
    queries = texts_of_queries(run, chosen)
    verdicts = [
        row
        for row in run.stream("verdicts", ("step", "query_id", "left_hash", "right_hash"), chosen)
        if row["step"] == criterion.step
    ]
    answers = [row for row in run.stream("answers", _ANSWER, chosen) if row["config_id"] in ids]
    hashes = {row[name] for row in verdicts for name in ("left_hash", "right_hash")}
    hashes |= {context["text_hash"] for row in answers for context in row["contexts"]}
    texts = stored_texts(run, hashes)
    judged = grouped((row["query_id"], texts[row["right_hash"]]) for row in verdicts)
    stated = grouped((row["query_id"], texts[row["left_hash"]]) for row in verdicts if row["left_hash"] is not None)
    rubrics = {
        name: {criterion.rubrics or "": json.dumps(list(dict.fromkeys(entries)))} for name, entries in stated.items()
    }
    for row in answers or [_without_answer(query_id, judged.get(query_id, ())) for query_id in chosen]:
        contexts = tuple(context.get("text") or texts[context["text_hash"]] for context in row["contexts"])
        yield (
            row["query_id"],
            JudgedCase(
                queries[row["query_id"]] or "",
                contexts[: metric.cutoff],
                row["answer"],
                gold=Gold(row["reference"]),
                attributes=rubrics.get(row["query_id"], {}),
            ),
        )


def _without_answer(query_id: str, judged: Iterable[str]) -> Row:
    """The contexts that were judged separately, in the form of an answer."""
    contexts = [{"text": text} for text in dict.fromkeys(judged)]
    return {"query_id": query_id, "answer": None, "reference": None, "contexts": contexts}


def _questions(criterion: Criterion, case: JudgedCase) -> Sequence[JudgeQuestion]:
    try:
        return list(next(input_of(criterion).get(case)))
    except StopIteration:
        return ()  # there is nothing to judge


def _criterion_task(criterion: Criterion, query_id: str, query: str, question: JudgeQuestion) -> LabelTask:
    ((step, _, left, right),) = places_of(question, query_id)
    others = [text for text in json.loads(question.texts[-1]) if text["id"] not in ("query", STATEMENT)]
    named = "\n\n".join(f"[{text['id']}]\n{text['text']}" for text in others)
    return LabelTask(
        item_id_of(step, query_id, left, right),
        step,
        query_id,
        query if "query" in criterion.about else "",
        None,
        None,
        left,
        question.items[0] if question.items else None,
        right,
        others[0]["text"] if len(others) == 1 else named,
        None,
        criterion.question,
        tuple(word for word, _ in criterion.levels),
    )
