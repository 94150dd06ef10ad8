"""Tasks to label a criterion of the user's own: the questions to its judge, with the judge's texts and verdicts."""

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from rankbeam.pipelines.experiment.file.criteria import CriterionModel, criteria_of
from rankbeam.pipelines.labels.items import LabelTask, Row, rows_of
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.judge.metrics import JudgedMetric
from rankbeam.transforms.judge.panel import places_of
from rankbeam.transforms.judge.steps.criterion import input_of
from rankbeam.transforms.records.errors import InputError, InputErrors
from rankbeam.transforms.records.judging.criteria import STATEMENT, Criterion, criteria_in
from rankbeam.transforms.records.judging.items import Gold
from rankbeam.transforms.records.judging.steps import JudgedCase, JudgeQuestion
from rankbeam.transforms.records.labels import item_id_of, text_hash

_ANSWER = ("config_id", "query_id", "answer", "reference", "contexts")


def compares_answers(run: Results, metric: JudgedMetric) -> bool:
    """Return whether a metric is a criterion that compares two answers."""
    return metric.is_criterion and bool(_stated(run, metric).get("pairs"))


def with_criterion_of(run: Results, metric: JudgedMetric) -> JudgedMetric:
    """The metric with its criterion as the run judged it.

    Raises:
        InputError: the criterion's question is in a file that is missing or has changed since.
    """
    problems: list[InputError] = []
    (name,) = criteria_in([str(metric)])
    model = CriterionModel.model_validate({**_stated(run, metric), "examples": None})
    criteria = criteria_of(run.given, {name: model}, ".", problems)
    if problems:
        hint = "the file with its question is looked up in this folder; run the command in the experiment's folder"
        raise InputErrors([*problems, InputError(f"{metric} cannot be labelled; {hint}")])
    question = text_hash(criteria[name].question)
    if not list(rows_of(run, "texts", ("text_hash",), [question], "text_hash")):
        problem = f"{metric} was judged by another question: its file has changed; restore the file or evaluate again"
        raise InputError(problem, path=run.output)
    return replace(metric, criterion=criteria[name])


def _stated(run: Results, metric: JudgedMetric) -> Row:
    (name,) = criteria_in([str(metric)])
    return dict(run.judge_settings["criteria"][name])


def criterion_tasks(run: Results, metric: JudgedMetric, ids: Collection[str], chosen: Sequence[str]) -> list[LabelTask]:
    """The tasks of some queries for some configurations, each once."""
    criterion = metric.criterion
    assert criterion is not None  # noqa: S101  the caller bound it
    result: dict[str, LabelTask] = {}
    for query_id, case in _cases(run, metric, criterion, ids, chosen):
        for question in _questions(criterion, case):
            task = _task(criterion, query_id, case.query, question)
            result.setdefault(task.item_id, task)
    return list(result.values())


def _cases(
    run: Results, metric: JudgedMetric, criterion: Criterion, ids: Collection[str], chosen: Sequence[str]
) -> Iterator[tuple[str, JudgedCase]]:
    of_queries = rows_of(run, "query_metrics", ("query_id", "text"), chosen)
    queries = {row["query_id"]: row["text"] or "" for row in of_queries}
    verdicts = [
        row
        for row in rows_of(run, "verdicts", ("step", "query_id", "left_hash", "right_hash"), chosen)
        if row["step"] == criterion.step
    ]
    answers = [row for row in rows_of(run, "answers", _ANSWER, chosen) if row["config_id"] in ids]
    hashes = {row[name] for row in verdicts for name in ("left_hash", "right_hash")}
    hashes |= {context["text_hash"] for row in answers for context in row["contexts"]}
    texts = {row["text_hash"]: row["text"] for row in rows_of(run, "texts", ("text_hash", "text"), hashes, "text_hash")}
    statements: defaultdict[str, dict[str, None]] = defaultdict(dict)
    judged: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for row in verdicts:
        judged[row["query_id"]][texts[row["right_hash"]]] = None
        if row["left_hash"] is not None:
            statements[row["query_id"]][texts[row["left_hash"]]] = None
    rubrics = {name: {criterion.rubrics or "": json.dumps(list(of_query))} for name, of_query in statements.items()}
    for row in answers or [_without_answer(query_id, judged[query_id]) for query_id in chosen]:
        contexts = tuple(context.get("text") or texts[context["text_hash"]] for context in row["contexts"])
        yield (
            row["query_id"],
            JudgedCase(
                queries[row["query_id"]],
                contexts[: metric.cutoff],
                row["answer"],
                gold=Gold(row["reference"]),
                attributes=rubrics.get(row["query_id"], {}),
            ),
        )


def _without_answer(query_id: str, judged: Mapping[str, None]) -> Row:
    """The contexts that were judged one by one, in the form of an answer."""
    contexts = [{"text": text} for text in judged]
    return {"query_id": query_id, "answer": None, "reference": None, "contexts": contexts}


def _questions(criterion: Criterion, case: JudgedCase) -> Sequence[JudgeQuestion]:
    try:
        return list(next(input_of(criterion).get(case)))
    except StopIteration:
        return ()  # there is nothing to judge


def _task(criterion: Criterion, query_id: str, query: str, question: JudgeQuestion) -> LabelTask:
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
