"""Templates: the texts that a model is given, with places for a query, its contexts and its attributes."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from rankbeam.transforms.records.errors import InputError

QUERY, CONTEXTS = "query", "contexts"

_PLACE = re.compile(r"\{\{|\{(?P<name>[^{}\n]*)\}|\{")
_SEPARATOR = re.compile(r"^---[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class Template:
    """What a model is asked, before anything is filled in.

    Attributes:
        system: instructions that are the same for all queries; may be empty.
        user: what is asked for one query.
    """

    system: str
    user: str

    @property
    def digest(self) -> str:
        """Identifies the template, whatever file it stands in."""
        return hashlib.sha256(f"{self.system}\n---\n{self.user}".encode()).hexdigest()[:16]


def parse_template(text: str, path: str | None) -> Template:
    """Read a template: a line `---` parts system from user text, `{name}` is a variable, `{{` a literal brace.

    Args:
        text: of the file.
        path: the file, for messages; None for a text of rankbeam's own.

    Raises:
        InputError: it has no text, two separators, or a brace that opens no variable.

    >>> parse_template("Be brief.\\n---\\n{query} {{x}", "t.txt")
    Template(system='Be brief.', user='{query} {{x}')
    """
    parts = _SEPARATOR.split(text)
    if len(parts) > 2:
        line = text.count("\n", 0, [*_SEPARATOR.finditer(text)][1].start()) + 1
        raise InputError("is a second line ---; one parts system from user text", path=path, line=line)
    for place in _PLACE.finditer(text):
        if place[0] != "{{" and not place["name"]:
            line = text.count("\n", 0, place.start()) + 1
            raise InputError("has a brace that opens no variable; write {{ for a brace", path=path, line=line)
    system, user = (parts[0].strip(), parts[1].strip()) if len(parts) == 2 else ("", text.strip())
    if not user:
        raise InputError("asks nothing: it has no user text", path=path)
    return Template(system, user)


def variables_in(text: str) -> Iterator[tuple[str, int]]:
    """Every variable of a template's file, with its line from 1, in order.

    >>> list(variables_in("{query}\\n{{no}\\n{contexts}"))
    [('query', 1), ('contexts', 3)]
    """
    for place in _PLACE.finditer(text):
        if place["name"]:
            yield place["name"], text.count("\n", 0, place.start()) + 1
