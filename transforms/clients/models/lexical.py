"""The `lexical` judge: the share of words that two texts have in common. No language model, and no understanding.

It shows every table, runs in tests and costs nothing. It never says "contradicted", and takes a claim for supported
where half of its words stand in the evidence. Its numbers say nothing about the quality of answers.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from rankbeam.transforms.clients.models import cloze
from rankbeam.transforms.clients.models.base import STOP, Stored
from rankbeam.transforms.clients.models.local import LocalModel, share, stems
from rankbeam.transforms.kernels.judged import HIGHEST_GRADE, AnswerKind, Assigned
from rankbeam.transforms.kernels.judged_refusals import has_words_of_refusal
from rankbeam.transforms.kernels.sentences import sentences
from rankbeam.transforms.records.calls.prompt import Prompt
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.failures import FailureKind
from rankbeam.transforms.records.judgements import QUESTIONS, Verdict

SUPPORTED_SHARE = 0.5
"""Of a claim's words, from which it counts as supported."""

_CITATION = re.compile(r"^(?:\[\d+\]\s*)+$")


class Lexical(LocalModel):
    """Judges by shares of stems that texts have in common; a share of the question's for grades and kinds."""

    offline: ClassVar[str | None] = "word overlap, no language model"

    def answer(self, prompt: Prompt) -> Stored:
        """What a judge would answer, in the same form.

        >>> values = {"query": "?", "claims": {"0": "Owners pay.", "1": "It snows."}, "evidence": "The owner pays."}
        >>> [one["verdict"] for one in json.loads(Lexical().answer(Prompt("support", values)).text)["verdicts"]]
        ['supported', 'not_stated']
        """
        steps: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "claims": self._claims,
            "support": self._support,
            "grade": self._grade,
            "answer_kind": self._kind,
            "nugget_assign": self._assign,
            "statements": self._statements,
            "questions": self._questions,
            "sentences": self._sentences,
        }
        checked = cloze.check(prompt, self.language)
        if checked is None and prompt.step not in steps:
            raise CallError(FailureKind.INVALID, f"lexical is a judge, and knows no step {prompt.step!r}")
        text = json.dumps(steps[prompt.step](prompt.values) if checked is None else checked, ensure_ascii=False)
        return Stored(text, STOP, model_version=self.model)

    def _share(self, part: str, whole: str) -> float:
        return share(stems(part, self.language), stems(whole, self.language))

    def _claims(self, values: Mapping[str, Any]) -> dict[str, Any]:
        found = _statements(values["text"])
        return {"claims": [{"id": number, "text": text, "quote": text} for number, text in enumerate(found)]}

    def _support(self, values: Mapping[str, Any]) -> dict[str, Any]:
        shares = {item: self._share(text, values["evidence"]) for item, text in values["claims"].items()}
        return _verdicts(shares, lambda of: Verdict.SUPPORTED if of >= SUPPORTED_SHARE else Verdict.NOT_STATED)

    def _assign(self, values: Mapping[str, Any]) -> dict[str, Any]:
        shares = {item: self._share(text, values["answer"]) for item, text in values["nuggets"].items()}
        return _verdicts(shares, _assigned)

    def _grade(self, values: Mapping[str, Any]) -> dict[str, Any]:
        found = self._share(values["query"], values["context"])
        level = _level(found)
        return {"reason": _reason(found), "intent": level, "trust": level, "grade": level}

    def _kind(self, values: Mapping[str, Any]) -> dict[str, Any]:
        found = self._share(values["query"], values["answer"])
        if has_words_of_refusal(values["answer"]):
            return {"reason": "words of a refusal", "kind": AnswerKind.REFUSED, "relevance": 0}
        kind = (
            AnswerKind.ANSWERED if found >= SUPPORTED_SHARE else AnswerKind.PARTIAL if found else AnswerKind.OFF_TOPIC
        )
        return {"reason": _reason(found), "kind": kind, "relevance": _level(found)}

    def _statements(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {"statements": _statements(values["answer"])}

    def _questions(self, values: Mapping[str, Any]) -> dict[str, Any]:
        found = _statements(values["answer"]) or [values["answer"]]
        evades = has_words_of_refusal(values["answer"])
        texts = [found[number % len(found)] for number in range(QUESTIONS)]
        return {"questions": [{"question": f"{text.rstrip('.!? ')}?", "noncommittal": evades} for text in texts]}

    def _sentences(self, values: Mapping[str, Any]) -> dict[str, Any]:
        shares = [self._share(values["query"], text) for text in values["sentences"]]
        return {"sentences": [number for number, of in enumerate(shares, start=1) if of >= SUPPORTED_SHARE]}


def _statements(text: str) -> list[str]:
    """The sentences of a text, except refusals and citations alone."""
    found = [text[start:end] for start, end in sentences(text)]
    return [one for one in found if not has_words_of_refusal(one) and not _CITATION.match(one)]


def _verdicts(shares: Mapping[str, float], verdict: Callable[[float], str]) -> dict[str, Any]:
    return {
        "verdicts": [{"id": int(item), "reason": _reason(of), "verdict": verdict(of)} for item, of in shares.items()]
    }


def _assigned(of: float) -> Assigned:
    return Assigned.SUPPORT if of >= 0.75 else Assigned.PARTIAL if of >= SUPPORTED_SHARE else Assigned.NONE


def _level(of: float) -> int:
    """A share as a grade: a quarter a grade."""
    return min(HIGHEST_GRADE, int(of * (HIGHEST_GRADE + 1)))


def _reason(of: float) -> str:
    return f"{of:.0%} of the words in common"
