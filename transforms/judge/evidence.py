"""From the judge's replies to the arguments of the metrics' formulas, for one query under one configuration.

An input is a generator of questions. It is run from its start with the replies so far: the questions that lack a reply
are asked, all inputs' at once, until every generator ends with its value.
"""

from collections.abc import Generator, Iterable, Mapping
from typing import Any

from rankbeam.transforms.judge.metrics import JudgedMetric
from rankbeam.transforms.kernels.judged import Undefined, Value
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.judging.steps import JudgedCase, JudgedInput, JudgeQuestion, JudgeReplies

Replies = Mapping[JudgeQuestion, Any]
"""The parsed reply of a step, or the CallError of a question that failed."""


class Evidence:
    """Arguments of formulas, as far as replies are known.

    Attributes:
        arguments: by name, the value, or the CallError of a judgement that failed.
        missing: questions whose replies the other arguments need.
    """

    def __init__(self, case: JudgedCase, replies: Replies, metrics: Iterable[JudgedMetric]) -> None:
        self._case, self._replies = case, replies
        self.arguments: dict[str, Any] = {}
        self.missing: dict[JudgeQuestion, None] = {}
        definitions = [metric.definition for metric in metrics]
        self._add({name: of for one in definitions for name, of in one.inputs.items()})
        if self._is_refusable():
            self._add({name: of for one in definitions for name, of in one.inputs_without_claims.items()})

    def value(self, metric: JudgedMetric) -> Value:
        """The value of a metric, or the reason why it has none.

        An answer that was not requested, since nothing was retrieved, counts as one that refuses: it has no claims.

        Raises:
            CallError: a judgement that it needs failed.
        """
        definition, gold = metric.definition, self._case.gold
        needed = {name: self._argument(name) for name in definition.inputs}
        if self._is_refusable() and any(name in needed for name in _CLAIMS):
            needed |= {name: self._argument(name) for name in definition.inputs_without_claims}
        value = metric.value(needed)
        if value is not Undefined.NO_REFERENCE_CLAIMS:
            return value
        if gold.reference is None:
            return Undefined.NO_REFERENCE
        is_doubtful = definition.scores_refusals and gold.answerable is None
        return Undefined.REFERENCE_REFUSES if is_doubtful else value

    def _is_refusable(self) -> bool:
        """Return whether the answer makes no claims where the dataset has no answer."""
        claims = (self.arguments.get(name) for name in _CLAIMS)
        has_none = any(of is not None and not isinstance(of, CallError) and not len(of) for of in claims)
        return self._case.gold.answerable is False and has_none

    def _argument(self, name: str) -> Any:
        argument = self.arguments[name]
        if isinstance(argument, CallError):
            raise argument
        return argument

    def _add(self, inputs: Mapping[str, JudgedInput]) -> None:
        for name, of in inputs.items():
            if name not in self.arguments:
                try:
                    missing = self._run(name, of)
                except CallError as error:
                    self.arguments[name] = error
                else:
                    self.missing |= dict.fromkeys(missing)

    def _run(self, name: str, of: JudgedInput) -> Iterable[JudgeQuestion]:
        """Run an input to its end, or to questions that lack a reply."""
        inquiry = of.get(self._case)
        if not isinstance(inquiry, Generator):
            self.arguments[name] = inquiry
            return ()
        try:
            questions = next(inquiry)
            while True:
                missing = [question for question in questions if question not in self._replies]
                if missing:
                    inquiry.close()
                    return missing
                questions = inquiry.send(JudgeReplies(self._replies))
        except StopIteration as end:
            self.arguments[name] = end.value
            return ()


_CLAIMS = ("ac", "ag")
"""Arguments whose first axis is that of the answer's claims."""
