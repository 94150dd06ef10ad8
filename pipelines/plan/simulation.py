"""Simulated steps: the calls of queries, with answers that are known or imagined.

No call is made. What the ledger has is known, so that steps go on as they will; the rest is imagined, once so that as
few calls follow as can be (no text makes a claim, as where every answer abstains), and once as many.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankbeam.transforms.judge.answering import AnswerText
from rankbeam.transforms.judge.judge import JudgeReply
from rankbeam.transforms.kernels.sentences import sentences
from rankbeam.transforms.records.calls.call import Call
from rankbeam.transforms.records.calls.prompt import Prompt
from rankbeam.transforms.records.calls.steps import Steps
from rankbeam.transforms.records.judging.registry import step_of
from rankbeam.transforms.records.judging.steps import Imagined
from rankbeam.transforms.records.reply import NO_TOKENS

_WORD = "word "


@dataclass(frozen=True)
class Assumption:
    """Parameters of imagined answers."""

    claims: int
    alike: bool = False
    characters: int = 0
    of_a_claim: int = 20  # characters of a claim


LEAST, MOST = Assumption(claims=0, alike=True), Assumption(claims=12, characters=2000, of_a_claim=120)

Recall = Callable[[Sequence[Call]], Mapping[str, Any]]
"""The outcomes, by key, of those of some calls that are known."""


def simulated(tasks: Mapping[str, Steps[Any]], assumed: Assumption, recall: Recall) -> dict[str, dict[str, Call]]:
    """The distinct calls of some tasks, by key."""
    calls_of: dict[str, dict[str, Call]] = {query_id: {} for query_id in tasks}
    next_calls = {query_id: calls for query_id, steps in tasks.items() if (calls := _next(steps, None)) is not None}
    while next_calls:
        known = recall([call for calls in next_calls.values() for call in calls])
        for query_id, calls in list(next_calls.items()):
            calls_of[query_id] |= {call.key or "": call for call in calls}
            keys = [call.key or "" for call in calls]
            sent = [
                known[key] if key in known else _imagined(call, query_id, assumed)
                for key, call in zip(keys, calls, strict=True)
            ]
            following = _next(tasks[query_id], sent)
            if following is None:
                del next_calls[query_id]
            else:
                next_calls[query_id] = following
    return calls_of


def _next(steps: Steps[Any], sent: Sequence[Any] | None) -> Sequence[Call] | None:
    """Next calls of a task; None at its end."""
    try:
        return next(steps) if sent is None else steps.send(sent)
    except StopIteration:
        return None


def _imagined(call: Call, query_id: str, assumed: Assumption) -> JudgeReply | AnswerText:
    """Possible reply to a call."""
    prompt = Prompt.parse(call.payload)
    step = step_of(prompt.step)
    if step is not None:
        key = call.key or ""
        parts = (f"{number} {key[:8]} ".ljust(assumed.of_a_claim, ".") for number in range(_claims_of(prompt, assumed)))
        return JudgeReply(step.imagined(Imagined(key, items_of(prompt), tuple(parts))))
    name = f"answer to {query_id if assumed.alike else call.key} "
    return AnswerText(name + imagined_text(assumed.characters), "", NO_TOKENS)


def _claims_of(prompt: Prompt, assumed: Assumption) -> int:
    """Number of claims in the text of a prompt: one a sentence, where many are imagined and the text has more."""
    text = prompt.values.get("text", "")
    return max(assumed.claims, len(sentences(text))) if assumed.claims > 1 and isinstance(text, str) else assumed.claims


def items_of(prompt: Prompt) -> int:
    """Number of items that a prompt asks a verdict on."""
    step = step_of(prompt.step)
    return 0 if step is None or step.items is None else len(prompt.values[step.items])


def imagined_text(characters: int) -> str:
    """A text of about so many characters."""
    return _WORD * (characters // len(_WORD))
