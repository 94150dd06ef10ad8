"""The template files that an experiment names, each read once, and their problems, with lines."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files as package_files

from rankbeam.transforms.clients.formats import sources
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.calls.prompt import FENCE, check_template, variables_of
from rankbeam.transforms.records.errors import InputError

QUERY, CONTEXTS = "query", "contexts"
OWN = frozenset({QUERY, CONTEXTS, FENCE})
"""The variables that are not attributes of queries."""


@dataclass(frozen=True)
class TemplateFile:
    """The template of a prompt."""

    path: str | None  # the file; None for the template that comes with rankbeam
    text: str
    own: frozenset[str] = OWN  # variables that are not attributes of queries

    @property
    def attributes(self) -> frozenset[str]:
        return variables_of(self.text) - self.own

    def problems(self, attributes: Collection[str] | None, without_contexts: bool) -> Iterator[InputError]:
        known = self.attributes if attributes is None else attributes
        try:
            check_template(self.text, (*sorted(self.own), *known), self.path)
        except InputError as error:
            yield error
            return
        names = variables_of(self.text)
        if QUERY not in names:
            yield InputError("has no {query}: the model would not see the question", path=self.path)
        if CONTEXTS in self.own - names and not without_contexts:
            problem = "has no {contexts}; add them, or set without_contexts: true under generate:"
            yield InputError(problem, path=self.path)


class Templates:
    """The template files below a folder."""

    def __init__(self, folder: str) -> None:
        self._read = cache(_read)
        self._folder = folder

    def read(self, path: str | None) -> TemplateFile:
        """A template file; None for the template that comes with rankbeam."""
        return default() if path is None else self._read(files.below(self._folder, path))


@cache
def default() -> TemplateFile:
    file = package_files("rankbeam.pipelines.experiment.file").joinpath("templates", "answer.txt")
    return TemplateFile(None, file.read_text("utf-8"))


def _read(pattern: str) -> TemplateFile:
    (path, *_) = sources.expand(pattern)
    try:
        return TemplateFile(path, files.read_all(path).decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8; a template is a text file", path=path) from error
