"""The template files that an experiment names, each read once, and what is wrong with them, with their lines."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files as package_files

from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.suggestions import did_you_mean
from rankbeam.transforms.records.template import CONTEXTS, QUERY, Template, parse_template, variables_in


@dataclass(frozen=True)
class TemplateFile:
    """A template as its file has it.

    Attributes:
        path: the file; None for the template that comes with rankbeam.
        template: what it says.
        lines: by variable, the line that it stands in first.
    """

    path: str | None
    template: Template
    lines: Mapping[str, int] = field(compare=False)

    def problems(self, attributes: Collection[str] | None, without_contexts: bool) -> Iterator[InputError]:
        """What is wrong with its variables.

        Args:
            attributes: of the queries; None where they are not known before the run.
            without_contexts: the model is asked without contexts, too.
        """
        known = (QUERY, CONTEXTS, *(attributes or ()))
        for name, line in self.lines.items():
            if name not in known and attributes is not None:
                problem = f"{{{name}}} is neither {{query}} nor {{contexts}} nor an attribute of the queries"
                yield InputError(f"{problem}; {did_you_mean(name, known)}", path=self.path, line=line)
        if QUERY not in self.lines:
            yield InputError("has no {query}: the model would be asked nothing", path=self.path)
        if CONTEXTS not in self.lines and not without_contexts:
            problem = "has no {contexts}; add them, or say without_contexts: true under generate:"
            yield InputError(problem, path=self.path)


class Templates:
    """The template files below a folder."""

    def __init__(self, folder: str) -> None:
        self._read = cache(_read)
        self._folder = folder

    def read(self, path: str | None) -> TemplateFile:
        """A template file; None for the template that comes with rankbeam.

        Raises:
            InputError: there is no such file, or it is no template.
        """
        return default() if path is None else self._read(files.below(self._folder, path))


@cache
def default() -> TemplateFile:
    """The template that comes with rankbeam."""
    text = package_files("rankbeam.pipelines.experiment").joinpath("templates", "answer.txt").read_text("utf-8")
    return _parsed(text, None)


def _read(pattern: str) -> TemplateFile:
    (path, *_) = files.expand(pattern)
    try:
        return _parsed(files.read_all(path).decode("utf-8"), path)
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8; a template is a text file", path=path) from error


def _parsed(text: str, path: str | None) -> TemplateFile:
    lines: dict[str, int] = {}
    for name, line in variables_in(text):
        lines.setdefault(name, line)
    return TemplateFile(path, parse_template(text, path), lines)
