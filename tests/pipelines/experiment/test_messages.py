"""Every message about a wrong value is in rankbeam's words: not pydantic's, and without names of classes."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from rankbeam.pipelines.config.sections import problem_of
from rankbeam.pipelines.config.yaml_lines import YamlDocument
from rankbeam.pipelines.experiment.file.models import ExperimentModel
from rankbeam.pipelines.gates.gates import GatesModel
from rankbeam.transforms.clients.corpora.base import CORPORA
from rankbeam.transforms.clients.models.base import MODELS
from rankbeam.transforms.clients.retrievers.base import RETRIEVERS
from rankbeam.transforms.clients.retrievers.rerankers import RERANKERS

WRONG: tuple[Any, ...] = (
    "many", "", -7, 0, 10**12, 2.5, float("nan"), True, None, [], ["a", 1], [[1]], [{"a": 1}], {}, {"a": {"b": [1]}},
    object(),
)  # fmt: skip
FOREIGN = re.compile(
    r"[Ii]nput should|should be|valid (?:string|integer|number|list|dictionary|boolean|tuple)|constrained|unable to|"
    r"instance of|Model\b|\b_[A-Z]\w+|function-|pydantic|NoneType|\bstr\b|\bint\b|\bdict\b|1 characters|1 entries"
)


def models() -> Iterator[type[BaseModel]]:
    """The models of the experiment file and of every registered type, with all models inside them."""
    registered = [
        kind for registry in (RETRIEVERS, RERANKERS, CORPORA, MODELS) for kind in map(registry.load, registry.types)
    ]
    known: dict[type[BaseModel], None] = dict.fromkeys([ExperimentModel, GatesModel, *registered])
    pending = list(known)
    while pending:
        model = pending.pop()
        yield model
        for field in model.model_fields.values():
            for inner in _inside(field.annotation):
                if inner not in known:
                    known[inner] = None
                    pending.append(inner)


def _inside(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in getattr(annotation, "__args__", ()):
        yield from _inside(part)


def messages(model: type[BaseModel]) -> Iterator[str]:
    """The problems of every key with every wrong value, without the values themselves."""
    for name in model.model_fields:
        for value in WRONG:
            try:
                model.model_validate({name: value})
            except ValidationError as error:
                for detail in error.errors():
                    problem = problem_of(YamlDocument("e.yaml", {}, {}, ()), model, dict(detail))
                    yield problem.problem.partition(", found ")[0]


@pytest.mark.parametrize("model", list(models()), ids=lambda model: model.__name__)
def test_no_message_has_words_of_pydantic(model: type[BaseModel]) -> None:
    problems = sorted(set(messages(model)))
    assert [message for message in problems if FOREIGN.search(message)] == []
    assert all(len(message) > 8 for message in problems)
