"""Replace references to environment variables and to providers' models, before anything else in a file is checked.

`PROVIDER:MODEL` names a model wherever a service can be named: `judge: {service: "openai:gpt-4.1-mini"}`, and so do
`lexical`, `extractive` and `hashed`, which have nothing to configure.
"""

import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from rankbeam.pipelines.config.yaml_lines import Place, YamlDocument, list_in, load, mapping_in
from rankbeam.transforms.clients.http.template import (
    RequestText,
    in_body,
    in_headers,
    in_parameters,
    in_url,
    texts_in,
)
from rankbeam.transforms.clients.models.base import MODELS
from rankbeam.transforms.clients.parameters import Kind, Parameters
from rankbeam.transforms.clients.retrievers.base import RETRIEVERS
from rankbeam.transforms.clients.retrievers.rerankers import RERANKERS
from rankbeam.transforms.clients.secrets import FORMS, REFERENCE, is_secret, names_secret, variable
from rankbeam.transforms.records.errors import InputError, InputErrors, did_you_mean

_WRONG = re.compile(r"\$\{[A-Za-z]")
_HINT = (
    "secrets belong in api_key of a service, or in url, headers, params or body of an http retriever or an application"
)

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

_WITHOUT_PARAMETERS = ("extractive", "hashed", "lexical")
"""Types of models that need no entry under `services:`, either."""

_SERVICE_KEYS = ("service", "judge", "embeddings", "embedding_model", "writer", "checker", "duplicates")
_WITHOUT_SERVICES = ("services", "name", "dataset", "documents", "metrics", "slices", "output")
"""Sections that name no service."""


def read_yaml(text: str, path: str | None, output: str | None) -> YamlDocument:
    """A document with its references replaced, except those in its `output` if an option names another folder."""
    located = load(text, path)
    located.problems.extend(located.duplicate_keys())
    located = with_providers(located)
    stated = located.value.get("output") if isinstance(located.value, dict) else None
    own_output: Place = ("output",) if isinstance(stated, str) else ("output", "path")
    return resolve_references(located, [] if output is None else [own_output])


def resolve_references(located: YamlDocument, literal: Collection[Place] = ()) -> YamlDocument:
    """A document with the values of this machine's variables in its strings; its text keeps the references."""
    places = frozenset((*literal, *_resolved_later(located.value), *_in_applications(located.value)))
    return replace(located, value=_resolve(located, located.value, (), places))


def refuse_problems(located: YamlDocument) -> None:
    """Raise all problems, in the order of lines, except those of values with unresolved references."""
    problems, unresolved = located.problems, located.unresolved
    names = {error.problem.partition(": ")[0] for error in unresolved}
    references = {match[0] for error in unresolved for match in REFERENCE.finditer(error.problem)}

    def follows(problem: InputError) -> bool:
        named = {match[0] for match in REFERENCE.finditer(problem.problem)}  # advice may name references, too
        return problem.problem.partition(": ")[0] in names or bool(named & references)

    causes = [error for error in problems if error in unresolved or not follows(error)]
    distinct = {str(problem): problem for problem in causes}  # values of the grid are checked many times
    if distinct:
        raise InputErrors(sorted(distinct.values(), key=lambda problem: problem.line or 0))


def _resolve(located: YamlDocument, value: Any, place: Place, literal: frozenset[Place]) -> Any:
    if place in literal:
        return value
    if isinstance(value, dict):
        return {key: _resolve(located, item, (*place, key), literal) for key, item in value.items()}
    if isinstance(value, list):
        return [_resolve(located, item, (*place, i), literal) for i, item in enumerate(value)]
    if not isinstance(value, str) or "${" not in value:
        return value
    wrong: list[str] = []
    text = REFERENCE.sub(lambda match: _value(match[0], place, wrong), value)
    if _WRONG.search(REFERENCE.sub("", value)):
        wrong.append(f"holds a ${{…}} that is not a reference; write {FORMS}")
    errors = [located.error(place, problem) for problem in dict.fromkeys(wrong)]
    located.problems.extend(errors)
    located.unresolved.extend(errors)
    return value if wrong else text


def _value(reference: str, place: Place, wrong: list[str]) -> str:
    """The value of a variable; an unusable reference appends the reason to `wrong`."""
    key = next((part for part in reversed(place) if isinstance(part, str)), "")
    if is_secret(reference) or names_secret(key):
        wrong.append(f"{reference} names a secret, and this field takes none; {_HINT}")
        return reference
    try:
        return variable(reference, reference)
    except InputError as error:
        wrong.append(error.problem)
        return reference


def _resolved_later(value: Any) -> list[Place]:
    """Places in an experiment or goldens file whose components resolve references themselves: some may be secrets."""
    places = [(*place, name) for place, names in _components(value) for name in names]
    names = {str(place[-1]) for place in places}
    swept = (("grid", name) for name in mapping_in(value, "grid") if str(name).rpartition(".")[2] in names)
    return [*places, *swept]


