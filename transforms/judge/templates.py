"""The judge's prompts: package data, one file a step and version, or a user's own folder with the same names."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rankbeam.transforms.records import judgements
from rankbeam.transforms.records.calls.prompt import FENCE, Prompt, check_template, split_template, template_hash
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.suggestions import did_you_mean

VARIABLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "claims": ("query", "text"),
        "support": ("query", "evidence", "claims"),
        "grade": ("query", "context"),
        "answer_kind": ("query", "answer"),
        "nugget_assign": ("query", "answer", "nuggets"),
        "statements": ("query", "answer"),
        "questions": ("answer",),
        "sentences": ("query", "sentences"),
    }
)
"""By step, the values of its prompt."""

_NAME = re.compile(r"(?P<step>\w+)\.v(?P<version>\d+)\.txt")
_FOLDER = "prompts"


@dataclass(frozen=True)
class Template:
    """How one step is asked.

    Attributes:
        step: its name.
        text: of the file.
        name: of the file, such as "support.v1.txt".
    """

    step: str
    text: str
    name: str

    @property
    def hash(self) -> str:
        """Its name by content: part of every key."""
        return template_hash(self.text)

    def prompt(self, values: Mapping[str, Any], **settings: Any) -> Prompt:
        """The prompt of these values, with the step's schema.

        Args:
            values: of the step's variables.
            settings: further ones of `Prompt`.
        """
        system, user = split_template(self.text)
        return Prompt(self.step, values, system, user, judgements.schema(self.step, values), **settings)


@cache
def shipped() -> Mapping[str, Template]:
    """By step, the newest template that ships with rankbeam."""
    found: dict[str, tuple[int, Template]] = {}
    for file in files("rankbeam.transforms.judge").joinpath(_FOLDER).iterdir():
        if (match := _NAME.fullmatch(file.name)) is not None:
            step, version = match["step"], int(match["version"])
            if version > found.get(step, (0, None))[0]:
                found[step] = version, Template(step, file.read_text(encoding="utf-8"), file.name)
    return MappingProxyType({step: template for step, (_, template) in sorted(found.items())})


def templates(folder: str | None = None) -> Mapping[str, Template]:
    """By step, its template: from a user's folder where it has one, and else the shipped one.

    Args:
        folder: with files such as `support.txt` or `support.v2.txt`; None for the shipped ones alone.

    Raises:
        InputError: a file is of no step, two are of one, or one holds an unknown variable or lacks one.
    """
    own: dict[str, Template] = {}
    for path in sorted(Path(folder).glob("*.txt")) if folder is not None else ():
        step = path.name.partition(".")[0]
        if step not in VARIABLES:
            raise InputError(
                f"no step of the judge is called {step!r}; {did_you_mean(step, VARIABLES)}", path=str(path)
            )
        if step in own:
            raise InputError(f"a second template of {step}, besides {own[step].name}; keep one", path=str(path))
        own[step] = _checked(Template(step, path.read_text(encoding="utf-8"), path.name), str(path))
    if folder is not None and not own:
        raise InputError("holds no template; name them after steps, such as support.txt", path=folder)
    return MappingProxyType({**shipped(), **own})


def _checked(template: Template, path: str) -> Template:
    needed = VARIABLES[template.step]
    check_template(template.text, (*needed, FENCE), path)
    missing = [name for name in needed if name != "query" and f"{{{name}}}" not in template.text]
    if missing:
        raise InputError(f"lacks {{{missing[0]}}}: the judge would not see it", path=path)
    return template
