"""API keys: references to secrets, which become values where calls are made, and are hidden in what leaves there."""

from typing import Annotated

from pydantic import AfterValidator

from rankbeam.transforms.clients.secrets import REFERENCE, Secrets, check_references, refuse_literal, resolve


def _checked(value: str) -> str:
    check_references(value)
    refuse_literal("api_key", value)
    return value


ApiKey = Annotated[str, AfterValidator(_checked)]
"""A key, as `${env:NAME}` or `${secret:…}`: the experiment's text is written to the runs table."""


def places_of(api_key: str | None) -> dict[str, str]:
    """The references in a key, each with its place for messages."""
    return {found[0]: "api_key" for found in REFERENCE.finditer(api_key or "")}


async def resolved(api_key: str | None) -> tuple[str | None, Secrets]:
    """The value of a key on this machine, and what hides it.

    Raises:
        InputError: it has none here.
    """
    if api_key is None:
        return None, Secrets({})
    secrets = await resolve(places_of(api_key))
    return REFERENCE.sub(lambda found: secrets.values[found[0]], api_key), secrets
