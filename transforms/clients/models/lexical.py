"""The `lexical` judge: the share of words that two texts have in common. No language model, and no understanding.

It shows every table, runs in tests and costs nothing. It never says "contradicted", and takes a claim for supported
if half of its words are in the evidence. Its numbers say nothing about the quality of answers.
"""

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from rankbeam.transforms.clients.models import cloze
from rankbeam.transforms.clients.models.base import STOP, Stored
from rankbeam.transforms.clients.models.local import LocalModel, share, stems
from rankbeam.transforms.clients.models.scoring import HIGHEST
from rankbeam.transforms.records.calls.prompt import Prompt
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.failures import FailureKind
from rankbeam.transforms.records.judging.registry import step_of
from rankbeam.transforms.records.stages import RERANK


class Lexical(LocalModel):
    """Judges by shares of stems that texts have in common; a share of the question's for grades and kinds."""

    offline: ClassVar[str | None] = "word overlap, no language model"

    def answer(self, prompt: Prompt) -> Stored:
        """The reply that the step has for an offline judge.

        >>> import rankbeam.transforms.judge.steps
        >>> values = {"query": "?", "claims": {"0": "Owners pay.", "1": "It snows."}, "evidence": "The owner pays."}
        >>> [one["verdict"] for one in json.loads(Lexical().answer(Prompt("support", values)).text)["verdicts"]]
        ['supported', 'not_stated']
        """
        reply: Mapping[str, Any] | None = self._rating(prompt) or cloze.check(prompt, self.language)
        if reply is None and (step := step_of(prompt.step)) is not None:
            reply = step.offline(prompt.values, self._share)
        if reply is None:
            raise CallError(FailureKind.INVALID, f"lexical is a judge, and cannot do the step {prompt.step!r}")
        return Stored(json.dumps(reply, ensure_ascii=False), STOP, model_version=self.model)

    def _rating(self, prompt: Prompt) -> Mapping[str, int] | None:
        """The share of the query's words that a document has, as a rating; None for other steps."""
        if prompt.step != RERANK:
            return None
        return {"score": round(HIGHEST * self._share(prompt.values["query"], prompt.values["document"]))}

    def _share(self, part: str, whole: str) -> float:
        return share(stems(part, self.language), stems(whole, self.language))
