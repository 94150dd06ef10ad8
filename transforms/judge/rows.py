"""Rows of the tables of answers and judgements, made from evaluated items."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rankbeam.transforms.judge.answering import Answerer
from rankbeam.transforms.judge.steps import step_named
from rankbeam.transforms.judge.steps.claims import ClaimsStep
from rankbeam.transforms.judge.work import STAGE
from rankbeam.transforms.records.calls.prompt import Template
from rankbeam.transforms.records.calls.steps import Subject
from rankbeam.transforms.records.errors import CallError, Failure
from rankbeam.transforms.records.judging.answers import AnswerRow, EvaluatedItem, Judgement
from rankbeam.transforms.records.labels import items_hash, text_hash
from rankbeam.transforms.records.metrics.evaluation import Configuration
from rankbeam.transforms.records.trajectories import as_json

Row = dict[str, Any]


@dataclass(frozen=True)
class Rows:
    """Makes rows, without the common columns."""

    configurations: tuple[Configuration, ...]
    answerers: Mapping[int, Answerer]
    judges: Mapping[str, str]  # names by service
    templates: Mapping[str, Template]

    def answers(self, evaluated: EvaluatedItem) -> Iterator[Row]:
        for row in evaluated.answers:
            yield self._answer(evaluated, row)

    def _answer(self, evaluated: EvaluatedItem, row: AnswerRow) -> Row:
        answer, answerer = row.answer, self.answerers.get(row.configuration, Answerer())
        reference, model = evaluated.reference, answerer.model
        contexts = [
            {"rank": rank, "doc_id": passage.doc_id, "text_hash": text_hash(passage.text or "")}
            for rank, passage in enumerate(answer.contexts, start=1)
        ]
        cited = (answer.contexts[place].doc_id for place in answer.cited)
        return {
            "config_id": self.configurations[row.configuration].config_id,
            "query_id": evaluated.query_id,
            "sample": row.sample,
            "status": answer.status.value,
            "answer": answer.text,
            "answer_hash": None if answer.text is None else text_hash(answer.text),
            "reference": reference,
            "reference_hash": None if reference is None else text_hash(reference),
            "message": answer.message,
            "service": None if model is None else model.name,
            "model": None if model is None else model.label,
            "model_version": answer.model_version,
            "prompt_hash": answerer.prompt_hash,
            "contexts": contexts,
            "contexts_left_out": answer.left_out,
            "citations": list(dict.fromkeys(doc_id for doc_id in cited if doc_id is not None)),
            **answer.tokens.by_column(),
            "cost": answer.cost,
            "seconds": answer.seconds,
            "first_token_s": answer.first_token_s,
            "steps": None if answer.steps is None else json.dumps(as_json(answer.steps), ensure_ascii=False),
        }

    def claims(self, evaluated: EvaluatedItem) -> Iterator[Row]:
        for judgement in evaluated.judgements:
            if judgement.step != ClaimsStep.name or judgement.verdict is None or judgement.known is not None:
                continue
            text = judgement.texts[0]
            together = items_hash(claim.text for claim in judgement.verdict)
            for position, claim in enumerate(judgement.verdict):
                yield {
                    "text_hash": text_hash(text),
                    "owner": "reference" if text == evaluated.reference else "answer",
                    "query_id": evaluated.query_id,
                    "position": position,
                    "sample": judgement.sample,
                    "text": claim.text,
                    "quote_start": claim.start,
                    "quote_end": claim.end,
                    "items_hash": together,
                    **self._judge(judgement),
                }

    def verdicts(self, evaluated: EvaluatedItem) -> Iterator[Row]:
        for judgement in evaluated.judgements:
            known = judgement.known
            if judgement.verdict is None:
                continue
            common = {
                "step": judgement.step,
                "item_id": judgement.key if known is None else known.id,
                "query_id": evaluated.query_id if known is None else None,
                "right_hash": text_hash(judgement.texts[0]) if judgement.texts else None,
                "sample": judgement.sample,
                "is_sentinel": known is not None,
                "human_verdict": None if known is None else known.expected,
                "items_hash": items_hash(judgement.items),
                "is_repeat": judgement.is_repeat,
                **self._judge(judgement),
            }
            for position, (item, verdict) in enumerate(_verdicts(judgement)):
                left = None if item is None else text_hash(item)
                yield {**common, "left_hash": left, "position": position, **verdict}

    def failures(self, evaluated: EvaluatedItem) -> Iterator[Row]:
        """Rows of `tables.FAILURES`: one for each failed value, or one for a failed answer without such values."""
        reported = set()
        for value in evaluated.values:
            if value.error is not None:
                reported.add(value.configuration)
                yield self._failure(evaluated.query_id, value.configuration, value.metric, value.error)
        for row in evaluated.answers:
            if row.answer.error is not None and row.configuration not in reported:
                reported.add(row.configuration)
                yield self._failure(evaluated.query_id, row.configuration, None, row.answer.error)

    def failed(self, subject: Subject, failure: Failure) -> Iterator[Row]:
        """Rows of `tables.FAILURES` for an item that failed as a whole: one for each configuration."""
        error = CallError(failure.kind, failure.message, failure.attempts)
        for position in subject.positions:
            yield self._failure(subject.query_id, position, None, error)

    def _failure(self, query_id: str, configuration: int, metric: str | None, error: CallError) -> Row:
        return {
            "config_id": self.configurations[configuration].config_id,
            "query_id": query_id,
            "stage": STAGE,
            "kind": error.kind.value,
            "attempts": error.attempts,
            "message": error.message,
            "metric": metric,
        }

    def _judge(self, judgement: Judgement) -> Row:
        template = self.templates.get(judgement.step)
        return {
            "judge": self.judges.get(judgement.judge),
            "model_version": judgement.model_version,
            "prompt_hash": None if template is None else template.hash,
        }


def _verdicts(judgement: Judgement) -> Iterator[tuple[str | None, Row]]:
    """A judgement's verdicts on each item, or on the whole; for a known item of a step without verdicts, its class."""
    step = step_named(judgement.step)
    if judgement.known is not None and not step.judges:
        yield None, {"verdict": step.known_class(judgement.verdict), "grade": None, "reason": None}
        return
    verdicts = step.verdicts(judgement.verdict)
    items = judgement.items or [None] * len(verdicts)
    for item, one in zip(items, verdicts, strict=True):
        yield item, {"verdict": one.verdict, "grade": one.grade, "reason": one.reason}


def texts_of(evaluated: EvaluatedItem) -> Iterator[tuple[str, str]]:
    items = (item for judgement in evaluated.judgements for item in judgement.items)
    for text in dict.fromkeys([*evaluated.texts(), *items]):
        yield text_hash(text), text
