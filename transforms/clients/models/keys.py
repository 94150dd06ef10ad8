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

_LEAST_SECRET = 8  # characters


def places_of(api_key: str | None) -> dict[str, str]:
    """The references in a key, each with its place for messages."""
    return {match[0]: "api_key" for match in REFERENCE.finditer(api_key or "")}


async def resolved(api_key: str | None) -> tuple[str | None, Secrets]:
    """The value of a key on this machine, and what hides it.

    A short value, such as the `EMPTY` of a local server, is not a secret; hiding it would change the words of answers.

    Raises:
        InputError: it has none here.
    """
    if api_key is None:
        return None, Secrets({})
    values = (await resolve(places_of(api_key))).values
    hidden = {name: value for name, value in values.items() if len(value) >= _LEAST_SECRET}
    return REFERENCE.sub(lambda match: values[match[0]], api_key), Secrets(hidden)
