"""The judge's prompts: package data, one file a step and version, or a user's own folder with the same names."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from rankbeam.transforms.records import judgements
from rankbeam.transforms.records.calls.prompt import FENCE, check_template
from rankbeam.transforms.records.calls.template import Template, newest
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


@cache
def shipped() -> Mapping[str, Template]:
    """By step, the newest template that ships with rankbeam."""
    return newest("rankbeam.transforms.judge.steps", judgements.schema)


def templates(folder: str | None = None) -> Mapping[str, Template]:
    """By step, its template: from a user's folder where it has one, and else the shipped one."""
    own: dict[str, Template] = {}
    for path in sorted(Path(folder).glob("*.txt")) if folder is not None else ():
        step = path.name.partition(".")[0]
        if step not in VARIABLES:
            raise InputError(
                f"no step of the judge is called {step!r}; {did_you_mean(step, VARIABLES)}", path=str(path)
            )
        if step in own:
            raise InputError(f"a second template of {step}, besides {own[step].name}; keep one", path=str(path))
        own[step] = _checked(Template(step, path.read_text(encoding="utf-8"), path.name, judgements.schema), str(path))
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