def _in_applications(value: Any) -> Iterator[Place]:
    """The places of secrets in requests of applications; their other references, such as a host, are replaced."""
    items = enumerate(list_in(value, "configurations"))
    requests = {i: request for i, item in items if (request := mapping_in(item, "answers"))}
    texts: list[tuple[Place, RequestText]] = [
        (("configurations", i, "answers", *text.path), text)
        for i, request in requests.items()
        for text in _texts(request)
    ]
    for name, swept in mapping_in(value, "grid").items() if requests else ():
        values = swept.items() if isinstance(swept, dict) else enumerate(swept if isinstance(swept, list) else ())
        texts += [
            (("grid", name, key, *text.path[1:]), text)
            for key, item in values
            for text in _texts({str(name).rpartition(".")[2]: item})
        ]
    secret = {name for _, text in texts for name in text.references() if text.is_secret or is_secret(name)}
    yield from (place for place, text in texts if not secret.isdisjoint(text.references()))


def _texts(request: Mapping[str, Any]) -> Iterator[RequestText]:
    """The texts of a request whose form is not checked yet."""
    yield from in_url(str(request.get("url")))
    yield from in_headers({str(name): str(text) for name, text in mapping_in(request, "headers").items()})
    yield from in_parameters({str(name): text for name, text in mapping_in(request, "params").items()})
    yield from in_body(request.get("body"))


def _components(value: Any) -> Iterator[tuple[Place, frozenset[str]]]:
    for name, item in mapping_in(value, "services").items():
        yield ("services", name), _names(MODELS, item)
    for i, item in enumerate(list_in(value, "configurations")):
        if isinstance(item, dict):
            yield ("configurations", i, "retriever"), _names(RETRIEVERS, item.get("retriever"))
            yield ("configurations", i, "rerank"), _names(RERANKERS, item.get("rerank"))
    swept = mapping_in(value, "grid").get("rerank")
    for key, item in swept.items() if isinstance(swept, dict) else enumerate(swept or ()):
        yield ("grid", "rerank", key), _names(RERANKERS, item)
    for i, item in enumerate(list_in(mapping_in(mapping_in(value, "reviews"), "pool"), "retrievers")):
        yield ("reviews", "pool", "retrievers", i), _names(RETRIEVERS, item)


def _names(kind: Kind[Any], component: Any) -> frozenset[str]:
    """The parameters of a component that hold references; none if its type is unknown, which is reported later."""
    type_name = component.get("type") if isinstance(component, dict) else None
    if not isinstance(type_name, str):
        return frozenset()
    try:
        model: type[Parameters] = kind.load(REFERENCE.sub(lambda match: os.environ.get(match[0][6:-1], ""), type_name))
    except InputError:
        return frozenset()
    overrides = (model.secret_places, model.unset) != (Parameters.secret_places, Parameters.unset)
    is_stated = any("referring" in vars(base) for base in model.__mro__ if base is not Parameters)
    return frozenset(model.model_fields) if overrides and not is_stated else model.referring


def service_of_name(name: str) -> dict[str, Any] | None:
    """The service that `PROVIDER:MODEL` or a model without parameters names; None for other names.

    >>> service_of_name("ollama:llama3.2"), service_of_name("lexical")
    ({'type': 'openai', 'base_url': 'http://localhost:11434/v1', 'model': 'llama3.2'}, {'type': 'lexical'})
    """
    if name in _WITHOUT_PARAMETERS:
        return {"type": name}
    provider, colon, model = name.partition(":")
    if not (colon and model.strip() and provider in PROVIDERS):
        return None
    return {**PROVIDERS[provider], "model": model.strip()}


def hint_of(name: str) -> str | None:
    """Advice about an unknown service name with a colon; None for other names.

    >>> hint_of("opnai:gpt")
    "no provider is called 'opnai'; did you mean 'openai'?"
    """
    provider, colon, model = name.partition(":")
    if not colon:
        return None
    if provider in ("http", "https"):
        return f'an address needs a model, too: {{type: openai, base_url: "{name}", model: MODEL}}'
    if provider in PROVIDERS and not model.strip():
        return f"name a model behind the colon, such as {provider}:MODEL"
    return f"no provider is called {provider!r}; {did_you_mean(provider, PROVIDERS)}"


def _names_service(place: Place) -> bool:
    """Return whether the value of this key, or of this list, is the name of a service."""
    keys = [part for part in place if isinstance(part, str)]
    return bool(keys) and keys[-1].rpartition(".")[2] in _SERVICE_KEYS


def with_providers(located: YamlDocument) -> YamlDocument:
    """A document with the models that it names without an entry added to `services:`."""
    if not isinstance(located.value, dict):
        return located
    section = located.value.get("services") or {}
    if not isinstance(section, dict):
        return located
    for name in section:
        if isinstance(name, str) and ":" in name:
            problem = "has a colon, like PROVIDER:MODEL, which needs no entry here; choose another name"
            located.report(("services", name), problem)
    sections = {name: value for name, value in located.value.items() if name not in _WITHOUT_SERVICES}
    mentions = {text: place for place, text in texts_in(sections) if ":" in text or _names_service(place)}
    services = {name: service for name in mentions if (service := service_of_name(name)) and name not in section}
    if not services:
        return located
    lines: dict[Place, int] = {("services", name): located.lines.get(mentions[name], 1) for name in services}
    value = {**located.value, "services": {**section, **services}}
    return replace(located, value=value, lines={**located.lines, **lines})
