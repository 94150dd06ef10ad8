"""Parts of requests that a service refuses: learned once from its 400s, left out of requests, and never of keys."""

import asyncio
import json
from typing import Any

import pytest
from support.model_calls import bodies, question, support
from support.standins import Faults, Standin, serve

from rankbeam.transforms.clients.models.gemini import Gemini
from rankbeam.transforms.clients.models.model_connection import Refusals, RequestPart
from rankbeam.transforms.clients.models.openai import OpenAi
from rankbeam.transforms.records.calls.prompt import EMBED, Prompt
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.reply import Reply


def requested(model: Any, prompts: list[Prompt]) -> tuple[list[Reply], int, list[str]]:
    """The replies, how many forms were refused on the way, and the warnings."""

    async def ask() -> tuple[list[Reply], int, list[str]]:
        connection = await model.connect()
        replies, refused = [], 0
        for prompt in prompts:
            for _ in range(8):
                try:
                    replies.append(await connection.call(prompt.payload(), 10.0, 1))
                    break
                except CallError as error:
                    if not error.changes_form:
                        raise
                    refused += 1
        await connection.close()
        return replies, refused, list(connection.warnings)

    return asyncio.run(ask())


def openai(server: Standin, **parameters: Any) -> OpenAi:
    return OpenAi(base_url=f"{server.url}/v1", model="m-001", **parameters)


def test_a_model_without_temperature_is_asked_without_it_once_and_for_all() -> None:
    with serve("openai", faults=Faults(rate=1.0, kinds=("gpt5",))) as server:
        prompts = [question(f"question {number}", temperature=0.7) for number in range(3)]
        replies, refused, warnings = requested(openai(server), prompts)
        sent = bodies(server, "question")
    assert (len(replies), refused, len(sent)) == (3, 2, 5)
    assert "max_tokens" in sent[0]
    assert all("max_tokens" not in body and body["max_completion_tokens"] == 1024 for body in sent[1:])
    assert [body.get("temperature") for body in sent] == [0.7, 0.7, None, None, None]
    assert len(warnings) == 2
    assert any("temperature" in warning and "left out" in warning for warning in warnings)


