"""The retrievers of a pool: their parameters, the models that embed texts for them, and the quotas that pay."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from rankbeam.pipelines.config.problems import problems_of
from rankbeam.pipelines.config.yaml_lines import Located, Place
from rankbeam.pipelines.experiment.file.services import Services
from rankbeam.pipelines.experiment.grid.components import RETRIEVER, Retrieving
from rankbeam.pipelines.goldens.models import PoolModel
from rankbeam.transforms.clients.retrievers.base import RETRIEVERS, RetrieverParameters, Route
from rankbeam.transforms.clients.retrievers.lexical import LexicalParameters
from rankbeam.transforms.goldens.searching import words_of
from rankbeam.transforms.records.errors import InputError

_PLACE: Place = ("reviews", "pool", "retrievers")
_NEEDS = {"queries", "corpus"}


def retrieving_of(
    located: Located, model: PoolModel, language: str, services: Services, problems: list[InputError]
) -> list[Retrieving]:
    """The retrievers of a pool."""
    drafts = [
        _retrieving(located, (*_PLACE, place), entry, language, problems)
        for place, entry in enumerate(model.retrievers)
    ]
    retrievers = [draft for draft in drafts if draft is not None]
    return [_with_embedder(located, retriever, services, problems) for retriever in retrievers]


def embedders_of(retrievers: Sequence[Retrieving]) -> Iterator[str]:
    """The names of the models that embed texts for retrievers."""
    yield from (retriever.embedder.name for retriever in retrievers if retriever.embedder is not None)


def _retrieving(
    located: Located, place: Place, entry: str | dict[str, Any], language: str, problems: list[InputError]
) -> Retrieving | None:
    values = {"type": entry} if isinstance(entry, str) else dict(entry)
    kind = values.pop("type", None)
    if not isinstance(kind, str):
        problems.append(located.error(place, "is a type, or a mapping with type and the parameters of that type"))
        return None
    try:
        model = RETRIEVERS.load(kind)
    except InputError as error:
        problems.append(located.error(place, error.problem))
        return None
    if model.route not in (Route.OPENED, Route.CALLED) or not {*model.needs} <= _NEEDS:
        problem = f"{kind} has no ranking for new questions; name a retriever that searches"
        problems.append(located.error(place, problem))
        return None
    defaults = words_of(language) if issubclass(model, LexicalParameters) else {}
    try:
        parameters = model.model_validate({**defaults, **values})
    except ValidationError as error:
        problems += problems_of(located, model, error, at=place)
        return None
    problems += [located.error((*place, *inside), problem) for inside, problem in parameters.unset()]
    return Retrieving(RETRIEVER, place, kind, parameters)


def _with_embedder(
    located: Located, retrieving: Retrieving, services: Services, problems: list[InputError]
) -> Retrieving:
    parameters: RetrieverParameters = retrieving.parameters
    named = parameters.service
    service = None if named is None else getattr(parameters, named)
    if service is None:
        return retrieving
    problems += services.not_embedding(located, (*retrieving.place, str(named)), service)
    return replace(retrieving, embedder=services.valid.get(service))
