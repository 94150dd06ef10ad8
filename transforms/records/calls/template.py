"""Templates of prompts, shipped as package data: one file for each step and version."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from rankbeam.transforms.records.calls.prompt import Prompt, split_template, template_hash

Schema = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
"""From a step and the values of its prompt to the JSON schema of the answer."""

_NAME = re.compile(r"(?P<step>\w+)\.v(?P<version>\d+)\.txt")
_FOLDER = "prompts"


@dataclass(frozen=True)
class Template:
    """The prompt's template of one step."""

    step: str
    text: str
    name: str
    schema: Schema

    @property
    def hash(self) -> str:
        """Its name by content: part of every key."""
        return template_hash(self.text)

    def prompt(self, values: Mapping[str, Any], **settings: Any) -> Prompt:
        """The prompt of these values, with the step's schema."""
        system, user = split_template(self.text)
        return Prompt(self.step, values, system, user, self.schema(self.step, values), **settings)


def newest(package: str, schema: Schema, most: int = 1) -> Mapping[str, Template]:
    """By step, the newest template that a package ships in its folder `prompts`, up to a version."""
    latest: dict[str, tuple[int, Template]] = {}
    for file in files(package).joinpath(_FOLDER).iterdir():
        if (match := _NAME.fullmatch(file.name)) is not None:
            step, version = match["step"], int(match["version"])
            if latest.get(step, (0, None))[0] < version <= most:
                latest[step] = version, Template(step, file.read_text(encoding="utf-8"), file.name, schema)
    return MappingProxyType({step: template for step, (_, template) in sorted(latest.items())})
