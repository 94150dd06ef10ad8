"""How many calls a query takes, found by going through its steps with imagined answers."""

from typing import Any

import numpy as np

from rankbeam.transforms.judge.answering import Text
from rankbeam.transforms.judge.asking import Reading
from rankbeam.transforms.kernels.judged import AnswerKind, Assigned
from rankbeam.transforms.records.calls.call import Call
from rankbeam.transforms.records.calls.prompt import EMBED, Prompt
from rankbeam.transforms.records.calls.reply import NO_TOKENS
from rankbeam.transforms.records.calls.steps import Steps
from rankbeam.transforms.records.judgements import QUESTIONS, Claim, Grade, Judged, Kind, Question, Verdict


def rehearsed(steps: Steps[Any], claims: int) -> int:
    """How many distinct calls there are, where every text has so many claims and every call is answered.

    Args:
        steps: of a task; none of its calls is made.
        claims: of each text.
    """
    keys = set[str | None]()
    try:
        calls = next(steps)
        while True:
            keys |= {call.key for call in calls}
            calls = steps.send([_imagined(call, claims) for call in calls])
    except StopIteration:
        return len(keys)


def _imagined(call: Call, claims: int) -> Reading | Text:
    """What could be said to a call."""
    prompt = Prompt.parse(call.payload)
    said: dict[str, Any] = {
        "claims": tuple(Claim(f"{number} of {call.key}", 0, 1) for number in range(claims)),
        "statements": tuple(f"{number} of {call.key}" for number in range(claims)),
        "questions": tuple(Question(f"{number} of {call.key}", False) for number in range(QUESTIONS)),
        "support": tuple(Judged(Verdict.SUPPORTED, "") for _ in prompt.values.get("claims", ())),
        "nugget_assign": tuple(Judged(Assigned.NONE, "") for _ in prompt.values.get("nuggets", ())),
        "grade": Grade(0, 0, 0, ""),
        "answer_kind": Kind(AnswerKind.ANSWERED, 0, ""),
        "sentences": tuple(False for _ in prompt.values.get("sentences", ())),
        EMBED: np.ones(1),
    }
    return Reading(said[prompt.step]) if prompt.step in said else Text(f"answer to {call.key}", "", NO_TOKENS)
