"""The judge's prompts: package data, one file a step and version, or a user's own folder with the same names."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rankbeam.transforms.judge.steps import STEPS, step_named, steps
from rankbeam.transforms.records.calls.prompt import FENCE, check_template
from rankbeam.transforms.records.calls.template import Template, newest
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.suggestions import did_you_mean

VARIABLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {step.name: step.variables for step in STEPS if not step.embeds}
)
"""By step of rankbeam, the values of its prompt."""


@cache
def shipped() -> Mapping[str, Template]:
    """By step, the newest template that ships with rankbeam."""
    return newest("rankbeam.transforms.judge.steps", _schema)


def templates(folder: str | None = None) -> Mapping[str, Template]:
    """By step, its template: from a user's folder where it has one, and else the shipped one."""
    own: dict[str, Template] = {}
    known = {**shipped(), **_plugged_in()}
    for path in sorted(Path(folder).glob("*.txt")) if folder is not None else ():
        step = path.name.partition(".")[0]
        if step not in known:
            raise InputError(f"no step of the judge is called {step!r}; {did_you_mean(step, known)}", path=str(path))
        if step in own:
            raise InputError(f"a second template of {step}, besides {own[step].name}; keep one", path=str(path))
        own[step] = _checked(Template(step, path.read_text(encoding="utf-8"), path.name, _schema), str(path))
    if folder is not None and not own:
        raise InputError("holds no template; name them after steps, such as support.txt", path=folder)
    return MappingProxyType({**known, **own})


def _plugged_in() -> Mapping[str, Template]:
    """By step of another package, its template."""
    others = (step for step in steps() if step.prompt)
    return {step.name: Template(step.name, step.prompt, f"{step.name}.txt", _schema) for step in others}


def _schema(step: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
    return step_named(step).schema(values)


def _checked(template: Template, path: str) -> Template:
    needed = step_named(template.step).variables
    check_template(template.text, (*needed, FENCE), path)
    missing = [name for name in needed if name != "query" and f"{{{name}}}" not in template.text]
    if missing:
        raise InputError(f"lacks {{{missing[0]}}}: the judge would not see it", path=path)
    return template
