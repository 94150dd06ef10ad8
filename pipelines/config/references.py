"""References to environment variables, replaced by their values before anything else of a file is checked."""

import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from rankbeam.pipelines.config.yaml_lines import Located, Place
from rankbeam.transforms.clients.models.base import MODELS
from rankbeam.transforms.clients.parameters import Kind, Parameters
from rankbeam.transforms.clients.retrievers.base import RETRIEVERS
from rankbeam.transforms.clients.retrievers.rerankers import RERANKERS
from rankbeam.transforms.clients.secret_names import names_secret
from rankbeam.transforms.clients.secrets import FORMS, REFERENCE, is_secret, variable
from rankbeam.transforms.records.errors import InputError

_WRONG = re.compile(r"\$\{[A-Za-z]")
_HINT = "secrets belong in api_key of a service, or in url, headers, params or body of an http retriever"


def resolved(located: Located, problems: list[InputError], literal: Collection[Place] = ()) -> Located:
    """A document whose strings hold the values of this machine's variables; its text keeps the references."""
    places = frozenset((*literal, *_own(located.value)))
    return replace(located, value=_resolved(located, located.value, (), places, problems))


def without_consequences(problems: list[InputError], unresolved: Collection[InputError]) -> list[InputError]:
    """All problems but those of values whose references are not resolved, which says it all."""
    names = {error.problem.partition(": ")[0] for error in unresolved}
    references = {match[0] for error in unresolved for match in REFERENCE.finditer(error.problem)}

    def follows(problem: InputError) -> bool:
        named = {match[0] for match in REFERENCE.finditer(problem.problem)}  # advice names references, too
        return problem.problem.partition(": ")[0] in names or bool(named & references)

    return [error for error in problems if error in unresolved or not follows(error)]


def _resolved(located: Located, value: Any, place: Place, literal: frozenset[Place], problems: list[InputError]) -> Any:
    if place in literal:
        return value
    if isinstance(value, dict):
        return {key: _resolved(located, item, (*place, key), literal, problems) for key, item in value.items()}
    if isinstance(value, list):
        return [_resolved(located, item, (*place, i), literal, problems) for i, item in enumerate(value)]
    if not isinstance(value, str) or "${" not in value:
        return value
    wrong: list[str] = []
    text = REFERENCE.sub(lambda match: _value(match[0], place, wrong), value)
    if _WRONG.search(REFERENCE.sub("", value)):
        wrong.append(f"holds a ${{…}} that is not a reference; write {FORMS}")
    problems += [located.error(place, problem) for problem in dict.fromkeys(wrong)]
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


def _own(value: Any) -> list[Place]:
    """The places in an experiment or a file of goldens whose components resolve references, as some may be secrets."""
    places = [(*place, name) for place, names in _components(value) for name in names]
    names = {str(place[-1]) for place in places}
    swept = (("grid", name) for name in _mapping(value, "grid") if str(name).rpartition(".")[2] in names)
    return [*places, *swept]


def _components(value: Any) -> Iterator[tuple[Place, frozenset[str]]]:
    for name, item in _mapping(value, "services").items():
        yield ("services", name), _names(MODELS, item)
    configurations = value.get("configurations") if isinstance(value, dict) else None
    for i, item in enumerate(configurations if isinstance(configurations, list) else ()):
        if isinstance(item, dict):
            yield ("configurations", i, "retriever"), _names(RETRIEVERS, item.get("retriever"))
            yield ("configurations", i, "rerank"), _names(RERANKERS, item.get("rerank"))
    swept = _mapping(value, "grid").get("rerank")
    for key, item in swept.items() if isinstance(swept, dict) else enumerate(swept or ()):
        yield ("grid", "rerank", key), _names(RERANKERS, item)
    retrievers = _mapping(_mapping(value, "reviews"), "pool").get("retrievers")
    for i, item in enumerate(retrievers if isinstance(retrievers, list) else ()):
        yield ("reviews", "pool", "retrievers", i), _names(RETRIEVERS, item)


def _names(kind: Kind[Any], component: Any) -> frozenset[str]:
    """The parameters of a component that hold references; none where its type is unknown, which is reported later."""
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


def _mapping(value: Any, key: str) -> Mapping[str, Any]:
    inner = value.get(key) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}
