"""Several texts in one request to each service: vectors in the order of the texts, and what a service does not take."""

import asyncio
import json
from typing import Any

import pytest
from support.model_calls import bodies
from support.standins import Faults, Standin, serve
from support.standins.models import embedding, tokens

from rankbeam.transforms.clients.models.base import Embedding, Role
from rankbeam.transforms.clients.models.gemini import Gemini
from rankbeam.transforms.clients.models.openai import OpenAi
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.reply import Reply, Tokens

TEXTS = ["who pays?", "owners pay the invoice", "it snows", "a fourth text", "and a fifth"]


def embedded(model: Any, texts: list[str]) -> tuple[Reply | CallError, int]:
    """The outcome of one request, and the number of texts that the next one may have."""

    async def ask() -> tuple[Reply | CallError, int]:
        connection = await model.connect()
        payload = json.dumps([model.embedding(text, Role.QUERY).payload() for text in texts])
        try:
            return await connection.call(payload, 10.0, 1), connection.texts_per_request
        except CallError as error:
            return error, connection.texts_per_request
        finally:
            await connection.close()

    return asyncio.run(ask())


def openai_model(server: Standin, **parameters: Any) -> OpenAi:
    return OpenAi(base_url=f"{server.url}/v1", model="m-001", **parameters)


def check(model: Any, reply: Reply | CallError) -> None:
    assert isinstance(reply, Reply), reply
    values = [model.read(part.answer) for part in reply.parts]
    assert all(isinstance(one, Embedding) for one in values)
    assert [one.vector for one in values] == [tuple(embedding(text)) for text in TEXTS]
    assert sum((part.tokens for part in reply.parts), start=Tokens()) == reply.tokens
    assert reply.tokens == Tokens(sum(map(tokens, TEXTS)))


def test_vectors_belong_to_their_texts_in_whatever_order_they_come() -> None:
    with serve("openai") as server:  # gives the last one first, with their numbers
        model = openai_model(server)
        reply, _ = embedded(model, TEXTS)
        (body,) = bodies(server, "who pays?")
    assert body["input"] == TEXTS
    check(model, reply)


def test_vertex_takes_several_texts_of_older_models(gemini: Standin) -> None:
    where = {"project": "p", "location": "l", "api_endpoint": gemini.url}
    model = Gemini(model="text-embedding-005", task_type="RETRIEVAL_QUERY", **where)
    reply, most = embedded(model, TEXTS)
    check(model, reply)
    assert most == 100
    assert Gemini(model="gemini-embedding-001", **where).most_texts == 1
    assert Gemini(model="text-embedding-005", texts_per_request=7, **where).most_texts == 7


def test_a_service_that_gives_fewer_vectors_gets_one_text_from_then_on() -> None:
    with serve("openai", faults=Faults(rate=1.0, kinds=("one_vector",))) as server:
        problem, most = embedded(openai_model(server), TEXTS)
    assert isinstance(problem, CallError)
    assert problem.kind is FailureKind.MALFORMED
    assert "gives 1 embeddings for 5 texts" in problem.message
    assert problem.tokens == Tokens(sum(map(tokens, TEXTS)))
    assert most == 1


def test_a_service_that_takes_fewer_texts_gets_fewer() -> None:
    with serve("openai", faults=Faults(rate=1.0, kinds=("few_texts",))) as server:
        problem, most = embedded(openai_model(server), TEXTS)
    assert isinstance(problem, CallError)
    assert problem.kind is FailureKind.INVALID
    assert most == 2


@pytest.mark.parametrize("payload", ["[]", '["[]"]'])
def test_a_payload_without_prompts_is_invalid(openai: Standin, payload: str) -> None:
    async def ask() -> None:
        connection = await openai_model(openai).connect()
        try:
            await connection.call(payload, 10.0, 1)
        finally:
            await connection.close()

    with pytest.raises(CallError) as caught:
        asyncio.run(ask())
    assert caught.value.kind is FailureKind.INVALID
