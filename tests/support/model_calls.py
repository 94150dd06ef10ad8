"""Questions to models, and what comes of each attempt at one."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from support.standins import Standin

from rankbeam.transforms.clients.models.base import ModelParameters
from rankbeam.transforms.judge.templates import built_in_templates
from rankbeam.transforms.records.calls.prompt import Prompt
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.judging.registry import step_of
from rankbeam.transforms.records.reply import Reply

CLAIMS = {"0": "Owners pay.", "1": "It snows."}


def question(text: str, **settings: Any) -> Prompt:
    """A question for an answer in prose."""
    return Prompt("answer", {"query": text}, "Be brief.", "{query}", **settings)


def support(text: str, **settings: Any) -> Prompt:
    """A judge's question; the text stands as its query."""
    values = {"query": text, "evidence": "Owners pay.", "claims": CLAIMS}
    return built_in_templates()["support"].prompt(values, **settings)


def replies(model: ModelParameters, prompts: Sequence[Prompt], timeout_s: float = 20.0) -> list[Reply | CallError]:
    """The outcomes of attempts on one connection; attempts at one prompt are numbered from 1."""

    async def ask() -> list[Reply | CallError]:
        connection = await model.connect()
        results: list[Reply | CallError] = []
        numbers: dict[str, int] = {}
        try:
            for prompt in prompts:
                payload = prompt.payload()
                numbers[payload] = numbers.get(payload, 0) + 1
                try:
                    results.append(await connection.call(payload, timeout_s, numbers[payload]))
                except CallError as error:
                    results.append(error)
        finally:
            await connection.close()
        return results

    return asyncio.run(ask())


def outcome(model: ModelParameters, prompt: Prompt, timeout_s: float = 20.0) -> Any:
    """The outcome of one attempt, as the driver sees it: a value, or the error of the call or of reading."""
    return outcomes(model, [prompt], timeout_s)[0]


def outcomes(model: ModelParameters, prompts: Sequence[Prompt], timeout_s: float = 20.0) -> list[Any]:
    """As `outcome`, of attempts on one connection."""
    results = replies(model, prompts, timeout_s)
    return [_read(model, prompt, reply) for prompt, reply in zip(prompts, results, strict=True)]


def _read(model: ModelParameters, prompt: Prompt, reply: Reply | CallError) -> Any:
    if isinstance(reply, CallError):
        return reply
    try:
        value = model.read(reply.answer)
        step = step_of(prompt.step)
        return value if step is None or step.embeds else step.read(prompt.values, value.text)
    except CallError as error:
        return error


def bodies(server: Standin, text: str) -> list[Any]:
    """Bodies of the requests that hold a text, in the order in which they came."""
    return [json.loads(request["body"]) for request in server.stats().requests if text in request["body"]]


def requests(server: Standin, text: str) -> int:
    """The number of requests received that contain a text."""
    return sum(count for name, count in server.stats().queries.items() if text in name)
