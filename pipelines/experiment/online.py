"""Tests of an experiment's services by requests that cost nothing."""

import asyncio
from collections.abc import Iterator

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.transforms.clients.calls.services import Access, Connection
from rankbeam.transforms.clients.models.remote import RemoteModel
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.errors import CallError, InputError

_LIMIT_S = 30.0


def check_online(experiment: Experiment) -> Iterator[str]:
    """Make a free request to each service that has one, and say of the others what a call costs; yields lines."""
    for name, service in experiment.services.items():
        if service.pool is not None and isinstance(service.parameters, RemoteModel):
            checked = asyncio.run(_checked(name, service.parameters))
            yield f"{name}: {checked or _untested(experiment.pools[service.pool])}"
    asked_sources = [source for source in experiment.sources if source.retriever.remote is not None]
    for pool, kind in dict.fromkeys((source.source.pool, source.retriever.kind) for source in asked_sources):
        if pool is not None:
            yield f"{kind}: {_untested(experiment.pools[pool])}"


async def _checked(name: str, model: RemoteModel) -> str | None:
    connection = await model.connect()
    try:
        return await _answer(name, connection, model.access)
    finally:
        await connection.close()


async def _answer(name: str, connection: Connection, access: Access) -> str | None:
    """The answer to the free request of a connection; None where it has none."""
    check = getattr(connection, "check", None)
    if check is None:
        return None
    try:
        answer: str | None = await check(_LIMIT_S)
    except CallError as error:
        raise (access.refusal(name, error) if access.is_refused(error) else InputError(f"{name}: {error}")) from None
    return None if answer is None else f"{access.address}: {answer}"


def _untested(quota: Quota) -> str:
    """The line of a service without free requests."""
    if quota.price_per_1000 is not None:
        price = f"one call costs {quota.price_per_1000 / 1000:g}"
    elif quota.prices is not None:
        price = f"a million tokens cost {quota.prices.input:g} (input) and {quota.prices.output:g} (output)"
    else:
        price = "quotas: names no price"
    return f"not tested, because it has no free request; the first call of a run tests it ({price})"
