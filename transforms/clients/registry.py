"""Kinds of components by entry point group: what is registered, and how it is found."""

from functools import cache
from importlib.metadata import entry_points
from typing import Any

from rankbeam.transforms.clients.retrievers.base import RetrieverParameters
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.suggestions import did_you_mean

ENTRY_POINT_GROUP = "rankbeam.retrievers"


@cache
def registered() -> dict[str, Any]:
    """The entry point of every type of retriever that is installed, by type."""
    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def parameters_class(kind: str) -> type[RetrieverParameters]:
    """The parameters of a type of retriever.

    Args:
        kind: such as "bm25".

    Raises:
        InputError: there is no such type, or what is registered under it cannot be used.
    """
    if kind not in registered():
        raise InputError(f"unknown retriever type {kind!r}; {did_you_mean(kind, registered())}")
    try:
        found = registered()[kind].load()
    except (ImportError, AttributeError) as error:
        raise InputError(f"retriever type {kind!r} cannot be imported: {error}") from error
    if not (isinstance(found, type) and issubclass(found, RetrieverParameters)):
        raise InputError(f"retriever type {kind!r}: {registered()[kind].value} is no RetrieverParameters")
    return found
