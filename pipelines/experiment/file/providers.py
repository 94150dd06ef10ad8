"""Models by `PROVIDER:MODEL`, wherever the name of a service may be: `judge: {service: "openai:gpt-4.1-mini"}`."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from rankbeam.pipelines.config.yaml_lines import Located, Place
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.suggestions import did_you_mean

PROVIDERS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "openai": {
            "type": "openai",
            "base_url": "https://api.openai.com/v1",
            "api_key": "${env:OPENAI_API_KEY}",
            "limit_name": "max_completion_tokens",
        },
        "azure": {
            "type": "openai",
            "base_url": "${env:AZURE_OPENAI_ENDPOINT}/openai/v1",
            "api_key": "${env:AZURE_OPENAI_API_KEY}",
            "key_header": "api-key",
            "limit_name": "max_completion_tokens",
        },
        "anthropic": {
            "type": "openai",
            "base_url": "https://api.anthropic.com/v1",
            "api_key": "${env:ANTHROPIC_API_KEY}",
            "schema_in": "prompt",
        },
        "mistral": {
            "type": "openai",
            "base_url": "https://api.mistral.ai/v1",
            "api_key": "${env:MISTRAL_API_KEY}",
        },
        "gemini": {"type": "gemini", "api_key": "${env:GEMINI_API_KEY}"},
        "ollama": {"type": "openai", "base_url": "http://localhost:11434/v1"},
        "vllm": {"type": "openai", "base_url": "http://localhost:8000/v1"},
    }
)
"""The service of each provider, without its model."""

_WITHOUT_SERVICES = ("services", "name", "dataset", "documents", "metrics", "slices", "output")
"""Sections in which no service is named."""


def service_of_provider(name: str) -> dict[str, Any] | None:
    """The service that `PROVIDER:MODEL` names; None for other names.

    >>> service_of_provider("ollama:llama3.2")
    {'type': 'openai', 'base_url': 'http://localhost:11434/v1', 'model': 'llama3.2'}
    """
    provider, colon, model = name.partition(":")
    if not (colon and model.strip() and provider in PROVIDERS):
        return None
    return {**PROVIDERS[provider], "model": model.strip()}


def hint_of(name: str) -> str | None:
    """Advice about an unknown name of a service that has a colon; None for other names.

    >>> hint_of("opnai:gpt")
    "no provider is called 'opnai'; did you mean 'openai'?"
    """
    provider, colon, model = name.partition(":")
    if not colon:
        return None
    if provider in PROVIDERS and not model.strip():
        return f"name a model behind the colon, such as {provider}:MODEL"
    return f"no provider is called {provider!r}; {did_you_mean(provider, PROVIDERS)}"


def with_providers(located: Located, problems: list[InputError]) -> Located:
    """A document whose `services:` have the models that it names by their provider."""
    if not isinstance(located.value, dict):
        return located
    section = located.value.get("services") or {}
    if not isinstance(section, dict):
        return located
    for name in section:
        if isinstance(name, str) and ":" in name:
            problem = "has a colon, like PROVIDER:MODEL, which needs no entry here; choose another name"
            problems.append(located.error(("services", name), problem))
    sections = {name: value for name, value in located.value.items() if name not in _WITHOUT_SERVICES}
    mentions = {text: place for place, text in _texts((), sections) if ":" in text}
    services = {name: service for name in mentions if (service := service_of_provider(name)) and name not in section}
    if not services:
        return located
    lines: dict[Place, int] = {("services", name): located.lines.get(mentions[name], 1) for name in services}
    value = {**located.value, "services": {**section, **services}}
    return replace(located, value=value, lines={**located.lines, **lines})


def _texts(place: Place, value: Any) -> Iterator[tuple[Place, str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts((*place, key), item)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from _texts((*place, position), item)
