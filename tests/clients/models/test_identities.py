"""Keys of a model's answers depend on whatever decides the answers, and on nothing else."""

import pytest

from rankbeam.transforms.clients.models.base import MODELS
from rankbeam.transforms.records.calls.prompt import Prompt

GEMINI = {"type": "gemini", "model": "gemini-x-001", "project": "p", "location": "us-central1"}
OPENAI = {"type": "openai", "model": "m-001", "base_url": "http://localhost:8000/v1"}
PROMPT = Prompt("answer", {"query": "q"}, "Answer.", "{query}", max_output_tokens=100)


def key(parameters: dict[str, str]) -> str:
    kind = parameters["type"]
    return (
        MODELS.load(kind)
        .model_validate({name: value for name, value in parameters.items() if name != "type"})
        .key(kind, PROMPT)
    )


SAME = [
    (GEMINI, {"api_endpoint": "http://localhost:1"}),
    (GEMINI, {"allow_alias": True}),
    (OPENAI, {"limit_name": "max_completion_tokens"}),
    (OPENAI, {"api_key": "${env:KEY}"}),
    (OPENAI, {"base_url": "http://localhost:8000/v1/"}),
]


@pytest.mark.parametrize(("parameters", "more"), SAME)
def test_another_way_to_the_same_model_finds_its_answers(parameters: dict[str, str], more: dict[str, str]) -> None:
    assert key(parameters | more) == key(parameters)


OTHER = [
    (GEMINI, {"model": "gemini-x-002"}),
    (GEMINI, {"project": "other"}),
    (GEMINI, {"thinking": 0}),
    (OPENAI, {"model": "m-002"}),
    (OPENAI, {"base_url": "http://localhost:8001/v1"}),
]


@pytest.mark.parametrize(("parameters", "more"), OTHER)
def test_another_model_has_answers_of_its_own(parameters: dict[str, str], more: dict[str, str]) -> None:
    assert key(parameters | more) != key(parameters)


def test_keys_stay_as_they_are() -> None:
    assert {parameters["type"]: key(parameters) for parameters in (GEMINI, OPENAI)} == {
        "gemini": "93da1b7a4f6c2e271e3bb1b486c704be",
        "openai": "2d06af4f3fe218885cd39e3e20abf6eb",
    }
