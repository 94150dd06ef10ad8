"""The prompts that write and check: package data, one file a step and version."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from rankbeam.transforms.records.calls.prompt import Prompt, split_template, template_hash
from rankbeam.transforms.records.goldens import forms

_NAME = re.compile(r"(?P<step>\w+)\.v(?P<version>\d+)\.txt")


@dataclass(frozen=True)
class Template:
    """How one step is asked.

    Attributes:
        step: its name.
        text: of the file.
        name: of the file, such as "facts.v1.txt".
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
        return Prompt(self.step, values, system, user, forms.schema(self.step), **settings)


@cache
def templates() -> Mapping[str, Template]:
    """By step, its newest template."""
    newest: dict[str, tuple[int, Template]] = {}
    for file in files("rankbeam.transforms.goldens").joinpath("prompts").iterdir():
        if (match := _NAME.fullmatch(file.name)) is not None:
            step, version = match["step"], int(match["version"])
            if version > newest.get(step, (0, None))[0]:
                newest[step] = version, Template(step, file.read_text(encoding="utf-8"), file.name)
    return MappingProxyType({step: template for step, (_, template) in sorted(newest.items())})
