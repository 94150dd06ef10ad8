"""From what a judge said to the arguments of the metrics' formulas, for one query under one configuration."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rankbeam.transforms.judge.metrics import JudgedMetric
from rankbeam.transforms.judge.questions import Judged, Question, Texts, claims, joint, sentences
from rankbeam.transforms.kernels.arrays import BoolArray
from rankbeam.transforms.kernels.judged import AnswerKind, Assigned, Undefined, Value
from rankbeam.transforms.kernels.judged_ragas import cosine
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.items import Gold
from rankbeam.transforms.records.judgements import Verdict


class Evidence:
    """What the judge said, as arguments of formulas.

    An answer that was not asked for, since nothing was retrieved, counts as one that refuses: it has no claims.
    """

    def __init__(self, query: str, judged: Judged, gold: Gold, said: Mapping[Question, Any]) -> None:
        self._query, self._judged, self._gold, self._said = query, judged, gold, said

    def value(self, metric: JudgedMetric) -> Value:
        """The value of a metric, or the reason why it has none."""
        definition = metric.definition
        inputs = {name: self._input(name) for name in definition.inputs}
        if self._gold.answerable is False and self._has_no_claims(inputs):
            inputs |= {name: self._input(name) for name in definition.inputs_without_claims}
        value = metric.value(inputs)
        if value is not Undefined.NO_REFERENCE_CLAIMS:
            return value
        if self._gold.reference is None:
            return Undefined.NO_REFERENCE
        is_doubtful = definition.scores_refusals and self._gold.answerable is None
        return Undefined.REFERENCE_REFUSES if is_doubtful else value

    def _has_no_claims(self, inputs: Mapping[str, Any]) -> bool:
        return any(name in inputs and not len(inputs[name]) for name in ("ac", "ag"))

    def _input(self, name: str) -> Any:
        make: Mapping[str, Callable[[], Any]] = {
            "ac": lambda: self._by_context(self._answer_claims()),
            "gc": lambda: self._by_context(self._reference_claims()),
            "ag": self._right,
            "ga": self._covered,
            "grades": lambda: np.array([self._one("grade", text).grade for text in self._judged.contexts], np.int64),
            "cited": self._cited,
            "invented": lambda: self._judged.invented,
            "kind": lambda: self._kind()[0],
            "relevance": lambda: self._kind()[1],
            "answerable": lambda: self._gold.answerable,
            "assigned": self._assigned,
            "vital": lambda: np.array([vital for _, vital in self._gold.nuggets or ()], bool),
            "statements": self._statements,
            "extracted": self._extracted,
            "attributed": self._attributed,
            "cosines": self._cosines,
            "noncommittal": lambda: np.array([each.noncommittal for each in self._questions()], bool),
            "similarity": self._similarity,
        }
        return make[name]()

    def _get(self, question: Question) -> Any:
        given = self._said[question]
        if isinstance(given, CallError):
            raise given
        return given

    def _one(self, step: str, text: str) -> Any:
        return self._get(Question(step, (text,)))

    def _claims(self, text: str) -> Texts:
        self._one("claims", text)
        return claims(self._said, text)

    def _answer_claims(self) -> Texts:
        return () if self._judged.answer is None else self._claims(self._judged.answer)

    def _reference_claims(self) -> Texts:
        return () if self._gold.reference is None else self._claims(self._gold.reference)

    def _support(self, items: Texts, evidence: str) -> BoolArray:
        if not items:
            return np.zeros(0, bool)
        verdicts = self._get(Question("support", (evidence,), items))
        return np.array([each.verdict is Verdict.SUPPORTED for each in verdicts], bool)

    def _by_context(self, items: Texts) -> BoolArray:
        matrix = np.zeros((len(items), len(self._judged.contexts)), bool)
        for place, context in enumerate(self._judged.contexts):
            matrix[:, place] = self._support(items, context)
        return matrix

    def _right(self) -> BoolArray:
        items, reference = self._answer_claims(), self._gold.reference
        return np.zeros(len(items), bool) if reference is None else self._support(items, reference)

    def _covered(self) -> BoolArray:
        items = self._reference_claims()
        return np.zeros(len(items), bool) if self._judged.answer is None else self._support(items, self._judged.answer)

    def _cited(self) -> BoolArray:
        cited = np.zeros(len(self._judged.contexts), bool)
        cited[list(self._judged.cited)] = True
        return cited

    def _kind(self) -> tuple[AnswerKind, int]:
        if self._judged.answer is None:
            return AnswerKind.REFUSED, 0
        given = self._one("answer_kind", self._judged.answer)
        return given.kind, given.relevance

    def _assigned(self) -> list[Any]:
        nuggets = tuple(text for text, _ in self._gold.nuggets or ())
        if not nuggets or self._judged.answer is None:
            return [Assigned.NONE] * len(nuggets)
        return [each.verdict for each in self._get(Question("nugget_assign", (self._judged.answer,), nuggets))]

    def _statements(self) -> BoolArray:
        if self._judged.answer is None:
            return np.zeros(0, bool)
        items = tuple(self._one("statements", self._judged.answer))
        if not self._judged.contexts:
            return np.zeros(len(items), bool)
        return self._support(items, joint(self._judged.contexts))

    def _extracted(self) -> BoolArray:
        items = tuple(sentence for context in self._judged.contexts for sentence in sentences(context))
        return np.array(self._get(Question("sentences", (), items)) if items else (), bool)

    def _attributed(self) -> BoolArray:
        items = sentences(self._gold.reference or "")
        if not self._judged.contexts:
            return np.zeros(len(items), bool)
        return self._support(items, joint(self._judged.contexts))

    def _questions(self) -> list[Any]:
        return [] if self._judged.answer is None else list(self._one("questions", self._judged.answer))

    def _cosines(self) -> list[Value]:
        query = self._one("embed", self._query)
        return [cosine(query, self._one("embed", each.text)) for each in self._questions()]

    def _similarity(self) -> Value:
        answer, reference = self._judged.answer, self._gold.reference
        if answer is None or reference is None:
            return Undefined.NO_DIRECTION
        return cosine(self._one("embed", answer), self._one("embed", reference))
