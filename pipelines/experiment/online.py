"""Test an experiment's services by requests that cost nothing."""

import asyncio
from collections.abc import Iterator

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.transforms.clients.models.remote import RemoteModel
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.errors import CallError, InputError

_LIMIT_S = 30.0


def check_online(experiment: Experiment) -> Iterator[str]:
    """Make a free request to each service that has one, and show what a call to the others costs; yields lines."""
    for name, service in experiment.calls.services.items():
        if service.pool is not None and isinstance(service.parameters, RemoteModel):
            checked = asyncio.run(_check_model(name, service.parameters))
            yield f"{name}: {checked or _untested_line(experiment.calls.pools[service.pool])}"
    asked_sources = [source for source in experiment.sources if source.retriever.remote is not None]
    for pool, kind in dict.fromkeys((source.source.pool, source.retriever.kind) for source in asked_sources):
        if pool is not None:
            yield f"{kind}: {_untested_line(experiment.calls.pools[pool])}"


async def _check_model(name: str, model: RemoteModel) -> str | None:
    """The answer to a model's free request; None if it has no free request."""
    connection, access = await model.connect(), model.access
    try:
        check = getattr(connection, "check", None)
        answer: str | None = None if check is None else await check(_LIMIT_S)
    except CallError as error:
        raise (access.refusal(name, error) if access.is_refused(error) else InputError(f"{name}: {error}")) from None
    finally:
        await connection.close()
    return None if answer is None else f"{access.address}: {answer}"


def _untested_line(quota: Quota) -> str:
    """The line of a service without free requests."""
    if quota.price_per_1000 is not None:
        price = f"one call costs {quota.price_per_1000 / 1000:g}"
    elif quota.prices is not None:
        price = f"a million tokens cost {quota.prices.input:g} (input) and {quota.prices.output:g} (output)"
    else:
        price = "quotas: names no price"
    return f"not tested, because it has no free request; the first call of a run tests it ({price})"
