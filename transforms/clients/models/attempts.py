"""Changes to a prompt that is sent again: a larger limit if the answer was cut, a repair if its form was wrong.

Without them, the same prompt to the same model at temperature 0 would fail in the same way, and cost as much each time.
"""

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, replace

from rankbeam.transforms.clients.models.base import Completion, read_answer
from rankbeam.transforms.records.calls.prompt import Prompt, RenderedPrompt
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.judging.registry import step_of

_LEAST_TEMPERATURE = 0.2
_SEEDS_OF_A_SAMPLE = 100
_MOST_KEPT = 10_000
_REPAIR = "Your last answer to this could not be used: {problem}. Answer again, in exactly the form that is asked for."
_UNKNOWN = "it did not have the form that is asked for"


@dataclass(frozen=True)
class ModelRequest:
    """One attempt at a prompt."""

    texts: RenderedPrompt
    max_output_tokens: int
    temperature: float
    seed: int | None  # None to send no seed


class ModelAttempts:
    """Remembers what was wrong with answers; for a prompt that another process sent, applies both remedies."""

    def __init__(self) -> None:
        # By prompt: whether an answer was cut, and the problem of other answers, None if there was none.
        self._troubles: OrderedDict[str, tuple[bool, str | None]] = OrderedDict()

    def ask(self, payload: str, prompt: Prompt, attempt: int) -> ModelRequest:
        seed = None if prompt.seed is None else prompt.seed + _SEEDS_OF_A_SAMPLE * prompt.sample
        first = ModelRequest(prompt.rendered(), prompt.max_output_tokens, prompt.temperature, seed)
        if attempt == 1:
            return first
        was_cut, problem = self._troubles.get(_name(payload), (True, _UNKNOWN))
        longer = replace(first, max_output_tokens=first.max_output_tokens * (2 if was_cut else 1))
        if problem is None:
            return longer
        repair = _REPAIR.format(problem=problem)
        return replace(
            longer,
            texts=replace(first.texts, user=f"{first.texts.user}\n\n{repair}"),
            temperature=max(first.temperature, _LEAST_TEMPERATURE),
            seed=None if seed is None else seed + attempt - 1,
        )

    def answered(self, payload: str, prompt: Prompt, answer: str) -> None:
        """Record what is wrong with an answer, for the next attempt."""
        name = _name(payload)
        try:
            content = read_answer(answer)
            if isinstance(content, Completion) and (step := step_of(prompt.step)) is not None:
                step.read(prompt.values, content.text)
        except CallError as error:
            was_cut, problem = self._troubles.pop(name, (False, None))
            problem = error.message if error.kind is FailureKind.MALFORMED else problem
            self._troubles[name] = was_cut or error.kind is FailureKind.TRUNCATED, problem
            if len(self._troubles) > _MOST_KEPT:
                self._troubles.popitem(last=False)
        else:
            self._troubles.pop(name, None)


def _name(payload: str) -> str:
    return hashlib.sha256(payload.encode()).hexdigest()