REFUSED = {
    "no_seed": ("seed", lambda body: "seed" in body),
    "no_bounds": ("maxItems", lambda body: "maxItems" in json.dumps(body)),
    "no_bounds_anthropic": ("minimum", lambda body: "maxItems" in json.dumps(body) or "minimum" in json.dumps(body)),
    "no_temperature_extra": ("temperature", lambda body: "temperature" in body),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_what_is_refused_is_left_out_and_warned_of(fault: str) -> None:
    name, sends = REFUSED[fault]
    with serve("openai", faults=Faults(rate=1.0, kinds=(fault,))) as server:
        replies, refused, (warning,) = requested(openai(server), [support("question 1"), support("question 2")])
        sent = bodies(server, "question")
    assert (len(replies), refused) == (2, 1)
    assert [sends(body) for body in sent] == [True, False, False]
    assert name in warning
    assert sent[-1]["response_format"]["type"] == "json_schema"


def test_a_service_without_any_form_is_asked_for_json_in_the_prompt_alone() -> None:
    with serve("openai", faults=Faults(rate=1.0, kinds=("no_form",))) as server:
        replies, refused, warnings = requested(openai(server), [support("question 1")])
        sent = bodies(server, "question")
    assert (len(replies), refused, len(warnings)) == (1, 2, 2)
    kinds = [body.get("response_format", {}).get("type") for body in sent]
    assert kinds == ["json_schema", "json_object", None]
    assert '"enum": ["supported", "contradicted", "not_stated"]' in sent[-1]["messages"][0]["content"]


def test_a_model_without_system_messages_reads_their_text_in_the_users_message() -> None:
    with serve("openai", faults=Faults(rate=1.0, kinds=("no_system",))) as server:
        replies, refused, (warning,) = requested(openai(server), [support("question 1"), support("question 2")])
        first, *others = [body["messages"] for body in bodies(server, "question")]
    assert (len(replies), refused, "system messages" in warning) == (2, 1, True)
    system, user = (message["content"] for message in first)
    assert [message["content"] for message in others[0]] == [f"{system}\n\n{user}"]
    assert [[message["role"] for message in messages] for messages in others] == [["user"], ["user"]]


SYSTEM_REFUSALS = [
    "System role not supported",
    "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
    "Developer instruction is not enabled for models/m-001",
]


@pytest.mark.parametrize("message", SYSTEM_REFUSALS)
def test_refusals_of_system_messages_are_recognised(message: str) -> None:
    refusals = Refusals("m", [])
    assert refusals.learn(message, list(RequestPart))
    assert refusals.parts == {RequestPart.SYSTEM}


@pytest.mark.parametrize("fault", ["too_hot", "too_long"])
def test_a_value_that_is_out_of_range_is_an_error_and_not_left_out(fault: str) -> None:
    with serve("openai", faults=Faults(rate=1.0, kinds=(fault,))) as server:

        async def ask() -> None:
            connection = await openai(server).connect()
            await connection.call(question("once").payload(), 10.0, 1)

        with pytest.raises(CallError) as caught:
            asyncio.run(ask())
    assert caught.value.kind is FailureKind.INVALID
    assert not caught.value.changes_form


@pytest.mark.parametrize(
    ("fault", "name"), [("no_seed", "seed"), ("too_many_states", "maxItems"), ("no_temperature_extra", "temperature")]
)
def test_gemini_learns_alike(fault: str, name: str) -> None:
    with serve("gemini", faults=Faults(rate=1.0, kinds=(fault,))) as server:
        model = Gemini(model="m-001", project="p", location="l", api_endpoint=server.url)
        replies, refused, (warning,) = requested(model, [support("question 1"), support("question 2")])
        sent = [body["generationConfig"] for body in bodies(server, "question")]
    assert (len(replies), refused, len(sent)) == (2, 1, 3)
    assert name in warning
    assert [name in json.dumps(config).replace("max_items", "maxItems") for config in sent] == [True, False, False]


def test_keys_keep_the_configured_values_and_new_settings_count_where_they_are_set() -> None:
    plain, prompt = OpenAi(base_url="http://h/v1", model="m"), question("q")
    keys = [plain.key("openai", prompt)]
    settings: list[dict[str, Any]] = [
        {"temperature": 1.0}, {"temperature": 0.0}, {"reasoning_effort": "low"}, {"extra_body": {"top_k": 1}},
        {"extra_body": {"top_k": 2}},
    ]  # fmt: skip
    keys += [OpenAi(base_url="http://h/v1", model="m", **more).key("openai", prompt) for more in settings]
    assert len(set(keys)) == len(keys)
    assert plain.key("openai", question("q", temperature=0.5)) not in keys
    google = Gemini(model="m", project="p", location="l")
    assert google.key("gemini", prompt) != google.model_copy(update={"temperature": 1.0}).key("gemini", prompt)


def test_settings_of_a_service_are_sent() -> None:
    with serve("openai") as server:
        model = openai(server, temperature=1.0, reasoning_effort="minimal", extra_body={"top_p": 0.5})
        requested(model, [question("question 1"), Prompt(EMBED, {"text": "question 2"})])
        first, second = bodies(server, "question")
    assert (first["temperature"], first["reasoning_effort"], first["top_p"]) == (1.0, "minimal", 0.5)
    assert (second["top_p"], "reasoning_effort" in second, "temperature" in second) == (0.5, False, False)
    with serve("gemini") as server:
        model = Gemini(model="m-001", project="p", location="l", api_endpoint=server.url, temperature=1.0)
        requested(model, [question("question 1")])
        assert bodies(server, "question")[0]["generationConfig"]["temperature"] == 1


@pytest.mark.parametrize("name", ["model", "messages", "input", "stream", "temperature", "max_tokens", "api_key"])
def test_a_further_field_may_replace_none_of_rankbeams_and_hold_no_secret(name: str) -> None:
    with pytest.raises(ValueError, match=f"extra_body.*{name}"):
        OpenAi(base_url="http://h/v1", model="m", extra_body={name: "x"})
