"""Imagined replies of the writing and the checking model, from which a plan counts the calls of a round."""

from collections.abc import Callable, Mapping
from typing import Any

from rankbeam.transforms.goldens.asking import ParsedReply
from rankbeam.transforms.goldens.records.forms import (
    CRITERIA,
    CriticDecision,
    DerivedAnswer,
    DraftQuestion,
    Fact,
    Facts,
    YesNo,
)
from rankbeam.transforms.goldens.records.items import UNANSWERABLE, CallRecord, Nugget, Vote
from rankbeam.transforms.goldens.writing import FURTHER
from rankbeam.transforms.judge.steps.reading import ReasonedVerdict
from rankbeam.transforms.judge.steps.support import SupportVerdict
from rankbeam.transforms.kernels.judged import NuggetAssignment
from rankbeam.transforms.records.calls.prompt import Prompt
from rankbeam.transforms.records.calls.steps import Call

OUTPUT_TOKENS: Mapping[str, int] = {
    "profiles": 600,
    "facts": 900,
    "enlarge": 120,
    "distill": 40,
    "question": 300,
    "unanswerable": 80,
    "checks": 300,
    "critic": 90,
    "derive": 150,
    "support": 150,
    "nugget_assign": 130,
    "closed_book": 60,
    "grade": 80,
}
"""The approximate output tokens of each step."""

_FACTS, _QUOTE = 6, 120
_NO_MODEL = CallRecord("", "", "", "")


class ImaginedWriting:
    """Imagined replies such that every candidate passes all checks."""

    def reply(self, call: Call, _: str) -> ParsedReply:
        prompt = Prompt.parse(call.payload)
        word = UNANSWERABLE if prompt.step == UNANSWERABLE else "imagined"
        return ParsedReply(_VALUES[prompt.step](prompt.values, f"{word} {call.key}"), _NO_MODEL)

    def output_tokens(self, prompt: Prompt) -> float:
        return OUTPUT_TOKENS[prompt.step]


def _facts(values: Mapping[str, Any], _: str) -> Facts:
    texts = {int(number): text for number, text in values["texts"].items()}
    quotes = ((number, text[:_QUOTE]) for number, text in sorted(texts.items()) for _ in range(_FACTS))
    return Facts(tuple(Fact(quote, number, 0, len(quote), quote) for number, quote in quotes), 0)


def _draft_question(values: Mapping[str, Any], name: str) -> DraftQuestion:
    """A question about one fact of the first text and one of the last; facts of further documents come after them."""
    own = [number for number, fact in enumerate(values["facts"].values()) if not fact.startswith(FURTHER)]
    used = tuple(dict.fromkeys((own[0], own[-1])))
    return DraftQuestion(name, "x" * 2 * _QUOTE, (Nugget("x" * _QUOTE, True), Nugget("y" * _QUOTE, True)), used)


def _checks(values: Mapping[str, Any], _: str) -> tuple[Vote, ...]:
    is_no = str(values["question"]).startswith(UNANSWERABLE)
    verdicts = {name: YesNo.NO if is_no and name == "answerable_from_quotes" else YesNo.YES for name in CRITERIA}
    return tuple(Vote("checks", name, verdict, "") for name, verdict in verdicts.items())


def _derived(values: Mapping[str, Any], _: str) -> DerivedAnswer:
    if str(values["question"]).startswith(UNANSWERABLE):
        return DerivedAnswer(False, "", ())
    return DerivedAnswer(True, "x" * 2 * _QUOTE, ("x" * _QUOTE, "y" * _QUOTE))


_VALUES: Mapping[str, Callable[[Mapping[str, Any], str], Any]] = {
    "profiles": lambda *_: (),
    "enlarge": lambda _, name: name,
    "facts": _facts,
    "distill": lambda *_: (0,),
    "question": _draft_question,
    "unanswerable": lambda _, name: DraftQuestion(name, "x" * _QUOTE),
    "checks": _checks,
    "critic": lambda values, _: Vote("critic", "approval", CriticDecision.APPROVE, "", values["critic"]),
    "derive": _derived,
    "support": lambda values, _: tuple(ReasonedVerdict(SupportVerdict.SUPPORTED, "") for _ in values["claims"]),
    "nugget_assign": lambda values, _: tuple(ReasonedVerdict(NuggetAssignment.SUPPORT, "") for _ in values["nuggets"]),
    "closed_book": lambda _, name: name,
}
