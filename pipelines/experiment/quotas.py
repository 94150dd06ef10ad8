"""From `quotas:` to the pools that pay for calls: which retrievers share one, and what its budget is."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from rankbeam.pipelines.config.problems import problem_of
from rankbeam.pipelines.config.yaml_lines import Located
from rankbeam.pipelines.experiment.cells import Cell
from rankbeam.pipelines.experiment.models import QuotaModel
from rankbeam.transforms.clients.retrievers.base import RETRIEVERS
from rankbeam.transforms.clients.retrievers.remote import RemoteRetriever
from rankbeam.transforms.records.calls.quota import MOST_IN_THE_AIR, Quota
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.suggestions import did_you_mean

_LATENCY_S = 5.0  # of a slow answer; see design.md, "rules for calls"


@dataclass(frozen=True)
class Pools:
    """The result of `pools_of`.

    Attributes:
        quotas: the budget of every pool that some source uses, by its name.
        names: per source, its pool; None where asking costs nothing.
    """

    quotas: dict[str, Quota]
    names: tuple[str | None, ...]


def pools_of(
    located: Located,
    given: Mapping[str, Any],
    cells: Sequence[Cell],
    primary: Sequence[Cell],
    problems: list[InputError],
) -> Pools:
    """The pools of an experiment.

    A retriever that names no pool shares one with those of its type and scope: at the service a budget belongs to a
    project and region, or to a host.

    Args:
        located: the document, for messages.
        given: `quotas:`.
        cells: every configuration.
        primary: per source, the cell that is asked.
        problems: what is wrong is added here.
    """
    models = dict(_validated(located, given, problems))
    problems += _unknown_names(located, given, cells)
    problems += _missing_budgets(located, given, cells)
    names = tuple(_pool(cell, primary) for cell in primary)
    members: dict[str, list[tuple[Cell, RemoteRetriever]]] = {}
    for name, cell in zip(names, primary, strict=True):
        if name is not None and isinstance(cell.parameters, RemoteRetriever):
            members.setdefault(name, []).append((cell, cell.parameters))
    quotas = {}
    for name, group in members.items():
        cell, parameters = group[0]
        default = min((each.default_quota for _, each in group), key=lambda quota: quota.requests_per_minute)
        budget = parameters.quota or cell.kind
        quotas[name] = quota_of(default, models.get(budget, QuotaModel()))
        if quotas[name].lanes > (most := quotas[name].most_lanes):
            problem = f"each needs a call a second, and one in the air: {most} at most, found {quotas[name].lanes}"
            problems.append(located.error(("quotas", budget, "lanes"), problem))
    return Pools(quotas, names)


def quota_of(default: Quota, given: QuotaModel) -> Quota:
    """A budget: what was given, and the default for the rest.

    >>> quota_of(Quota(600), QuotaModel(requests_per_second=500)).lanes
    3
    """
    own = given.model_dump(exclude={"requests_per_second"}, exclude_none=True)
    if given.requests_per_second is not None:
        own["requests_per_minute"] = given.requests_per_second * 60
    quota = replace(default, **own)
    in_the_air = min(quota.requests_per_minute / 60 * _LATENCY_S, quota.concurrent_calls or math.inf)
    lanes = max(default.lanes, math.ceil(in_the_air / MOST_IN_THE_AIR))
    return quota if given.lanes is not None else replace(quota, lanes=min(lanes, quota.most_lanes))


def _validated(
    located: Located, given: Mapping[str, Any], problems: list[InputError]
) -> Iterator[tuple[str, QuotaModel]]:
    for name, value in given.items():
        try:
            yield name, QuotaModel.model_validate(value)
        except ValidationError as error:
            problems += [problem_of(located, QuotaModel, dict(each), at=("quotas", name)) for each in error.errors()]


def _pool(cell: Cell, primary: Sequence[Cell]) -> str | None:
    parameters = cell.parameters
    if not isinstance(parameters, RemoteRetriever):
        return None
    if parameters.quota is not None:
        return parameters.quota
    alike = [each.parameters for each in primary if each.kind == cell.kind]
    scopes = {each.scope() for each in alike if isinstance(each, RemoteRetriever) and each.quota is None}
    return f"{cell.kind}:{parameters.scope()}" if len(scopes) > 1 and parameters.scope() else cell.kind


def _named(cells: Sequence[Cell]) -> dict[str, Cell]:
    """The pools that retrievers name, each with one of them."""
    return {
        cell.parameters.quota: cell
        for cell in reversed(cells)
        if isinstance(cell.parameters, RemoteRetriever) and cell.parameters.quota is not None
    }


def _missing_budgets(located: Located, given: Mapping[str, Any], cells: Sequence[Cell]) -> Iterator[InputError]:
    for name, cell in _named(cells).items():
        if name not in given:
            hint = did_you_mean(name, given) if given else "name it there, with requests_per_minute"
            yield located.error((*cell.place, "quota"), f"quotas: has no {name!r}; {hint}")


def _unknown_names(located: Located, given: Mapping[str, Any], cells: Sequence[Cell]) -> Iterator[InputError]:
    named = _named(cells)
    for name in given:
        if name not in named and not _is_remote(name):
            hint = did_you_mean(name, [*named, *filter(_is_remote, RETRIEVERS.types)])
            yield located.error(("quotas", name), f"is no remote type of retriever, and none names it; {hint}")


def _is_remote(kind: str) -> bool:
    try:
        return issubclass(RETRIEVERS.load(kind), RemoteRetriever)
    except InputError:
        return False
