"""EvalSets of Google's Agent Development Kit, as files to write: cases of one or several invocations."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rankbeam.transforms.records.conversations import USER, Message
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.trajectories import AgentSteps

SUFFIX = ".evalset.json"
_NAME = re.compile(r"[a-zA-Z0-9_]+")
NO_TIME = 0.0  # equal sets have equal bytes


@dataclass(frozen=True)
class CaseTurn:
    """A question, and what is expected of an agent.

    Attributes:
        answer: the reference answer; None if it is not known.
        steps: the expected steps; None if they are not known.
    """

    question: str
    answer: str | None = None
    steps: AgentSteps | None = None


def turns_in(history: Sequence[Message]) -> list[CaseTurn]:
    """The turns of the messages before a query, with what was answered as the expected answer.

    >>> turns_in([{"role": "user", "text": "Who?"}, {"role": "assistant", "text": "Ann."}])
    [CaseTurn(question='Who?', answer='Ann.', steps=None)]
    """
    turns: list[CaseTurn] = []
    for message in history:
        if message["role"] == USER:
            turns.append(CaseTurn(message["text"]))
        elif turns:
            turns[-1] = CaseTurn(turns[-1].question, "\n".join(filter(None, (turns[-1].answer, message["text"]))))
    return turns


def invocation(name: str, turn: CaseTurn) -> dict[str, Any]:
    """A turn as ADK stores it."""
    answer = {} if turn.answer is None else {"finalResponse": {"role": "model", "parts": [{"text": turn.answer}]}}
    uses = [{"name": step.tool, "args": _arguments(step.args)} for step in turn.steps or ()]
    data = {"toolUses": uses, "toolResponses": [], "intermediateResponses": []}
    return {
        "invocationId": name,
        "userContent": {"role": "user", "parts": [{"text": turn.question}]},
        **answer,
        **({} if turn.steps is None else {"intermediateData": data}),
        "creationTimestamp": NO_TIME,
    }


def case_of(name: str, turns: Iterable[CaseTurn], **more: Any) -> dict[str, Any]:
    """A case: a conversation with further keys."""
    talk = [invocation(f"{name}-{number}", turn) for number, turn in enumerate(turns, start=1)]
    return {"evalId": name, "conversation": talk, **more, "creationTimestamp": NO_TIME}


def eval_set(path: str, title: str, cases: Sequence[dict[str, Any]]) -> tuple[str, str]:
    """The path and text of an EvalSet, whose id is the name of its file."""
    name = path.rpartition("/")[2].removesuffix(SUFFIX).removesuffix(".json")
    if not _NAME.fullmatch(name):
        better = re.sub(r"\W", "_", name)
        problem = f"ADK takes letters, digits and _ in the name of an EvalSet, not {name!r}; write {better}{SUFFIX}"
        raise InputError(problem, path=path)
    full = path if path.endswith(SUFFIX) else f"{path.removesuffix('.json')}{SUFFIX}"
    value = {"eval_set_id": name, "name": title, "eval_cases": list(cases), "creation_timestamp": NO_TIME}
    return full, json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def _arguments(text: str) -> dict[str, Any]:
    """The arguments of a call, which ADK wants as an object."""
    value = json.loads(text)
    return value if isinstance(value, dict) else {"value": value}
