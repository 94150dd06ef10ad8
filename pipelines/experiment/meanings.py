"""The meanings of keys, as the docstrings of the models that read them give them."""

import inspect
import re
from collections.abc import Iterator

from pydantic import BaseModel

_SECTION = "Attributes:\n"


def meanings(model: type[BaseModel]) -> dict[str, str]:
    """The meaning of each key, from the docstrings of a model and its bases.

    >>> from rankbeam.pipelines.experiment.models import OutputModel
    >>> meanings(OutputModel)["path"]
    'folder for all results.'
    """
    known: dict[str, str] = {}
    for base in reversed(model.__mro__):
        for names, text in _attributes(inspect.cleandoc(base.__doc__ or "")):
            known |= dict.fromkeys(names, text)
    return known


def summary(model: type[BaseModel]) -> str:
    """The part of a model's docstring before its keys."""
    return inspect.cleandoc(model.__doc__ or "").partition(_SECTION)[0].strip()


def _attributes(doc: str) -> Iterator[tuple[list[str], str]]:
    _, found, after = doc.partition(_SECTION)
    section = re.split(r"\n(?=\S)", after)[0] if found else ""
    for item in re.split(r"\n(?=    \S)", f"\n{section}"):
        names, _, text = item.strip().partition(": ")
        if text:
            yield [name.strip() for name in names.split(",")], " ".join(text.split())
