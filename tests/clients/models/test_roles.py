"""Queries and documents are embedded in their roles where a service says how, and as they are where it does not."""

import json
from typing import Any

import pytest
from support.model_calls import bodies, replies
from support.standins import Standin

from rankbeam.transforms.clients.models.base import ModelParameters, Role
from rankbeam.transforms.clients.models.embeddings import Embed
from rankbeam.transforms.clients.models.families import missing_roles
from rankbeam.transforms.clients.models.gemini import Gemini
from rankbeam.transforms.clients.models.openai import OpenAi
from rankbeam.transforms.records.calls.prompt import Prompt
from rankbeam.transforms.records.reply import Reply

PLAIN = {
    "openai": OpenAi(base_url="http://localhost:8000/v1", model="m-001"),
    "gemini": Gemini(model="gemini-x-001", project="p", location="us-central1"),
}
PINNED = {"openai": "a9af90814f08ac9b2cc8864dfe99d242", "gemini": "f932036bddcc38367600b4c1cc060e76"}
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "openai": [{"query_prefix": "query: "}, {"document_prefix": "passage: "}],
    "gemini": [{"query_prefix": "q: "}, {"document_prefix": "d: "}, {"task_type": "RETRIEVAL_QUERY"}],
}


def key(kind: str, parameters: ModelParameters, role: Role) -> str | None:
    return Embed("e", kind, parameters).as_role(role).call("some words").key


@pytest.mark.parametrize("kind", PLAIN)
def test_without_settings_keys_and_requests_are_those_of_before(kind: str) -> None:
    parameters = PLAIN[kind]
    assert {key(kind, parameters, role) for role in Role} == {PINNED[kind]}
    for role in Role:
        assert parameters.embedding("some words", role) == Prompt("embed", {"text": "some words"})


@pytest.mark.parametrize(("kind", "more"), [(kind, more) for kind, all_of in SETTINGS.items() for more in all_of])
def test_only_what_a_setting_changes_has_another_key(kind: str, more: dict[str, Any]) -> None:
    parameters = PLAIN[kind].model_copy(update=more)
    changed = {role for role in Role if key(kind, parameters, role) != PINNED[kind]}
    (name,) = more
    roles = {"query_prefix": {Role.QUERY}, "document_prefix": {Role.DOCUMENT}, "task_type": {Role.QUERY, Role.DOCUMENT}}
    assert changed == roles[name]
    assert parameters.decisive() != PLAIN[kind].decisive()
    prompt = Prompt("answer", {"query": "q"}, user="{query}")
    assert parameters.key(kind, prompt) == PLAIN[kind].key(kind, prompt)


@pytest.mark.parametrize("task", ["SEMANTIC_SIMILARITY", "CLUSTERING", "CLASSIFICATION"])
def test_a_symmetric_task_is_that_of_every_text(task: str) -> None:
    parameters = PLAIN["gemini"].model_copy(update={"task_type": task})
    keys = {key("gemini", parameters, role) for role in Role}
    assert len(keys) == 1
    assert keys != {PINNED["gemini"]}


def test_prefixes_are_sent(openai: Standin) -> None:
    model = OpenAi(base_url=f"{openai.url}/v1", model="m", query_prefix="query: ", document_prefix="passage: ")
    prompts = [model.embedding(f"prefixed {role}", role) for role in Role]
    assert all(isinstance(reply, Reply) for reply in replies(model, prompts))
    sent = {body["input"] for body in bodies(openai, "prefixed")}
    assert sent == {"query: prefixed query", "passage: prefixed document", "prefixed similarity"}


@pytest.mark.parametrize("name", ["text-embedding-005", "gemini-embedding-001", "developer"])
def test_task_types_are_sent(gemini: Standin, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("SOME_KEY", "k")
    place: dict[str, Any] = {"project": "p", "location": "l"} if name != "developer" else {"api_key": "${env:SOME_KEY}"}
    model = Gemini(model=name, api_endpoint=gemini.url, task_type="QUESTION_ANSWERING", **place)
    prompts = [model.embedding(f"{name} as {role}", role) for role in Role]
    assert all(isinstance(reply, Reply) for reply in replies(model, prompts))
    sent = [json.dumps(body).replace("task_type", "taskType") for body in bodies(gemini, f"{name} as")]
    assert ['"taskType": "QUESTION_ANSWERING"' in body for body in sent] == [True, False, False]
    assert ['"taskType": "RETRIEVAL_DOCUMENT"' in body for body in sent] == [False, True, False]
    assert "taskType" not in sent[2]


FAMILIES = [
    ("intfloat/multilingual-e5-large", 'query_prefix: "query: "', 'document_prefix: "passage: "'),
    ("intfloat/e5-mistral-7b-instruct", 'query_prefix: "Instruct: ', None),
    ("BAAI/bge-small-en-v1.5", 'query_prefix: "Represent this sentence for searching relevant passages: "', None),
    ("nomic-embed-text-v1.5", 'query_prefix: "search_query: "', 'document_prefix: "search_document: "'),
    ("google/embeddinggemma-300m", 'query_prefix: "task: search result | query: "', 'document_prefix: "title: none'),
    ("Qwen/Qwen3-Embedding-0.6B", 'query_prefix: "Instruct: ', None),
]


@pytest.mark.parametrize(("name", "query", "document"), FAMILIES)
def test_a_known_family_without_its_prefixes_is_warned_of(name: str, query: str, document: str | None) -> None:
    plain = OpenAi(base_url="http://localhost/v1", model=name)
    (warning,) = missing_roles(plain)
    assert warning.startswith(f"{name} expects {query}")
    assert (document is not None) == ('document_prefix: "' in warning.partition("; ")[0])
    assert document is None or document in warning
    denied = OpenAi(base_url="http://localhost/v1", model=name, query_prefix="", document_prefix="")
    assert not missing_roles(denied)


def test_a_model_of_googles_expects_a_task() -> None:
    for name, expects in (("text-embedding-005", True), ("gemini-embedding-001", True), ("gemini-x-001", False)):
        roles = missing_roles(Gemini(model=name, project="p", location="l"))
        assert [warning.startswith(f"{name} expects task_type: RETRIEVAL_QUERY") for warning in roles] == [
            True
        ] * expects
        assert not missing_roles(Gemini(model=name, project="p", location="l", task_type="QUESTION_ANSWERING"))


@pytest.mark.parametrize(
    "name", ["BAAI/bge-m3", "text-embedding-3-small", "all-MiniLM-L6-v2", "one5-large", "gte-large"]
)
def test_others_are_not(name: str) -> None:
    assert not missing_roles(OpenAi(base_url="http://localhost/v1", model=name))
